"""Forest: the trees of a batch as one array of parents, over nodes in surface order.

    the old cat slept    parent = [2, 2, 3, -1]        first = [0, 1, 0, 0], last = [0, 1, 2, 3] of each yield

Everything is computed for all trees at once: depths by doubling the distance in each round, sums along paths to the
root level by level from the top, sums over subtrees from the bottom.
"""

from __future__ import annotations

from dataclasses import dataclass
from functools import cached_property
from itertools import pairwise

import numpy as np

from derivlang.core.arrays import Bool, Int32, Int64, group_of, lengths_of, offsets_of, owners, take_rows
from derivlang.core.batch import Batch
from derivlang.core.layers.tree import parents


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
        """int64[n]: steps from each node to its root.

        The distance doubles in each round. A chain with parent [-1, 0, 1, 2] starts with [0, 1, 1, 1]; after one round
        it is [0, 1, 2, 2], after two [0, 1, 2, 3]. Nodes count from 1 here, and 0 stands for "no parent".
        """
        up = np.append(0, self.parent + 1)
        depth = (up > 0).astype(np.int64)
        while up.max():
            depth += depth.take(up)
            up = up.take(up)
        return depth[1:]

    @cached_property
    def levels(self) -> list[tuple[Int64, Int64]]:
        """(nodes, their parents) of each depth, from the roots down; nodes in surface order."""
        by = np.argsort(self.depth, kind="stable")
        parent = self.parent.take(by)
        ends = np.cumsum(np.bincount(self.depth)).tolist()
        return [(by[begin:end], parent[begin:end]) for begin, end in pairwise([0, *ends])]

    @cached_property
    def above(self) -> Int64:
        """int64[n]: the parent of each node, n + t for a root of tree t."""
        out = self.parent.copy()
        roots = np.flatnonzero(out < 0)
        out[roots] = len(self) + self.tree_of[roots]
        return out

    def along(self, values: Int64) -> Int64:
        """Return int64[n]: the sum of values[n] over each node and all its ancestors."""
        total = values.copy()
        for level, up in self.levels[1:]:
            total[level] += total.take(up)
        return total

    def below(self, values: Int64) -> Int64:
        """Return int64[n]: the sum of values[n] over each node and all its descendants."""
        total = values.copy()
        for level, up in self.levels[:0:-1]:
            np.add.at(total, up, total.take(level))
        return total

    @cached_property
    def edges(self) -> tuple[Int64, Int64]:
        """int64[n] each: the first and the last node of each node's yield."""
        first, last = np.arange(len(self)), np.arange(len(self))
        for level, up in self.levels[:0:-1]:
            np.minimum.at(first, up, first.take(level))
            np.maximum.at(last, up, last.take(level))
        return first, last

    @cached_property
    def has_gap(self) -> Bool:
        """bool[n]: whether the yield of a node contains a node of another subtree (it is not projective)."""
        first, last = self.edges
        # A yield without a gap has as many nodes as its range is long.
        return np.asarray(last - first + 1 != self.below(np.ones(len(self), np.int64)))

    @cached_property
    def is_crossing(self) -> Bool:
        """bool[T]: the trees that are not projective, those where some node `has_gap`.

        A node is in as many yields as it has ancestors, and in its own. So the yields of a tree have the sum of depth +
        1 over its nodes as their total size, and the ranges that they span are larger in total if one has a gap.
        """
        first, last = self.edges
        spare = offsets_of(last - first - self.depth)
        return np.asarray(spare[self.trees[1:]] != spare[self.trees[:-1]])

    def take(self, trees: Int64) -> tuple[Forest, Int64]:
        """Return (some of the trees, int64[m] their nodes)."""
        nodes, offsets = take_rows(self.trees, trees)
        parent = self.parent[nodes]
        moved = np.repeat(self.trees[:-1][trees] - offsets[:-1], lengths_of(offsets))
        return Forest(np.where(parent < 0, -1, parent - moved), offsets), nodes

    def without(self, gone: Bool) -> Forest:
        """Return the forest of the other nodes, in their order; children of a node that is gone move up to its parent.

        parent [1, 2, -1], gone [F, T, F]: node 0 moves up to node 2, which is now node 1 -> [1, -1].
        """
        kept = np.flatnonzero(~gone)
        gone = np.append(gone, False)  # for parent -1
        parent = self.parent.take(kept)
        while len(lost := np.flatnonzero(gone.take(parent))):
            parent[lost] = self.parent[parent[lost]]
        number = offsets_of(~gone)
        trees = number[self.trees]
        number[-1] = -1  # for parent -1
        return Forest(number.take(parent), trees)

    def contracted(self, groups: Int64) -> tuple[Forest, Int64]:
        """Return (the forest of groups of neighbours, int64[G] the node that represents each).

        groups: int64[G + 1], node offsets; no group belongs to two trees. A group is represented by its node nearest to
        the root, so there can be no cycle: a group is deeper than the group it depends on.

            parent [1, -1, 1], groups [0, 2, 3] -> parent [-1, 0], representatives [1, 2]
        """
        if len(groups) == len(self) + 1:
            return self, np.arange(len(self))
        # The first of those with the least depth.
        top = np.minimum.reduceat(self.depth * len(self) + np.arange(len(self)), groups[:-1]) % len(self)
        of = np.append(group_of(groups), -1)  # for parent -1
        return Forest(of.take(self.parent.take(top)), np.searchsorted(groups, self.trees)), top


