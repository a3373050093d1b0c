"""Parses: the tags and trees of a parser, for all sides of a set, in the columns `upos`, `head` and `deprel`.

They are the layers `upos` and `head`, as in a treebank, so what works on gold trees works on them. Each
sentence has one tree. Parses are not labels of the source, so `source_upos` and `source_head` are stored only if the
order inserts or deletes words.
"""

from __future__ import annotations

import numpy as np
import pyarrow as pa

from derivlang.core.arrays import Ints
from derivlang.core.arrow import string_array, to_arrow
from derivlang.core.bare_batch import BareBatch
from derivlang.core.layers.base import Layer, side_columns
from derivlang.core.layers.tree import Tree
from derivlang.core.layers.words import Words


class ParsedTags(Words):
    """One tag for each word, of all sides: the columns `premise_upos`, `hypothesis_upos`."""

    __slots__ = ()
    changes = "words"
    every_side = True

    def columns(self, batch: BareBatch) -> dict[str, pa.Array]:
        """Return a list column for each side, whose dictionary has all tags."""
        return side_columns(self.name, batch, pa.DictionaryArray.from_arrays(to_arrow(self.codes), self.values))


class ParsedTree(Tree):
    """One tree for each sentence, of all sides; heads are 1-based in the unit."""

    __slots__ = ()
    changes = "words"
    relations = ParsedTags


def parse_layers(
    upos: Ints, tags: tuple[str, ...], head: Ints, deprel: Ints, relations: tuple[str, ...]
) -> dict[str, Layer]:
    """Return the layers of a parse.

    upos, deprel: int[N], codes into tags and relations. head: int[N], 1-based in the unit, 0 = root.
    """
    words = ParsedTags("upos", np.asarray(upos, np.int32), string_array(tags), "X")
    relation = ParsedTags("deprel", np.asarray(deprel, np.int32), string_array(relations), "dep")
    return {"upos": words, "head": ParsedTree(np.asarray(head, np.int32), relation)}
