"""Sampler: one order for each of many families, drawn or (under argmax) the most probable one.

A family has one of four ways to its order. All give what its distribution gives at u = draw(key, 0) / 2^64, the last
one excepted, so that none changes a result:

    its size                                                         its order comes from
    2 to `tables.MOST_MEMBERS` members, drawn                        the thresholds of all its orders (`tables`)
    larger, and u lies in an interval drawn before                   that interval (`memo`)
    up to `exact.MOST_DEPENDENTS` dependents                         its distribution (`exact`, or all orders for HI)
    more dependents                                                  Gibbs sampling (`gibbs`)
"""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np
from numpy.typing import NDArray

from derivlang.core.arrays import Int32, Int64, UInt64, expand_ranges, lengths_of
from derivlang.core.keys import Draws, fractions, mix, sequence_keys, text_key
from derivlang.grammar import enumerate_orders, exact, gibbs, inverse, tables
from derivlang.grammar.enumerate_orders import all_orders, to_members
from derivlang.grammar.families import Families
from derivlang.grammar.local import Local
from derivlang.grammar.memo import Memo
from derivlang.grammar.packed import IDENTITY, pack, unpack
from derivlang.grammar.scores import Scores
from derivlang.grammar.weights import Float

_ENUMERATED = 16  # families at a time whose orders are all listed: 59,049 numbers each for sequences of five
_ENUMERATED_SMALL = 2048  # the same, of at most `tables.MOST_MEMBERS` members
_LARGE_KEPT = 4096  # orders of large families to keep


@dataclass(frozen=True, slots=True, eq=False)
class _OneSize:
    """K families of n members. labels: label numbers int32[n, K]. heads: int64[K], position of each head. classes:
    int32[K], number of each head's class. hashes: uint64[K], of the labels."""

    labels: Int32
    heads: Int64
    classes: Int32
    hashes: UInt64

    def distinct(self) -> tuple[Int64, Int64, int]:
        """Return (first int64[D], index int64[K], number of collisions): families with the same labels once.

        first: a family of each kind; index: the kind of each family. The last kinds are collisions, families whose hash
        belongs to other labels; they must not be kept by their hash. Hashes [a, b, a] -> [0, 1], [0, 1, 0], 0.
        """
        _, first, index = np.unique(self.hashes, return_index=True, return_inverse=True)
        other = np.flatnonzero((self.labels[:, first[index]] != self.labels).any(axis=0))
        if other.size:
            index[other] = len(first) + np.arange(len(other))
            first = np.concatenate([first, other])
        return first, index, len(other)


