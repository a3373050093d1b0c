"""Pre-training on a source language and its derived one: data, objectives, the model, the loop, run folders."""
