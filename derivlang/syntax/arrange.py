"""Arrangement: from the trees of some words, and a choice for each family, to the place of each word.

    words -> parts (freeze) -> forest of parts without marks and pins -> families, chosen -> layout -> places

*Pins* stay where they are: a tree's tail (its final marks), and marks that lead it. Other marks go with their phrase
(`marks.py`); no mark leads a tree that did not begin with one. Every word gets a place, whatever its tree looks like.
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Callable
from dataclasses import dataclass, replace

import numpy as np

from derivlang.core.arrays import Bool, Int32, Int64, lengths_of, offsets_of, owners, spread
from derivlang.syntax.forest import Forest
from derivlang.syntax.layout import Layout, Listing, Sizes, lay_out, list_families
from derivlang.syntax.marks import AFTER, BEFORE, TIED_AFTER, TIED_BEFORE, Marks, pairs, tie
from derivlang.syntax.words import Seen


@dataclass(frozen=True, eq=False)
class Block:
    """Some trees, over their words.

    seen: the words. tails: int32[T], words of each tree's tail. bonds: bool[n], words that are one part with the word
    before. numbers: int64[T], what the trees are called elsewhere.
    """

    forest: Forest
    seen: Seen
    tails: Int32
    bonds: Bool
    numbers: Int64

    def take(self, trees: Int64) -> tuple[Block, Int64]:
        """(some of the trees, int64[m] their words)."""
        sizes = lengths_of(self.forest.trees)[trees]
        offsets = offsets_of(sizes)
        words = spread(self.forest.trees[:-1][trees], sizes)
        parent = self.forest.parent[words]
        moved = np.repeat(self.forest.trees[:-1][trees] - offsets[:-1], sizes)
        forest = Forest(np.where(parent < 0, -1, parent - moved), offsets)
        part = Block(forest, self.seen.take(words), self.tails[trees], self.bonds[words], self.numbers[trees])
        return part, words


# (block, inner forest, its families in surface order, the word that stands for each node) -> the families reordered.
Choose = Callable[[Block, Forest, Listing, Int64], Listing]


@dataclass(frozen=True, slots=True)
class Rules:
    """keep_order: a head whose yield has gaps keeps its words in order. free_marks: punctuation is like other words."""

    keep_order: bool = False
    free_marks: bool = False


@dataclass(frozen=True, eq=False)
class Nodes:
    """What is laid out of some words, and what is not.

    groups: int64[G + 1], word offsets of the parts. gone: bool[G], marks and pins. inner: the forest of the others.
    top: int64[n], the word that stands for each inner node. marks: those that go with a node. front: bool[G], pins
    before the words of their tree; back: behind them.
    """

    groups: Int64
    gone: Bool
    inner: Forest
    top: Int64
    marks: Marks
    front: Bool
    back: Bool


def arrange(block: Block, choose: Choose, rules: Rules) -> tuple[Int64, Counter[str]]:
    """(int64[n], the place of each word; counts by reason)."""
    if not rules.free_marks:
        bonds = block.bonds.copy()
        bonds[(block.forest.trees[1:] - block.tails)[block.tails > 0]] = False  # a tail stays, whatever it is bound to
        block = replace(block, bonds=bonds)
    nodes, more = _prepare(block, rules)
    gaps = nodes.inner.has_gap
    counts: Counter[str] = Counter()
    if gaps.any():
        counts["trees-not-projective"] = len(np.unique(nodes.inner.tree_of[gaps]))
    listing = choose(block, nodes.inner, list_families(nodes.inner), nodes.top)
    place = _laid_out(block.forest, nodes, listing)
    again = block.forest.tree_of[more]
    if not rules.free_marks:
        again = np.concatenate([again, block.forest.tree_of[_leading_marks(block, place)]])
    if len(again):  # few trees: they are done once more, with more care
        part, words = block.take(np.unique(again))
        mended, kept = _with_care(part, choose, rules)
        place[words] = words[mended]
        if kept:
            counts["trees-kept-for-a-mark"] = kept
    return place, counts


def _laid_out(forest: Forest, nodes: Nodes, listing: Listing) -> Int64:
    """int64[n]: the place of each word."""
    layout = lay_out(nodes.inner, listing, _sizes(nodes))
    place = _places(forest, nodes, layout)
    return _uncrowded(forest, nodes, layout, place) if len(nodes.marks.at) else place


def _with_care(block: Block, choose: Choose, rules: Rules) -> tuple[Int64, int]:
    """The places, with all the bonds that are needed and no mark in front; how many trees keep their order for it.

    A comma before the first phrase goes behind it. Where that does not help (a bracket), the tree keeps its order.
    """
    nodes, more = _prepare(block, rules)
    while more.any():
        block = replace(block, bonds=block.bonds | more)
        nodes, more = _prepare(block, rules)
    listing = choose(block, nodes.inner, list_families(nodes.inner), nodes.top)
    forest, marks = block.forest, nodes.marks
    place = _laid_out(forest, nodes, listing)
    if rules.free_marks:
        return place, 0
    of_word = np.full(len(forest), -1)
    of_word[nodes.groups[marks.at]] = np.arange(len(marks.at))
    wrong = _leading_marks(block, place)
    while len(wrong):
        which = of_word[wrong]
        which = which[which >= 0]  # others are parts of several words, or have words under them
        which = which[(marks.side[which] == BEFORE) & ~marks.paired[which]]
        if not len(which):
            break
        side = marks.side.copy()
        side[which] = AFTER
        marks = replace(marks, side=side)
        nodes = replace(nodes, marks=marks)
        place = _laid_out(forest, nodes, listing)
        wrong = _leading_marks(block, place)
    trees = np.unique(forest.tree_of[wrong])
    kept = spread(forest.trees[:-1][trees], lengths_of(forest.trees)[trees])
    place[kept] = kept
    return place, len(trees)


def _uncrowded(forest: Forest, nodes: Nodes, layout: Layout, place: Int64) -> Int64:
    """The places, with marks that would stand before another mark, or last, on the other side of their phrase.

    A comma parts its phrase from what stands beside it: `, when he came .`, not `when he came , .` Only the phrase
    makes room.
    """
    marks = nodes.marks
    which = np.flatnonzero((marks.side == AFTER) & ~marks.paired)
    if not len(which):
        return place
    which = which[marks.count(BEFORE, len(nodes.inner))[marks.node[which]] == 0]
    node = marks.node[which]
    tree = nodes.inner.tree_of[node]
    is_mark, opens = np.zeros((2, len(forest) + 1), bool)
    is_mark[nodes.groups[:-1][nodes.gone]] = True
    opens[nodes.groups[marks.at[marks.paired & (marks.side == BEFORE)]]] = True
    index = np.full(len(forest) + 1, len(forest))
    index[place] = np.arange(len(forest))
    word = nodes.groups[marks.at[which]]
    at, behind = place[word], place[word] + 1
    crowds = (behind == forest.trees[tree + 1]) | (is_mark[index[behind]] & ~opens[index[behind]])
    begin = layout.start[node] + _shift(forest, nodes)[0][tree]
    moves = crowds & (begin > forest.trees[tree]) & ~is_mark[index[begin - 1]]
    begin, at, word = begin[moves], at[moves], word[moves]
    # How many of the phrases that make room a place lies in; a mark goes to where its own begins.
    inside = np.zeros(len(forest) + 1, np.int64)
    np.add.at(inside, begin, 1)
    np.add.at(inside, at, -1)
    inside = np.cumsum(inside)
    out = place + inside[place]
    out[word] = begin + inside[at]
    return out


def _leading_marks(block: Block, place: Int64) -> Int64:
    """The words of punctuation that lead a tree that did not begin with one."""
    is_mark = block.seen.has_tag("PUNCT")
    trees = block.forest.trees
    begins = trees[:-1][np.diff(trees) > 0]
    begins = begins[~is_mark[begins]]
    index = np.empty(len(place), np.int64)
    index[place] = np.arange(len(place))
    first = index[begins]
    return first[is_mark[first]]


def _prepare(block: Block, rules: Rules) -> tuple[Nodes, Bool]:
    """The nodes under these bonds, and bool[n] bonds that must be added (then it must be done again)."""
    forest, seen, bonds = block.forest, block.seen, block.bonds
    n, more = len(forest), np.zeros(len(forest), bool)
    groups = np.append(np.flatnonzero(~bonds), n)
    full, top = forest.contracted(groups)
    single = lengths_of(groups) == 1
    front = back = gone = np.zeros(len(full), bool)
    partner = np.full(len(full), -1)
    at = np.zeros(0, np.int64)
    if not rules.free_marks and n:
        sizes = lengths_of(full.trees)
        tail_groups = np.searchsorted(groups, forest.trees[1:] - np.minimum(block.tails, lengths_of(forest.trees)))
        back = np.zeros(len(full), bool)
        back[spread(tail_groups, full.trees[1:] - tail_groups)] = True
        mark = single & seen.has_tag("PUNCT")[top] & ~back
        mark &= ~_has_other_child(full, mark | back)
        gone = mark | back
        kind = seen.kind[top]
        partner = pairs(kind, mark, full.trees)
        front = _leading(full, mark, back, partner)
        begins = full.trees[:-1][sizes > 0]
        empty = np.zeros(len(full.trees) - 1, bool)
        empty[sizes > 0] = np.logical_and.reduceat(gone, begins)
        front |= mark & empty[full.tree_of]
        at = np.flatnonzero(mark & ~front)
    inner = full.without(gone) if gone.any() else full
    keep = np.flatnonzero(~gone)
    marks, apart = Marks.none(), np.zeros((0, 2), np.int64)
    if len(at):
        marks, apart = tie(full, inner, gone, at, partner)
    if len(apart):  # what stands between the two of a pair is one part
        more[_inside(groups[apart[:, 0]], groups[apart[:, 1] + 1])] = True
    if rules.keep_order and (gap := inner.has_gap).any():
        first, last = inner.edges
        head = np.unique(inner.parent[gap])
        while (head >= 0).all() and (rising := gap[head]).any():
            head = np.unique(np.where(rising, inner.parent[head], head))
        head = head[head >= 0]
        more[_inside(groups[keep[first[head]]], groups[keep[last[head]] + 1])] = True
    return Nodes(groups, gone, inner, top[keep], marks, front, back), more & ~bonds


def _inside(begins: Int64, ends: Int64) -> Int64:
    """The words of these stretches but for the first of each."""
    return spread(begins + 1, ends - begins - 1)


def _has_other_child(forest: Forest, mark: Bool) -> Bool:
    """bool[n]: has the node a child that is no mark."""
    out = np.zeros(len(forest), bool)
    child = ~mark & (forest.parent >= 0)
    out[forest.parent[child]] = True
    return out


def _leading(full: Forest, mark: Bool, back: Bool, partner: Int64) -> Bool:
    """bool[G]: marks that lead their tree, up to the first whose partner stands inside the tree."""
    stops = ~mark | ((partner >= 0) & ~back[partner])
    place = np.where(stops, np.arange(len(full)), len(full))
    begins = full.trees[:-1]
    some = lengths_of(full.trees) > 0
    first = full.trees[1:].copy()
    first[some] = np.minimum(np.minimum.reduceat(place, begins[some]), first[some])
    return np.arange(len(full)) < first[full.tree_of]


def _sizes(nodes: Nodes) -> Sizes:
    n, marks = len(nodes.inner), nodes.marks
    own = lengths_of(nodes.groups)[~nodes.gone]
    tied = marks.count(TIED_BEFORE, n) + marks.count(TIED_AFTER, n)
    return Sizes(own + tied, marks.count(BEFORE, n), marks.count(AFTER, n))


def _places(forest: Forest, nodes: Nodes, layout: Layout) -> Int64:
    """int64[words]: the place of each word, pins and marks among them."""
    groups, marks, n = nodes.groups, nodes.marks, len(nodes.inner)
    sizes = lengths_of(groups)
    tree = owners(np.searchsorted(groups, forest.trees))
    at = np.zeros(len(sizes), np.int64)
    shift, n_back = _shift(forest, nodes)
    before = marks.count(TIED_BEFORE, n)
    at[~nodes.gone] = layout.own + before + shift[nodes.inner.tree_of]
    if len(marks.at):
        own = lengths_of(groups)[~nodes.gone]
        after = marks.count(AFTER, n)
        base = np.stack([layout.start, layout.end - after, layout.own, layout.own + before + own])
        at[marks.at] = base[marks.side, marks.node] + marks.ranks(n) + shift[nodes.inner.tree_of[marks.node]]
    pinned = np.flatnonzero(nodes.front)
    at[pinned] = forest.trees[:-1][tree[pinned]] + _ranks(tree[pinned])
    pinned = np.flatnonzero(nodes.back)
    ends = offsets_of(sizes[pinned])[:-1]
    first = np.flatnonzero(np.diff(tree[pinned], prepend=-1))
    base = np.repeat(ends[first], np.diff(np.append(first, len(pinned))))
    at[pinned] = (forest.trees[1:] - n_back)[tree[pinned]] + ends - base
    return np.repeat(at - groups[:-1], sizes) + np.arange(len(forest))


def _shift(forest: Forest, nodes: Nodes) -> tuple[Int64, Int64]:
    """int64[T] each: what places of the layout lack, the pins of earlier trees and in front; words pinned behind."""
    sizes = lengths_of(nodes.groups)
    tree, n = owners(np.searchsorted(nodes.groups, forest.trees)), len(forest.trees) - 1
    n_front = np.bincount(tree[nodes.front], minlength=n)
    n_back = np.bincount(tree[nodes.back], sizes[nodes.back], n).astype(np.int64)
    return offsets_of(n_front + n_back)[:-1] + n_front, n_back


def _ranks(rows: Int32) -> Int64:
    """int64[k]: the place of each in its run of equal rows."""
    begins = np.flatnonzero(np.diff(rows, prepend=-1))
    return np.arange(len(rows)) - np.repeat(begins, np.diff(np.append(begins, len(rows))))
