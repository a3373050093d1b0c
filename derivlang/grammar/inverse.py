"""Inverse distributions: the order that the exact distribution of a family has at a number u in [0, 1).

Going back through the filled chains (`exact`) draws an order. Each choice narrows the interval of the numbers that give
the same order, so the last interval belongs to the order: `memo` keeps it.

Up to `exact.BY_MULTISET` dependents the chains are filled with 32-bit numbers first, in half the time. Their intervals
are right to 4e-7 (`tests/test_grammar_exact.py`). Where u is within `GUARD` of a border, the family is computed again
with 64 bits, so that no order depends on the type; the intervals that are kept are narrower by GUARD on both sides.
"""

from __future__ import annotations

from functools import cache
from typing import Any

import numpy as np
from numpy.typing import NDArray

from derivlang.core.arrays import Int32, Int64
from derivlang.grammar import exact
from derivlang.grammar.exact import Chains, chains, flat_of
from derivlang.grammar.local import Local
from derivlang.grammar.weights import Float

GUARD = 4e-6  # ten times the largest error that the tests allow for the borders of 32-bit intervals


def draw_orders(local: Local, labels: Int32, rows: Int64, u: Float) -> tuple[NDArray[np.int8], Float, Float]:
    """Return what `draw` returns, computed in the smallest type that gives the same orders as 64 bits.

    Where sums underflow even in 64 bits, it is computed with logarithms.

    labels: int32[d, b], of the dependents; equal labels have equal scores. rows: int64[q], the family of each draw;
    each family occurs. u: float64[q] in [0, 1).
    """
    q = len(u)
    orders = np.empty((q, local.n_dependents + 1), np.int8)
    low, width = np.empty(q), np.empty(q)
    todo = np.arange(q)
    types: tuple[Any, ...] = (np.float32,) if local.n_dependents < exact.BY_MULTISET else ()
    for dtype in (*types, np.float64, None):  # None: with logarithms, whose range is always enough
        tables = chains(local, "logs") if dtype is None else chains(local, dtype=dtype, labels=labels)
        with np.errstate(invalid="ignore"):  # a total of 0 is computed again
            orders[todo], low[todo], width[todo] = draw(tables, rows, u[todo])
        again = ~(tables.total > exact.TINY[dtype])[rows] if dtype is not None else np.zeros(len(rows), np.bool_)
        if dtype is np.float32:
            low += GUARD
            width -= 2 * GUARD
            again |= (u < low) | (u >= low + width)
        if not again.any():
            break
        todo = todo[again]
        # From here on `rows` counts among the families that are left: rows [0, 2, 2] with families [0, 2] becomes [0,
        # 1, 1].
        families, rows = np.unique(rows[again], return_inverse=True)
        local, labels = local.take(families), labels[:, families]
    return orders, low, width


class _Interval:
    """The interval [low, low + width) of each of q draws u, and the place v of u in it; all float64[q]."""

    def __init__(self, u: Float) -> None:
        self.low, self.width, self.v = np.zeros(len(u)), np.ones(len(u)), u.copy()

    def narrow(self, bottom: Float, top: Float, total: Float) -> None:
        """Go on with the part [bottom, top) of [0, total): [3, 10) of [0, 10) and v = .65  ->  v = 3.5 / 7."""
        self.low += self.width * (bottom / total)
        share = top - bottom
        self.width *= share / total
        inside = np.divide(self.v * total - bottom, share, out=np.zeros(len(share)), where=share > 0)
        self.v = np.clip(inside, 0.0, 1 - 2**-53, out=inside)


