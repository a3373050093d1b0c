"""Layout: from the order of each head's family to the position of each word.

A family is a head and its children, in surface order. The subtree of a child is one block of words, so the position of
the child in the family gives the positions of its whole subtree:

    start(child) = start(parent) + the lengths of the blocks before it in the family

    the cat slept, parent 1 2 -1; families [the, cat] of cat and [cat, slept] of slept, reordered to [slept, cat]
    sizes of subtrees 1 2 3;  steps: cat 1 (after `slept`), the 0  ->  starts: cat 1, the 1 + 0
    own positions: slept 0, the 1, cat 1 + 1 = 2               ->  slept the cat

The roots of a tree are a family, too, without a head. A tree that is not projective becomes projective.

`laid_out` gives from this the position of each word, marks and pins included.

Orders that are rules and not models give each member of a family a number, its slot, by which the family is sorted:

    She gave him books     slots 0 2 1 1 (subject, verb, objects)   ->   She him books gave
                           objects mirrored                         ->   She books him gave
"""

from __future__ import annotations

from dataclasses import dataclass, replace
from functools import cached_property

import numpy as np

from derivlang.core.arrays import Bool, Int64, lengths_of, offsets_of, ranks_in_runs
from derivlang.syntax.forest import Forest
from derivlang.syntax.marks import AFTER, BEFORE, TIED_AFTER, TIED_BEFORE
from derivlang.syntax.nodes import LayoutNodes


@dataclass(frozen=True, eq=False)
class Listing:
    """The F families of a forest, one after the other, with E entries.

    heads: int64[F], the head's node, or n + t for the roots of tree t. offsets: int64[F + 1], into entries. nodes:
    int64[E], the node of each entry. itself: bool[E], True if an entry is the head itself, False if it is a child with
    its whole subtree.

    the cat slept, parent 1 2 -1 (one tree, n = 3): heads [1, 2, 3], offsets [0, 2, 4, 5], nodes [0, 1, 1, 2, 2],
    itself [F, T, F, T, F]
    """

    heads: Int64
    offsets: Int64
    nodes: Int64
    itself: Bool

    def reordered(self, entries: Int64, members: Int64) -> Listing:
        """Return the listing with other members at some entries.

        entries: int64[K], all of a family or none. members: int64[K], the entry of the same family that goes there:
        entries [0 1 2] of [a b c], members [2 0 1]  ->  [c a b].
        """
        nodes, itself = self.nodes.copy(), self.itself.copy()
        nodes[entries], itself[entries] = self.nodes.take(members), self.itself.take(members)
        return replace(self, nodes=nodes, itself=itself)


def list_families(forest: Forest) -> Listing:
    """Return all families by the numbers of their heads, their members in surface order.

    A node is a member of the family above it, and one with children of its own family, too.
    """
    above = forest.above
    heads = np.unique(above)
    own = heads[heads < len(forest)]  # roots have n + t above them, not a node
    family, nodes = np.append(above, own), np.append(np.arange(len(forest)), own)
    by = np.lexsort((nodes, family))
    return Listing(heads, np.append(np.searchsorted(family[by], heads), len(by)), nodes[by], by >= len(forest))


