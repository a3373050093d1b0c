"""Inverse distributions: the order that the exact distribution of a family has at a number u in [0, 1).

Going back through the filled chains (`exact`) draws an order. Each choice narrows the interval of the numbers that give
the same order.
"""

from __future__ import annotations

from functools import cache
from typing import Any

import numpy as np
from numpy.typing import NDArray

from derivlang.core.arrays import Int64
from derivlang.grammar.exact import Chains, chains, flat_of
from derivlang.grammar.local import Local
from derivlang.grammar.weights import Float


def draw_orders(local: Local, rows: Int64, u: Float) -> NDArray[np.int8]:
    """Return what `draw` returns; families whose sums underflow are computed with logarithms.

    rows: int64[q], the family of each draw. u: float64[q] in [0, 1).
    """
    tables = chains(local)
    with np.errstate(invalid="ignore"):  # a total of 0 is computed again
        orders = draw(tables, rows, u)
    again = np.isin(rows, tables.narrow())
    if again.any():
        # `chosen` counts among the families that are left: rows [0, 2, 2] of the families [0, 2] -> [0, 1, 1].
        families, chosen = np.unique(rows[again], return_inverse=True)
        orders[again] = draw(chains(local.take(families), "logs"), chosen, u[again])
    return orders


def draw(tables: Chains, rows: Int64, u: Float) -> NDArray[np.int8]:
    """Draw orders int8[q, d + 1] by the inverse distribution, of dependents 0 … d - 1 and d for the head.

    rows: int64[q], the family of each draw. u: float64[q] in [0, 1); under `best` it changes nothing. Each choice
    leaves a place in its interval: left sets with shares [.3, .7] and u = .65 choose the second, [.3, 1), and .35 / .7.

    First the left set is chosen. Then each side is filled from its end: left set {0, 2} of d = 3 gives the places 1, 0
    left of the head at place 2, and the right set {1} gives place 3. So all draws take d rounds, one member in each.
    """
    d, q = len(tables.steps), len(rows)
    left, u = _left_sets(tables, rows, u)
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
            following, u = _chosen(values, u)
        elif tables.kind == "logs":
            following, u = _chosen(_from_logs(values + values_of_steps), u)
        else:
            following = (values + values_of_steps).argmax(axis=0)
        flat_order[place] = following
        place -= 1
        rest ^= 1 << following
    return order


def _left_sets(tables: Chains, rows: Int64, u: Float) -> tuple[Int64, Float]:
    """Return (int64[q] the set left of the head of each draw, float64[q] the place in its interval)."""
    if tables.kind == "best":
        return tables.splits.argmax(axis=0)[rows], u
    # As in `tables`: a row's width is a power of two, so that the search needs no bounds.
    splits = _from_logs(tables.splits) if tables.kind == "logs" else tables.splits
    ends = np.cumsum(splits.T, axis=1)
    width = ends.shape[1]
    flat, base = ends.reshape(-1), rows * width
    total = flat.take(base + (width - 1))
    index, wanted = base.copy(), u * total
    step = width // 2
    # Binary search: `index` moves on by `step` as long as the end of the step is not above `wanted`.
    while step:
        index += step * (flat.take(index + (step - 1)) <= wanted)
        step //= 2
    bottom = np.where(index > base, flat.take(index - 1), 0.0)
    return index - base, _within(u, bottom, flat.take(index), total)


def _from_logs(values: NDArray[Any]) -> NDArray[Any]:
    """Return exp of values [options, n], the largest of each column as 1."""
    return np.asarray(np.exp(values - values.max(axis=0)))


def _chosen(values: NDArray[Any], u: Float) -> tuple[Int64, Float]:
    """Return (int64[q] the option of values [options, q] of each draw, float64[q] the place in its interval)."""
    n, q = values.shape
    ends = np.zeros((n + 1, q))
    for option in range(n):
        np.add(ends[option], values[option], out=ends[option + 1])
    total = ends[n]
    choices = np.minimum((ends[1:] <= u * total).sum(axis=0), n - 1)
    at, flat = choices * q + np.arange(q), ends.reshape(-1)
    return choices, _within(u, flat.take(at), flat.take(at + q), total)


def _within(u: Float, bottom: Float, top: Float, total: Float) -> Float:
    """Return the place in the part [bottom, top) of [0, total): [3, 10) of [0, 10) and u = .65  ->  3.5 / 7."""
    share = top - bottom
    inside = np.divide(u * total - bottom, share, out=np.zeros(len(share)), where=share > 0)
    return np.clip(inside, 0.0, 1 - 2**-53, out=inside)


@cache
def _set_sizes(d: int) -> Int64:
    """Return int64[2^d]: the number of members of each set: [0, 1, 1, 2] for d = 2."""
    out = np.zeros(1, np.int64)
    for _ in range(d):
        out = np.concatenate([out, out + 1])
    return out
