"""Sampler: one order for each of many families, drawn or (under argmax) the most probable one.

A family has one of three ways to its order. Both of the first give what its distribution gives at u = draw(key, 0) /
2^64, so that what is kept changes no result:

    its size                                     its order comes from
    2 to `MOST_MEMBERS` members                  the thresholds of all its orders (`Tables`), computed once
    up to `exact.MOST_DEPENDENTS` dependents     its distribution (`exact`, or all orders for HI)
    more dependents                              Gibbs sampling (`gibbs`)

The cumulative probabilities of a family with up to `MOST_MEMBERS` members (120 orders) are kept as whole numbers of
2^-32, so a probability is right to 2.4e-10. The order drawn with u is the number of those that are at most u:

    three orders with probabilities .5, .25, .25:  thresholds .5 .75 1 (padded with 1);  u = .6 -> order 1

Nine of ten heads are that small, and most families come again. Under argmax the best order has all of the probability.
"""

from __future__ import annotations

from dataclasses import dataclass
from functools import cache
from math import factorial

import numpy as np
import pyarrow as pa
from numpy.typing import NDArray

from derivlang.core.arrays import Int32, Int64, UInt32, lengths_of
from derivlang.core.keys import Draws, fractions
from derivlang.grammar import enumerate_orders, exact, gibbs
from derivlang.grammar.enumerate_orders import Local, all_orders, to_members
from derivlang.grammar.families import Families
from derivlang.grammar.scores import Scores
from derivlang.grammar.weights import Float

MOST_MEMBERS = 5
LIMIT = 128 << 20  # bytes in use, a quarter of a million families of five; then everything is dropped


