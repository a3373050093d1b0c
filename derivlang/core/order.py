"""Order: which source word stands at each derived place.

    derived[j] = source[index[j]]            index[j] = -1: an inserted word, `inserted` names it

An order is a gather over the words of a batch with sentence offsets and tails of its own, so that words may
be inserted and deleted; whoever needs a permutation asks `is_permutation`. Composition is one gather:

    inv("Welcome to ACL .").index = [2, 1, 0, 3]      -> "ACL to Welcome ."
"""

from __future__ import annotations

from collections import Counter
from dataclasses import dataclass, field

import numpy as np
import pyarrow as pa

from derivlang.core.arrays import Bool, Int32, Int64, Ints, lengths_of, offsets_of, spread
from derivlang.core.arrow import string_array, to_arrow
from derivlang.core.errors import LayerError


@dataclass(frozen=True, slots=True, eq=False)
class Order:
    """A gather from n_source source words to M derived places.

    index: int32[M], source word of each derived place (in the batch, from 0), -1 where a word is inserted.
    sentences: int64[S + 1], derived word offsets of the S sentences (the sentences of the batch, in order).
    tails: int32[S], words in the tail of each derived sentence.
    inserted: Arrow strings, the word of each -1, in order; marks: int32, the source word that each one marks.
    counts: what its maker has to report, by reason (trees that were not projective); sums along a composition.
    """

    index: Int32
    sentences: Int64
    tails: Int32
    n_source: int
    inserted: pa.Array | None = None
    marks: Int32 | None = None
    counts: Counter[str] = field(default_factory=Counter)

    @classmethod
    def identity(cls, sentences: Int64, tails: Int32) -> Order:
        n = int(sentences[-1])
        return cls(np.arange(n, dtype=np.int32), sentences, tails, n)

    @property
    def n_derived(self) -> int:
        return len(self.index)

    @property
    def n_inserted(self) -> int:
        return 0 if self.inserted is None else len(self.inserted)

    @property
    def n_deleted(self) -> int:
        return self.n_source - (self.n_derived - self.n_inserted)

    @property
    def is_permutation(self) -> bool:
        return self.n_inserted == 0 and self.n_derived == self.n_source

    def check(self) -> Order:
        """self, if every source word stands at most once and within its own sentence's count; else LayerError."""
        kept = self.index[self.index >= 0]
        seen = np.bincount(kept, minlength=self.n_source) if len(kept) else np.zeros(self.n_source, np.int64)
        if len(seen) > self.n_source or (seen > 1).any() or (self.index < -1).any():
            raise LayerError("an order must take each source word at most once", id="order")
        if int((self.index < 0).sum()) != self.n_inserted or int(self.sentences[-1]) != self.n_derived:
            raise LayerError("an order's offsets and inserted words must fit its index", id="order")
        return self

    def places(self) -> Int32:
        """int32[n_source]: the derived place of each source word, -1 where it is deleted."""
        out = np.full(self.n_source, -1, np.int32)
        kept = self.index >= 0
        out[self.index[kept]] = np.flatnonzero(kept).astype(np.int32)
        return out

    def invert(self, sentences: Int64, tails: Int32) -> Order:
        """The way back to source sentences of these offsets and tails; LayerError where a word was deleted."""
        if self.n_deleted:
            raise LayerError(f"{self.n_deleted} deleted words cannot be put back by the order", id="order")
        return Order(self.places(), sentences, tails, self.n_derived)

    def then(self, after: Order) -> Order:
        """First self, then `after`, which orders self's derived words."""
        if after.n_source != self.n_derived:
            raise LayerError(f"an order of {after.n_source} words after one of {self.n_derived}", id="order")
        if self.inserted is None and after.inserted is None:
            index = self.index[after.index]
            return Order(index, after.sentences, after.tails, self.n_source, counts=self.counts + after.counts)
        kept = after.index >= 0
        index = np.full(after.n_derived, -1, np.int32)
        index[kept] = self.index[after.index[kept]]
        # Of the -1 in the result, those that `after` inserts and those of self that it moved along.
        which = np.cumsum(self.index < 0) - 1  # rank of self's insertions by self's place
        new = np.flatnonzero(index < 0)
        from_self = kept[new]
        own = which[after.index[new[from_self]]]
        table = [_strings(self.inserted), _strings(after.inserted)]
        pick = np.empty(len(new), np.int64)
        pick[from_self] = own
        pick[~from_self] = len(table[0]) + np.arange(int((~from_self).sum()))
        inserted = pa.concat_arrays(table).take(to_arrow(pick))
        after_marks = _marks(after)
        through = self.index[after_marks] if len(after_marks) else after_marks
        if len(after_marks) and (through < 0).any():  # a mark on a mark marks what that one marks
            through = np.asarray(np.where(through < 0, _marks(self)[which[after_marks]], through), np.int32)
        marks = np.concatenate([_marks(self), through]).astype(np.int32)[pick]
        return Order(index, after.sentences, after.tails, self.n_source, inserted, marks, self.counts + after.counts)

    def expand(self, groups: Int64, sentences: Int64, tails: Int32) -> Order:
        """An order of groups as an order of their words, which keep their inner order.

        groups: int64[n_source + 1], word offsets of the groups; sentences, tails: of the ungrouped source.
        """
        sizes = lengths_of(groups)
        kept = self.index >= 0
        take = np.where(kept, self.index, 0)
        counts = np.where(kept, sizes[take], 1)
        index = spread(np.where(kept, groups[take], 0), counts).astype(np.int32)
        offsets = offsets_of(counts)
        index[offsets[:-1][~kept]] = -1
        derived = offsets[self.sentences]
        words = int(groups[-1])
        out_tails = _group_tails(self, offsets, derived)
        marks = None if self.marks is None else groups[self.marks].astype(np.int32)
        return Order(index, derived, out_tails, words, self.inserted, marks, self.counts)


def _group_tails(order: Order, offsets: Int64, derived: Int64) -> Int32:
    first = order.sentences[1:] - order.tails
    return np.asarray(derived[1:] - offsets[first], np.int32)


def _strings(strings: pa.Array | None) -> pa.Array:
    return string_array([]) if strings is None else strings


def _marks(order: Order) -> Int32:
    return np.zeros(0, np.int32) if order.marks is None else order.marks


def contiguous_runs(order: Order, groups: Ints, members: Ints, places: Int32) -> tuple[Int64, Int64, Int64, Bool]:
    """The maximal runs that the words of each group form in the derived order.

    groups: [n] group number of each member (any order); members: [n] source words; places: `order.places()`.
    Inserted words break no run. Returns group, first place, place after the last (each int64[runs], sorted by
    group, then place), and bool[runs]: is this run all of its group's kept words.
    """
    at = places[members]
    kept = at >= 0
    g, at = np.asarray(groups, np.int64)[kept], at[kept]
    by = np.lexsort((at, g))
    g, at = g[by], at[by]
    rank = np.cumsum(order.index >= 0)[at] if order.n_inserted else at
    first = np.ones(len(g), bool)
    first[1:] = (g[1:] != g[:-1]) | (rank[1:] != rank[:-1] + 1)
    starts = np.flatnonzero(first)
    ends = np.append(starts[1:], len(g)) - 1 if len(g) else starts
    run_group = g[starts]
    whole: Bool = np.bincount(run_group)[run_group] == 1 if len(g) else np.zeros(0, bool)
    return run_group, at[starts].astype(np.int64), np.asarray(at[ends] + 1, np.int64), whole
