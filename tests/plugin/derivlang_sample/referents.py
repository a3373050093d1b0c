"""referents: the word that each word refers to, by its number in the row, 1-based; 0 where it refers to none.

    Ann met Bo : he waved .      0 0 0 0 3 0 0
    --inv-->  waved he : Bo met Ann .      0 4 0 0 0 0 0

A reference moves with its word and follows the word that it names. One to a deleted word is lost, and counted.
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass
from typing import ClassVar, Self

import numpy as np
import pyarrow as pa

from derivlang.core.arrays import Int32, lengths_of
from derivlang.core.arrow import to_arrow, to_numpy
from derivlang.core.bare_batch import BareBatch
from derivlang.core.errors import LayerError
from derivlang.core.layers.base import Labels, Layer, Realignment, side_columns
from derivlang.core.schema import Field


@dataclass(frozen=True, slots=True, eq=False)
class Referents(Layer):
    """name: the column. numbers: int32[N], 1-based in the unit, 0 = none."""

    losses: ClassVar[Mapping[str, str]] = {"{}-lost": "reference[|s] of {} to deleted words"}

    name: str
    numbers: Int32

    @classmethod
    def read(cls, field: Field, labels: Labels) -> Self:
        numbers = to_numpy(labels.per_word(field.column, shown=field.input)).astype(np.int32)
        words = lengths_of(labels.batch.unit_words)
        wrong = np.flatnonzero((numbers < 0) | (numbers > np.repeat(words, words)))
        if wrong.size:
            at = int(wrong[0])
            raise LayerError(f"there is no word {numbers[at]} to refer to", where=labels.word(at), id="referent")
        return cls(field.column, numbers)

    def realign(self, move: Realignment) -> Referents:
        first = move.source.unit_words[:-1][move.source_unit_of]
        target = np.where(self.numbers > 0, first + self.numbers - 1, -1)  # in the batch
        place = np.where(target >= 0, move.positions[target], -1)
        kept = np.flatnonzero(move.order.index >= 0)
        word = move.order.index[kept]
        found = place[word] >= 0
        lost = int(((target[word] >= 0) & ~found).sum())
        if lost:
            move.counts[f"{self.name}-lost"] += lost
        numbers = np.zeros(move.order.n_derived, np.int32)
        unit = move.derived_unit_of[kept]
        numbers[kept] = np.where(found, place[word] - move.derived_units[unit] + 1, 0)
        return Referents(self.name, numbers)

    def columns(self, batch: BareBatch) -> dict[str, pa.Array]:
        return side_columns(self.name, batch, to_arrow(self.numbers))
