"""mood: the mood of a sentence, a label at `<s>`."""

from __future__ import annotations

from typing import Any

import numpy as np

from derivlang.core.layers.words import Values
from derivlang.evaluation.examples import Examples
from derivlang.evaluation.finetune_settings import FinetuneSettings
from derivlang.evaluation.metrics import Metric, right_counts
from derivlang.evaluation.rows import ParallelRows
from derivlang.evaluation.tasks.labelling import Labelling
from derivlang.sources.corpus import Corpus


class Mood(Labelling):
    """The mood of a sentence."""

    kind = "mood"
    source = "moods"
    default = "sample"
    layer = "mood"
    needs = "a mood for each sentence"
    columns = (Metric("accuracy", count=right_counts, headline=True, chance=True),)
    defaults = FinetuneSettings(epochs=3)

    def classes(self, corpus: Corpus) -> tuple[str, ...]:
        if corpus.schema.field(self.layer) is None:
            raise self.no_labels(corpus.name)
        return "glad", "sad"

    def examples(self, rows: ParallelRows, classes: tuple[str, ...]) -> Examples:
        layer = rows.batch.layers.get(self.layer)
        if not isinstance(layer, Values):
            raise self.no_labels(self.name)
        gold = np.array([classes.index(mood) for mood in layer.values.to_pylist()], np.int64)
        every, begin = np.arange(len(gold)), np.zeros(len(gold), np.int64)
        return rows.examples(lambda text: text.instances(every, begin, gold), classes)

    def head(self, config: Any, n_classes: int) -> Any:
        from derivlang.evaluation.heads import Classification

        return Classification(config, n_classes, pooled=True)
