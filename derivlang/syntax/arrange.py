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

# (inner forest, its families in surface order, the word that stands for each node) -> the families in another order.
Choose = Callable[[Forest, Listing, Int64], Listing]


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


def arrange(
    forest: Forest, seen: Seen, tails: Int32, bonds: Bool, choose: Choose, *, keep_order: bool, free_marks: bool
) -> tuple[Int64, Counter[str]]:
    """(int64[n], the place of each word; counts by reason).

    forest, seen: the words. tails: int32[T], words of each tree's tail. bonds: bool[n], words that are one part with
    the word before. keep_order: a head whose yield has gaps in it keeps its words in order. free_marks: punctuation
    is like any other word.
    """
    counts: Counter[str] = Counter()
    if not free_marks:
        bonds = bonds.copy()
        bonds[(forest.trees[1:] - tails)[tails > 0]] = False  # a tail stays, whatever it is bound to
    nodes, more = _prepare(forest, seen, tails, bonds, keep_order, free_marks)
    gaps = nodes.inner.has_gap
    if gaps.any():
        counts["trees-not-projective"] = len(np.unique(nodes.inner.tree_of[gaps]))
    while more.any():
        bonds = bonds | more
        nodes, more = _prepare(forest, seen, tails, bonds, keep_order, free_marks)
    listing = choose(nodes.inner, list_families(nodes.inner), nodes.top)
    place = _places(forest, nodes, lay_out(nodes.inner, listing, _sizes(nodes)))
    if not free_marks:
        place, kept = _no_mark_leads(forest, nodes, listing, place)
        if kept:
            counts["trees-kept-for-a-mark"] = kept
    return place, counts


def _prepare(
    forest: Forest, seen: Seen, tails: Int32, bonds: Bool, keep_order: bool, free_marks: bool
) -> tuple[Nodes, Bool]:
    """The nodes under these bonds, and bool[n] bonds that must be added (then it must be done again)."""
    n, more = len(forest), np.zeros(len(forest), bool)
    groups = np.append(np.flatnonzero(~bonds), n)
    full, top = forest.contracted(groups)
    single = lengths_of(groups) == 1
    front = back = gone = np.zeros(len(full), bool)
    partner = np.full(len(full), -1)
    at = np.zeros(0, np.int64)
    if not free_marks and n:
        sizes = lengths_of(full.trees)
        tail_groups = np.searchsorted(groups, forest.trees[1:] - np.minimum(tails, lengths_of(forest.trees)))
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
    if keep_order and (gap := inner.has_gap).any():
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
    n_front = np.bincount(tree[nodes.front], minlength=len(forest.trees) - 1)
    n_back = np.bincount(tree[nodes.back], sizes[nodes.back], len(forest.trees) - 1).astype(np.int64)
    shift = offsets_of(n_front + n_back)[:-1] + n_front
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


def _ranks(rows: Int32) -> Int64:
    """int64[k]: the place of each in its run of equal rows."""
    begins = np.flatnonzero(np.diff(rows, prepend=-1))
    return np.arange(len(rows)) - np.repeat(begins, np.diff(np.append(begins, len(rows))))


def _no_mark_leads(forest: Forest, nodes: Nodes, listing: Listing, place: Int64) -> tuple[Int64, int]:
    """The places, mended where a mark leads a tree that did not begin with one; how many trees keep their order for it.

    A comma before the first phrase goes behind it. Where that does not help (a bracket), the tree keeps its order.
    """
    word_mark = np.zeros(len(forest), bool)
    word_mark[nodes.groups[:-1][nodes.gone]] = True
    some = np.flatnonzero(lengths_of(forest.trees))
    begins = forest.trees[:-1][some]

    def led(place: Int64) -> Int64:
        index = np.empty(len(place), np.int64)
        index[place] = np.arange(len(place))
        return index[begins[word_mark[index[begins]] & ~word_mark[begins]]]  # the marks that lead

    marks = nodes.marks
    of_word = np.full(len(forest), -1)
    of_word[nodes.groups[marks.at]] = np.arange(len(marks.at))
    wrong = led(place)
    while len(wrong):
        which = of_word[wrong]
        which = which[(marks.side[which] == BEFORE) & ~marks.paired[which]]
        if not len(which):
            break
        side = marks.side.copy()
        side[which] = AFTER
        marks = replace(marks, side=side)
        nodes = replace(nodes, marks=marks)
        place = _places(forest, nodes, lay_out(nodes.inner, listing, _sizes(nodes)))
        wrong = led(place)
    trees = np.unique(forest.tree_of[wrong])
    kept = spread(forest.trees[:-1][trees], lengths_of(forest.trees)[trees])
    place[kept] = kept
    return place, len(trees)
