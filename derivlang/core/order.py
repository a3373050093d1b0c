"""Order: the source word at each derived position.

    derived[j] = source[index[j]]            index[j] = -1: an inserted word, whose form is in `inserted`

An order is a gather over the words of a batch. It may insert and delete words, so it has its own sentence offsets and
tails; code that needs a permutation checks `is_permutation`. Composing two orders is one gather.

    inv("Welcome to ACL .").index = [2, 1, 0, 3]      -> "ACL to Welcome ."
"""

from __future__ import annotations

from collections import Counter
from dataclasses import dataclass, field, replace

import numpy as np
import pyarrow as pa

from derivlang.core.arrays import Bool, Int32, Int64, Ints, expand_ranges, lengths_of, offsets_of
from derivlang.core.arrow import string_array, to_arrow
from derivlang.core.errors import LayerError


@dataclass(frozen=True, slots=True, eq=False)
class Order:
    """A gather from n_source source words to M derived positions.

    index: int32[M], the source word at each derived position, counted in the batch from 0; -1 for an inserted word.
    sentences: int64[S + 1], derived word offsets of the S sentences, in the order of the batch.
    tails: int32[S], number of words in the tail of each derived sentence.
    inserted: Arrow strings, the inserted words in derived order. anchors: int32, the source word that each one marks.
    counts: what its transform reports, by reason ("trees-not-projective"); added up when orders are composed.
    """

    index: Int32
    sentences: Int64
    tails: Int32
    n_source: int
    inserted: pa.Array | None = None
    anchors: Int32 | None = None
    counts: Counter[str] = field(default_factory=Counter)

    @classmethod
    def identity(cls, sentences: Int64, tails: Int32) -> Order:
        """Return the order that changes nothing, for these sentences."""
        n = int(sentences[-1])
        return cls(np.arange(n, dtype=np.int32), sentences, tails, n)

    def with_words(self, at: Int64, owner: Ints, words: pa.Array, anchors: Ints) -> Order:
        """Return an order without inserted words, with some: Arrow strings [n], the rest [n] each, `at` ascending.

        at: the derived place before which each stands. owner: its sentence. anchors: the source word that it marks.

            index [1, 0, 2], sentences [0, 3], at [1], owner [0]   ->   index [1, -1, 0, 2], sentences [0, 4]
        """
        return replace(
            self,
            index=np.insert(self.index, at, -1),
            sentences=offsets_of(lengths_of(self.sentences) + np.bincount(owner, minlength=len(self.tails))),
            inserted=words,
            anchors=anchors.astype(np.int32),
        )

    @property
    def n_derived(self) -> int:
        """M."""
        return len(self.index)

    @property
    def n_inserted(self) -> int:
        """Number of inserted words."""
        return 0 if self.inserted is None else len(self.inserted)

    @property
    def n_deleted(self) -> int:
        """Number of source words that the order leaves out."""
        return self.n_source - (self.n_derived - self.n_inserted)

    @property
    def is_permutation(self) -> bool:
        """Whether no word is inserted and none deleted."""
        return self.n_inserted == 0 and self.n_derived == self.n_source

    def check(self) -> Order:
        """Return self. Raise LayerError if a source word occurs twice or is out of range, or if arrays do not fit."""
        kept = self.index[self.index >= 0]
        # bincount is longer than n_source if an index is too large, so one test finds both faults.
        seen = np.bincount(kept, minlength=self.n_source) if len(kept) else np.zeros(self.n_source, np.int64)
        if len(seen) > self.n_source or (seen > 1).any() or (self.index < -1).any():
            raise LayerError("an order must take each source word at most once", id="order")
        if int((self.index < 0).sum()) != self.n_inserted or int(self.sentences[-1]) != self.n_derived:
            raise LayerError("an order's offsets and inserted words must fit its index", id="order")
        return self

    def positions(self) -> Int32:
        """Return int32[n_source]: the derived position of each source word, -1 for a deleted one.

        index [2, 0] of three words   ->   [1, -1, 0]: word 0 is second, word 1 is deleted, word 2 is first
        """
        out = np.full(self.n_source, -1, np.int32)
        kept = self.index >= 0
        out[self.index[kept]] = np.flatnonzero(kept).astype(np.int32)
        return out

    def invert(self, sentences: Int64, tails: Int32) -> Order:
        """Return the inverse order. sentences, tails: the source's. Raise LayerError if a word was deleted.

        The derived words are the source of the inverse: index [2, 0, 1]  ->  [1, 2, 0]. An inserted word is deleted by
        the inverse: index [1, -1, 0]  ->  [2, 0].
        """
        if self.n_deleted:
            raise LayerError(f"{self.n_deleted} words were deleted, so the order has no inverse", id="order")
        return Order(self.positions(), sentences, tails, self.n_derived)

    def invert_padded(self, sentences: Int64, tails: Int32, units: Int64, derived_units: Int64) -> Order:
        """Return the inverse order with an empty inserted word at the position of each deleted word.

        sentences, tails: the source's. units, derived_units: int64[U + 1], word offsets of the source's and of
        the derived units. An empty word marks the first derived word of its unit.

        index [2, 0] of three words: word 1 was deleted   ->   index [1, -1, 0]
        """
        places = self.positions()
        gone = np.flatnonzero(places < 0)
        if not len(gone):
            return self.invert(sentences, tails)
        unit = np.searchsorted(units, gone, "right") - 1
        # A unit may have lost all its words. Its first position then belongs to the next unit, or is past the end of
        # the batch.
        anchors = np.minimum(derived_units[unit], self.n_derived - 1).astype(np.int32)
        return Order(places, sentences, tails, self.n_derived, string_array([""] * len(gone)), anchors)

    def then(self, after: Order) -> Order:
        """Return the order that is first self, then `after`, which orders self's derived words.

        Without insertions, one gather. self.index [2, 0, 1], after.index [1, 0, 2]:

            a b c  --self-->  c a b  --after-->  a c b          index = self.index[after.index] = [0, 2, 1]

        With them, a -1 of the result is an insertion of `after` or one of self that `after` moved. self.index
        [-1, 0, 1] inserts `x`, after.index [2, 0, -1, 1] inserts `y`:

            a b  --self-->  x a b  --after-->  b x y a          index = [1, -1, -1, 0], inserted = [x, y]

        Anchors are source words. If a word inserted by `after` marks a word that self inserted, it marks in the
        result the source word that self's word marks.
        """
        if after.n_source != self.n_derived:
            raise LayerError(f"an order of {after.n_source} words after one of {self.n_derived}", id="order")
        if self.inserted is None and after.inserted is None:
            index = self.index[after.index]
            return Order(index, after.sentences, after.tails, self.n_source, counts=self.counts + after.counts)
        kept = after.index >= 0
        index = np.full(after.n_derived, -1, np.int32)
        index[kept] = self.index[after.index[kept]]
        # A -1 in the result is either inserted by `after`, or inserted by self and moved by `after`.
        which = np.cumsum(self.index < 0) - 1  # number of self's insertion at each of self's positions
        new = np.flatnonzero(index < 0)
        from_self = kept[new]
        # An insertion of self is found at the position that `after` took it from.
        own = which[after.index[new[from_self]]]
        table = [_strings(self.inserted), _strings(after.inserted)]
        # Both lists of insertions in one table: self's are entries 0 …, then come the entries of `after`.
        pick = np.empty(len(new), np.int64)
        pick[from_self] = own
        pick[~from_self] = len(table[0]) + np.arange(int((~from_self).sum()))
        inserted = pa.concat_arrays(table).take(to_arrow(pick))
        after_anchors = _anchors(after)
        # Marks of `after` are positions in self's result; self.index turns them into source words, or -1 for inserted
        # words.
        through = self.index[after_anchors] if len(after_anchors) else after_anchors
        if len(after_anchors) and (through < 0).any():  # marks on words that self inserted
            through = np.asarray(np.where(through < 0, _anchors(self)[which[after_anchors]], through), np.int32)
        anchors = np.concatenate([_anchors(self), through]).astype(np.int32)[pick]
        return Order(index, after.sentences, after.tails, self.n_source, inserted, anchors, self.counts + after.counts)

    def expand(self, groups: Int64) -> Order:
        """Return an order of groups of words as an order of words. The words of a group keep their order.

        groups: int64[n_source + 1], word offsets of the groups.

        index [1, 0] of the groups [a] [b c], offsets [0, 1, 3]   ->   index [1, 2, 0], which is b c a
        index [1, -1, 0], with a word inserted between the groups ->   index [1, 2, -1, 0]
        """
        sizes = lengths_of(groups)
        kept = self.index >= 0
        take = np.where(kept, self.index, 0)
        counts = np.where(kept, sizes[take], 1)
        # groups [0, 1, 3], index [1, -1, 0]: counts [2, 1, 1], ranges from [1, 0, 0] -> [1, 2, 0, 0], then [1, 2, -1,
        # 0].
        index = expand_ranges(np.where(kept, groups[take], 0), counts).astype(np.int32)
        offsets = offsets_of(counts)  # an inserted word took word 0 above; here it becomes -1
        index[offsets[:-1][~kept]] = -1
        derived = offsets[self.sentences]
        # Tails count words now: a tail of one group of three words becomes 3.
        tails = np.asarray(derived[1:] - offsets[self.sentences[1:] - self.tails], np.int32)
        anchors = None if self.anchors is None else groups[self.anchors].astype(np.int32)
        return Order(index, derived, tails, int(groups[-1]), self.inserted, anchors, self.counts)


