"""ner: named entities, as IOB2 tags of words.

ner is WikiAnn in English, ner:fr another language. Entities move as spans; one that the order splits becomes several.
Fine-tuning as published (ALIGN-MLM, appendix H): 10 epochs, lr 2e-5, batch 32, length 128. There is no chance level:
the most frequent tag, O, finds no entity.
"""

from __future__ import annotations

from derivlang.evaluation.examples import Instances
from derivlang.evaluation.metrics import Metric, entity_counts, f1, precision, recall
from derivlang.evaluation.tasks.labelling import WordLabelling


class NamedEntities(WordLabelling):
    """Named entities of WikiAnn."""

    kind = source = "ner"
    default = "en"
    layer = "ner_tags"
    metrics = (
        Metric("f1", entity_counts, f1, "F1"),
        Metric("precision", entity_counts, precision),
        Metric("recall", entity_counts, recall),
    )
    headline = "f1"

    def chance(self, train: Instances, test: Instances, classes: tuple[str, ...]) -> dict[str, float]:
        return {}
