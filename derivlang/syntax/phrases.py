"""The order of words whose constituents get new orders of children. Every order that reads constituents is made here.

The nodes of a tree are its constituents and words as they open: `(S (NP big Ann) (VP sleeps))` has S NP big Ann VP
sleeps. They are laid out as the families of heads are (`layout.py`), where a constituent has no word of its own.

Labels of constituents of the Penn Treebank, as orders need them: `NP-SBJ-1` is an NP.

A part of speech is the constituent of one word, `(NN dog)`.
"""

from __future__ import annotations

import re
from collections.abc import Callable, Collection
from dataclasses import dataclass, replace
from functools import cached_property

import numpy as np

from derivlang.core.arrays import Bool, Int32, Int64, expand_ranges, offsets_of
from derivlang.core.batch import Batch
from derivlang.core.brackets import Constituents
from derivlang.core.errors import LayerError
from derivlang.core.layers.constituents import PARSE, ConstituentTrees
from derivlang.core.order import Order
from derivlang.syntax.forest import Forest, merged
from derivlang.syntax.layout import Listing, Members, lay_out, list_families


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
        n = len(self.holder)
        return np.arange(n) + self.found.opened(n)[1 : n + 1]  # empty constituents may begin behind the last word

    @cached_property
    def forest(self) -> Forest:
        """The forest of all nodes."""
        nodes = np.append(self.nodes, -1)
        parent = np.empty(len(self.nodes) + len(self.words), np.int64)
        parent[self.nodes] = nodes[self.found.parent]
        parent[self.words] = nodes[self.holder]
        trees = self.trees + self.found.opened(len(self.holder))[self.trees]
        trees[-1] = len(parent)
        return Forest(parent, trees)

    def without_tails(self, tails: Int32) -> tuple[Phrases, Int64]:
        """Return (the constituents without the last words of each tree, int64[M] the words that are left).

        tails: int32[T], the number of these words. A constituent of nothing else is empty then.
        """
        kept = np.ones(len(self.holder), bool)
        kept[expand_ranges(self.trees[1:] - tails, tails.astype(np.int64))] = False
        number = offsets_of(kept)
        found = replace(self.found, start=number[self.found.start], end=number[self.found.end])
        return Phrases(found, self.holder[kept], number[self.trees]), np.flatnonzero(kept)

    @cached_property
    def members(self) -> Members:
        """The children of each constituent, with itself."""
        return Members(self.forest, list_families(self.forest), np.arange(len(self.forest)))

    def placed(self, listing: Listing) -> Int64:
        """Return int64[N]: the position of each word with the children of constituents in another order."""
        is_word = np.zeros(len(self.forest), np.int64)
        is_word[self.words] = 1
        start, _, _ = lay_out(self.forest, listing, is_word)
        return start[self.words]

    def mirrored(self, which: Bool) -> Int64:
        """Return int64[N]: the position of each word with the children of some constituents, bool[K], in reverse."""
        turned = np.zeros(len(self.forest) + len(self.trees), bool)
        turned[self.nodes[which]] = True
        members = self.members
        flags = turned[members.listing.heads][members.family]
        return self.placed(members.arranged(np.zeros(len(flags), np.int64), flags))

    def sorted_children(self, slot: Int64) -> Int64:
        """Return int64[N]: the position of each word with some children of each constituent sorted by their slots.

        They take the places that they have together; equal ones keep their order. slot: int64[K], 0 for all other
        constituents, which keep their places as words do.
        """
        members = self.members
        of_node = np.zeros(len(self.forest), np.int64)
        of_node[self.nodes] = slot
        slots = np.where((members.head >= 0) & ~members.listing.itself, of_node[members.listing.nodes], 0)
        at = np.flatnonzero(slots)
        return self.placed(members.listing.reordered(at, at[np.lexsort((slots[at], members.family[at]))]))


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


def phrase_order(batch: Batch, phrases: Phrases, choose: Callable[[Phrases], Int64], *, keep_tails: bool) -> Order:
    """Return the order of a batch whose constituents get new orders of children.

    choose: returns the position of each word of some constituents. keep_tails: final punctuation stays last.
    """
    tails, sentences, new_tails = merged(batch, phrases.trees, tails=keep_tails)
    index = np.arange(batch.n_words, dtype=np.int32)
    inner, words = phrases.without_tails(tails) if keep_tails else (phrases, np.arange(batch.n_words))
    index[words[choose(inner)]] = words
    return Order(index, sentences, new_tails, batch.n_words)


_FUNCTION = re.compile(r"(?<=[^-=])[-=].*", re.DOTALL)


def labelled(found: Constituents, labels: Collection[str] = (), *, begin: str = "") -> Bool:
    """Return bool[K]: the constituents with one of these labels, without function tags (`NP-SBJ-1` is an NP).

    begin: or with a label that begins so.
    """
    plain = [plain_label(name) for name in found.names.to_pylist()]
    is_one = [name in labels or bool(begin and name.startswith(begin)) for name in plain]
    return np.array(is_one, bool)[found.label] if is_one else np.zeros(0, bool)


def plain_label(name: str) -> str:
    """Return a label without function tags: NP-SBJ-1 -> NP, but -LRB- stays."""
    return name if name.startswith("-") else _FUNCTION.sub("", name)


def with_child(found: Constituents, flags: Bool) -> Bool:
    """Return bool[K]: the constituents with a constituent among their children that has the flag."""
    out = np.zeros(len(found) + 1, bool)  # the last one is for parent -1
    out[found.parent[flags]] = True
    return out[:-1]


def check_tags(name: str, batch: Batch, phrases: Phrases, which: Bool) -> None:
    """Raise LayerError untagged if a word without a part of speech stands beside others in some constituents.

    Inserted words need none. name: of the transform. which: bool[K].
    """
    children = np.bincount(phrases.forest.parent[phrases.forest.parent >= 0], minlength=len(phrases.forest))
    several = which & (children[phrases.nodes] > 1)
    inserted = batch.layer(PARSE, ConstituentTrees).inserted
    own = True if inserted is None else ~inserted
    bare = np.flatnonzero(np.append(several, False)[phrases.holder] & own)
    if len(bare):
        word = batch.types[int(batch.words[bare[0]])].as_py()
        label = phrases.found.names[int(phrases.found.label[phrases.holder[bare[0]]])].as_py()
        raise LayerError(
            f"{name} needs parts of speech, but {word!r} stands in {label} without one",
            fix="take trees with tags, such as (NP (JJ big) (NN dog)), or for trees of source:pcfg=FILE give "
            "switch:110010:rules=FILE",
            id="untagged",
        )
