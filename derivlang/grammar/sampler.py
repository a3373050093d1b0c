"""Sampler: one order for each of many families, drawn or (under argmax) the most probable one.

A family has one of three ways to its order. Both of the first give what its distribution gives at u = draw(key, 0) /
2^64, so that what is kept changes no result:

    its size                                     its order comes from
    2 to `tables.MOST_MEMBERS` members           the thresholds of all its orders (`tables`), computed once
    up to `exact.MOST_DEPENDENTS` dependents     its distribution (`exact`, or all orders for HI)
    more dependents                              Gibbs sampling (`gibbs`)
"""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np
import pyarrow as pa
from numpy.typing import NDArray

from derivlang.core.arrays import Int32, Int64, lengths_of
from derivlang.core.keys import Draws, fractions
from derivlang.grammar import enumerate_orders, exact, gibbs, inverse, tables
from derivlang.grammar.enumerate_orders import all_orders, to_members
from derivlang.grammar.families import Families
from derivlang.grammar.local import Local
from derivlang.grammar.scores import Scores
from derivlang.grammar.weights import Float

_ENUMERATED = 16  # families at a time whose orders are all listed: 59,049 numbers each for sequences of five
_ENUMERATED_SMALL = 2048  # the same, of at most `tables.MOST_MEMBERS` members


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
        self._tables = tables.Tables()

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
            if n <= tables.MOST_MEMBERS:
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
            return inverse.draw(exact.chains(local, "best"), rows, u)
        return inverse.draw_orders(local, rows, u)

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
