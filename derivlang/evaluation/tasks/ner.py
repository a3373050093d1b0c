"""ner: named entities, as IOB2 tags of words.

ner is WikiAnn in English, ner:fr another language. Entities move as spans; one that the order splits becomes several.
Fine-tuning as published (ALIGN-MLM, appendix H): 10 epochs, lr 2e-5, batch 32, length 128. There is no chance level:
the most frequent tag, O, finds no entity.
"""

from __future__ import annotations

from derivlang.evaluation.metrics import Metric, entity_counts
from derivlang.evaluation.tasks.labelling import WordLabelling


class NamedEntities(WordLabelling):
    """Named entities of WikiAnn."""

    kind = source = "ner"
    default = "en"
    layer = "ner_tags"
    columns = (
        Metric("f1", "F1", formula="f1", count=entity_counts, headline=True),
        Metric("precision", formula="precision", count=entity_counts),
        Metric("recall", formula="recall", count=entity_counts),
    )
