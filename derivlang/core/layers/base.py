"""Layer: an annotation of the words of a batch. A new kind is a subclass in one file, and a line in `LAYERS`.

    read      the layer, from the columns of a labelled table
    restore   the layer, from the columns that `columns` wrote
    realign   the layer in a derived order
    columns   the columns of a derived set
    group     the words that an order must treat as one word
    differs   the rows whose labels the inverse order and lexicon do not restore


A layer sees the words (a BareBatch), never other layers.
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
from derivlang.core.arrow import differs, list_array, to_arrow
from derivlang.core.bare_batch import BareBatch
from derivlang.core.layers.labels import Labels
from derivlang.core.lexicon import Lexicon
from derivlang.core.order import Order
from derivlang.core.plugins import Registry
from derivlang.core.policies import Policies
from derivlang.core.schema import Field


@dataclass(frozen=True)
class Realignment:
    """What a layer needs to follow an order: the source, the order, and where each word went.

    counts: what was lost or changed, by reason; layers add to it. labels: the lexicon for words inside annotations
    (lemmas).
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

    losses: the counters that reading and realigning add to, each with the sentence that is printed after its number.
    In both, `{}` is replaced by the column; in the sentence, `[a|b]` by a for the number 1 and by b for others.
    """

    __slots__ = ()
    losses: ClassVar[Mapping[str, str]] = {}

    @classmethod
    @abstractmethod
    def read(cls, field: Field, labels: Labels) -> Self:
        """Return the layer of a labelled table. Raise LayerError if its columns do not fit the words."""

    @classmethod
    def restore(cls, field: Field, labels: Labels) -> Self:
        """Return the layer of a derived set. Raise LayerError if its columns are damaged."""
        return cls.read(field, labels)

    @abstractmethod
    def realign(self, move: Realignment) -> Layer:
        """Return the layer in the derived order; add to `move.counts` what is lost."""

    @abstractmethod
    def columns(self, batch: BareBatch) -> dict[str, pa.Array]:
        """Return Arrow columns of R rows, by name; `batch` holds the words that the layer annotates."""

    def group(self, batch: BareBatch, policies: Policies, inside: Bool) -> None:
        """Set `inside[i]` if word i continues the group of the word before it, under these policies.

        A group counts as one word to an order. inside: bool[N + 1], shared by all layers.
        """
        return None

    def may_change(self, *, has_order: bool, exact: bool) -> bool:
        """Return whether the inverse order may give other columns than the source's. If not, they are not compared.

        has_order: the pipeline has an order. exact: this order is a permutation.
        """
        return has_order

    def differs(self, ours: pa.Array, theirs: pa.Array) -> Bool:
        """Return bool[R]: the rows in which a source column differs from the one that the inverse order gives."""
        return differs(ours, theirs)


def record_lists(batch: BareBatch, values: pa.Array, side: int = 0) -> pa.Array:
    """Return list<value>[R]: per-word values [N] as one list for each record, of one side."""
    units = list_array(batch.unit_words, values)
    rows = batch.records[:, side]
    if len(rows) == len(units) and (rows[1:] > rows[:-1]).all():
        return units
    return units.take(to_arrow(rows))


LAYERS: Registry[type[Layer]] = Registry(
    "layer",
    Layer,
    {
        "answers": "derivlang.core.layers.answers:Answers",
        "constituents": "derivlang.core.layers.constituents:ConstituentTrees",
        "entities": "derivlang.core.layers.spans:Spans",
        "heads": "derivlang.core.layers.tree:Heads",
        "misc": "derivlang.core.layers.misc:Misc",
        "parsed-tags": "derivlang.core.layers.parse:ParsedTags",
        "parsed-tree": "derivlang.core.layers.parse:ParsedTree",
        "tags": "derivlang.core.layers.words:Words",
        "tree": "derivlang.core.layers.tree:Tree",
        "value": "derivlang.core.layers.values:Values",
    },
    of_classes=True,
    fix="derivlang.core.layers.base.layer_kinds() lists the layers",
)
register_layer = LAYERS.add
layer_kinds = LAYERS.names
find_layer = LAYERS.find
