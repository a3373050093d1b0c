"""Parses: tags and trees that a parser found, of all sides of a set; columns upos, head and deprel.

They are the layers `upos` and `head`, as a treebank's are, so that whatever works on gold trees works on them. There is
one tree a sentence. They are no labels of the source: nothing is kept of them that the way back gives.
"""

from __future__ import annotations

from typing import TYPE_CHECKING, Literal

import numpy as np
import pyarrow as pa

from derivlang.core.arrays import Ints
from derivlang.core.arrow import string_array, to_numpy
from derivlang.core.layers.tree import Tree
from derivlang.core.layers.words import Words

if TYPE_CHECKING:
    from derivlang.core.layers import Layer

PARSE: Literal["parse"] = "parse"  # the kind, and the column, of the field in a schema
COLUMNS = ("upos", "head", "deprel")


def parse_layers(
    upos: Ints, tags: tuple[str, ...], head: Ints, deprel: Ints, relations: tuple[str, ...]
) -> dict[str, Layer]:
    """upos, deprel: int[N], codes into tags and relations. head: int[N], 1-based in the unit, 0 = root."""
    words = Words("upos", np.asarray(upos, np.int32), string_array(tags), "X", side=None)
    relation = Words("deprel", np.asarray(deprel, np.int32), string_array(relations), "dep", side=None)
    return {"upos": words, "head": Tree(np.asarray(head, np.int32), relation, side=None)}


def read_parse(columns: dict[str, pa.Array], sides: tuple[str, ...]) -> dict[str, Layer]:
    """The layers from output columns, whose units lie side by side."""

    def flat(name: str) -> pa.Array:
        parts = [columns[f"{side}_{name}" if side else name].flatten() for side in sides]
        return parts[0] if len(parts) == 1 else pa.concat_arrays(parts)

    upos, deprel = (
        column if pa.types.is_dictionary(column.type) else column.dictionary_encode()
        for column in (flat("upos"), flat("deprel"))
    )
    return parse_layers(
        to_numpy(upos.indices),
        tuple(upos.dictionary.to_pylist()),
        to_numpy(flat("head")),
        to_numpy(deprel.indices),
        tuple(deprel.dictionary.to_pylist()),
    )
