"""Places: from the layout of the nodes to the position of each word, marks and pins included."""

from __future__ import annotations

import numpy as np

from derivlang.core.arrays import Int64, lengths_of, offsets_of, ranks_in_runs
from derivlang.syntax.layout import Layout, Listing, Sizes, lay_out
from derivlang.syntax.marks import AFTER, BEFORE, TIED_AFTER, TIED_BEFORE
from derivlang.syntax.nodes import LayoutNodes


def laid_out(nodes: LayoutNodes, listing: Listing) -> Int64:
    """Return int64[words]: the position of each word under these orders of the families."""
    n, marks = len(nodes.inner), nodes.marks
    counts = marks.counts(n)
    tied_before = counts[TIED_BEFORE]
    words = lengths_of(nodes.groups).take(nodes.kept)
    own = words + tied_before + counts[TIED_AFTER]
    sizes = Sizes(own, counts[BEFORE], counts[AFTER])
    layout = lay_out(nodes.inner, listing, sizes)
    first = layout.own + tied_before  # the node's own first word
    begins = {BEFORE: layout.start, AFTER: layout.end - sizes.after, TIED_BEFORE: layout.own, TIED_AFTER: first + words}
    place = _places(nodes, first, begins, counts)
    return _uncrowded(nodes, layout, place, counts) if len(marks.at) else place


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


def _uncrowded(nodes: LayoutNodes, layout: Layout, place: Int64, counts: Int64) -> Int64:
    """Return the positions with some marks moved from the end of their phrase to its beginning.

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
    begin = layout.start[node] + nodes.shift[0][tree]
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
