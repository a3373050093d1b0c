"""Parses: the tags and trees of a parser, for all sides of a set, in the columns `upos`, `head` and `deprel`.

They are the layers `upos` and `head`, as in a treebank, so what works on gold trees works on them. Each
sentence has one tree. Parses are not labels of the source, so `source_upos` and `source_head` are stored only if the
order inserts or deletes words.
"""

from __future__ import annotations

from collections.abc import Iterator
from typing import Self

import numpy as np
import pyarrow as pa

from derivlang.core.arrays import Ints
from derivlang.core.arrow import string_array, to_arrow, to_numpy
from derivlang.core.bare_batch import BareBatch
from derivlang.core.layers.base import Labels, Layer, record_lists
from derivlang.core.layers.tree import Tree, check_range
from derivlang.core.layers.words import Words
from derivlang.core.schema import Field


class ParsedTags(Words):
    """One tag for each word, of all sides."""

    __slots__ = ()

    changes = "words"

    @classmethod
    def read(cls, field: Field, labels: Labels) -> Self:
        """Return the tags of the columns of all sides (`premise_upos`, `hypothesis_upos`)."""
        return cls.of_sides(field.column, "X", labels)

    @classmethod
    def of_sides(cls, name: str, filler: str, labels: Labels) -> Self:
        """Return the layer of the columns of all sides. filler: the value of an inserted word."""
        return cls.of(name, _concatenated([flat for flat, _ in _flat(name, labels)]), filler)

    def columns(self, batch: BareBatch) -> dict[str, pa.Array]:
        """Return a list column for each side."""
        return _side_columns(self.name, batch, pa.DictionaryArray.from_arrays(to_arrow(self.codes), self.values))


class ParsedTree(Tree):
    """One tree for each sentence, of all sides; heads are 1-based in the unit."""

    __slots__ = ()

    changes = "words"

    @classmethod
    def read(cls, field: Field, labels: Labels) -> Self:
        """Return the trees of the columns of all sides. Raises LayerError for a head outside its unit."""
        for flat, side in _flat(field.column, labels):
            check_range(field.column, flat, labels, side)
        head = _concatenated([flat for flat, _ in _flat(field.column, labels)])
        return cls(np.asarray(to_numpy(head), np.int32), ParsedTags.of_sides("deprel", "dep", labels))

    @classmethod
    def restore(cls, field: Field, labels: Labels) -> Self:
        """Return the trees, as `read` does."""
        return cls.read(field, labels)

    def columns(self, batch: BareBatch) -> dict[str, pa.Array]:
        """Return list columns of heads and relations for each side."""
        return _side_columns("head", batch, to_arrow(self.head)) | self.deprel.columns(batch)


def parse_layers(
    upos: Ints, tags: tuple[str, ...], head: Ints, deprel: Ints, relations: tuple[str, ...]
) -> dict[str, Layer]:
    """Return the layers of a parse.

    upos, deprel: int[N], codes into tags and relations. head: int[N], 1-based in the unit, 0 = root.
    """
    words = ParsedTags("upos", np.asarray(upos, np.int32), string_array(tags), "X")
    relation = ParsedTags("deprel", np.asarray(deprel, np.int32), string_array(relations), "dep")
    return {"upos": words, "head": ParsedTree(np.asarray(head, np.int32), relation)}


def _side_name(side: str, name: str) -> str:
    return f"{side}_{name}" if side else name


def _side_columns(name: str, batch: BareBatch, values: pa.Array) -> dict[str, pa.Array]:
    """Return a column for each side, of per-word values [N]: `premise_upos`, `hypothesis_upos`."""
    return {_side_name(side, name): record_lists(batch, values, number) for number, side in enumerate(batch.sides)}


def _flat(name: str, labels: Labels) -> Iterator[tuple[pa.Array, int]]:
    """Yield (per-word values [N], number of the side) for each side, such as premise and hypothesis."""
    for number, side in enumerate(labels.batch.sides):
        yield labels.per_word(_side_name(side, name), side=number), number


def _concatenated(parts: list[pa.Array]) -> pa.Array:
    return parts[0] if len(parts) == 1 else pa.concat_arrays(parts)
