"""pawsx: whether two sentences with many words in common are paraphrases.

pawsx is English, pawsx:de another language (Yang et al. 2019). A field `NS` (its translation failed) is a sentence like
any other. Fine-tuning as of the xnli task: 5 epochs, lr 2e-5, batch 32, length 128.
"""

from __future__ import annotations

from derivlang.evaluation.finetune_settings import FinetuneSettings
from derivlang.evaluation.metrics import Metric, right_counts
from derivlang.evaluation.tasks.labelling import PairLabelling


class Paraphrases(PairLabelling):
    """Paraphrases of PAWS-X."""

    kind = source = "pawsx"
    default = "en"
    layer = "label"
    names = ("0", "1")
    columns = (Metric("accuracy", count=right_counts, headline=True, chance=True),)
    defaults = FinetuneSettings(epochs=5)
