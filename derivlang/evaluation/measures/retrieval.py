"""Sentence retrieval: the percentage of sentences whose most similar sentence is their own, by layer.

    sentences    sentences whose most similar one of the other language, by cosine, is theirs; the mean of both
                 directions (ties: the first)
    first        the same by the state of `<s>`, which PPA trains (Pan et al. 2021, section 2.1)
    chance       the same for a guess among n sentences: 100 / n

The mean of sub-words' states stands for a sentence, as in XTREME's Tatoeba (Hu et al. 2020). A causal model has no
figure `first`, as `<s>` sees nothing but itself.
"""

from __future__ import annotations

from typing import Any

import torch

from derivlang.evaluation.measures.base import Figures, Measure
from derivlang.evaluation.measures.sets import MeasureSets
from derivlang.training.encoder import Encoder


class Retrieval(Measure):
    """Sentences whose most similar sentence of the other language is their own."""

    reads = ("pairs",)

    def measure(self, model: Encoder, sets: MeasureSets) -> list[dict[str, Any]]:
        """Return [{"layer", "sentences", "first", "chance"}, …] over `sets.pairs`."""
        states = sets.states(model)
        found = []
        for layer, (means, first) in enumerate(zip(states.sentences, states.first, strict=True)):
            by_first = {} if model.causal else {"first": accuracy(*first)}
            chance = 100 / sets.pairs.n_sentences
            found.append({"layer": layer, "sentences": accuracy(*means), **by_first, "chance": chance})
        return found

    def rows(self, found: Any) -> dict[str, Figures]:
        """Return the figures by layer."""
        titles = {"sentences": "sentences", "first": "by <s>", "chance": "chance"}
        return {
            f"layer {one['layer']}": {title: one[name] for name, title in titles.items() if name in one}
            for one in found
        }


def accuracy(source: torch.Tensor, derived: torch.Tensor) -> float:
    """Return the percentage of sentences, the mean of both directions. source, derived: [S, D]."""
    source, derived = (torch.nn.functional.normalize(states, dim=1) for states in (source, derived))
    cosines = source @ derived.T
    own = torch.arange(len(source), device=cosines.device)
    hits = torch.stack([cosines.argmax(dim=side) == own for side in (0, 1)]).sum()
    return 50 * int(hits) / len(source)
