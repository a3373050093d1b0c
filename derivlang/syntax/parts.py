"""Parts: words that readers take as one word, kept together and in order by `freeze=parts`.

These are *expressions*: fixed, flat and goeswith words, compounds of names, numbers with their signs (`$ 5 million`,
`5 %`); multiword tokens and clitics (`do n't`); WikiText's `5 @,@ 000`; and hyphens between words that depend on each
other. An expression takes in the marks between its words, and the other mark of a pair that begins or ends there; one
that has no head (fixed, flat, goeswith) also takes in words that depend on it:

    Ayman al - Zawahiri           flat(Ayman, al), flat(Ayman, Zawahiri): one part, with the hyphen
    Abu Hafs ( al - Masri )       with both brackets
    Secretary General Kofi Annan  flat(Secretary, Kofi), amod(Secretary, General): one part
    one of the three              nmod(one, three): two numbers, not one part

Groups that an order moves as one word (`mwt=atomic`, `entities=atomic`).
"""

from __future__ import annotations

from dataclasses import replace

import numpy as np
import pyarrow as pa

from derivlang.core.arrays import Bool, Int64, expand_ranges
from derivlang.core.arrow import string_array, to_arrow, to_numpy
from derivlang.core.batch import Batch
from derivlang.core.errors import LayerError
from derivlang.core.keys import hash_types
from derivlang.core.layers.base import Layer
from derivlang.core.layers.constituents import ConstituentTrees
from derivlang.core.layers.nodes import Nodes
from derivlang.core.layers.tree import Tree
from derivlang.core.layers.words import Words
from derivlang.syntax.forest import Forest, forest_of
from derivlang.syntax.marks import pairs
from derivlang.syntax.nodes import inside
from derivlang.syntax.words import APOSTROPHE, CLITIC, HYPHEN, JOINER, WordKinds

_HEADLESS = ("fixed", "flat", "goeswith", "mwe", "name")  # the last two of UD 1


def bonds(forest: Forest, seen: WordKinds, tree: Tree | None) -> Bool:
    """Return bool[n]: whether a word forms one part with the word before it. tree: for its multiword tokens."""
    n = len(forest)
    out = np.zeros(n, bool)
    if n < 2:
        return out
    parent = forest.parent
    inner = parent >= 0
    name = seen.has_tag("PROPN")
    headless = seen.has_relation(*_HEADLESS)
    frozen = headless | (seen.has_relation("compound") & name & name[parent])
    number = seen.has_tag("NUM", "SYM")
    frozen |= number & number[parent] & ~seen.has_relation("conj")
    of = _tops(parent, np.flatnonzero(frozen & inner))
    mark = seen.has_tag("PUNCT") | seen.has_relation("punct")
    mark &= np.bincount(of, minlength=n)[of] == 1
    joined = np.concatenate([_gaps_of_marks(of, mark), _whole(parent, _tops(parent, np.flatnonzero(headless & inner)))])
    out[joined] = out[_other_halves(forest, seen, joined[mark[joined]], mark)] = True
    out |= seen.kind == CLITIC
    joiner = seen.kind == JOINER
    out |= joiner
    out[1:] |= joiner[:-1]
    middle = np.flatnonzero(seen.kind[1:-1] == HYPHEN) + 1
    middle = middle[(parent[middle - 1] == middle + 1) | (parent[middle + 1] == middle - 1)]
    out[middle] = out[middle + 1] = True
    if tree is not None and tree.mwt is not None:
        out[expand_ranges(tree.mwt.first + 1, tree.mwt.last - tree.mwt.first)] = True
    out[forest.trees[:-1][forest.trees[:-1] < n]] = False
    return out


def _gaps_of_marks(of: Int64, mark: Bool) -> Int64:
    """Return the words of expressions except their first, and the marks between them. of: int64[n], their heads.

    Ayman al - Zawahiri spoke, of [0, 0, 2, 0, 4]: without the hyphen the words 0 1 3 4 with 0 0 0 4, so 0 and 1 are
    joined, and 1 and 3  ->  1, 2, 3
    """
    words = np.flatnonzero(~mark)
    goes_on = of[words[1:]] == of[words[:-1]]
    return inside(words[:-1][goes_on], words[1:][goes_on] + 1)


def _whole(parent: Int64, of: Int64) -> Int64:
    """Return the words from the second to the last of each expression that holds others, if all depend on its head.

    of: int64[n], the head of each word's expression.
    """
    n = np.arange(len(of))
    first, last = n.copy(), n.copy()
    first[of[::-1]] = n[::-1]  # of several words of an expression the one assigned last stays
    last[of] = n
    heads = np.flatnonzero(last - first >= np.bincount(of, minlength=len(of)))
    above, head = inside(first[heads], last[heads] + 1), np.repeat(heads, (last - first)[heads])
    while (goes_up := (above >= 0) & (above != head)).any():
        above[goes_up] = parent[above[goes_up]]
    heads = np.setdiff1d(heads, head[above < 0])
    return inside(first[heads], last[heads] + 1)


def _other_halves(forest: Forest, seen: WordKinds, taken: Int64, mark: Bool) -> Int64:
    """Return what joins these marks to the other mark of their pair. Apostrophes (O ' Brien and O ' Neil) have none."""
    if not len(taken):
        return taken
    partner = pairs(seen.kind, mark & (seen.kind != APOSTROPHE), forest.trees)
    taken = taken[partner[taken] >= 0]
    return inside(np.minimum(taken, partner[taken]), np.maximum(taken, partner[taken]) + 1)


def _tops(parent: Int64, joined: Int64) -> Int64:
    """Return the end of the chain of joined words above each word: parent [1, 2, -1], joined [0, 1] -> [2, 2, 2]."""
    up = np.arange(len(parent))
    up[joined] = parent[joined]
    while len(joined):  # the distance doubles
        above = up[up[joined]]
        moves = above != up[joined]
        joined = joined[moves]
        up[joined] = above[moves]
    return up


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
