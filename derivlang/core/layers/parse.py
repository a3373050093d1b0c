"""Parses: tags and trees that a parser found, of all sides of a set; columns upos, head and deprel.

They are the layers `upos` and `head`, as a treebank's are, so that whatever works on gold trees works on them. There is
one tree a sentence. They are no labels of the source: nothing is kept of them that the way back gives.
"""

from __future__ import annotations

from typing import TYPE_CHECKING

import numpy as np
import pyarrow as pa

from derivlang.core.arrays import Ints
from derivlang.core.arrow import string_array, to_numpy
from derivlang.core.layers.tree import Tree
from derivlang.core.layers.words import Words

if TYPE_CHECKING:
    from derivlang.core.layers import Layer


def parse_layers(
    upos: Ints, tags: tuple[str, ...], head: Ints, deprel: Ints, relations: tuple[str, ...]
) -> dict[str, Layer]:
    """upos, deprel: int[N], codes into tags and relations. head: int[N], 1-based in the unit, 0 = root."""
    words = Words("upos", np.asarray(upos, np.int32), string_array(tags), "X", side=None)
    relation = Words("deprel", np.asarray(deprel, np.int32), string_array(relations), "dep", side=None)
    return {"upos": words, "head": Tree(np.asarray(head, np.int32), relation, side=None)}


def read_parse(columns: dict[str, pa.Array], sides: tuple[str, ...], *, has_tags: bool) -> dict[str, Layer]:
    """The layers from output columns, whose units lie side by side. has_tags: the source has tags of its own."""

    def flat(name: str) -> pa.Array:
        parts = [columns[f"{side}_{name}" if side else name].flatten() for side in sides]
        return parts[0] if len(parts) == 1 else pa.concat_arrays(parts)

    def coded(name: str) -> tuple[Ints, tuple[str, ...]]:
        encoded = flat(name).dictionary_encode()
        return to_numpy(encoded.indices), tuple(encoded.dictionary.to_pylist())

    head = to_numpy(flat("head"))
    nothing: tuple[Ints, tuple[str, ...]] = np.zeros(len(head), np.int32), ("X",)
    upos, tags = nothing if has_tags else coded("upos")
    deprel, relations = coded("deprel")
    layers = parse_layers(upos, tags, head, deprel, relations)
    return {name: layer for name, layer in layers.items() if name != "upos" or not has_tags}
