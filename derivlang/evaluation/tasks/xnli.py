"""xnli: whether a premise entails a hypothesis, contradicts it, or neither.

xnli is English, trained on MultiNLI; xnli:fr is another language. Fine-tuning as published (ALIGN-MLM, appendix H): 5
epochs, lr 2e-5, batch 32, length 128.
"""

from __future__ import annotations

from derivlang.core.schema import NLI
from derivlang.evaluation.finetune_settings import FinetuneSettings
from derivlang.evaluation.metrics import Metric, right_counts
from derivlang.evaluation.tasks.labelling import PairLabelling


class Inference(PairLabelling):
    """Natural language inference of XNLI."""

    kind = source = "xnli"
    default = "en"
    layer = "label"
    names = NLI
    columns = (Metric("accuracy", count=right_counts, headline=True, chance=True),)
    defaults = FinetuneSettings(epochs=5)
