"""Layer: an annotation of the words of a batch. A new kind is a subclass, and a line in `LAYERS`.

    read      the layer, from the columns of a labelled table, or from those that `columns` wrote
    realign   the layer in a derived order
    columns   the columns of a derived set
    group     the words that an order must treat as one word

A layer sees the words (a BareBatch), never other layers.

`Labels` are the columns from which layers are read, and their places in a file for errors.
"""

from __future__ import annotations

from abc import ABC, abstractmethod
from collections import Counter
from collections.abc import Callable, Mapping
from dataclasses import dataclass, field
from functools import cached_property
from typing import Any, ClassVar, Literal, Self

import numpy as np
import pyarrow as pa
import pyarrow.compute as pc

from derivlang.core.arrays import Bool, Int32, Int64, lengths_of, owners
from derivlang.core.arrow import filled, list_array, to_arrow, to_numpy
from derivlang.core.bare_batch import BareBatch
from derivlang.core.columns import conform, value_lists
from derivlang.core.errors import LayerError
from derivlang.core.lexicon import Lexicon
from derivlang.core.order import Order
from derivlang.core.plugins import Registry
from derivlang.core.policies import Policies
from derivlang.core.schema import NLI, NLI_SPELLINGS, Field

Locate = Callable[[int, int | None], str]  # (row, word or None) -> "file:line"


@dataclass(frozen=True, slots=True)
class Labels:
    """The label columns of R rows, and the batch of their words.

    columns: Arrow arrays [R], by name. where: returns the place of a row or a word of a labelled table. repair: repair
    ill-formed tags instead of raising. counts: what is repaired or widened, by reason. no_null_strings: no word may
    have null for a string, since shards cannot hold it. whole_trees: each unit must be one tree. stored: the columns
    are of a derived set, as `Layer.columns` wrote them.
    """

    columns: Mapping[str, pa.Array]
    batch: BareBatch
    where: Locate | None = None
    repair: bool = False
    counts: Counter[str] = field(default_factory=Counter)
    no_null_strings: bool = False
    whole_trees: bool = False
    stored: bool = False

    def __contains__(self, name: str) -> bool:
        return name in self.columns

    def __getitem__(self, name: str) -> pa.Array:
        return self.columns[name]

    def typed(self, name: str, kind: pa.DataType, **more: Any) -> pa.Array:
        """Return a column [R] as the Arrow type that its layer declares. Raise LayerError as `conform`."""
        return conform(self.columns[name], kind, name, self.where and self.row, **more)

    def per_word(
        self, name: str, kind: pa.DataType | None = None, *, shown: str | None = None, every_side: bool = False
    ) -> pa.Array:
        """Return the values of a list column, one for each word: Arrow [N].

        kind: the type of a value, or of those in a dictionary; None: any plain type. shown: the source's name of the
        column. every_side: there is a column for each side, such as `premise_upos`; otherwise there may be only one
        side. Raise LayerError if the column does not hold lists of such values, or if a row has more or fewer values
        than words.
        """
        batch = self.batch
        column = (
            self.columns[name]
            if not every_side
            else pa.concat_arrays([self.columns[side_name(side, name)] for side in batch.sides])
        )
        if kind is None or _is_coded(column.type, kind):
            column = value_lists(column, shown or name, self.where and self.row)
        else:
            column = conform(column, pa.list_(kind), name, self.where and self.row)
        words = self.row_lengths
        lengths = pc.list_value_length(column)
        values = to_numpy(filled(lengths, -1))
        wrong = np.flatnonzero(values != words) if every_side or len(batch.sides) == 1 else [0]
        if len(wrong):
            row = int(wrong[0])
            raise LayerError(
                f"{int(words[row])} words but {max(0, int(values[row]))} values in {shown or name}",
                where=self.row(row),
                fix="every word needs exactly one value (--label-column says that the lists stay as they are)",
                id="label-length",
            )
        flat = column.flatten()
        has_nulls = pa.types.is_dictionary(flat.type) and (flat.null_count or flat.dictionary.null_count)
        return flat.dictionary_decode() if has_nulls else flat

    @property
    def row_lengths(self) -> Int64:
        """int64[K R]: the number of words of each row, one side after the other."""
        return lengths_of(self.batch.unit_words)[self.batch.records.T.ravel()]

    def strings(self, name: str, *, every_side: bool = False) -> pa.Array:
        """Return the strings of a list column, one for each word: Arrow [N], maybe codes into a dictionary.

        Raise LayerError as `per_word`, and null-value for a null.
        """
        flat = self.per_word(name, pa.string(), every_side=every_side)
        if flat.null_count:
            raise self.no_value(name, flat)
        return flat

    def no_value(self, name: str, flat: pa.Array) -> LayerError:
        """Return the error for a word without a value. flat: Arrow [N], with a null."""
        return LayerError(
            f"{name} has no value (null) for a word",
            where=self.word(int(np.flatnonzero(to_numpy(flat.is_null()))[0])),
            fix="give every word a value, such as _, or leave the column out",
            id="null-value",
        )

    def row(self, row: int) -> str | None:
        """Return the place of a row, or None if it is not known."""
        return self.where(row, None) if self.where else None

    def word(self, word: int) -> str | None:
        """Return the place of a word of the batch, or None if it is not known."""
        unit = int(np.searchsorted(self.batch.unit_words, word, "right")) - 1
        return self.where(unit, word - int(self.batch.unit_words[unit])) if self.where else None


