"""Tables: the whole distribution of small families, so that a draw is a search among their orders.

Up to `MOST_MEMBERS` members (120 orders) the cumulative probabilities of a family are kept as whole numbers of 2^-32,
so a probability is right to 2.4e-10. The order drawn with u is the number of those that are at most u:

    three orders with probabilities .5, .25, .25:  thresholds .5 .75 1 (padded with 1);  u = .6 -> order 1

Nine of ten heads are that small, and most families come again. Under argmax the best order has all of the probability.
"""

from __future__ import annotations

from functools import cache
from math import factorial

import numpy as np
from numpy.typing import NDArray

from derivlang.core.arrays import Int64, UInt32
from derivlang.grammar.enumerate_orders import all_orders, to_members
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
