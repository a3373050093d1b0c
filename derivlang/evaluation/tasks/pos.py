"""pos: part-of-speech tags of Universal Dependencies, one a word.

pos is English-EWT, pos:French-GSD another treebank. Fine-tuning as published (ALIGN-MLM, appendix H): 10 epochs, lr
2e-5, batch 32, length 128.
"""

from __future__ import annotations

from derivlang.evaluation.metrics import Metric, f1, macro_f1, right_counts, run_counts, share, tag_counts
from derivlang.evaluation.tasks.labelling import WordLabelling


class PartsOfSpeech(WordLabelling):
    """Part-of-speech tags of Universal Dependencies."""

    kind = source = "pos"
    default = "English-EWT"
    layer = "upos"
    metrics = (
        Metric("accuracy", right_counts, share),
        Metric("macro_f1", tag_counts, macro_f1, "macro F1"),
        Metric("seqeval_f1", run_counts, f1, "seqeval F1"),
    )
    headline = "accuracy"
