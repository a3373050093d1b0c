"""The order of words whose constituents get new orders of children. Every order that reads constituents is made here.

The words of a constituent stand together, so a position is a sum over the path from the root: of how many words of each
constituent stand before its child on this path. For what reads children by their labels, a tree's nodes are its
constituents and words as they open: `(S (NP big Ann) (VP sleeps))` has S NP big Ann VP sleeps.

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
from derivlang.core.errors import LayerError
from derivlang.core.layers.constituents import PARSE, Constituents, ConstituentTrees
from derivlang.core.order import Order
from derivlang.syntax.forest import Forest
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
    def steps(self) -> tuple[Int64, Int64]:
        """int64[K] and int64[N]: how many words of its constituent stand before each constituent, and each word.

        Of constituents and words outside of others, how many words of the batch. (S (NP big Ann) (VP sleeps))  ->
        S 0, NP 0, VP 2 and big 0, Ann 1, sleeps 0
        """
        start = np.append(self.found.start, 0)
        return self.found.start - start[self.found.parent], np.arange(len(self.holder)) - start[self.holder]

    def placed(self, step: Int64, own: Int64) -> Int64:
        """Return int64[N]: the position of each word. step, own: as `steps`, in the new order.

        A word's position is the sum of its own step and of all constituents that it stands in. So each of them adds
        its step to the words from its first one on, and takes it away behind its last one.
        """
        n = len(self.holder)
        edges = np.bincount(self.found.start, step, n + 1) - np.bincount(self.found.end, step, n + 1)
        return np.cumsum(edges[:n]).astype(np.int64) + own

    def mirrored(self, which: Bool) -> Int64:
        """Return int64[N]: the position of each word with the children of some constituents in reverse. which: bool[K].

        In reverse, as many words stand before a child as stood behind it.
        """
        found, (step, own) = self.found, self.steps
        turned, end = np.append(which, False), np.append(found.end, 0)
        step = np.where(turned[found.parent], end[found.parent] - found.end, step)
        return self.placed(step, np.where(turned[self.holder], end[self.holder] - 1 - np.arange(len(own)), own))

    def sorted_children(self, slot: Int64) -> Int64:
        """Return int64[N]: the position of each word with some children of each constituent sorted by their slots.

        They take the places that they have together; equal ones keep their order. slot: int64[K], 0 for all other
        constituents, which keep their places as words do.
        """
        found, (step, own) = self.found, self.steps
        n, words = len(found), np.arange(len(own))
        parent = np.concatenate([found.parent, self.holder])
        moving = np.flatnonzero((slot > 0) & (found.parent >= 0))
        has_moving = np.zeros(n + 1, bool)  # the last one is for parent -1
        has_moving[found.parent[moving]] = True
        child = np.flatnonzero(has_moving[parent])
        child = child[np.lexsort((np.concatenate([found.start, words])[child], parent[child]))]
        slots = np.append(slot, np.zeros(len(words), np.int64))[child]
        at = np.flatnonzero(slots)
        moved = child.copy()
        moved[at] = child[at[np.lexsort((slots[at], parent[child[at]]))]]
        sizes = np.append(found.end - found.start, np.ones(len(words), np.int64))[moved]
        before = np.cumsum(sizes) - sizes
        new = np.concatenate([step, own])
        new[moved] = before - before[np.searchsorted(parent[child], parent[moved])]
        return self.placed(new[:n], new[n:])


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
    layer = batch.layers[PARSE]
    assert isinstance(layer, ConstituentTrees)
    own = True if layer.inserted is None else ~layer.inserted
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


def children_of(phrases: Phrases) -> tuple[Int64, Int64]:
    """Return (int64[K + 1] offsets, int64[E] nodes): the children of each constituent, in surface order."""
    parent = phrases.forest.parent
    child = np.flatnonzero(parent >= 0)
    by = child[np.argsort(parent[child], kind="stable")]
    return np.searchsorted(parent[by], np.append(phrases.nodes, len(parent))), by