def _strings(strings: pa.Array | None) -> pa.Array:
    return string_array([]) if strings is None else strings


def _anchors(order: Order) -> Int32:
    return np.zeros(0, np.int32) if order.anchors is None else order.anchors


def runs_of_ranges(order: Order, start: Int64, end: Int64, places: Int32) -> tuple[Int64, Int64, Int64, Bool]:
    """Return `contiguous_runs` of groups that are ranges of source words, start to end - 1, int64[G] each."""
    sizes = end - start
    return contiguous_runs(order, np.repeat(np.arange(len(sizes)), sizes), expand_ranges(start, sizes), places)


def contiguous_runs(order: Order, groups: Ints, members: Ints, places: Int32) -> tuple[Int64, Int64, Int64, Bool]:
    """Return the maximal runs of adjacent derived words that the words of each group form.

    groups: [n], the group of each member, in any order. members: [n], source words. places: `order.positions()`. An
    inserted word does not end a run. Returns, sorted by group, then position: the group, the first position and the
    position after the last (each int64[runs]), and bool[runs], whether the run has all words of its group that were
    not deleted.

    a b c . d e --inv--> c b a . e d, the group of [a b c . d]   ->   runs [0, 4) (c b a .) and [5, 6) (d), not whole
    """
    at = places[members]
    kept = at >= 0
    g, at = np.asarray(groups, np.int64)[kept], at[kept]
    by = np.lexsort((at, g))
    g, at = g[by], at[by]
    # The rank of each position among the kept words: two kept words with only insertions between them are adjacent.
    rank = np.cumsum(order.index >= 0)[at] if order.n_inserted else at
    first = np.ones(len(g), bool)
    first[1:] = (g[1:] != g[:-1]) | (rank[1:] != rank[:-1] + 1)
    starts = np.flatnonzero(first)
    ends = np.append(starts[1:], len(g)) - 1 if len(g) else starts
    run_group = g[starts]
    # Deleted words were left out above, so they do not make a gap: a group is whole if it has one run.
    whole: Bool = np.bincount(run_group)[run_group] == 1 if len(g) else np.zeros(0, bool)
    return run_group, at[starts].astype(np.int64), np.asarray(at[ends] + 1, np.int64), whole
