"""Sentence retrieval: the percentage of sentences whose most similar sentence is their own, by layer.

    sentences    sentences whose most similar one of the other language, by cosine, is theirs; the mean of both
                 directions (ties: the first)
    first        the same by the state of `<s>`, which PPA trains (Pan et al. 2021, section 2.1)

A guess among n sentences reaches 100 / n. The mean of sub-words' states stands for a sentence, as in XTREME's Tatoeba
(Hu et al. 2020). A causal model has no score `first`, as `<s>` sees nothing but itself.
"""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from pathlib import Path
from typing import TYPE_CHECKING

import numpy as np

from derivlang.core.arrays import Int64
from derivlang.evaluation.columns import Column
from derivlang.evaluation.measures.base import Measure
from derivlang.evaluation.measures.of_file import PairMeasure
from derivlang.evaluation.measures.sets import MeasureSets
from derivlang.evaluation.scores import Score, ScoredSet

if TYPE_CHECKING:
    import torch

    from derivlang.training.encoder import Encoder


class Retrieval(Measure):
    """Sentences whose most similar sentence of the other language is their own."""

    columns = (
        Column("sentences", headline=True, over="layer", chance=True),
        Column("first", "sentences by <s>", over="layer", chance=True),
    )
    reads = ("pairs",)

    def on_file(self, file: Path, names: tuple[str, ...], target: str) -> FileRetrieval:
        return FileRetrieval(file, names, target)

    def measure(self, model: Encoder, sets: MeasureSets) -> Iterator[Score]:
        """Yield the hits of each sentence of `sets.pairs` by layer, and of a guess."""
        states = sets.states(model)
        return _scores(model, [states.sentences, states.first], sets.of_pairs)


class FileRetrieval(PairMeasure):
    """Sentences of a file whose most similar sentence of the other side is their own."""

    columns = Retrieval.columns

    def measure(self, model: Encoder, sets: MeasureSets) -> Iterator[Score]:
        """Yield the hits of each pair by layer, and of a guess."""
        both = zip(*self.encoder(model, sets).sentences(self.bitext), strict=True)
        layers = [list(zip(*sides, strict=True)) for sides in both]
        return _scores(model, layers, self.scored(self.pairs.sha256, len(layers[0][0][0])))


def _scores(
    model: Encoder, states: Sequence[Sequence[tuple[torch.Tensor, torch.Tensor]]], of: ScoredSet
) -> Iterator[Score]:
    """Yield the scores of states by layer: of sentences, and of their `<s>`. of: what they are of."""
    for name, layers in zip(["sentences"] if model.causal else ["sentences", "first"], states, strict=False):
        for layer, sides in enumerate(layers):
            yield Score(name, hits(*sides), layer=layer, set=of)
        n = len(layers[0][0])
        yield Score(name, np.tile(np.array([1, n]), (n, 1)), regime="chance", set=of)


def hits(source: torch.Tensor, derived: torch.Tensor) -> Int64:
    """Return int64[S, 2]: directions in which the nearest sentence is its own, 2. source, derived: [S, D]."""
    import torch

    source, derived = (torch.nn.functional.normalize(states, dim=1) for states in (source, derived))
    cosines = source @ derived.T
    own = torch.arange(len(source), device=cosines.device)
    right = sum((cosines.argmax(dim=side) == own).long() for side in (0, 1))
    return np.stack([torch.as_tensor(right).cpu().numpy(), np.full(len(source), 2)], axis=1)
