"""Sampler: one order for each of many families, drawn or (under argmax) the most probable one.

Where a family's order comes from:

    its size                                     its order comes from
    2 to `MOST_MEMBERS` members                  the cumulative probabilities of all its orders
    up to `exact.MOST_DEPENDENTS` dependents     its distribution (`exact`, or all orders for HI)
    more dependents                              Gibbs sampling (`gibbs`)
"""

from __future__ import annotations

import numpy as np
import pyarrow as pa
from numpy.typing import NDArray

from derivlang.core.arrays import Int32, Int64, UInt64, lengths_of, positions
from derivlang.core.keys import Draws, fractions
from derivlang.grammar import enumerate_orders, exact, gibbs
from derivlang.grammar.enumerate_orders import all_orders, to_members
from derivlang.grammar.families import Families
from derivlang.grammar.scores import SameSize, Scores
from derivlang.grammar.weights import Float

MOST_MEMBERS = 5
_AT_ONCE = 1 << 14  # draws at a time for families of at most `MOST_MEMBERS` members
_ENUMERATED = 16  # and for larger ones whose orders are all listed: 59,049 numbers each for sequences of five


class Sampler:
    """Orders of families under some scores. best: the most probable order."""

    def __init__(self, scores: Scores, *, best: bool) -> None:
        self._scores, self._best = scores, best

    def draw(self, families: Families, labels: Int32, classes: Int32, draws: Draws) -> Int32:
        """Return int32[M]: which member of its family stands at each derived position.

        labels: int32[M], label number of each member. classes: int32[F], -1 for families that stay as they are.
        """
        lengths = lengths_of(families.offsets)
        starts = families.offsets[:-1]
        out = positions(families.offsets)
        modelled = classes >= 0
        heads = families.head_places - starts
        random = draws.draw(families.keys, np.zeros(len(families), np.int64))
        for n in np.unique(lengths[modelled & (lengths > 1)]).tolist():
            at = np.flatnonzero(modelled & (lengths == n))
            places = starts[at] + np.arange(n)[:, None]
            some = SameSize(labels[places], heads[at], classes[at])
            if n <= exact.MOST_DEPENDENTS + 1:
                orders = self._drawn(some, random[at])
            else:
                keys = families.keys[at]
                orders = np.stack([self._large_order(some, f, key, draws) for f, key in enumerate(keys)])
            out[places] = orders.T
        return out

    def _drawn(self, families: SameSize, random: UInt64) -> NDArray[np.int8]:
        """Return orders int8[K, n] of families that are not large. random: uint64[K], their draws."""
        n, needs_all = len(families.labels), self._scores.needs_all_orders(families)
        first, index = _distinct(families.labels)
        out = np.empty((len(index), n), np.int8)
        size = _AT_ONCE if n <= MOST_MEMBERS else _ENUMERATED if needs_all else exact.chunk_size(n - 1)
        by_family = np.argsort(index, kind="stable")
        for begin in range(0, len(index), size):
            chunk = by_family[begin : begin + size]
            which, rows = np.unique(index[chunk], return_inverse=True)
            orders = self._orders(families.take(first[which]), rows, random[chunk])
            out[chunk] = to_members(orders, families.heads[chunk])
        return out

    def _orders(self, families: SameSize, rows: Int64, random: UInt64) -> NDArray[np.int8]:
        """Return orders int8[q, n] of dependents and head.

        rows: int64[q], the family of each draw. random: uint64[q], the draws.
        """
        n, local = len(families.labels), self._scores.local(families)
        if self._best:
            local = local.with_ties_broken(families.heads)
        if n <= MOST_MEMBERS or self._scores.needs_all_orders(families):
            scores = self._scores.of_all_orders(local, families)
            if self._best:
                number = scores.argmax(axis=1)[rows]
            elif n <= MOST_MEMBERS:
                number = _by_thresholds(scores, rows, random)
            else:
                number = enumerate_orders.draw(scores, rows, fractions(random))
            return np.asarray(all_orders(n)[number])
        if self._best:
            return exact.draw(exact.chains(local, "best"), rows, fractions(random))
        return exact.draw_orders(local, rows, fractions(random))

    def _large_order(self, families: SameSize, f: int, key: np.uint64, draws: Draws) -> Int32:
        """Return int32[n]: the order of family f, too large for exact tables."""
        labels, head = families.labels[:, f], int(families.heads[f])
        distinct, numbers = np.unique(np.delete(labels, head), return_inverse=True)
        rows = np.append(distinct, labels[head])[:, None]
        local = self._scores.local(SameSize(rows, np.array([len(distinct)]), families.classes[[f]]))
        return gibbs.arrange(local, numbers, head, key, draws, best=self._best)


def _distinct(labels: Int32) -> tuple[Int64, Int64]:
    """Return (int64[D] a family of each kind, int64[K] the kind of each): families with the same labels int32[n, K].

    Families [a, b, a] -> [0, 1], [0, 1, 0].
    """
    rows = pa.py_buffer(np.ascontiguousarray(labels.T))
    kinds = pa.Array.from_buffers(pa.binary(4 * len(labels)), labels.shape[1], [None, rows])
    index = kinds.dictionary_encode().indices.to_numpy().astype(np.int64)
    return np.unique(index, return_index=True)[1], index


def _by_thresholds(scores: Float, rows: Int64, random: UInt64) -> Int64:
    """Return int64[q]: the order of each draw. scores: float64[b, n!]. rows: int64[q]. random: uint64[q].

    The cumulative probabilities of a family's orders are whole numbers of 2^-32, so a probability is right to 2.4e-10.
    The number of those that are at most the upper 32 bits of the draw is the number of the order:

        three orders with probabilities .5, .25, .25:  thresholds .5 .75;  u = .6 -> order 1
    """
    ends = np.exp(scores - scores.max(axis=1, keepdims=True)).cumsum(axis=1)
    ends *= 2.0**32 / ends[:, -1:]
    thresholds = np.minimum(ends[:, :-1], 2**32 - 1).astype(np.uint32)
    u = (random >> np.uint64(32)).astype(np.uint32)
    return np.asarray((thresholds[rows] <= u[:, None]).sum(axis=1))
