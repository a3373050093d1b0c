"""Groups that an order moves as one word (`mwt=atomic`, `entities=atomic`)."""

from __future__ import annotations

from dataclasses import replace

import numpy as np
import pyarrow as pa

from derivlang.core.arrays import Int64
from derivlang.core.arrow import string_array, to_arrow, to_numpy
from derivlang.core.batch import Batch
from derivlang.core.errors import LayerError
from derivlang.core.keys import hash_types
from derivlang.core.layers.base import Layer
from derivlang.core.layers.constituents import ConstituentTrees
from derivlang.core.layers.nodes import Nodes
from derivlang.core.layers.tree import Tree
from derivlang.core.layers.words import Words
from derivlang.syntax.forest import forest_of


def contract(batch: Batch, group: Int64) -> Batch:
    """Return the batch with each group as one word; sentence keys still come from the words.

    group: int64[G + 1], word offsets. Words `New York sleeps`, group [0, 2, 3] -> `New York`, `sleeps`.
    """
    if not np.isin(batch.sentences, group).all():
        raise LayerError("a sentence ends inside a group that counts as one word", id="group")
    size = np.diff(group)
    first = batch.words[group[:-1]]
    many = np.flatnonzero(size > 1)
    spelled = batch.types.take(to_arrow(batch.words)).to_pylist() if len(many) else []
    joined = string_array([" ".join(spelled[group[i] : group[i + 1]]) for i in many])
    table = pa.concat_arrays([batch.types, joined]).dictionary_encode()
    recode = to_numpy(table.indices)
    words = recode[first].astype(np.int32)
    words[many] = recode[len(batch.types) :]
    return replace(
        batch,
        words=words,
        types=table.dictionary,
        hashes=hash_types(table.dictionary),
        sentences=np.searchsorted(group, batch.sentences),
        layers=_contracted_layers(batch, group),
        gaps=None,
        grouped=None,
    )


def _contracted_layers(batch: Batch, group: Int64) -> dict[str, Layer]:
    """Return tags, features and lemmas of groups, and heads and constituents where there are trees.

    They are of the group's word that is nearest to the root, or without trees of its first word.
    """
    layers: dict[str, Layer] = {
        name: layer.contracted(group) for name, layer in batch.layers.items() if isinstance(layer, ConstituentTrees)
    }
    words = {name: layer for name, layer in batch.layers.items() if isinstance(layer, Words)}
    tree = batch.layers.get("head")
    if not isinstance(tree, Tree):
        return layers | {name: replace(layer, codes=layer.codes[group[:-1]]) for name, layer in words.items()}
    forest, top = forest_of(tree.head, batch.unit_words, batch.sentences).contracted(group)
    units = np.searchsorted(group, batch.unit_words)
    head = np.where(forest.parent < 0, 0, forest.parent - np.repeat(units[:-1], np.diff(units)) + 1)
    relations = replace(tree.deprel, codes=tree.deprel.codes[top])
    mwt = _contracted_ranges(tree.mwt, group)
    layers["head"] = replace(tree, head=head.astype(np.int32), deprel=relations, deps=None, mwt=mwt, empty=None)
    return layers | {name: replace(layer, codes=layer.codes[top]) for name, layer in words.items()}


def _contracted_ranges(nodes: Nodes | None, group: Int64) -> Nodes | None:
    """Return the multiword tokens that consist of several groups."""
    if nodes is None:
        return None
    first, last = (np.searchsorted(group, at, "right") - 1 for at in (nodes.first, nodes.last))
    stays = np.flatnonzero(first < last)
    return nodes.take(stays, first[stays], last[stays])
