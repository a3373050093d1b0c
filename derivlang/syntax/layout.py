"""Layout: from the order of each head's family to the place of each word.

A family is a head and its children, in surface order. A child's subtree is one block of words, so that a child's
place in the family settles where its whole subtree stands:

    start(child) = start(parent) + the lengths of the blocks before it in the family

A tree's roots are a family, too, of a head that is no word. A tree that is not projective comes out projective.
"""

from __future__ import annotations

from dataclasses import dataclass, replace

import numpy as np

from derivlang.core.arrays import Bool, Int64, lengths_of, offsets_of
from derivlang.syntax.forest import Forest


@dataclass(frozen=True, eq=False)
class Listing:
    """The families of a forest, one after the other; F families with E entries.

    heads: int64[F], the head's node, n + t for the roots of tree t. offsets: int64[F + 1], into entries. nodes:
    int64[E]; itself: bool[E], is this entry the head (else a child with its subtree).
    """

    heads: Int64
    offsets: Int64
    nodes: Int64
    itself: Bool

    def reordered(self, families: Int64, members: Int64) -> Listing:
        """With another order of some families. members: int64, local places in their new order, family by family."""
        nodes, itself = self.nodes.copy(), self.itself.copy()
        sizes = lengths_of(self.offsets)[families]
        base = np.repeat(self.offsets[families], sizes)
        at = base + np.arange(len(members)) - np.repeat(offsets_of(sizes)[:-1], sizes)
        nodes[at], itself[at] = self.nodes[base + members], self.itself[base + members]
        return replace(self, nodes=nodes, itself=itself)


def list_families(forest: Forest) -> Listing:
    """All families, their members in surface order."""
    n = len(forest)
    is_head = np.zeros(n, bool)
    is_head[forest.parent[forest.parent >= 0]] = True
    # Entries in surface order: each node as a child, then, where it is one, as a head; then sorted by family, stably.
    nodes = np.repeat(np.arange(n), 1 + is_head)
    itself = np.zeros(len(nodes), bool)
    itself[1:] = nodes[1:] == nodes[:-1]
    above = np.where(forest.parent < 0, n + forest.tree_of, forest.parent)
    family = np.where(itself, nodes, above[nodes])
    narrow = family.astype(np.uint16) if n + len(forest.trees) <= 1 << 16 else family  # 16 bits: sorted in linear time
    by = np.argsort(narrow, kind="stable")
    family = family[by]
    begins = np.flatnonzero(np.diff(family, prepend=-1))
    return Listing(family[begins], np.append(begins, len(by)), nodes[by], itself[by])


@dataclass(frozen=True, eq=False)
class Sizes:
    """Words of each node, int64[n] each: own (with what is tied to it), and marks before and after its whole
    subtree."""

    own: Int64
    before: Int64
    after: Int64


@dataclass(frozen=True, eq=False)
class Layout:
    """Places in the words of the forest, int64[n] each: of a node's whole block, of its own first word, of the end."""

    start: Int64
    own: Int64
    end: Int64


def lay_out(forest: Forest, listing: Listing, sizes: Sizes) -> Layout:
    """The places of all nodes, trees one after the other."""
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
    roots = forest.parent < 0
    total = offsets_of(np.bincount(forest.tree_of[roots], size[roots], len(forest.trees) - 1).astype(np.int64))
    step += np.where(roots, total[forest.tree_of], sizes.before[forest.parent])
    start = forest.along(step)
    return Layout(start, start + sizes.before + inner, start + size)
