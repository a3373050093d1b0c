"""Values of words, which move with them, such as tags or lemmas, and of records, which no order touches.

    upos PRON VERB PUNCT, index [1, 0, -1, 2]   ->   VERB PRON X PUNCT

X is the filler of the inserted word.
"""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass, replace
from typing import ClassVar, Self

import numpy as np
import pyarrow as pa
import pyarrow.compute as pc

from derivlang.core.arrays import Int32, Int64, Objects, take_kept
from derivlang.core.arrow import is_string, scalar, string_array, to_arrow, to_numpy
from derivlang.core.bare_batch import BareBatch
from derivlang.core.layers.base import Labels, Layer, Realignment, read_classes, side_columns
from derivlang.core.schema import NO_LABEL, Field

# The value of an inserted word in columns of these names; `_` in all others.
_FILLERS = {"upos": "X", "xpos": "X", "pos": "X", "pos_tags": "X"}


@dataclass(frozen=True, slots=True, eq=False)
class Words(Layer):
    """name: the column. codes: int32[N], into values (Arrow [V], any type). filler: the value of an inserted word.

    classes: the names of a class label. The values are then these names, and the column holds their numbers as int64.
    lexical: the values are words (lemmas), which a lexicon maps.
    """

    text: ClassVar[bool] = False  # whether the values must be strings
    every_side: ClassVar[bool] = False  # whether the words of all sides have values

    name: str
    codes: Int32
    values: pa.Array
    filler: str | None = None
    classes: tuple[str, ...] | None = None
    lexical: bool = False

    @classmethod
    def of(cls, name: str, flat: pa.Array, filler: str | None = None, *, lexical: bool = False) -> Self:
        """Return the layer of one value for each word, Arrow [N]."""
        encoded = flat if pa.types.is_dictionary(flat.type) else flat.dictionary_encode(null_encoding="encode")
        codes = to_numpy(encoded.indices).astype(np.int32)
        return cls(name, codes, encoded.dictionary, filler, lexical=lexical)

    @classmethod
    def read(cls, field: Field, labels: Labels) -> Self:
        """Return the values of a list column. In a derived set -1 is an inserted word's value of a class label.

        Raises LayerError if a row has more or fewer values than words, null-value if one is null but must not be.
        """
        name, filler = field.column, _FILLERS.get(field.column, "_")
        kind = pa.string() if cls.text or field.lexical else None
        flat = labels.per_word(name, kind, shown=field.input, every_side=cls.every_side)
        if pa.types.is_null(flat.type):  # nothing but nulls, whose kind is not known
            flat = flat.cast(pa.string())
        if field.classes is None:
            if flat.null_count and labels.no_null_strings and is_string(flat.type):
                raise labels.no_value(name, flat)
            return cls.of(name, flat, filler, lexical=field.lexical)
        codes, values = read_classes(field, flat, labels.word, inserted=labels.stored), string_array(field.classes)
        if labels.stored:  # the filler of an inserted word is not a class
            codes = np.where(codes < 0, np.int32(len(values)), codes)
            values = pa.concat_arrays([values, pa.nulls(1, pa.string())])
        return cls(name, codes, values, filler, field.classes)

    def realign(self, move: Realignment) -> Self:
        """Return the values in the derived order; inserted words get the filler, null in columns of other types."""
        index = move.order.index
        codes, values = take_kept(self.codes, index), self.values
        if self.lexical:
            values = move.labels.apply_to_labels(values)
        if move.order.n_inserted:
            filler = self.filler if is_string(values.type) else None
            filler_code = pc.index(values, scalar(filler)).as_py() if filler is not None else -1
            if filler_code < 0:
                filler_code = len(values)
                new = pa.nulls(1, values.type) if filler is None else string_array([filler]).cast(values.type)
                values = pa.concat_arrays([values, new])
            codes = np.where(index < 0, np.int32(filler_code), codes)
        return replace(self, codes=codes, values=values)

    def columns(self, batch: BareBatch) -> dict[str, pa.Array]:
        """Return the list column: class numbers for a class label, codes into a dictionary for strings."""
        if self.classes is not None:  # a value that is not a class (an inserted word's filler) is -1
            numbers = {name: i for i, name in enumerate(self.classes)}
            table = np.array([numbers.get(value, -1) for value in self.values.to_pylist()], np.int64)
            values = to_arrow(table[self.codes])
        elif pa.types.is_string(self.values.type) and not self.values.null_count:
            values = self.values.take(to_arrow(self.codes)).dictionary_encode()
        else:
            values = self.values.take(to_arrow(self.codes))
        return side_columns(self.name, batch, values)


def numbers_of(words: Words, number: Callable[[str], int]) -> Int64:
    """Return int64[N]: a number for the value of each word, computed once for each value. Null is the empty string."""
    return np.array([number(value or "") for value in words.values.to_pylist()], np.int64)[words.codes]


def strings_of(words: Words) -> Objects:
    """Return object[N]: the value of each word."""
    return np.array(words.values.to_pylist(), object)[words.codes]


@dataclass(frozen=True, slots=True, eq=False)
class Values(Layer):
    """name: the column. values: Arrow array [R] of any type; int64 codes for a class label."""

    changes = "never"

    name: str
    values: pa.Array

    @classmethod
    def read(cls, field: Field, labels: Labels) -> Self:
        """Return the values of a column. A missing class label (NO_LABEL) becomes -1."""
        values = labels[field.column]
        if field.classes is not None:
            values = to_arrow(read_classes(field, values, labels.row, missing=NO_LABEL).astype(np.int64))
        return cls(field.column, values)

    def realign(self, move: Realignment) -> Values:
        """Return self: an order does not change the values of a record."""
        return self

    def columns(self, batch: BareBatch) -> dict[str, pa.Array]:
        """Return the column."""
        return {self.name: self.values}
