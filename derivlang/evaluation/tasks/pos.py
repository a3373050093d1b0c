"""pos: part-of-speech tags of Universal Dependencies, one a word.

pos is English-EWT, pos:French-GSD another treebank. Fine-tuning as published (ALIGN-MLM, appendix H): 10 epochs, lr
2e-5, batch 32, length 128.
"""

from __future__ import annotations

from derivlang.evaluation.metrics import Metric, right_counts, run_counts, tag_counts
from derivlang.evaluation.tasks.labelling import WordLabelling
from derivlang.parsing.base import UPOS


class PartsOfSpeech(WordLabelling):
    """Part-of-speech tags of Universal Dependencies."""

    kind = source = "pos"
    default = "English-EWT"
    layer = "upos"
    columns = (
        Metric("accuracy", count=right_counts, headline=True, chance=True),
        Metric("macro_f1", "macro F1", formula=f"macro_f1:{len(UPOS)}", count=tag_counts, chance=True),
        Metric("seqeval_f1", "seqeval F1", formula="f1", count=run_counts, chance=True),
    )
