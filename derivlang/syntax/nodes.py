"""Nodes: the parts of some words that are laid out, and the marks and pins that are not.

A TreeBlock has some trees with all that their arrangement needs; Rules are the rules of an arrangement.
"""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass
from functools import cached_property

import numpy as np

from derivlang.core.arrays import Bool, Int32, Int64, UInt64, expand_ranges, group_of, lengths_of, offsets_of, stretches
from derivlang.syntax.forest import Forest
from derivlang.syntax.marks import Marks, pairs, tie
from derivlang.syntax.words import WordKinds


@dataclass(frozen=True, slots=True)
class Rules:
    """Rules of an arrangement.

    keep_order: a head whose yield has gaps keeps its words in order. free_marks: punctuation moves like other words.
    """

    keep_order: bool = False
    free_marks: bool = False


@dataclass(frozen=True, eq=False)
class TreeBlock:
    """T trees over n words.

    seen: the words. tails: int32[T], number of words in each tree's tail. bonds: bool[n], words that form one part with
    the word before. keys: uint64[T], content keys of the trees.
    """

    forest: Forest
    seen: WordKinds
    tails: Int32
    bonds: Bool
    keys: UInt64

    def take(self, trees: Int64) -> tuple[TreeBlock, Int64]:
        """Return (some of the trees, int64[m] their words)."""
        forest, words = self.forest.take(trees)
        part = TreeBlock(forest, self.seen.take(words), self.tails[trees], self.bonds[words], self.keys[trees])
        return part, words

    def stretches(self, n_words: int) -> Iterator[tuple[TreeBlock, int, slice]]:
        """Yield (some trees, the first of them, the range of their words), about n_words words at a time."""
        trees, parent = self.forest.trees, self.forest.parent
        for begin, end in stretches(trees, n_words):
            which, words = slice(begin, end), slice(int(trees[begin]), int(trees[end]))
            inside = np.maximum(parent[words] - words.start, -1)  # -1 stays a root
            forest = Forest(inside, trees[begin : end + 1] - words.start)
            seen = self.seen.take(words)
            yield TreeBlock(forest, seen, self.tails[which], self.bonds[words], self.keys[which]), begin, words


@dataclass(frozen=True, eq=False)
class LayoutNodes:
    """The parts of some words: the nodes that are laid out, and the marks and pins that are not.

    forest: the words. groups: int64[G + 1], word offsets of the parts. full: the forest of the parts. gone: bool[G],
    marks and pins. inner: the forest of the n others, kept: int64[n], their parts. top: int64[n], the word that
    represents each inner node. marks: marks that are tied to a node. front, back: int64, pins at the beginning and at
    the end of their tree, ascending. partner: int64[G], the other mark of a pair, -1 without one.
    """

    forest: Forest
    groups: Int64
    full: Forest
    gone: Bool
    inner: Forest
    kept: Int64
    top: Int64
    marks: Marks
    front: Int64
    back: Int64
    partner: Int64

    @cached_property
    def part_of(self) -> Int64:
        """int64[words]: the part of each word."""
        return group_of(self.groups)

    @cached_property
    def words(self) -> tuple[Forest, Int64, Int64]:
        """(the forest of the words that are laid out, the part of each, their positions among all words)."""
        part = self.part_of
        gone = self.gone[part]
        kept = np.flatnonzero(~gone)
        return self.forest.without(gone), part[kept], kept

    @cached_property
    def shift(self) -> tuple[Int64, Int64]:
        """int64[T] twice: the offset from layout to word positions, and the number of words pinned at the end.

        The layout counts no pins. The offset of a tree is the number of pinned words before it and at its beginning.
        """
        tree, n = self.full.tree_of, len(self.forest.trees) - 1
        n_front = np.bincount(tree[self.front], minlength=n)
        n_back = np.bincount(tree[self.back], lengths_of(self.groups)[self.back], n).astype(np.int64)
        return offsets_of(n_front + n_back)[:-1] + n_front, n_back