def forest_of(head: Int32, units: Int64, sentences: Int64) -> Forest:
    """Return the trees of some words. head: int32[N], 1-based in the unit, 0 = root. units, sentences: word offsets.

    A tree is a sentence, or several sentences of a unit that arcs join: a gold tree spans its unit, parsed text has one
    tree per sentence.
    """
    parent = parents(head, units)
    # An arc from sentence 0 to sentence 2 adds 1 at 1 and takes 1 at 3: the sums 0 1 1 0 join sentences 1 and 2 to the
    # ones before them. `low` and `high` are the sentences of both ends.
    crossed = np.zeros(len(sentences), np.int64)  # number of arcs over the begin of each sentence, as differences
    sentence = owners(sentences)
    apart = np.flatnonzero((sentence.take(parent, mode="clip") != sentence) & (parent >= 0))
    if len(apart):
        child, head = sentence[apart], sentence[parent[apart]]
        low, high = np.minimum(child, head), np.maximum(child, head)
        np.add.at(crossed, low + 1, 1)
        np.add.at(crossed, high + 1, -1)
    joined = np.cumsum(crossed)[:-1] > 0
    return Forest(parent, np.append(sentences[:-1][~joined], sentences[-1]))


def merged(batch: Batch, trees: Int64, *, tails: bool) -> tuple[Int32, Int64, Int32]:
    """Return (tails int32[T] of the trees, offsets of the derived sentences, their tails int32[S]).

    trees: int64[T + 1], word offsets. A tree that spans several source sentences becomes one derived sentence with the
    tail of the last. The first sentence gets all words of the tree, the others none. tails=False: punctuation moves
    like words, all tails are 0.

        sentences [0, 3, 5, 8], trees [0, 5, 8]  ->  derived sentences [0, 5, 5, 8]

    The next transform of a spec gets these sentences: both of their trees and sentences may be empty.
    """
    # The sentences whose words end with their tree: sentences [0, 3, 5, 5, 8], trees [0, 5, 5, 8] -> [1, 1, 3].
    last = np.searchsorted(batch.sentences, trees[1:]) - 1
    has_words = trees[1:] > trees[:-1]
    of_tree = np.where(has_words, batch.tails[last], 0).astype(np.int32) if len(last) else np.zeros(0, np.int32)
    if len(trees) == len(batch.sentences):
        return of_tree, batch.sentences, batch.tails if tails else np.zeros_like(batch.tails)
    sentences = trees[np.searchsorted(trees, batch.sentences)]  # an offset inside a tree becomes the tree's end
    out = np.zeros_like(batch.tails)
    if tails:
        out[sentences[1:] > sentences[:-1]] = of_tree[has_words]
    return of_tree, sentences, out
