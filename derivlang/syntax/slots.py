"""Slots: a new order of families by a number for each member, for orders that are rules and not models.

She gave him books     slots 0 2 1 1 (subject, verb, objects)   ->   She him books gave
                       objects mirrored                         ->   She books him gave
"""

from __future__ import annotations

from dataclasses import dataclass
from functools import cached_property

import numpy as np

from derivlang.core.arrays import Bool, Int64, lengths_of
from derivlang.syntax.forest import Forest
from derivlang.syntax.layout import Listing


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
