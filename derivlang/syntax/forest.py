"""Forest: the trees of a batch as one array of parents, over nodes in surface order.

    the old cat slept    parent = [2, 2, 3, -1]        first = [0, 1, 0, 0], last = [0, 1, 2, 3] of each yield

Everything is computed for all trees at once: depths by looking twice as far up in each round, sums over subtrees
level by level from the bottom.
"""

from __future__ import annotations

from dataclasses import dataclass
from functools import cached_property

import numpy as np

from derivlang.core.arrays import Bool, Int32, Int64, lengths_of, owners


@dataclass(frozen=True, eq=False)
class Forest:
    """n nodes in T trees.

    parent: int64[n], the number of each node's parent, -1 for a root; no cycles. trees: int64[T + 1], node offsets. A
    tree may have several roots.
    """

    parent: Int64
    trees: Int64

    def __len__(self) -> int:
        return len(self.parent)

    @cached_property
    def tree_of(self) -> Int32:
        """int32[n]: the tree of each node."""
        return owners(self.trees)

    @cached_property
    def depth(self) -> Int64:
        """int64[n]: steps from each node to its root."""
        return self.along(np.where(self.parent < 0, 0, 1))

    def along(self, values: Int64) -> Int64:
        """int64[n]: the sum of values[n] over each node and all above it."""
        n = len(self)
        up = np.append(np.where(self.parent < 0, n, self.parent), n)
        total = np.append(values, 0)
        while (up[:n] < n).any():
            total += total[up]
            up = up[up]
        return total[:n]

    @cached_property
    def levels(self) -> list[Int64]:
        """The nodes of each depth, from the roots down."""
        depth = self.depth
        narrow = depth.astype(np.uint16) if depth.max(initial=0) < 1 << 16 else depth  # 16 bits: sorted in linear time
        by = np.argsort(narrow, kind="stable")
        return np.split(by, np.cumsum(np.bincount(depth))[:-1]) if len(depth) else []

    def below(self, values: Int64) -> Int64:
        """int64[n]: the sum of values[n] over each node and all below it."""
        total = values.copy()
        for level in self.levels[:0:-1]:
            np.add.at(total, self.parent[level], total[level])
        return total

    @cached_property
    def edges(self) -> tuple[Int64, Int64]:
        """int64[n] each: the first and the last node of each node's yield."""
        first, last = np.arange(len(self)), np.arange(len(self))
        for level in self.levels[:0:-1]:
            up = self.parent[level]
            np.minimum.at(first, up, first[level])
            np.maximum.at(last, up, last[level])
        return first, last

    @cached_property
    def has_gap(self) -> Bool:
        """bool[n]: is a node of another subtree inside this node's yield (the node is not projective)."""
        first, last = self.edges
        return np.asarray(last - first + 1 != self.below(np.ones(len(self), np.int64)))

    def without(self, gone: Bool) -> Forest:
        """The forest of the other nodes, in their order; the children of a node that is gone hang from its parent."""
        parent = self.parent.copy()
        while (lost := (parent >= 0) & gone[parent]).any():
            parent[lost] = self.parent[parent[lost]]
        number = np.cumsum(~gone) - 1
        parent = parent[~gone]
        return Forest(np.where(parent < 0, -1, number[parent]), np.append(0, np.cumsum(~gone))[self.trees])

    def contracted(self, groups: Int64) -> tuple[Forest, Int64]:
        """(the forest of groups of neighbours, int64[G] the node that stands for each).

        groups: int64[G + 1], node offsets; no group lies across two trees. The group's node nearest to the root
        stands for it, so that no cycle can arise: a group's depth is more than that of the group it hangs from.
        """
        sizes = lengths_of(groups)
        if len(groups) == len(self) + 1:
            return self, np.arange(len(self))
        of = np.repeat(np.arange(len(sizes)), sizes)
        key = self.depth * len(self) + np.arange(len(self))
        top = np.minimum.reduceat(key, groups[:-1]) % len(self)
        up = self.parent[top]
        return Forest(np.where(up < 0, -1, of[up]), np.searchsorted(groups, self.trees)), top


def forest_of(head: Int32, units: Int64, sentences: Int64) -> Forest:
    """The trees of some words. head: int32[N], 1-based in the unit, 0 = root. units, sentences: word offsets.

    A tree is a sentence, or all the sentences of a unit that an arc joins: a gold tree spans its unit, parsed text
    has one a sentence (methods, section 1: Levels).
    """
    base = np.repeat(units[:-1], lengths_of(units))
    parent = np.where(head > 0, base + head - 1, -1)
    crossed = np.zeros(len(sentences), np.int64)  # at each sentence's begin: arcs that pass over it, as a running sum
    sentence = owners(sentences)
    child = np.flatnonzero(parent >= 0)
    low, high = sentence[child], sentence[parent[child]]
    apart = low != high
    if apart.any():
        low, high = np.minimum(low, high)[apart], np.maximum(low, high)[apart]
        np.add.at(crossed, low + 1, 1)
        np.add.at(crossed, high + 1, -1)
    joined = np.cumsum(crossed)[:-1] > 0
    return Forest(parent, np.append(sentences[:-1][~joined], sentences[-1]))
