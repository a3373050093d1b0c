"""Sentence retrieval: the percentage of sentences whose most similar sentence is their own, by layer.

    sentences    sentences whose most similar one of the other language, by cosine, is theirs; the mean of both
                 directions (ties: the first)
    chance       the same for a guess among n sentences: 100 / n

The mean of sub-words' states stands for a sentence, as in XTREME's Tatoeba (Hu et al. 2020).
"""

from __future__ import annotations

from typing import Any

import torch

from derivlang.evaluation.measures.base import Measure
from derivlang.evaluation.measures.sets import MeasureSets
from derivlang.evaluation.trained import ModelEncoder


class Retrieval(Measure):
    """Sentences whose most similar sentence of the other language is their own."""

    def measure(self, model: ModelEncoder, sets: MeasureSets) -> list[dict[str, Any]]:
        """Return [{"layer", "sentences", "chance"}, …] over `sets.pairs`."""
        return [
            {"layer": layer, "sentences": accuracy(*sides), "chance": 100 / sets.pairs.n_sentences}
            for layer, sides in enumerate(sets.states(model).sentences)
        ]


def accuracy(source: torch.Tensor, derived: torch.Tensor) -> float:
    """Return the percentage of sentences, the mean of both directions. source, derived: [S, D]."""
    source, derived = (torch.nn.functional.normalize(states, dim=1) for states in (source, derived))
    cosines = source @ derived.T
    own = torch.arange(len(source), device=cosines.device)
    hits = sum(int((cosines.argmax(dim=side) == own).sum()) for side in (0, 1))
    return 50 * hits / len(source)