def prepare(block: TreeBlock, rules: Rules) -> tuple[LayoutNodes, Bool]:
    """Return (the nodes under these bonds, bool[n] bonds to add).

    If there are bonds to add, the nodes are not valid yet: call it again with them.
    """
    forest, seen, bonds = block.forest, block.seen, block.bonds
    n, more = len(forest), np.zeros(len(forest), bool)
    groups = np.append(np.flatnonzero(~bonds), n)
    full, top = forest.contracted(groups)
    gone = np.zeros(len(full), bool)
    front = back = at = np.zeros(0, np.int64)
    partner = np.full(len(full), -1)
    if not rules.free_marks and n:
        tail_groups = np.searchsorted(groups, forest.trees[1:] - np.minimum(block.tails, lengths_of(forest.trees)))
        back = expand_ranges(tail_groups, full.trees[1:] - tail_groups)
        mark = seen.has_tag("PUNCT")[top]
        mark &= lengths_of(groups) == 1
        mark[back] = False
        gone = mark.copy()
        gone[back] = True
        # A mark with a dependent that is a word cannot leave the tree: it is laid out like a word.
        stays = _with_other_child(full, gone)
        stays = stays[mark[stays]]
        mark[stays] = gone[stays] = False
        partner = pairs(seen.kind[top], mark, full.trees)
        front = _leading(full, mark, gone, partner)
        tied = mark.copy()
        tied[front] = False
        at = np.flatnonzero(tied)
    inner = full.without(gone)
    kept = np.flatnonzero(~gone)
    marks, apart = Marks.none(), np.zeros((0, 2), np.int64)
    if len(at):
        marks, apart = tie(full, inner, gone, at, partner)
    if len(apart):  # the two marks of a pair and everything between them become one part
        more[inside(groups[apart[:, 0]], groups[apart[:, 1] + 1])] = True
    if rules.keep_order and (gap := inner.has_gap).any():
        first, last = inner.edges
        # The smallest ancestors without a gap become one part, whose order is kept. Once one of them would be above a
        # root, the others wait for the next call.
        head = np.unique(inner.parent[gap])
        while (head >= 0).all() and (rising := gap[head]).any():
            head = np.unique(np.where(rising, inner.parent[head], head))
        head = head[head >= 0]
        more[inside(groups[kept[first[head]]], groups[kept[last[head]] + 1])] = True
    nodes = LayoutNodes(forest, groups, full, gone, inner, kept, top[kept], marks, front, back, partner)
    return nodes, more & ~bonds


def inside(begins: Int64, ends: Int64) -> Int64:
    """Return the words of these ranges except the first of each: begins [2], ends [5] -> [3, 4]."""
    return expand_ranges(begins + 1, ends - begins - 1)


def with_whole_pairs(bonds: Bool, nodes: LayoutNodes) -> Bool:
    """Return the bonds, plus those between the two marks of a pair if one of them is in a larger part."""
    opener = np.flatnonzero(nodes.partner > np.arange(len(nodes.partner)))
    left, right = nodes.groups[opener], nodes.groups[nodes.partner[opener]]
    bonds = np.append(bonds, False)
    while True:
        # A pair that becomes bound may bind a mark of another pair, hence the loop.
        bound = bonds[left] | bonds[left + 1] | bonds[right] | bonds[right + 1]
        words = inside(left[bound], right[bound] + 1)
        if bonds[words].all():
            return bonds[:-1]
        bonds[words] = True


def _with_other_child(forest: Forest, gone: Bool) -> Int64:
    """Return the nodes that are gone, but have a child that is not."""
    child = np.flatnonzero(np.append(gone, False)[forest.parent])  # False for parent -1
    return forest.parent[child[~gone[child]]]


def _leading(full: Forest, mark: Bool, gone: Bool, partner: Int64) -> Int64:
    """Return the marks at the beginning of a tree, up to the first whose partner is a mark inside the tree.

    All marks of a tree without other words are among them.
    """
    begins, ends = full.trees[:-1], full.trees[1:]
    # The first node of each tree that ends its row of leading marks: a word, or a mark with a partner.
    stops = np.append(np.flatnonzero(~mark | (partner >= 0)), len(full))
    first = np.minimum(stops[np.searchsorted(stops, begins)], ends)
    n_others = offsets_of(~gone)
    first = np.where(n_others[ends] == n_others[begins], ends, first)
    front = expand_ranges(begins, first - begins)
    return front[mark[front]]