def draw(tables: Chains, rows: Int64, u: Float) -> tuple[NDArray[np.int8], Float, Float]:
    """Draw orders by the inverse distribution: (order int8[q, d + 1], low float64[q], width float64[q]).

    rows: int64[q], the family of each draw. u: float64[q] in [0, 1). Orders have dependents 0 … d - 1 and d for the
    head. Every u in [low, low + width) gives the same order; under `best` that is [0, 1). Each choice narrows the
    interval: left sets with shares [.3, .7] and u = .65 choose the second, [.3, 1), and leave v = .35 / .7 = .5.

    First the left set is chosen. Then each side is filled from its end: left set {0, 2} of d = 3 gives the places 1, 0
    left of the head at place 2, and the right set {1} gives place 3. So all draws take d rounds, one member in each.
    """
    d, q = len(tables.steps), len(rows)
    interval = _Interval(u)
    left = _left_sets(tables, rows, interval)
    order = np.full((q, d + 1), d, np.int8)
    flat_order, line = order.reshape(-1), np.arange(q) * (d + 1)  # line: where each order begins
    rest, following = left.copy(), np.full(q, d)
    place = line + _set_sizes(d)[left] - 1
    side = np.zeros(q, np.int64)
    steps, (by_member, by_following, by_side, by_row) = flat_of(tables.steps)
    members = (np.arange(d) * by_member)[:, None]
    for _ in range(d):
        turns = np.flatnonzero(rest == 0)  # the left side is complete: the right one is next
        rest[turns] = (1 << d) - 1 - left[turns]
        side[turns], following[turns], place[turns] = 1, d, line[turns] + d
        values = tables.states.before(rest, rows, side)
        values_of_steps = steps.take(members + (following * by_following + side * by_side + rows * by_row))
        if tables.kind == "sums":
            values *= values_of_steps
            following = _chosen(values, interval)
        elif tables.kind == "logs":
            following = _chosen(_from_logs(values + values_of_steps), interval)
        else:
            following = (values + values_of_steps).argmax(axis=0)
        flat_order[place] = following
        place -= 1
        rest ^= 1 << following
    return order, interval.low, interval.width


def _left_sets(tables: Chains, rows: Int64, interval: _Interval) -> Int64:
    """Return int64[q]: the set left of the head of each draw."""
    if tables.kind == "best":
        return np.asarray(tables.splits.argmax(axis=0)[rows])
    # As in `tables`: a row's width is a power of two, so that the search needs no bounds. Sums of 32-bit numbers have
    # 64 bits: the borders of left sets have the largest error of all.
    splits = _from_logs(tables.splits) if tables.kind == "logs" else tables.splits
    ends = np.cumsum(splits.T, axis=1, dtype=np.float64)
    width = ends.shape[1]
    flat, base = ends.reshape(-1), rows * width
    total = flat.take(base + (width - 1))
    index, wanted = base.copy(), interval.v * total
    step = width // 2
    # Binary search: `index` moves on by `step` as long as the end of the step is not above `wanted`.
    while step:
        index += step * (flat.take(index + (step - 1)) <= wanted)
        step //= 2
    interval.narrow(np.where(index > base, flat.take(index - 1), 0.0), flat.take(index), total)
    return np.asarray(index - base)


def _from_logs(values: NDArray[Any]) -> NDArray[Any]:
    """Return exp of values [options, n], the largest of each column as 1."""
    return np.asarray(np.exp(values - values.max(axis=0)))


def _chosen(values: NDArray[Any], interval: _Interval) -> Int64:
    """Return int64[q]: the option that each draw takes of values [options, q], by their shares."""
    n, q = values.shape
    ends = np.zeros((n + 1, q))
    for option in range(n):
        np.add(ends[option], values[option], out=ends[option + 1])
    total = ends[n]
    choices = np.minimum((ends[1:] <= interval.v * total).sum(axis=0), n - 1)
    at, flat = choices * q + np.arange(q), ends.reshape(-1)
    interval.narrow(flat.take(at), flat.take(at + q), total)
    return np.asarray(choices)


@cache
def _set_sizes(d: int) -> Int64:
    """Return int64[2^d]: the number of members of each set: [0, 1, 1, 2] for d = 2."""
    out = np.zeros(1, np.int64)
    for _ in range(d):
        out = np.concatenate([out, out + 1])
    return out
