"""Layout: from the order of each head's family to the position of each word.

A family is a head and its children, in surface order. The subtree of a child is one block of words, so the position of
the child in the family gives the positions of its whole subtree:

    start(child) = start(parent) + the lengths of the blocks before it in the family

    the cat slept, parent 1 2 -1; families [the, cat] of cat and [cat, slept] of slept, reordered to [slept, cat]
    sizes of subtrees 1 2 3;  steps: cat 1 (after `slept`), the 0  ->  starts: cat 1, the 1 + 0
    own positions: slept 0, the 1, cat 1 + 1 = 2               ->  slept the cat

The roots of a tree are a family, too, without a head. A tree that is not projective becomes projective.
"""

from __future__ import annotations

from dataclasses import dataclass, replace

import numpy as np

from derivlang.core.arrays import Bool, Int64, lengths_of, offsets_of, sorting
from derivlang.syntax.forest import Forest


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

    def reordered(self, families: Int64, members: Int64) -> Listing:
        """Return the listing with a new order of some families.

        families: int64[K], their numbers. members: int64, for each new position in each of these families the old one,
        one family after the other: entries [a b c], members [2 0 1]  ->  [c a b].
        """
        nodes, itself = self.nodes.copy(), self.itself.copy()
        sizes = lengths_of(self.offsets)[families]
        base = np.repeat(self.offsets[families], sizes)
        at = base + np.arange(len(members)) - np.repeat(offsets_of(sizes)[:-1], sizes)
        nodes[at], itself[at] = self.nodes[base + members], self.itself[base + members]
        return replace(self, nodes=nodes, itself=itself)


def list_families(forest: Forest) -> Listing:
    """Return all families, their members in surface order.

    parent 1 2 -1: entries in surface order 0, 1, 1 itself, 2, 2 itself belong to families 1, 2, 1, 3 (the roots), 2;
    sorted by family: 1: [0, 1 itself], 2: [1, 2 itself], 3: [2].
    """
    n = len(forest)
    is_head = np.zeros(n, bool)
    is_head[forest.parent[forest.parent >= 0]] = True
    # Each node is an entry as a child, then, if it has children, as a head.
    nodes = np.repeat(np.arange(n), 1 + is_head)
    itself = np.zeros(len(nodes), bool)
    itself[1:] = nodes[1:] == nodes[:-1]
    above = np.where(forest.parent < 0, n + forest.tree_of, forest.parent)
    family = np.where(itself, nodes, above[nodes])
    by = sorting(family)
    family = family[by]
    begins = np.flatnonzero(np.diff(family, prepend=-1))
    return Listing(family[begins], np.append(begins, len(by)), nodes[by], itself[by])


@dataclass(frozen=True, eq=False)
class Sizes:
    """Numbers of words of each node, int64[n] each.

    own: the words of the node with the marks tied to them. before, after: the marks before and after its whole subtree.
    """

    own: Int64
    before: Int64
    after: Int64


@dataclass(frozen=True, eq=False)
class Layout:
    """Positions of each node, int64[n] each: the start of its block, its own first word, and the end of the block.

    A block is a subtree with its marks: start <= own < end.
    """

    start: Int64
    own: Int64
    end: Int64


def lay_out(forest: Forest, listing: Listing, sizes: Sizes) -> Layout:
    """Return the positions of all nodes, trees one after the other.

    With the listing of `the cat slept` (see `Listing`) in the order [the, cat] and [slept, cat], and sizes of 1:

        lengths of entries   1 1 | 1 2 | 3        the, cat itself | slept itself, cat | slept
        within a family      0 1 | 0 1 | 0        the sum of the lengths before an entry of its family
        step                 the 0, cat 1, slept 0                  from the start of the parent to that of the child
        start                slept 0, cat 0 + 1, the 0 + 1 + 0      the sum of the steps on the path from the root
        own                  start + inner: slept 0 + 0, cat 1 + 1, the 1 + 0
    """
    n = len(forest)
    size = forest.below(sizes.own + sizes.before + sizes.after)
    lengths = np.where(listing.itself, sizes.own[listing.nodes], size[listing.nodes])
    ends = np.cumsum(lengths)
    starts = ends - lengths
    within = starts - np.repeat(starts[listing.offsets[:-1]], lengths_of(listing.offsets))
    step, inner = np.zeros(n, np.int64), np.zeros(n, np.int64)
    inner[listing.nodes[listing.itself]] = within[listing.itself]
    child = ~listing.itself
    step[listing.nodes[child]] = within[child]
    # The roots of a tree follow all words of the trees before it; a child follows the marks before its parent's block.
    roots = forest.parent < 0
    total = offsets_of(np.bincount(forest.tree_of[roots], size[roots], len(forest.trees) - 1).astype(np.int64))
    step += np.where(roots, total[forest.tree_of], sizes.before[forest.parent])
    start = forest.along(step)
    return Layout(start, start + sizes.before + inner, start + size)
