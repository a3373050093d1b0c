"""The order of words whose constituents get new orders of children. Every order that reads constituents is made here.

A tree's nodes are its constituents and words as they open: `(S (NP big Ann) (VP sleeps))` has S NP big Ann VP sleeps.
So the forest of dependency trees (`forest.py`) and its layout (`layout.py`) serve for these, too: a constituent is a
node without words of its own.
"""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass
from functools import cached_property

import numpy as np

from derivlang.core.arrays import Bool, Int32, Int64, expand_ranges, lengths_of
from derivlang.core.batch import Batch
from derivlang.core.brackets import Constituents
from derivlang.core.errors import LayerError
from derivlang.core.layers.constituents import PARSE, ConstituentTrees
from derivlang.core.order import Order
from derivlang.syntax.forest import Forest
from derivlang.syntax.layout import Listing, Sizes, lay_out, list_families
from derivlang.syntax.slots import Members
from derivlang.syntax.tree_order import merged


@dataclass(frozen=True, eq=False)
class Phrases:
    """The constituents of N words as nodes of a forest. trees: int64[T + 1], words; no constituent is in two of them.

    holder: int64[N], the constituent that each word stands in, -1 if there is none.
    """

    found: Constituents
    holder: Int64
    trees: Int64

    @classmethod
    def of(cls, found: Constituents, trees: Int64) -> Phrases:
        """Return the constituents of words with these trees."""
        return cls(found, found.holders(int(trees[-1])), trees)

    @cached_property
    def nodes(self) -> Int64:
        """int64[K]: the node of each constituent: the words and the constituents before it."""
        return np.arange(len(self.found)) + self.found.start

    @cached_property
    def words(self) -> Int64:
        """int64[N]: the node of each word."""
        return np.arange(len(self.holder)) + self.found.opened(len(self.holder))[1:]

    @cached_property
    def forest(self) -> Forest:
        """The forest of all nodes."""
        nodes = np.append(self.nodes, -1)
        parent = np.empty(len(self.nodes) + len(self.words), np.int64)
        parent[self.nodes] = nodes[self.found.parent]
        parent[self.words] = nodes[self.holder]
        return Forest(parent, self.trees + self.found.opened(len(self.holder))[self.trees])

    @cached_property
    def members(self) -> Members:
        """The families of all constituents, each before its children."""
        return Members(self.forest, list_families(self.forest), np.arange(len(self.forest)))

    def of_nodes(self, values: Bool) -> Bool:
        """Return bool[K + N + 1]: flags of constituents by node, False for words and for no node."""
        out = np.zeros(len(self.forest) + 1, bool)
        out[self.nodes] = values
        return out

    def positions(self, listing: Listing) -> Int64:
        """Return int64[N]: the position of each word under new orders of the families."""
        own = np.zeros(len(self.forest), np.int64)
        own[self.words] = 1
        none = np.zeros_like(own)
        return lay_out(self.forest, listing, Sizes(own, none, none)).start[self.words]

    def with_tails(self, tails: Int32) -> Phrases:
        """Return the constituents with the last words of each tree outside of them, after all others.

        tails: int32[T], the number of these words.
        """
        words = expand_ranges(self.trees[1:] - tails, tails.astype(np.int64))
        holder = self.holder.copy()
        holder[words] = -1
        return Phrases(self.found, holder, self.trees)


def mirrored(phrases: Phrases, which: Bool) -> Listing:
    """Return the families with the children of some constituents in reverse. which: bool[K]."""
    listing = list_families(phrases.forest)
    turned = np.flatnonzero(phrases.of_nodes(which)[np.minimum(listing.heads, len(phrases.forest))])
    first, sizes = listing.offsets[turned], lengths_of(listing.offsets)[turned]
    entries = expand_ranges(first, sizes)
    # A constituent has no words of its own, so it may turn with its children: [itself, a, b] -> [b, a, itself].
    return listing.reordered(entries, np.repeat(2 * first + sizes - 1, sizes) - entries)


def phrases_of(batch: Batch) -> Phrases:
    """Return the constituents of a batch. A tree is a sentence, or several of them that a constituent joins.

    Raises LayerError brackets if some rows of the column have no tree over their words, so that it was read as a value.
    """
    layer = batch.layers[PARSE]
    if not isinstance(layer, ConstituentTrees):
        raise LayerError(
            f"not every row has a tree over its words in the column {PARSE}",
            fix="correct or remove the row that the warning names; write trees as (S (NP Ann) (VP sleeps))",
            id="brackets",
        )
    found = layer.found
    top = np.flatnonzero(found.parent < 0)
    # The last tree that begins before each sentence does, and whether it ends after it.
    last = np.searchsorted(found.start[top], batch.sentences) - 1
    inside = (last >= 0) & (np.append(found.end[top], 0)[last] > batch.sentences)
    return Phrases.of(found, batch.sentences[~inside])


def phrase_order(batch: Batch, choose: Callable[[Phrases], Listing], *, keep_tails: bool) -> Order:
    """Return the order of a batch whose constituents get new orders of children.

    choose: returns the families in their new order. keep_tails: final punctuation stays last.
    """
    phrases = phrases_of(batch)
    tails, sentences, new_tails = merged(batch, phrases.trees, tails=keep_tails)
    if keep_tails:
        phrases = phrases.with_tails(tails)
    place = phrases.positions(choose(phrases))
    index = np.empty(batch.n_words, np.int32)
    index[place] = np.arange(batch.n_words, dtype=np.int32)
    return Order(index, sentences, new_tails, batch.n_words)