@dataclass(frozen=True, eq=False)
class Members:
    """The E entries of a listing, with what an order asks about them.

    top: int64[n], the word that represents each node, as in `arrange`.
    """

    forest: Forest
    listing: Listing
    top: Int64

    @cached_property
    def family(self) -> Int64:
        """int64[E]: the family of each entry."""
        sizes = lengths_of(self.listing.offsets)
        return np.repeat(np.arange(len(sizes)), sizes)

    @cached_property
    def place(self) -> Int64:
        """int64[E]: the place of each entry in its family, from 0 in surface order."""
        return np.arange(len(self.family)) - self.listing.offsets[self.family]

    @cached_property
    def word(self) -> Int64:
        """int64[E]: the word that represents each entry."""
        return self.top[self.listing.nodes]

    @cached_property
    def head(self) -> Int64:
        """int64[E]: the word that represents the head of each entry's family, -1 in families of roots."""
        return np.append(self.top, -1)[np.minimum(self.listing.heads, len(self.forest))][self.family]

    @cached_property
    def before(self) -> Bool:
        """bool[E]: whether an entry stands before the head of its family; False in families of roots."""
        return np.asarray(self.place < self.last(self.listing.itself))

    @cached_property
    def after(self) -> Bool:
        """bool[E]: whether an entry stands after the head of its family; False in families of roots."""
        return np.asarray((self.head >= 0) & (self.place > self.last(self.listing.itself)))

    def first(self, flags: Bool) -> Int64:
        """Return int64[E]: the place of the first entry with the flag in each entry's family, E if there is none."""
        return self._edge(np.flatnonzero(flags)[::-1], len(flags))

    def last(self, flags: Bool) -> Int64:
        """Return int64[E]: the place of the last entry with the flag in each entry's family, -1 if there is none."""
        return self._edge(np.flatnonzero(flags), -1)

    def any(self, flags: Bool) -> Bool:
        """Return bool[E]: whether some entry of each entry's family has the flag."""
        return self.last(flags) >= 0

    def has_child(self, flags: Bool) -> Bool:
        """Return bool[E]: whether the node of each entry heads an entry with the flag."""
        node = np.zeros(len(self.forest) + len(self.forest.trees), bool)
        node[self.listing.heads[self.family[flags & ~self.listing.itself]]] = True
        return node[self.listing.nodes]

    def _edge(self, entries: Int64, without: int) -> Int64:
        """Return int64[E]: the place of the last of these entries in each family: the last value assigned stays."""
        place = np.full(len(self.listing.heads), without)
        place[self.family[entries]] = self.place[entries]
        return place.take(self.family)

    def arranged(self, slot: Int64, mirrored: Bool | None = None) -> Listing:
        """Return the listing with each family sorted by slots; equal ones keep their order, mirrored ones turn it.

        slot: int64[E], from 0. Families of roots keep their order.
        """
        slot = np.where(self.head >= 0, slot, 0)
        if mirrored is not None:
            # Unequal slots for all entries: 4 entries, slot 1 -> 4 + place, mirrored 4 + 3 - place.
            width = int(self.place.max(initial=0)) + 1
            slot = slot * width + np.where(mirrored & (self.head >= 0), width - 1 - self.place, self.place)
        key = self.family * (int(slot.max(initial=0)) + 1) + slot
        if not (key[1:] < key[:-1]).any():
            return self.listing
        return self.listing.reordered(np.arange(len(key)), np.argsort(key, kind="stable"))


def lay_out(
    forest: Forest, listing: Listing, own: Int64, before: Int64 | int = 0, after: Int64 | int = 0
) -> tuple[Int64, Int64, Int64]:
    """Return where the block of each node starts, where its own words start, and where it ends: int64[n] each.

    A block is a subtree with its marks; trees stand one after the other. own: int64[n], the words of each node with the
    marks tied to them. before, after: the marks before and after its whole subtree.

    With the listing of `the cat slept` (see `Listing`) in the order [slept, cat] and [the, cat], and sizes of 1:

        lengths of entries   1 1 | 1 2 | 3        the, cat itself | slept itself, cat | slept
        starts               0 1 | 2 3 | 5        the sum of the lengths before; `begins` of the families 0, 2, 5
        step                 slept 0, cat 3 - 2 = 1, the 0 - 0 = 0  from the start of the parent to the start of the
        child
        start                slept 0, cat 0 + 1, the 0 + 1 + 0      the sum of the steps on the path from the root
        own                  slept 0 + 2 - 2, cat 1 + 1 - 0, the 1
    """
    n = len(forest)
    size = forest.below(own + before + after)
    itself, child = np.flatnonzero(listing.itself), np.flatnonzero(~listing.itself)
    heads = listing.nodes.take(itself)
    lengths = size.take(listing.nodes)
    lengths[itself] = own.take(heads)
    starts = np.cumsum(lengths) - lengths
    begins = np.zeros(n + len(forest.trees), np.int64)  # by head
    begins[listing.heads] = starts[listing.offsets[:-1]]
    begins[:n] -= before  # the members of a family follow the marks before its block
    step = np.empty(n, np.int64)
    step[listing.nodes.take(child)] = starts.take(child)
    step -= begins.take(forest.above)
    # The roots of a tree follow the trees before it.
    roots = np.flatnonzero(forest.parent < 0)
    ends = np.append(0, np.cumsum(np.bincount(forest.tree_of[roots], size[roots], len(forest.trees) - 1)))
    step[roots] += ends.astype(np.int64)[forest.tree_of[roots]]
    start = forest.along(step)
    first = start + before
    first[heads] = start.take(heads) + starts.take(itself) - begins.take(heads)
    return start, first, start + size


