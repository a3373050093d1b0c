"""Marks: the phrase that a comma, a bracket or a quote belongs to, so that it moves with it (`punct=reader`).

A mark is tied to a *node*: before or after its whole subtree, or, if no phrase ends or begins there, next to the node's
own words. A comma follows its head in the tree: it is tied after that phrase if it closes it, before it if it opens it;
else after the largest phrase that ends there, else before the largest phrase that begins there. The two marks of a pair
are tied to one phrase between them; if there is none, everything between them becomes one part.

    When he came , we left .      `,` closes the subtree of `came`:  tied AFTER `came`
    we ( Ann and I ) left         the pair is tied to `Ann`:         `(` BEFORE, `)` AFTER its subtree
"""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np

from derivlang.core.arrays import Bool, Int8, Int64, Ints, ranks_in_runs
from derivlang.syntax.forest import Forest
from derivlang.syntax.words import FIRST_CLOSER, FIRST_OPENER, QUOTE

_TO_CLOSER = FIRST_CLOSER - FIRST_OPENER
BEFORE, AFTER, TIED_BEFORE, TIED_AFTER = range(4)


@dataclass(frozen=True, eq=False)
class Marks:
    """K marks that are tied to nodes.

    at: int64[K], their groups, ascending. node: int64[K], of the inner forest. side: int8[K], BEFORE, AFTER,
    TIED_BEFORE or TIED_AFTER. paired: bool[K], whether the mark has a partner.
    """

    at: Int64
    node: Int64
    side: Int8
    paired: Bool

    @classmethod
    def none(cls) -> Marks:
        """Return no marks."""
        empty = np.zeros(0, np.int64)
        return cls(empty, empty, np.zeros(0, np.int8), np.zeros(0, bool))

    def counts(self, n: int) -> Int64:
        """Return int64[4, n]: the number of marks on each side of each node."""
        return np.bincount(self._key(n), minlength=4 * n).reshape(4, n)

    def ranks(self, counts: Int64) -> Int64:
        """Return int64[K]: the rank of each mark among the marks of its node and side, in surface order."""
        key = self._key(counts.shape[1])
        several = np.flatnonzero(counts.reshape(-1).take(key) > 1)
        by = several[np.argsort(key[several], kind="stable")]  # `at` ascends
        rank = np.zeros(len(key), np.int64)
        rank[by] = ranks_in_runs(key[by])
        return rank

    def _key(self, n: int) -> Int64:
        return self.side.astype(np.int64) * n + self.node


def pairs(kind: Int8, mark: Bool, trees: Int64) -> Int64:
    """Return int64[n]: the partner of each opening or closing mark in its tree, -1 without one.

    kind: int8[n]. mark: bool[n], the nodes that count. Brackets nest; straight quotes open and close in turn.

        ( ( ) ) )    partners 3 2 1 0 and -1
    """
    partner = np.full(len(kind), -1)
    marks = np.flatnonzero(mark & (kind >= QUOTE))
    tree_of = np.searchsorted(trees, marks, "right")
    waiting: dict[tuple[int, int], list[int]] = {}  # by tree and opener: the marks that are open
    for at, one, tree in zip(marks.tolist(), kind[marks].tolist(), tree_of.tolist(), strict=True):
        closes = one >= FIRST_CLOSER
        stack = waiting.setdefault((tree, one - _TO_CLOSER if closes else one), [])
        if stack and (closes or one < FIRST_OPENER):
            partner[at] = stack.pop()
            partner[partner[at]] = at
        elif not closes:
            stack.append(at)
    return partner


