"""Layer: an annotation of the words of a batch. A new kind is a subclass in one file, and a line in the registry.

    read      from the columns of a labelled table            restore   from the columns that `columns` wrote
    realign   in a derived order                              group     words that count as one word to an order
    columns   the columns of a derived set                    differs   rows that the way back does not restore

Layers see the words (a BareBatch), never each other.
"""

from __future__ import annotations

from abc import ABC, abstractmethod
from collections import Counter
from collections.abc import Mapping
from dataclasses import dataclass, field
from functools import cached_property
from typing import ClassVar, Self

import pyarrow as pa

from derivlang.core.arrays import Bool, Int32, Int64, owners
from derivlang.core.arrow import list_array, to_arrow
from derivlang.core.bare_batch import BareBatch
from derivlang.core.compare import differs
from derivlang.core.layers.labels import Labels
from derivlang.core.lexicon import Lexicon
from derivlang.core.order import Order
from derivlang.core.policies import Policies
from derivlang.core.schema import Field


@dataclass(frozen=True)
class Move:
    """What a layer needs to follow an order: the units of both sides, and where each word went.

    counts: what was lost or changed, by reason; layers add to it. labels: what a lexicon makes of words in annotations.
    """

    source: BareBatch
    order: Order
    policies: Policies = Policies()
    counts: Counter[str] = field(default_factory=Counter)
    labels: Lexicon = Lexicon()

    @cached_property
    def positions(self) -> Int32:
        """int32[N]: the derived place of each source word, -1 where it is deleted."""
        return self.order.positions()

    @cached_property
    def derived_units(self) -> Int64:
        """int64[U + 1]: word offsets of the derived units."""
        return self.order.sentences[self.source.units]

    @cached_property
    def derived_unit_of(self) -> Int32:
        """int32[M]: the unit of each derived place."""
        return owners(self.derived_units)

    @cached_property
    def source_unit_of(self) -> Int32:
        """int32[N]: the unit of each source word."""
        return owners(self.source.unit_words)


class Layer(ABC):
    """An annotation of the words of a batch; a frozen dataclass, named by its column.

    losses: the counters that reading and realigning add to, each with the sentence that is printed after its number;
    `{}` stands for the column, `[a|b]` for a of one thing and b of several.
    """

    __slots__ = ()
    losses: ClassVar[Mapping[str, str]] = {}

    @classmethod
    @abstractmethod
    def read(cls, field: Field, labels: Labels) -> Self:
        """Return the layer of a labelled table. Raise LayerError where its columns do not fit the words."""

    @classmethod
    def restore(cls, field: Field, labels: Labels) -> Self:
        """Return the layer of a derived set. Raise LayerError where its columns are damaged."""
        return cls.read(field, labels)

    @abstractmethod
    def realign(self, move: Move) -> Layer:
        """Return the layer in the derived order; add to `move.counts` what is lost."""

    @abstractmethod
    def columns(self, batch: BareBatch) -> dict[str, pa.Array]:
        """Return Arrow columns of R rows, by name; `batch` holds the words that the layer annotates."""

    def group(self, batch: BareBatch, policies: Policies, inside: Bool) -> None:
        """Set `inside[i]` where word i continues a group that counts as one word under these policies."""
        return None

    def may_change(self, *, has_order: bool, exact: bool) -> bool:
        """Return whether going back may give other columns: only then they are compared with the source's.

        has_order: the pipeline has an order. exact: that order is a permutation.
        """
        return has_order

    def differs(self, ours: pa.Array, theirs: pa.Array) -> Bool:
        """Return bool[R]: the rows in which a column of the layer is not the one that the way back gives."""
        return differs(ours, theirs)


def record_lists(batch: BareBatch, values: pa.Array, side: int = 0) -> pa.Array:
    """Return list<value>[R]: per-word values [N] as one list for each record, of one side."""
    units = list_array(batch.unit_words, values)
    rows = batch.records[:, side]
    if len(rows) == len(units) and (rows[1:] > rows[:-1]).all():
        return units
    return units.take(to_arrow(rows))
