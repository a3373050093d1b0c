"""Forest: the trees of a batch as one array of parents, over nodes in surface order.

    the old cat slept    parent = [2, 2, 3, -1]        first = [0, 1, 0, 0], last = [0, 1, 2, 3] of each yield

Everything is computed for all trees at once: sums along paths to the root by doubling the distance in each round, sums
over subtrees level by level from the bottom.
"""

from __future__ import annotations

from dataclasses import dataclass
from functools import cached_property

import numpy as np

from derivlang.core.arrays import Bool, Int32, Int64, lengths_of, offsets_of, owners, sorting


@dataclass(frozen=True, eq=False)
class Forest:
    """n nodes in T trees.

    parent: int64[n], the parent of each node, -1 for a root; without cycles. trees: int64[T + 1], node offsets. A tree
    may have several roots.
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
        """Return int64[n]: the sum of values[n] over each node and all its ancestors.

        A chain with parent [-1, 0, 1, 2] and values of 1: after one round [1, 2, 2, 2], after two [1, 2, 3, 4].
        """
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
        by = sorting(depth)
        return np.split(by, np.cumsum(np.bincount(depth))[:-1]) if len(depth) else []

    def below(self, values: Int64) -> Int64:
        """Return int64[n]: the sum of values[n] over each node and all its descendants."""
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
        """bool[n]: whether the yield of a node contains a node of another subtree (it is not projective)."""
        first, last = self.edges
        return np.asarray(last - first + 1 != self.below(np.ones(len(self), np.int64)))

    def without(self, gone: Bool) -> Forest:
        """Return the forest of the other nodes, in their order; children of a node that is gone move up to its parent.

        parent [1, 2, -1], gone [F, T, F]: node 0 moves up to node 2, which is now node 1 -> [1, -1].
        """
        kept = np.flatnonzero(~gone)
        parent, moved = self.parent[kept], False
        while (lost := (parent >= 0) & gone[parent]).any():
            parent[lost] = self.parent[parent[lost]]
            moved = True
        number = offsets_of(~gone)
        out = Forest(np.where(parent < 0, -1, number[parent]), number[self.trees])
        if not moved:
            out.__dict__["depth"] = self.depth[kept]  # what `depth` would compute
        return out

    def contracted(self, groups: Int64) -> tuple[Forest, Int64]:
        """Return (the forest of groups of neighbours, int64[G] the node that represents each).

        groups: int64[G + 1], node offsets; no group belongs to two trees. A group is represented by its node nearest to
        the root, so there can be no cycle: a group is deeper than the group it depends on.

            parent [1, -1, 1], groups [0, 2, 3] -> parent [-1, 0], representatives [1, 2]
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
    """Return the trees of some words. head: int32[N], 1-based in the unit, 0 = root. units, sentences: word offsets.

    A tree is a sentence, or several sentences of a unit that arcs join: a gold tree spans its unit, parsed text has one
    tree a sentence.
    """
    base = np.repeat(units[:-1], lengths_of(units))
    parent = np.where(head > 0, base + head - 1, -1)
    crossed = np.zeros(len(sentences), np.int64)  # number of arcs over the begin of each sentence, as differences
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