class Sampler:
    """Orders of families under some scores; what is computed once is kept. best: the most probable order."""

    def __init__(self, scores: Scores, *, best: bool) -> None:
        self._scores, self._best = scores, best
        self._memo, self._tables = Memo(), tables.Tables()
        self._large: dict[tuple[int, bytes], Int32] = {}
        self._token_hashes: dict[str, np.uint64] = {}

    @property
    def n_bytes(self) -> int:
        """Bytes of the families and intervals kept so far; bounded."""
        return self._memo.n_bytes + self._tables.n_bytes

    def draw(self, families: Families, labels: Int32, classes: Int32, draws: Draws) -> Int32:
        """Return int32[M]: which member of its family stands at each derived position.

        labels: int32[M], label number of each member. classes: int32[F], -1 for families that stay as they are.
        """
        lengths = lengths_of(families.offsets)
        unmoved = np.arange(len(labels), dtype=np.int32)
        if not len(families):
            return unmoved
        unmoved -= families.offsets[:-1].astype(np.int32).take(families.owner)
        # Only here, before anything is looked up: rows and families that are found below stay valid until the end of
        # the call.
        if self._tables.is_full or self._memo.is_full:
            self._memo.clear()
            self._tables.clear()
        heads = families.head_places - families.offsets[:-1]
        hashes = sequence_keys(self._hashes_of(families.tokens).take(families.members), families.offsets, unmoved)
        random = draws.draw(families.keys, np.zeros(len(families), np.int64))
        memo_families = self._memo.find(hashes)
        known = self._memo.same(memo_families, labels, families.offsets, families.owner)
        new = np.flatnonzero(~known & (classes >= 0))
        at = expand_ranges(families.offsets[new], lengths[new])
        self._scores.add(labels[at], np.repeat(classes[new], lengths[new]))
        todo = (classes >= 0) & (lengths > 1) & (lengths <= exact.MOST_DEPENDENTS + 1)
        packed = np.full(len(families), IDENTITY)

        def of_size(n: int, at: Int64) -> _OneSize:
            return _OneSize(labels[families.offsets[at] + np.arange(n)[:, None]], heads[at], classes[at], hashes[at])

        if not self._best:
            small = todo & (lengths <= tables.MOST_MEMBERS)
            for n in np.flatnonzero(np.bincount(lengths.compress(small))).tolist():
                at = np.flatnonzero(small & (lengths == n))
                rows, is_known = np.zeros(len(at), np.int32), known[at]
                rows[is_known] = self._memo.rows(memo_families[at[is_known]])
                if len(new := at[~is_known]):
                    rows[~is_known] = self._new_rows(of_size(n, new), memo_families[new])
                # The thresholds of the tables have 32 bits, and are compared with the upper 32 of each draw.
                packed[at] = self._tables.draw(n, rows, heads[at], (random[at] >> np.uint64(32)).astype(np.uint32))
            todo &= ~small
        # 53 bits: as many as a float64 in [0, 1) can hold, so that u is never rounded up to 1.
        u = fractions(random)
        met = np.flatnonzero(todo & known)
        if met.size:
            orders, hit = self._memo.orders(memo_families[met], u[met])
            packed[met[hit]] = orders[hit]
            todo[met[hit]] = False
        left = np.flatnonzero(todo)
        for n in np.unique(lengths[left]).tolist():
            at = left[lengths[left] == n]
            packed[at] = self._compute(of_size(n, at), u[at])
        out = unpack(packed, unmoved, families.owner)
        for f in np.flatnonzero(lengths > exact.MOST_DEPENDENTS + 1):
            begin, end = families.offsets[f], families.offsets[f + 1]
            out[begin:end] = unmoved[begin:end]
            if classes[f] >= 0:
                out[begin:end] = self._large_order(
                    labels[begin:end], int(heads[f]), classes[[f]], families.keys[f], draws
                )
        return out

    def _hashes_of(self, tokens: tuple[str, ...]) -> UInt64:
        for token in tokens:
            if token not in self._token_hashes:
                self._token_hashes[token] = text_key(token)
        return np.array([self._token_hashes[token] for token in tokens], np.uint64)

    def _new_rows(self, families: _OneSize, memo_families: Int32) -> Int32:
        """Return int32[K]: rows in the tables for families whose labels the memo does not have.

        memo_families: int32[K], the memo's family with the same hash (its labels differ), -1 where there is none.
        """
        first, index, n_collisions = families.distinct()
        rows = np.empty(len(first), np.int32)
        for chunk in np.array_split(np.arange(len(first)), -(-len(first) // _ENUMERATED_SMALL)):
            rows[chunk] = self._tables.add(len(families.labels), self._all_scores(families, first[chunk]))
        new = np.flatnonzero(memo_families[first] < 0)
        # Collisions come last (`distinct`). They are computed, but never kept under a hash that belongs to other
        # labels.
        new = new[new < len(first) - n_collisions]
        self._memo.add_families(families.hashes[first[new]], families.labels[:, first[new]].T, rows[new])
        return rows[index]

    def _compute(self, families: _OneSize, u: Float) -> UInt64:
        """Return packed orders uint64[K], computed from the distributions; their intervals go to the memo."""
        first, index, n_collisions = families.distinct()
        packed = np.empty(len(u), np.uint64)
        low, high = np.empty(len(u)), np.empty(len(u))
        listed = self._scores.needs_all_orders(len(families.labels), families.classes)
        size = _ENUMERATED if listed else exact.chunk_size(len(families.labels) - 1)
        # The draws of families 0 … size - 1 are one chunk, and so on: index [1, 0, 2, 0], size 2 -> [1, 3, 0], [2]
        by_family = np.argsort(index, kind="stable")
        ends = np.searchsorted(index[by_family], np.arange(size, len(first) + size, size))
        for begin, chunk in zip(range(0, len(first), size), np.split(by_family, ends[:-1]), strict=True):
            orders, lows, widths = self._orders(families, first[begin : begin + size], index[chunk] - begin, u[chunk])
            packed[chunk] = pack(to_members(orders, families.heads[chunk]))
            low[chunk], high[chunk] = lows, lows + widths
        keep = np.flatnonzero(index < len(first) - n_collisions)
        # several draws of a family may have given one order: its interval is kept once
        _, once = np.unique(mix(packed[keep] ^ mix(families.hashes[keep])), return_index=True)
        once = keep[once]
        self._memo.add(families.hashes[once], families.labels[:, once].T, packed[once], low[once], high[once])
        return packed

    def _orders(self, families: _OneSize, which: Int64, rows: Int64, u: Float) -> tuple[NDArray[np.int8], Float, Float]:
        """Return (orders int8[q, n] of dependents and head, low, width) of draws from some of the families.

        rows: int64[q], the family of each draw, an index into `which`.
        """
        if self._scores.needs_all_orders(len(families.labels), families.classes[which]):
            scores = self._all_scores(families, which)
            if self._best:
                number, low, width = scores.argmax(axis=1)[rows], np.zeros(len(u)), np.ones(len(u))
            else:
                number, low, width = enumerate_orders.draw(scores, rows, u)
            return all_orders(len(families.labels))[number], low, width
        local = self._local(families, which)
        if self._best:
            return inverse.draw(exact.chains(local, "best"), rows, u)
        labels = families.labels[:, which].T  # one family per row, without its head
        is_head = np.arange(labels.shape[1]) == families.heads[which, None]
        dependents = labels[~is_head].reshape(len(which), -1).T
        return inverse.draw_orders(local, dependents, rows, u)

    def _all_scores(self, families: _OneSize, which: Int64) -> Float:
        """Return float64[b, n!]: the scores of all orders of some of the families."""
        labels, heads, classes = families.labels[:, which], families.heads[which], families.classes[which]
        return self._scores.of_all_orders(self._local(families, which), labels, heads, classes)

    def _local(self, families: _OneSize, which: Int64) -> Local:
        heads = families.heads[which]
        local = self._scores.local(families.labels[:, which], heads, families.classes[which])
        return local.with_ties_broken(heads) if self._best else local

    def _large_order(self, labels: Int32, head: int, classes: Int32, key: np.uint64, draws: Draws) -> Int32:
        """Return int32[n]: the order of a family too large for exact tables. labels: int32[n]."""
        stream = draws.draw(np.array([key], np.uint64), np.array([1]))  # differs with the seed
        known = (int(stream[0]), labels.tobytes())
        if known in self._large:
            return self._large[known]
        distinct, numbers = np.unique(np.delete(labels, head), return_inverse=True)
        rows = np.append(distinct, labels[head])[:, None]
        local = self._scores.local(rows, np.array([len(distinct)]), classes)
        order = gibbs.arrange(local, numbers, head, key, draws, best=self._best)
        if len(self._large) >= _LARGE_KEPT:
            self._large.clear()
        self._large[known] = order
        return order
