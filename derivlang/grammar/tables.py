"""Tables: the whole distribution of small families, so that a draw is a search among their orders.

Up to `MOST_MEMBERS` members (120 orders) the cumulative probabilities of a family are kept as whole numbers of 2^-32,
so a probability is right to 2.4e-10. The order drawn with u is the number of those that are at most u:

    three orders with probabilities .5, .25, .25:  thresholds .5 .75 1 (padded with 1);  u = .6 -> order 1

Nine of ten heads are that small, and most families come again; `memo` keeps the larger ones.
"""

from __future__ import annotations

from functools import cache
from math import factorial
from typing import Any

import numpy as np
from numpy.typing import NDArray

from derivlang.core.arrays import Int32, Int64, UInt32, UInt64
from derivlang.grammar.enumerate_orders import all_orders, to_members
from derivlang.grammar.packed import pack
from derivlang.grammar.weights import Float

MOST_MEMBERS = 5
LIMIT = 128 << 20  # bytes in use, a quarter of a million families of five; then everything is dropped


class Tables:
    """Rows of thresholds by family size. A row's width is a power of two, so the search needs no bounds."""

    def __init__(self) -> None:
        self.clear()

    def clear(self) -> None:
        """Drop everything."""
        self._rows = {n: np.zeros((0, _width(n)), np.uint32) for n in range(2, MOST_MEMBERS + 1)}
        self._used = dict.fromkeys(self._rows, 0)

    @property
    def n_bytes(self) -> int:
        """Bytes held."""
        return sum(rows.nbytes for rows in self._rows.values())

    @property
    def is_full(self) -> bool:
        """More bytes are in use than `LIMIT`."""
        return sum(4 * _width(n) * used for n, used in self._used.items()) > LIMIT

    def add(self, n: int, scores: Float) -> Int32:
        """Add families and return their rows int32[b]. scores: float64[b, n!], in the order of `all_orders`."""
        begin, end = self._used[n], self._used[n] + len(scores)
        if end > len(self._rows[n]):
            # In place: the system moves a large array without a copy. No view of it outlives a call.
            self._rows[n].resize((max(end, len(self._rows[n]) * 5 // 4, 64), _width(n)), refcheck=False)
        ends = np.exp(scores - scores.max(axis=1, keepdims=True)).cumsum(axis=1)
        ends *= 2.0**32 / ends[:, -1:]
        rows = self._rows[n][begin:end]
        rows[:, scores.shape[1] - 1 :] = 2**32 - 1
        rows[:, : scores.shape[1] - 1] = np.minimum(ends[:, :-1], 2**32 - 1)
        self._used[n] = end
        return np.arange(begin, end, dtype=np.int32)

    def draw(self, n: int, rows: Int32, heads: Int64, u: UInt32) -> UInt64:
        """Return uint64[K]: packed orders of families of n members.

        rows: int32[K], from `add`. heads: int64[K], position of the head. u: uint32[K], the draws.
        """
        width, thresholds = _width(n), self._rows[n].reshape(-1)
        base = rows.astype(np.int64) * width - 1
        index = base + 1
        step = width // 2
        while step:
            index += step * (thresholds.take(index + (step - 1), mode="clip") <= u)
            step //= 2
        number = np.minimum(index - base - 1, factorial(n) - 1)
        packed: UInt64 = _packed_orders(n)[heads, number]
        return packed


def _width(n: int) -> int:
    return 1 << (factorial(n) - 1).bit_length()


@cache
def _packed_orders(n: int) -> NDArray[Any]:
    """Return uint64[n, n!]: packed orders of members by position of the head, in the order of `all_orders`."""
    return np.stack([pack(to_members(all_orders(n), np.array([head]))) for head in range(n)])
