"""Arrangement: from the trees of some words, and an order for each family, to the new position of each word.

    words -> parts (freeze) -> forest of parts without marks and pins -> orders of families -> layout -> positions

*Pins* stay in place: the tail of a tree (its final marks) and marks at its beginning. Other marks go with their phrase
(`marks.py`); no tree begins with a mark unless it did before. Every word gets a position, whatever its tree looks like.
A tree without crossing arcs (those of such marks aside) has none afterwards (`crossing.py`).

    word        0 He   1 came   2 ,   3 said   4 Ann   5 Lee   6 .      parent 1 3 1 -1 3 4 3, one bond: Ann Lee
    groups      0      1        2     3        4       -       5        group offsets 0 1 2 3 4 6 7
    gone                        mark                           pin
    inner       0      1              2        3                        parent 1 2 -1 2
    marks       the comma, AFTER inner node 1 (`He came`)
    layout      families reversed: Ann Lee | said | came He ,  and the tail `.`
    place       5      4        3     2        0       1       6        Ann Lee said , came He .  (no comma before `.`)
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Callable, Iterator
from dataclasses import dataclass, replace
from functools import cached_property

import numpy as np

from derivlang.core.arrays import (
    Bool,
    Int32,
    Int64,
    expand_ranges,
    lengths_of,
    offsets_of,
    owners,
    ranks_in_runs,
    stretches,
)
from derivlang.syntax.crossing import crossing_trees, open_yields, reordered
from derivlang.syntax.forest import Forest
from derivlang.syntax.layout import Layout, Listing, Sizes, lay_out, list_families
from derivlang.syntax.marks import AFTER, BEFORE, TIED_AFTER, TIED_BEFORE, Marks, pairs, tie
from derivlang.syntax.words import WordKinds

WORDS_AT_ONCE = 1 << 17  # words laid out at once: fewer calls, and arrays that still nearly fit the cache


@dataclass(frozen=True, eq=False)
class TreeBlock:
    """T trees over n words.

    seen: the words. tails: int32[T], number of words in each tree's tail. bonds: bool[n], words that form one part with
    the word before. numbers: int64[T], numbers of the trees in the batch.
    """

    forest: Forest
    seen: WordKinds
    tails: Int32
    bonds: Bool
    numbers: Int64

    def take(self, trees: Int64) -> tuple[TreeBlock, Int64]:
        """Return (some of the trees, int64[m] their words)."""
        sizes = lengths_of(self.forest.trees)[trees]
        offsets = offsets_of(sizes)
        words = expand_ranges(self.forest.trees[:-1][trees], sizes)
        parent = self.forest.parent[words]
        moved = np.repeat(self.forest.trees[:-1][trees] - offsets[:-1], sizes)
        forest = Forest(np.where(parent < 0, -1, parent - moved), offsets)
        part = TreeBlock(forest, self.seen.take(words), self.tails[trees], self.bonds[words], self.numbers[trees])
        return part, words

    def stretches(self) -> Iterator[tuple[TreeBlock, int, slice]]:
        """Yield (some trees, the first of them, the range of their words), about `WORDS_AT_ONCE` words at a time."""
        trees, parent = self.forest.trees, self.forest.parent
        for begin, end in stretches(trees, WORDS_AT_ONCE):
            which, words = slice(begin, end), slice(int(trees[begin]), int(trees[end]))
            inside = np.where(parent[words] < 0, -1, parent[words] - words.start)
            forest = Forest(inside, trees[begin : end + 1] - words.start)
            seen = self.seen.take(words)
            yield TreeBlock(forest, seen, self.tails[which], self.bonds[words], self.numbers[which]), begin, words


# (block, inner forest, its families in surface order, the word that represents each node) -> the reordered families.
Choose = Callable[[TreeBlock, Forest, Listing, Int64], Listing]


@dataclass(frozen=True, slots=True)
class Rules:
    """Rules of an arrangement.

    keep_order: a head whose yield has gaps keeps its words in order. free_marks: punctuation moves like other words.
    """

    keep_order: bool = False
    free_marks: bool = False


@dataclass(frozen=True, eq=False)
class LayoutNodes:
    """The parts of some words: the nodes that are laid out, and the marks and pins that are not.

    forest: the words. groups: int64[G + 1], word offsets of the parts. gone: bool[G], marks and pins. inner: the forest
    of the n others. top: int64[n], the word that represents each inner node. marks: marks that are tied to a node.
    front, back: bool[G], pins at the beginning and at the end of their tree. partner: int64[G], the other mark of a
    pair, -1 without one.
    """

    forest: Forest
    groups: Int64
    gone: Bool
    inner: Forest
    top: Int64
    marks: Marks
    front: Bool
    back: Bool
    partner: Int64

    @cached_property
    def words(self) -> tuple[Forest, Int32, Int64]:
        """Return (the forest of the words that are laid out, the part of each, their positions among all words)."""
        part = owners(self.groups)
        if not self.gone.any():
            return self.forest, part, np.arange(len(self.forest))
        gone = self.gone[part]
        kept = np.flatnonzero(~gone)
        return self.forest.without(gone), part[kept], kept


def arrange(block: TreeBlock, choose: Choose, rules: Rules) -> tuple[Int32, Counter[str]]:
    """Return (int32[n], the new position of each word; counts by reason)."""
    if not rules.free_marks:
        bonds = block.bonds.copy()
        # A tail stays in place even if its first mark is bound to the word before it.
        bonds[(block.forest.trees[1:] - block.tails)[block.tails > 0]] = False
        block = replace(block, bonds=bonds)
    place = np.empty(len(block.forest), np.int32)
    counts: Counter[str] = Counter()
    again = [np.zeros(0, np.int64)]
    more = np.zeros(len(block.forest), bool)
    for part, first, words in block.stretches():
        found, trees, more[words], crossing = _arranged(part, choose, rules)
        place[words] = words.start + found
        again.append(first + trees)
        counts["trees-not-projective"] += crossing
    block = replace(block, bonds=block.bonds | more)
    # Few trees: they are arranged again, with more care, those of all stretches together.
    mended, its_words = block.take(np.concatenate(again))
    for part, _, words in mended.stretches():
        found, kept = _with_care(part, choose, rules)
        place[its_words[words]] = its_words[words][found]
        counts["trees-kept-for-a-mark"] += kept
    return place, +counts


def _arranged(block: TreeBlock, choose: Choose, rules: Rules) -> tuple[Int64, Int64, Bool, int]:
    """Return (positions int64[n], the trees that need more care, bool[n] the bonds to add before, crossing trees).

    The positions of a tree that needs more care are not valid. The last is the number of trees that are not projective.
    """
    nodes, more = _prepare(block, rules)
    crossing = int(crossing_trees(nodes.words[0]).sum())
    listing = choose(block, nodes.inner, list_families(nodes.inner), nodes.top)
    place = _laid_out(block.forest, nodes, listing)
    invalid = np.zeros(len(block.forest.trees) - 1, bool)
    invalid[block.forest.tree_of[more]] = True
    more |= _taken_in(block, nodes, place) & ~invalid[block.forest.tree_of]
    again = block.forest.tree_of[more]
    if not rules.free_marks:
        again = np.concatenate([again, block.forest.tree_of[_leading_marks(block, place)]])
    return place, np.unique(again).astype(np.int64), more, crossing


def _laid_out(forest: Forest, nodes: LayoutNodes, listing: Listing) -> Int64:
    """Return int64[n]: the position of each word under these orders of the families."""
    layout = lay_out(nodes.inner, listing, _sizes(nodes))
    place = _places(forest, nodes, layout)
    return _uncrowded(forest, nodes, layout, place) if len(nodes.marks.at) else place


def _with_care(block: TreeBlock, choose: Choose, rules: Rules) -> tuple[Int64, int]:
    """Arrange trees again until no arcs cross that did not cross before, and no tree begins with a mark.

    Returns (positions int64[n], number of trees that keep their order). Bonds are added until no more are needed. A
    comma before the first phrase moves behind it; if a tree begins with another mark, such as a bracket, it keeps its
    order.
    """
    nodes, more = _prepare(block, rules)
    while more.any():
        block = replace(block, bonds=block.bonds | more)
        nodes, more = _prepare(block, rules)
    forest = block.forest
    listing = choose(block, nodes.inner, list_families(nodes.inner), nodes.top)
    place = _laid_out(forest, nodes, listing)
    more = _taken_in(block, nodes, place)
    crossing = np.unique(forest.tree_of[more]).astype(np.int64)
    kept = np.zeros(0, np.int64)
    if not rules.free_marks:
        place, kept = _without_leading_marks(block, nodes, listing, place)
    n_kept = len(np.setdiff1d(kept, crossing))
    if len(crossing):
        part, words = replace(block, bonds=block.bonds | more).take(crossing)
        found, more_kept = _with_care(part, choose, rules)
        place[words] = words[found]
        n_kept += more_kept
    return place, n_kept


def _without_leading_marks(block: TreeBlock, nodes: LayoutNodes, listing: Listing, place: Int64) -> tuple[Int64, Int64]:
    """Return (positions with no mark at the beginning of a tree, the trees that keep their order for that)."""
    forest = block.forest
    marks = nodes.marks
    of_word = np.full(len(forest), -1)
    of_word[nodes.groups[marks.at]] = np.arange(len(marks.at))
    wrong = _leading_marks(block, place)
    while len(wrong):
        which = of_word[wrong]
        which = which[which >= 0]  # the others are in parts of several words, or have dependents
        which = which[(marks.side[which] == BEFORE) & ~marks.paired[which]]
        if not len(which):
            break
        side = marks.side.copy()
        side[which] = AFTER
        marks = replace(marks, side=side)
        nodes = replace(nodes, marks=marks)
        place = _laid_out(forest, nodes, listing)
        wrong = _leading_marks(block, place)
    trees = np.unique(forest.tree_of[wrong]).astype(np.int64)
    kept = expand_ranges(forest.trees[:-1][trees], lengths_of(forest.trees)[trees])
    place[kept] = kept
    return place, trees


def _taken_in(block: TreeBlock, nodes: LayoutNodes, place: Int64) -> Bool:
    """Return bool[n]: the bonds to add in trees that had no crossing arcs, but have some at these positions."""
    more = np.zeros(len(block.forest), bool)
    words, part, kept = nodes.words
    yields = open_yields(words, part)
    if not len(yields):
        return more
    rank = np.empty(len(kept), np.int64)
    rank[np.argsort(place[kept], kind="stable")] = np.arange(len(kept))
    crosses = crossing_trees(reordered(words, rank)) & ~crossing_trees(words)
    yields = yields[crosses[words.tree_of[yields]]]
    first, last = words.edges
    more[_inside(kept[first[yields]], kept[last[yields]] + 1)] = True
    return _with_whole_pairs(block.bonds | more, nodes) & ~block.bonds


def _uncrowded(forest: Forest, nodes: LayoutNodes, layout: Layout, place: Int64) -> Int64:
    """Return the positions with some marks moved from the end of their phrase to its beginning.

    A comma separates its phrase from its neighbours: `, when he came .`, not `when he came , .` So a mark moves if
    another mark follows it, or if it is the last word of the tree. The words of the phrase move right by one position:

        `we left when he came , .`    the comma at 5 goes to 2, where its phrase begins; 2 3 4 become 3 4 5
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
    # The number of moved marks whose phrase covers each position; phrases can be nested.
    inside = np.zeros(len(forest) + 1, np.int64)
    np.add.at(inside, begin, 1)
    np.add.at(inside, at, -1)
    inside = np.cumsum(inside)
    out = place + inside[place]
    out[word] = begin + inside[at]
    return out