def tie(full: Forest, inner: Forest, gone: Bool, at: Int64, partner: Int64) -> tuple[Marks, Int64]:
    """Return (the tied marks, int64[P, 2] the pairs whose content is not one phrase).

    full: the forest with the marks. inner: the forest without the nodes that are gone. at: int64[K], the marks to tie,
    each in a tree that has other words. partner: int64[len(full)].

    Nodes `we , left` with the comma gone: content is [1, 1, 2], the number of inner nodes up to each node, so the comma
    (node 1) has inner node content - 1 = 0 on its left and content = 1 on its right.
    """
    content: Int64 = np.cumsum(~gone, dtype=np.int64)
    left, right = content[at] - 1, content[at]
    tree = full.tree_of[at]
    # A mark behind the last inner node has that node's number + 1 on its right, which reads the -1.
    of = np.append(inner.tree_of, -1)
    has_left: Bool = (left >= 0) & (of[left] == tree)
    has_right: Bool = of[np.minimum(right, len(inner))] == tree
    left, right = np.where(has_left, left, 0), np.where(has_right, right, 0)
    head = full.parent[at]
    # The head of a mark may be another mark or a pin: go up to a word that is laid out. (gone[-1] is read for roots;
    # head >= 0 drops it.)
    while (lost := (head >= 0) & gone[head]).any():
        head[lost] = full.parent[head[lost]]
    under = head >= 0
    head = np.where(under, content[head] - 1, 0)

    first, last = inner.edges
    mate = partner[at]
    opens, closes = mate > at, (mate >= 0) & (mate < at)
    # Inside a pair, a phrase must not reach beyond the two marks.
    low, high = _bounds(at, partner, content, len(inner))
    low = np.where(closes, content[mate], low)
    high = np.where(opens, content[mate] - 1, high)
    node, side = np.full(len(at), -1), np.zeros(len(at), np.int8)

    def settle(chosen: Bool, nodes: Int64, where: int) -> None:
        chosen = chosen & (node < 0) & (first[nodes] >= low) & (last[nodes] <= high)
        node[chosen], side[chosen] = nodes[chosen], where

    # The calls are in order of preference: a mark that one has tied is not changed by the next. An opener is never tied
    # after a phrase, a closer never before one.
    after, before = has_left & ~opens, has_right & ~closes
    settle(under & after & (last[head] == left), head, AFTER)
    settle(under & before & (first[head] == right), head, BEFORE)
    settle(after & (last[left] == left), _highest(inner, left, last, first, low), AFTER)
    # The mirror image of the line above: negated, "the last node is at most high" becomes "at least".
    settle(before & (first[right] == right), _highest(inner, right, first, -last, -high), BEFORE)
    rest = node < 0
    # No phrase ends or begins there, so the mark stays beside one word: the left one, unless the mark opens a pair or
    # the left word is outside of the mark's pair. Without a word on the right it is always the left one.
    tied_after = rest & has_left & (left >= low) & ~(opens & has_right) | rest & ~has_right
    node[tied_after], side[tied_after] = left[tied_after], TIED_AFTER
    rest &= ~tied_after
    node[rest], side[rest] = right[rest], TIED_BEFORE

    index = np.full(len(full), -1)
    index[at] = np.arange(len(at))
    opener = np.flatnonzero(opens & (index[mate] >= 0))
    closer = index[mate[opener]]
    # A pair that does not enclose one whole phrase: the caller makes one part of all between the marks.
    apart = (node[opener] != node[closer]) | (side[opener] != BEFORE) | (side[closer] != AFTER)
    return Marks(at, node, side, mate >= 0), np.stack([at[opener[apart]], at[closer[apart]]], axis=1)


def _bounds(at: Int64, partner: Int64, content: Int64, n: int) -> tuple[Int64, Int64]:
    """Return int64[K] twice: the first and the last inner node inside the same pairs as each mark."""
    low, high = np.zeros(len(at), np.int64), np.full(len(at), n)
    opener = np.flatnonzero(partner > np.arange(len(partner)))
    closer = partner[opener]
    inside = np.searchsorted(at, opener, "right"), np.searchsorted(at, closer)
    by = np.argsort(opener - closer, kind="stable")  # longest first, so that inner pairs overwrite outer ones
    for i in by[inside[1][by] > inside[0][by]].tolist():
        marks = slice(inside[0][i], inside[1][i])
        low[marks], high[marks] = content[opener[i]], content[closer[i]] - 1
    return low, high


def _highest(forest: Forest, nodes: Int64, edge: Int64, other: Int64, least: Ints) -> Int64:
    """Return int64[K]: the highest node at or above each with the same edge whose other edge is not below `least`."""
    out = nodes.copy()
    active = np.arange(len(nodes))
    while active.size:
        up = forest.parent[out[active]]
        goes = (up >= 0) & (edge[up] == edge[out[active]]) & (other[up] >= least[active])
        active = active[goes]
        out[active] = up[goes]
    return out
