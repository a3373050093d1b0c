"""Tasks that a run is fine-tuned on and evaluated with, one file each."""