def _leading_marks(block: TreeBlock, place: Int64) -> Int64:
    """Return the punctuation words at the beginning of trees that did not begin with punctuation in the source."""
    is_mark = block.seen.has_tag("PUNCT")
    trees = block.forest.trees
    begins = trees[:-1][np.diff(trees) > 0]
    begins = begins[~is_mark[begins]]
    index = np.empty(len(place), np.int64)
    index[place] = np.arange(len(place))
    first = index[begins]
    return first[is_mark[first]]


def _prepare(block: TreeBlock, rules: Rules) -> tuple[LayoutNodes, Bool]:
    """Return (the nodes under these bonds, bool[n] bonds to add).

    If there are bonds to add, the nodes are not valid yet: call it again with them.
    """
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
        back[expand_ranges(tail_groups, full.trees[1:] - tail_groups)] = True
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
    if len(apart):  # the two marks of a pair and everything between them become one part
        more[_inside(groups[apart[:, 0]], groups[apart[:, 1] + 1])] = True
    if rules.keep_order and (gap := inner.has_gap).any():
        first, last = inner.edges
        head = np.unique(inner.parent[gap])
        while (head >= 0).all() and (rising := gap[head]).any():
            head = np.unique(np.where(rising, inner.parent[head], head))
        head = head[head >= 0]
        more[_inside(groups[keep[first[head]]], groups[keep[last[head]] + 1])] = True
    return LayoutNodes(forest, groups, gone, inner, top[keep], marks, front, back, partner), more & ~bonds