def laid_out(nodes: LayoutNodes, listing: Listing) -> Int64:
    """Return int64[words]: the position of each word under these orders of the families."""
    n, marks = len(nodes.inner), nodes.marks
    counts = marks.counts(n)
    tied_before = counts[TIED_BEFORE]
    words = lengths_of(nodes.groups).take(nodes.kept)
    own = words + tied_before + counts[TIED_AFTER]
    start, tied, end = lay_out(nodes.inner, listing, own, counts[BEFORE], counts[AFTER])
    first = tied + tied_before  # the node's own first word
    begins = {BEFORE: start, AFTER: end - counts[AFTER], TIED_BEFORE: tied, TIED_AFTER: first + words}
    place = _places(nodes, first, begins, counts)
    return _uncrowded(nodes, start, place, counts) if len(marks.at) else place


def _places(nodes: LayoutNodes, first: Int64, begins: dict[int, Int64], counts: Int64) -> Int64:
    """Return int64[words]: the position of each word, pins and marks included.

    first: int64[n], the position of each node's first word in the layout. begins: for each side int64[n], the position
    of a node's first mark there. counts: of the marks.

    at[g] is the position of the first word of part g; its other words follow. The parts of several words are why the
    last line subtracts their offsets: groups [0, 2, 3] with at [1, 0]  ->  positions [1, 2, 0].
    """
    groups, marks = nodes.groups, nodes.marks
    forest, tree, inner_tree = nodes.forest, nodes.full.tree_of, nodes.inner.tree_of
    at = np.zeros(len(groups) - 1, np.int64)
    shift, n_back = nodes.shift
    at[nodes.kept] = first + shift.take(inner_tree)
    if len(marks.at):
        base = marks.ranks(counts) + shift[inner_tree[marks.node]]
        for side, begin in begins.items():
            here = np.flatnonzero(marks.side == side)
            base[here] += begin[marks.node[here]]
        at[marks.at] = base
    trees = tree[nodes.front]
    at[nodes.front] = forest.trees[:-1][trees] + ranks_in_runs(trees)
    pinned, trees = nodes.back, tree[nodes.back]
    ends = offsets_of(groups[pinned + 1] - groups[pinned])[:-1]
    begin = np.flatnonzero(np.diff(trees, prepend=-1))
    # ends: words of all pins before each. Less the number at the first pin of its tree: the place among the tree's
    # pins. Pins of one word each in trees 0 0 1: ends 0 1 2, base 0 0 2, so places 0 1 0.
    base = np.repeat(ends[begin], np.diff(np.append(begin, len(pinned))))
    at[pinned] = (forest.trees[1:] - n_back)[trees] + ends - base
    return (at - groups[:-1]).take(nodes.part_of) + np.arange(len(forest))


def _uncrowded(nodes: LayoutNodes, start: Int64, place: Int64, counts: Int64) -> Int64:
    """Return the positions with some marks moved from the end of their phrase to its beginning. start: of `lay_out`.

    A comma separates its phrase from its neighbours: `, when he came .`, not `when he came , .` So a mark moves if
    another mark follows it, or if it is the last word of the tree. The words of the phrase move right by one position:

        `we left when he came , .`    the comma at 5 goes to 2, where its phrase begins; 2 3 4 become 3 4 5
    """
    forest, marks = nodes.forest, nodes.marks
    which = np.flatnonzero((marks.side == AFTER) & ~marks.paired)
    if not len(which):
        return place
    which = which[counts[BEFORE][marks.node[which]] == 0]
    node = marks.node[which]
    tree = nodes.inner.tree_of[node]
    is_mark, opens = np.zeros((2, len(forest) + 1), bool)
    is_mark[nodes.groups[np.flatnonzero(nodes.gone)]] = True
    opens[nodes.groups[marks.at[marks.paired & (marks.side == BEFORE)]]] = True
    # index[p]: the word at position p. Behind the last position there is a word number that is not a mark and opens
    # nothing, so that `behind` needs no bounds.
    index = np.full(len(forest) + 1, len(forest))
    index[place] = np.arange(len(forest))
    word = nodes.groups[marks.at[which]]
    at, behind = place[word], place[word] + 1
    crowds = (behind == forest.trees[tree + 1]) | (is_mark[index[behind]] & ~opens[index[behind]])
    begin = start[node] + nodes.shift[0][tree]
    moves = crowds & (begin > forest.trees[tree]) & ~is_mark[index[begin - 1]]
    begin, at, word = begin[moves], at[moves], word[moves]
    # The number of moved marks whose phrase covers each position; phrases can be nested.
    covers = np.zeros(len(forest) + 1, np.int64)
    np.add.at(covers, begin, 1)
    np.add.at(covers, at, -1)
    # begin 2, at 5: +1 at 2 and -1 at 5, so the positions 2 3 4 have 1 and move right by one.
    covers = np.cumsum(covers)
    out = place + covers.take(place)
    out[word] = begin + covers[at]
    return out