class Tables:
    """Rows of thresholds by family size. A row's width is a power of two, so the search needs no bounds.

    rows: the row of each family, by its label numbers (int32[n], as bytes).
    """

    def __init__(self) -> None:
        self._clear()

    def _clear(self) -> None:
        self.rows: dict[bytes, int] = {}
        self._thresholds = {n: np.zeros((0, _width(n)), np.uint32) for n in range(2, MOST_MEMBERS + 1)}
        self._used = dict.fromkeys(self._thresholds, 0)

    @property
    def n_bytes(self) -> int:
        """Bytes in use for thresholds."""
        return sum(4 * _width(n) * used for n, used in self._used.items())

    def drop_if_full(self) -> None:
        """Drop everything if more bytes are in use than `LIMIT`."""
        if self.n_bytes > LIMIT:
            self._clear()

    def add(self, n: int, labels: list[bytes], scores: Float) -> None:
        """Add b families of n members. scores: float64[b, n!], in the order of `all_orders`."""
        begin, end = self._used[n], self._used[n] + len(scores)
        if end > len(self._thresholds[n]):
            # In place: the system moves a large array without a copy. No view of it outlives a call.
            room = max(end, len(self._thresholds[n]) * 5 // 4, 64)
            self._thresholds[n].resize((room, _width(n)), refcheck=False)
        ends = np.exp(scores - scores.max(axis=1, keepdims=True)).cumsum(axis=1)
        ends *= 2.0**32 / ends[:, -1:]
        rows = self._thresholds[n][begin:end]
        rows[:, scores.shape[1] - 1 :] = 2**32 - 1
        rows[:, : scores.shape[1] - 1] = np.minimum(ends[:, :-1], 2**32 - 1)
        self._used[n] = end
        self.rows.update(zip(labels, range(begin, end), strict=True))

    def draw(self, n: int, rows: Int64, heads: Int64, u: UInt32) -> NDArray[np.int8]:
        """Return orders of members int8[K, n] of families.

        rows: int64[K], of the families. heads: int64[K], position of the head. u: uint32[K], the draws.
        """
        width, thresholds = _width(n), self._thresholds[n].reshape(-1)
        base = rows * width - 1
        index = base + 1
        step = width // 2
        while step:
            index += step * (thresholds.take(index + (step - 1), mode="clip") <= u)
            step //= 2
        number = np.minimum(index - base - 1, factorial(n) - 1)
        return np.asarray(_orders_of_members(n)[heads, number])


def _width(n: int) -> int:
    return 1 << (factorial(n) - 1).bit_length()


@cache
def _orders_of_members(n: int) -> NDArray[np.int8]:
    """Return int8[n, n!, n]: all orders of members by position of the head, in the order of `all_orders`."""
    return np.stack([to_members(all_orders(n), np.array([head])) for head in range(n)])


_ENUMERATED = 16  # families at a time whose orders are all listed: 59,049 numbers each for sequences of five
_ENUMERATED_SMALL = 2048  # the same, of at most `MOST_MEMBERS` members


@dataclass(frozen=True, slots=True, eq=False)
class _OneSize:
    """K families of n members. labels: label numbers int32[n, K]. heads: int64[K], position of each head. classes:
    int32[K], number of each head's class."""

    labels: Int32
    heads: Int64
    classes: Int32

    def distinct(self) -> tuple[list[bytes], Int64, Int64]:
        """Return (the labels of each of D kinds, first int64[D], index int64[K]): families with the same labels once.

        first: a family of each kind; index: the kind of each family. Families [a, b, a] -> [0, 1], [0, 1, 0].
        """
        size = 4 * len(self.labels)
        rows = pa.py_buffer(np.ascontiguousarray(self.labels.T))
        kinds = pa.Array.from_buffers(pa.binary(size), self.labels.shape[1], [None, rows]).dictionary_encode()
        index = kinds.indices.to_numpy().astype(np.int64)
        first = np.empty(len(kinds.dictionary), np.int64)
        first[index[::-1]] = np.arange(len(index))[::-1]
        return kinds.dictionary.to_pylist(), first, index


class Sampler:
    """Orders of families under some scores; the tables of small families are kept. best: the most probable order."""

    def __init__(self, scores: Scores, *, best: bool) -> None:
        self._scores, self._best = scores, best
        self._tables = Tables()

    def draw(self, families: Families, labels: Int32, classes: Int32, draws: Draws) -> Int32:
        """Return int32[M]: which member of its family stands at each derived position.

        labels: int32[M], label number of each member. classes: int32[F], -1 for families that stay as they are.
        """
        lengths = lengths_of(families.offsets)
        starts = families.offsets[:-1]
        out = np.arange(len(labels), dtype=np.int32)
        out -= starts.astype(np.int32).take(families.owner)
        modelled = classes >= 0
        of_member = classes.take(families.owner)
        self._scores.add(labels[of_member >= 0], of_member[of_member >= 0])
        self._tables.drop_if_full()
        heads = families.head_places - starts
        random = draws.draw(families.keys, np.zeros(len(families), np.int64))
        # 53 bits: as many as a float64 in [0, 1) can hold, so that u is never rounded up to 1.
        u = fractions(random)
        for n in np.unique(lengths[modelled & (lengths > 1)]).tolist():
            at = np.flatnonzero(modelled & (lengths == n))
            places = starts[at] + np.arange(n)[:, None]
            some = _OneSize(labels[places], heads[at], classes[at])
            if n <= MOST_MEMBERS:
                # The thresholds of the tables have 32 bits, and are compared with the upper 32 of each draw.
                orders = self._from_tables(some, (random[at] >> np.uint64(32)).astype(np.uint32))
            elif n <= exact.MOST_DEPENDENTS + 1:
                orders = self._compute(some, u[at])
            else:
                orders = np.stack([self._large_order(some, f, families.keys[at[f]], draws) for f in range(len(at))])
            out[places] = orders.T
        return out

    def _from_tables(self, families: _OneSize, u: NDArray[np.uint32]) -> NDArray[np.int8]:
        """Return orders int8[K, n] of small families by the tables, to which new ones are added."""
        kinds, first, index = families.distinct()
        n, best = len(families.labels), self._best
        new = [kind for kind, labels in enumerate(kinds) if labels not in self._tables.rows]
        for begin in range(0, len(new), _ENUMERATED_SMALL):
            some = new[begin : begin + _ENUMERATED_SMALL]
            scores = self._all_scores(families, first[some])
            self._tables.add(n, [kinds[kind] for kind in some], _only_largest(scores) if best else scores)
        rows = np.array([self._tables.rows[labels] for labels in kinds])
        return self._tables.draw(n, rows[index], families.heads, np.zeros_like(u) if best else u)

    def _compute(self, families: _OneSize, u: Float) -> NDArray[np.int8]:
        """Return orders int8[K, n], computed from the distributions."""
        _, first, index = families.distinct()
        n = len(families.labels)
        out = np.empty((len(u), n), np.int8)
        size = _ENUMERATED if self._needs_all(families) else exact.chunk_size(n - 1)
        # The draws of families 0 … size - 1 are one chunk, and so on: index [1, 0, 2, 0], size 2 -> [1, 3, 0], [2]
        by_family = np.argsort(index, kind="stable")
        ends = np.searchsorted(index[by_family], np.arange(size, len(first) + size, size))
        for begin, chunk in zip(range(0, len(first), size), np.split(by_family, ends[:-1]), strict=True):
            orders = self._orders(families, first[begin : begin + size], index[chunk] - begin, u[chunk])
            out[chunk] = to_members(orders, families.heads[chunk])
        return out

    def _orders(self, families: _OneSize, which: Int64, rows: Int64, u: Float) -> NDArray[np.int8]:
        """Return orders int8[q, n] of dependents and head of draws from some of the families.

        rows: int64[q], the family of each draw, an index into `which`.
        """
        if self._scores.needs_all_orders(len(families.labels), families.classes[which]):
            scores = self._all_scores(families, which)
            number = scores.argmax(axis=1)[rows] if self._best else enumerate_orders.draw(scores, rows, u)
            return all_orders(len(families.labels))[number]
        local = self._local(families, which)
        if self._best:
            return exact.draw(exact.chains(local, "best"), rows, u)
        return exact.draw_orders(local, rows, u)

    def _needs_all(self, families: _OneSize) -> bool:
        return self._scores.needs_all_orders(len(families.labels), families.classes)

    def _all_scores(self, families: _OneSize, which: Int64) -> Float:
        """Return float64[b, n!]: the scores of all orders of some of the families."""
        labels, heads, classes = families.labels[:, which], families.heads[which], families.classes[which]
        return self._scores.of_all_orders(self._local(families, which), labels, heads, classes)

    def _local(self, families: _OneSize, which: Int64) -> Local:
        heads = families.heads[which]
        local = self._scores.local(families.labels[:, which], heads, families.classes[which])
        return local.with_ties_broken(heads) if self._best else local

    def _large_order(self, families: _OneSize, f: int, key: np.uint64, draws: Draws) -> Int32:
        """Return int32[n]: the order of family f, too large for exact tables."""
        labels, head = families.labels[:, f], int(families.heads[f])
        distinct, numbers = np.unique(np.delete(labels, head), return_inverse=True)
        rows = np.append(distinct, labels[head])[:, None]
        local = self._scores.local(rows, np.array([len(distinct)]), families.classes[[f]])
        return gibbs.arrange(local, numbers, head, key, draws, best=self._best)


def _only_largest(scores: Float) -> Float:
    """Return scores under which the best order of each family has all of the probability."""
    out = np.full_like(scores, -np.inf)
    np.put_along_axis(out, scores.argmax(axis=1, keepdims=True), 0.0, axis=1)
    return out
