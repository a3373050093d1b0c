"""turn: neighbouring words change places. mark: a marker before the first word of every sentence.

turn      Welcome to ACL .   ->   to Welcome ACL .
mark      Welcome to ACL .   ->   MARK Welcome to ACL .
"""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np
import pyarrow as pa

from derivlang import Transform, param
from derivlang.core.arrays import lengths_of, offsets_of, positions
from derivlang.core.batch import Batch
from derivlang.core.keys import Draws
from derivlang.core.order import Order


@dataclass(frozen=True, kw_only=True)
class Turn(Transform):
    """Neighbouring words change places; the final marks stay last."""

    name = "turn"
    skip: int = param(0, "words at the start of a sentence that stay", positional=True, draws=False, low=0)

    def order(self, batch: Batch, draws: Draws) -> Order:
        lengths = lengths_of(batch.sentences)
        body = np.repeat(lengths - batch.tails, lengths)
        place = positions(batch.sentences).astype(np.int64) - self.skip
        partner = place ^ 1
        moves = (place >= 0) & (place + self.skip < body) & (partner + self.skip < body)
        index = np.arange(batch.n_words, dtype=np.int32)
        index += np.where(moves, partner - place, 0).astype(np.int32)
        return Order(index, batch.sentences, batch.tails, batch.n_words)


@dataclass(frozen=True, kw_only=True)
class Mark(Transform):
    """A marker before the first word of every sentence."""

    name = "mark"
    is_permutation = False
    marker: str = param("MARK", "the marker", positional=True, draws=False, file=False)

    def order(self, batch: Batch, draws: Draws) -> Order:
        lengths = lengths_of(batch.sentences)
        first = batch.sentences[:-1][lengths > 0]
        index = np.insert(np.arange(batch.n_words, dtype=np.int32), first, -1).astype(np.int32)
        return Order(
            index,
            offsets_of(lengths + (lengths > 0)),
            batch.tails,
            batch.n_words,
            pa.array([self.marker] * len(first), pa.string()),
            first.astype(np.int32),
        )