def _inside(begins: Int64, ends: Int64) -> Int64:
    """Return the words of these ranges except the first of each: begins [2], ends [5] -> [3, 4]."""
    return expand_ranges(begins + 1, ends - begins - 1)


def _with_whole_pairs(bonds: Bool, nodes: LayoutNodes) -> Bool:
    """Return the bonds, plus those between the two marks of a pair if one of them is in a larger part."""
    opener = np.flatnonzero(nodes.partner > np.arange(len(nodes.partner)))
    left, right = nodes.groups[opener], nodes.groups[nodes.partner[opener]]
    bonds = np.append(bonds, False)
    while True:
        bound = bonds[left] | bonds[left + 1] | bonds[right] | bonds[right + 1]
        inside = _inside(left[bound], right[bound] + 1)
        if bonds[inside].all():
            return bonds[:-1]
        bonds[inside] = True


def _has_other_child(forest: Forest, mark: Bool) -> Bool:
    """Return bool[n]: whether a node has a child that is not a mark."""
    out = np.zeros(len(forest), bool)
    child = ~mark & (forest.parent >= 0)
    out[forest.parent[child]] = True
    return out


def _leading(full: Forest, mark: Bool, back: Bool, partner: Int64) -> Bool:
    """Return bool[G]: the marks at the beginning of a tree, up to the first whose partner is inside the tree."""
    stops = ~mark | ((partner >= 0) & ~back[partner])
    place = np.where(stops, np.arange(len(full)), len(full))
    begins = full.trees[:-1]
    some = lengths_of(full.trees) > 0
    first = full.trees[1:].copy()
    first[some] = np.minimum(np.minimum.reduceat(place, begins[some]), first[some])
    return np.arange(len(full)) < first[full.tree_of]


