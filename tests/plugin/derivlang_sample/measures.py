"""centroids: how near the mean sentence states of the two languages are."""

from __future__ import annotations

from typing import Any

import torch

from derivlang.evaluation.measures.base import Measure
from derivlang.evaluation.measures.sets import MeasureSets
from derivlang.training.encoder import Encoder


class Centroids(Measure):
    """Cosine between the mean sentence state of the source and that of the derived language, by layer."""

    reads = ("pairs",)

    def measure(self, model: Encoder, sets: MeasureSets) -> list[dict[str, Any]]:
        """Return [{"layer", "cosine"}, …], in percent, over `sets.pairs`."""
        return [
            {"layer": layer, "cosine": 100 * float(torch.cosine_similarity(source.mean(0), derived.mean(0), dim=0))}
            for layer, (source, derived) in enumerate(sets.states(model).sentences)
        ]
