"""Parts: words that readers take as one word, kept together and in order by `freeze=parts`.

These are fixed, flat and goeswith expressions; compounds of names; numbers with their signs (`$ 5 million`, `5 %`);
multiword tokens and clitics (`do n't`); WikiText's `5 @,@ 000`; and hyphens between words that depend on each other.
"""

from __future__ import annotations

import numpy as np

from derivlang.core.arrays import Bool, Int64, expand_ranges
from derivlang.core.layers.tree import Tree
from derivlang.syntax.forest import Forest
from derivlang.syntax.words import CLITIC, HYPHEN, JOINER, WordKinds

_FROZEN = ("fixed", "flat", "goeswith")


def bonds(forest: Forest, seen: WordKinds, tree: Tree | None) -> Bool:
    """Return bool[n]: whether a word forms one part with the word before it. tree: for its multiword tokens."""
    n = len(forest)
    out = np.zeros(n, bool)
    if n < 2:
        return out
    parent = forest.parent
    inner = parent >= 0
    name = seen.has_tag("PROPN")
    frozen = seen.has_relation(*_FROZEN) | (seen.has_relation("compound") & name & name[parent])
    number = seen.has_tag("NUM", "SYM")
    frozen |= number & number[parent] & ~seen.has_relation("conj")
    cluster = _tops(parent, np.flatnonzero(frozen & inner))
    out[1:] = cluster[1:] == cluster[:-1]
    out |= seen.kind == CLITIC
    joiner = seen.kind == JOINER
    out |= joiner
    out[1:] |= joiner[:-1]
    middle = np.flatnonzero(seen.kind[1:-1] == HYPHEN) + 1
    middle = middle[_linked(parent, middle - 1, middle + 1)]
    out[middle] = out[middle + 1] = True
    if tree is not None and tree.mwt is not None:
        out[expand_ranges(tree.mwt.first + 1, tree.mwt.last - tree.mwt.first)] = True
    out[forest.trees[:-1][forest.trees[:-1] < n]] = False
    return out


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


def _linked(parent: Int64, left: Int64, right: Int64) -> Bool:
    return np.asarray((parent[left] == right) | (parent[right] == left))