def _sizes(nodes: LayoutNodes) -> Sizes:
    n, marks = len(nodes.inner), nodes.marks
    own = lengths_of(nodes.groups)[~nodes.gone]
    tied = marks.count(TIED_BEFORE, n) + marks.count(TIED_AFTER, n)
    return Sizes(own + tied, marks.count(BEFORE, n), marks.count(AFTER, n))


def _places(forest: Forest, nodes: LayoutNodes, layout: Layout) -> Int64:
    """Return int64[words]: the position of each word, pins and marks included.

    at[g] is the position of the first word of part g; its other words follow. The parts of several words are why the
    last line subtracts their offsets: groups [0, 2, 3] with at [1, 0]  ->  positions [1, 2, 0].
    """
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
    at[pinned] = forest.trees[:-1][tree[pinned]] + ranks_in_runs(tree[pinned])
    pinned = np.flatnonzero(nodes.back)
    ends = offsets_of(sizes[pinned])[:-1]
    first = np.flatnonzero(np.diff(tree[pinned], prepend=-1))
    base = np.repeat(ends[first], np.diff(np.append(first, len(pinned))))
    at[pinned] = (forest.trees[1:] - n_back)[tree[pinned]] + ends - base
    return np.repeat(at - groups[:-1], sizes) + np.arange(len(forest))


def _shift(forest: Forest, nodes: LayoutNodes) -> tuple[Int64, Int64]:
    """Return int64[T] twice: the offset from layout to word positions, and the number of words pinned at the end.

    The layout counts no pins. The offset of a tree is the number of pinned words before it and at its beginning.
    """
    sizes = lengths_of(nodes.groups)
    tree, n = owners(np.searchsorted(nodes.groups, forest.trees)), len(forest.trees) - 1
    n_front = np.bincount(tree[nodes.front], minlength=n)
    n_back = np.bincount(tree[nodes.back], sizes[nodes.back], n).astype(np.int64)
    return offsets_of(n_front + n_back)[:-1] + n_front, n_back
