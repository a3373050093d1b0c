"""Tables: the whole distribution of small families, so that a draw is a search among their orders.

Up to `MOST_MEMBERS` members (120 orders) a family's cumulative probabilities are kept as whole numbers of 2^-32; the
order drawn with u is the number of those that are at most u. A probability is thus right to 2.4e-10. Nine of ten heads
are that small, and most families come again; see `memo` for the larger ones.
"""

from __future__ import annotations

from functools import cache
from math import factorial
from typing import Any

import numpy as np
from numpy.typing import NDArray

from derivlang.core.arrays import Int32, Int64, UInt32, UInt64
from derivlang.grammar.enumerate_orders import all_orders, to_members
from derivlang.grammar.weights import Float

MOST_MEMBERS = 5
LIMIT = 64 << 20  # bytes; then all is forgotten


class Tables:
    """Rows of thresholds, by size; a row's width is a power of two, so that the search needs no bounds."""

    def __init__(self) -> None:
        self.clear()

    def clear(self) -> None:
        """Forget everything."""
        self._rows = {n: np.zeros((0, _width(n)), np.uint32) for n in range(2, MOST_MEMBERS + 1)}
        self._used = dict.fromkeys(self._rows, 0)

    @property
    def n_bytes(self) -> int:
        return sum(rows.nbytes for rows in self._rows.values())

    @property
    def is_full(self) -> bool:
        return self.n_bytes > LIMIT

    def add(self, n: int, scores: Float) -> Int32:
        """The rows of new families. scores: float64[b, n!], in the order of `all_orders`."""
        begin, end = self._used[n], self._used[n] + len(scores)
        if end > len(self._rows[n]):
            grown = np.empty((max(end, len(self._rows[n]) * 3 // 2, 64), _width(n)), np.uint32)
            grown[:begin] = self._rows[n][:begin]
            self._rows[n] = grown
        ends = np.exp(scores - scores.max(axis=1, keepdims=True)).cumsum(axis=1)
        ends *= 2.0**32 / ends[:, -1:]
        rows = self._rows[n][begin:end]
        rows[:, scores.shape[1] - 1 :] = 2**32 - 1
        rows[:, : scores.shape[1] - 1] = np.minimum(ends[:, :-1], 2**32 - 1)
        self._used[n] = end
        return np.arange(begin, end, dtype=np.int32)

    def draw(self, n: int, rows: Int32, heads: Int64, u: UInt32) -> UInt64:
        """uint64[K]: packed orders of families of n members. heads: int64[K], local places; u: uint32[K], the draws."""
        width, thresholds = _width(n), self._rows[n].reshape(-1)
        base = rows.astype(np.int64) * width - 1
        found = base + 1
        step = width // 2
        while step:
            found += step * (thresholds.take(found + (step - 1), mode="clip") <= u)
            step //= 2
        number = np.minimum(found - base - 1, factorial(n) - 1)
        packed: UInt64 = _packed_orders(n)[heads, number]
        return packed


def _width(n: int) -> int:
    return 1 << (factorial(n) - 1).bit_length()


@cache
def _packed_orders(n: int) -> NDArray[Any]:
    """uint64[n, n!]: for each place of the head, the packed orders of members, in the order of `all_orders`."""
    from derivlang.grammar.order_model import pack

    return np.stack([pack(to_members(all_orders(n), np.array([head]))) for head in range(n)])