def _is_coded(kind: pa.DataType, value: pa.DataType) -> bool:
    """Return whether a type is one of lists of codes into a dictionary of such values, as shards are read."""
    return (
        bool(pa.types.is_list(kind) and pa.types.is_dictionary(kind.value_type)) and kind.value_type.value_type == value
    )


_UD_V1 = "CONJ is a tag of Universal Dependencies version 1, for CCONJ: take a release of version 2"


def read_classes(
    field: Field,
    flat: pa.Array,
    where: Callable[[int], str | None],
    missing: str | None = None,
    *,
    inserted: bool = False,
) -> Int32:
    """Return int32[n]: the class number of each value. flat: Arrow [n], names or numbers of classes.

    missing: the name that means "no class", numbered -1; if it is given, so is a null among numbers. inserted: -1 is
    allowed, for inserted words. where: returns the place of a value. Raise LayerError for the first value that is not a
    class.
    """
    if field.classes is None:  # of a schema that somebody else wrote
        raise LayerError(f"{field.column} has no classes", id="class")
    if pa.types.is_dictionary(flat.type) and pa.types.is_integer(flat.type.value_type):
        flat = flat.cast(flat.type.value_type)
    if pa.types.is_integer(flat.type):
        lowest, beyond = -1 if missing or inserted else 0, len(field.classes)
        given = to_numpy(filled(flat, 0))  # an unsigned type has no -1
        codes = np.where((given >= lowest) & (given < beyond), given, beyond).astype(np.int32)
        if flat.null_count:
            codes[to_numpy(flat.is_null())] = -1 if missing else -2
        bad = np.flatnonzero((codes < lowest) | (codes >= beyond))
    else:
        encoded = flat.dictionary_encode()
        numbers = {name: i for i, name in enumerate(field.classes)}
        same = NLI_SPELLINGS if field.classes == NLI else {}
        names = [same.get(n, n) for n in encoded.dictionary.to_pylist()]
        table = np.array([-1 if n == missing else numbers.get(n, -2) for n in names] + [-2], np.int32)
        codes = np.asarray(table[to_numpy(filled(encoded.indices.cast(pa.int32()), len(names)))], np.int32)
        bad = np.flatnonzero(codes == -2)
    if bad.size:
        at = int(bad[0])
        raise LayerError(
            f"{field.column} is {flat[at].as_py()!r}, which is not one of {', '.join(field.classes)}",
            where=where(at),
            fix=_UD_V1
            if (field.column, flat[at].as_py()) == ("upos", "CONJ")
            else "write one of these names, in this spelling, or leave out the row",
            id="unknown-label",
        )
    return np.asarray(codes, np.int32)


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
    changes: when the inverse order may give other columns than the source's: always, under an order, where words are
    inserted or deleted, or never. Otherwise they are not compared.
    """

    __slots__ = ()
    losses: ClassVar[Mapping[str, str]] = {}
    changes: ClassVar[Literal["always", "order", "words", "never"]] = "order"

    @classmethod
    @abstractmethod
    def read(cls, field: Field, labels: Labels) -> Self:
        """Return the layer of a labelled table, or of a derived set. Raise LayerError if its columns do not fit."""

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


def side_name(side: str, name: str) -> str:
    """Return the column of a side: premise_upos."""
    return f"{side}_{name}" if side else name


def side_columns(name: str, batch: BareBatch, values: pa.Array) -> dict[str, pa.Array]:
    """Return per-word values [N] as a column of lists for each side: `premise_upos`, `hypothesis_upos`."""
    lists = list_array(batch.unit_words, values)
    return {side_name(side, name): lists.take(to_arrow(batch.records[:, at])) for at, side in enumerate(batch.sides)}


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
        "value": "derivlang.core.layers.words:Values",
    },
    of_classes=True,
    fix="derivlang.core.layers.base.layer_kinds() lists the layers",
)
register_layer = LAYERS.add
layer_kinds = LAYERS.names
find_layer = LAYERS.find
