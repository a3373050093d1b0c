"""Exact distributions over all orders of a family, by dynamic programming over the set left of the head.

The set S left of the head determines all pairs across the head. Each side is then a chain, whose states are
(members placed so far, next member):

    chain[0, j] = start[j]
    chain[S, j] = sum over i in S of chain[S - i, i] · next[i, j]  ·  product over a in S of pair[a, j]
    Z = sum over S of  leftchain(S) · rightchain(rest) · across(S)

This takes d · 2^d states with d steps each, instead of (d + 1)! orders. Going back through the chain draws an order;
with maxima in place of sums it finds the best one. Factors are scaled to at most 1 for each pair and each neighbour,
so nothing overflows, and what underflows is below 1e-300 of the bound. If the whole sum comes near that, as at a low
temperature, the family is computed again with logarithms, which takes longer.

Sets are numbers whose bit i stands for dependent i. For d = 2:

    set              0 {}      1 {0}     2 {1}     3 {0, 1}
    chain[S, j]      start[j]  0 then j  1 then j  0 and 1 in either order, then j      j = 2: the side ends
    splits[S]        chain[0, 2] left · chain[3, 2] right · across({})  for S = 0, and so on

The chains of all sets of one size are filled at once, from the smallest size on, and stand in this order (`Places`).

An order is drawn at a number u in [0, 1), by going back through the filled chains: each choice narrows the interval of
the numbers that give the same order.
"""

from __future__ import annotations

from dataclasses import dataclass
from functools import cache
from itertools import pairwise
from typing import Any, Literal

import numpy as np
from numpy.typing import NDArray

from derivlang.core.arrays import Int64
from derivlang.core.threads import one_thread
from derivlang.grammar.enumerate_orders import Local
from derivlang.grammar.weights import Float

# How the values of chains are joined: sums of products; log of the sum of exponentials; maxima of sums of log scores.
ChainKind = Literal["sums", "logs", "best"]
_JOIN: dict[str, np.ufunc] = {"logs": np.logaddexp, "best": np.maximum}
# 7 ms and 12 MB per family; above this Gibbs sampling takes no longer.
MOST_DEPENDENTS = 14
TINY = 1e-150  # smaller sums need logarithms
_CHUNK = 1 << 20  # numbers in the largest table of a chunk: 8 MB


@dataclass(frozen=True, slots=True, eq=False)
class Chains:
    """The filled tables of b families with d dependents; side 0 is left of the head, side 1 right.

    states: [2^d + 1, d + 1, 2, b], the value of each state by place of the set (`Places`), next member and side; the
    last column is the value of a finished side, the last row is 0 (minus infinity, if they are logarithms). steps:
    [d, d + 1, 2, b], the factor of a neighbour by member and next member, or of the end. splits: [2^d, b], the value of
    each left set. total: [b], their sum. log_scale: [b], log of the factor that scaling removed. All but the last are
    logarithms, unless `kind` is "sums".
    """

    states: NDArray[Any]
    steps: NDArray[Any]
    splits: NDArray[Any]
    total: NDArray[Any]
    log_scale: Float
    kind: ChainKind

    @property
    def log_z(self) -> Float:
        """Log Z of each family (under "best", the score of the best order)."""
        with np.errstate(divide="ignore"):  # no possible order: minus infinity
            total = np.log(self.total) if self.kind == "sums" else self.total
        return np.asarray(total + self.log_scale, np.float64)

    def narrow(self) -> NDArray[np.intp]:
        """Return the families whose sum is so near to underflow that it must be computed with logarithms."""
        return np.flatnonzero(~(self.total > TINY))


def chunk_size(d: int) -> int:
    """Return how many families to compute at once: the largest table has 2^d · (d + 1) · 2 numbers per family."""
    return max(1, _CHUNK // ((1 << d) * (d + 1) * 2))


def log_z(local: Local) -> Float:
    """Return float64[b]: log Z of each family."""
    tables = chains(local)
    out = tables.log_z
    narrow = tables.narrow()
    if narrow.size:
        out[narrow] = chains(local.take(narrow), "logs").log_z
    return out


@one_thread()
def chains(local: Local, kind: ChainKind = "sums") -> Chains:
    """Return the filled tables."""
    d = local.n_dependents
    b = local.before.shape[-1]
    diagonal = np.arange(d)
    # The two sides of the head are axis 2 of all tables, so that they are filled by the same operations.
    pair = np.stack([local.left, local.right], axis=2)  # [d, d, 2, b]
    pair[diagonal, diagonal] = 0
    across = local.across
    head = np.stack([local.before, local.after])  # [2, d, b]
    following, bos, eos = local.next[:d, :d], d + 1, d + 2
    ends = local.next[:d, [d, eos]]  # [d, 2, b]
    # Before the dependents and the end of a side stands BOS on the left, the head on the right.
    start = np.empty((d + 1, 2, b))
    start[:, 0], start[:d, 1], start[d, 1] = local.next[bos, : d + 1], local.next[d, :d], local.next[d, eos]
    log_scale = np.zeros(b)
    if kind == "sums":
        top = np.maximum(np.maximum(local.left, local.right), across)
        top = np.maximum(top, top.transpose(1, 0, 2))
        top[diagonal, diagonal] = 0
        pair, across = np.exp(pair - top[:, :, None]), across - top
        # `top` has each pair twice, as [a, b] and [b, a], and an order holds it once.
        log_scale += top.sum(axis=(0, 1)) / 2
        top = head.max(axis=0)
        head = head - top
        log_scale += top.sum(axis=0)
        following = following.copy()
        following[diagonal, diagonal] = -np.inf
        # Each dependent has exactly one neighbour on its right, or the end: the largest of its row bounds its factor.
        top = np.maximum(following.max(axis=1, initial=-np.inf), ends.max(axis=1))
        following, ends = np.exp(following - top[:, None]), np.exp(ends - top[:, None])
        log_scale += top.sum(axis=0)
        top = start.max(axis=0)
        start = np.exp(start - top)
        log_scale += top.sum(axis=0)
    steps = np.empty((d, d + 1, 2, b), following.dtype)
    steps[:, :d], steps[:, d] = following[:, :, None], ends
    states = _filled(pair, steps, start, kind)
    split = _across(across, head, d, b)
    split = np.exp(split) if kind == "sums" else split
    times, _, _ = _arithmetic(kind)
    left, right = states[Places.of(d).rank, d].swapaxes(0, 1)  # [2^d, b] each: the value of each set on either side
    times(split, left, out=split)
    # The right side of set S is 2^d - 1 - S, so the rows of the right side are read from the back.
    times(split, right[::-1], out=split)
    total = split.sum(axis=0) if kind == "sums" else _JOIN[kind].reduce(split, axis=0)
    return Chains(states, steps, split, total, log_scale, kind)


def _arithmetic(kind: ChainKind) -> tuple[np.ufunc, float, float]:
    """Return the product of two values, the value 1 and the value 0: of logarithms, unless the kind is "sums"."""
    return (np.multiply, 1.0, 0.0) if kind == "sums" else (np.add, 0.0, -np.inf)


def _filled(pair: NDArray[Any], steps: NDArray[Any], start: NDArray[Any], kind: ChainKind) -> NDArray[Any]:
    """Return the states, elementwise over families."""
    d, b = len(pair), pair.shape[-1]
    times, one, zero = _arithmetic(kind)
    places = Places.of(d)
    # inside[S, j]: product of pair[i, j] for i in S. Member a doubles what is known: sets 4 … 7 are sets 0 … 3 with 2.
    inside = np.empty((1 << d, d, 2, b), pair.dtype)
    inside[0] = one
    for a in range(d):
        times(inside[: 1 << a], pair[a], out=inside[1 << a : 2 << a])
    inside = inside.take(places.order, axis=0)
    # Set 3 = {0, 1} for d = 2: member 0 came last from set 2, or member 1 from set 1. So
    # chain[3, 2] = chain[2, 0] · steps[0, 2] + chain[1, 1] · steps[1, 2], the value of the finished side.
    states = np.empty(((1 << d) + 1, d + 1, 2, b), pair.dtype)
    states[0], states[1 << d] = start, zero
    last, flat = states.reshape(-1, 2 * b), states.reshape(-1, d + 1, 2 * b)
    flat_steps = steps.reshape(d, d + 1, 2 * b)
    for begin, end in pairwise(places.sizes):
        values = last.take(places.before[begin:end], axis=0)  # [sets, d, 2 · b]
        if kind == "sums":
            np.einsum("sib,ijb->sjb", values, flat_steps, out=flat[begin:end])
        else:
            flat[begin:end] = _JOIN[kind].reduce(values[:, :, None] + flat_steps, axis=1)
        times(states[begin:end, :d], inside[begin:end], out=states[begin:end, :d])
    return states


@dataclass(frozen=True, slots=True, eq=False)
class Places:
    """The sets of d dependents by size, so that sets of one size stand side by side.

    order: int64[2^d], the set at each place; rank, n_members: the place and the size of each set. sizes: the end of
    each size. without: int64[d, 2^d], the place of each set without each member, 2^d if it is not in it: the row of
    zeros behind all sets.
    before: int64[2^d, d], for each place and member i the index of the state before i came last, in states
    [2^d + 1, d + 1].

    d = 2: order [0, 1, 2, 3], sizes [1, 3, 4]; set 3: before 0 came last the state was (set 2, next 0), before 1 it was
    (set 1, next 1), so its row of `before` is [6, 4].
    """

    order: Int64
    rank: Int64
    n_members: Int64
    sizes: list[int]
    without: Int64
    before: Int64

    @classmethod
    @cache
    def of(cls, d: int) -> Places:
        everything = np.arange(1 << d)
        bits = 1 << np.arange(d)
        n_members = (everything[:, None] & bits > 0).sum(axis=1)
        order = np.argsort(n_members, kind="stable")
        rank = np.empty(1 << d, np.int64)
        rank[order] = everything
        has = (everything & bits[:, None]) > 0
        without = np.where(has, rank[np.where(has, everything ^ bits[:, None], 0)], 1 << d)
        before = without.T[order] * (d + 1) + np.where(has.T[order], np.arange(d), 0)
        return cls(order, rank, n_members, np.cumsum(np.bincount(n_members)).tolist(), without, before)


def _across(across: NDArray[Any], head: NDArray[Any], d: int, b: int) -> NDArray[Any]:
    """Return [2^d, b]: for each left set, the log score of all pairs across the head and of all pairs with the head.

    Moving m to the left adds across[m, j] for all j that stay right and removes across[i, m] for all i already left.
    For d = 2, with a = across and the pairs with the head left out:

        sets {}, {0}: 0, a[0, 1]        then m = 1: {1} = {} + a[1, 0],  {0, 1} = {0} + a[1, 0] - (a[0, 1] + a[1, 0]) =
        0
    """
    out = np.empty((1 << d, b), across.dtype)
    out[0] = head[1].sum(axis=0)
    both = across + across.transpose(1, 0, 2)
    for m in range(d):
        lost = np.zeros((1 << m, b), across.dtype)
        for a in range(m):
            np.add(lost[: 1 << a], both[a, m], out=lost[1 << a : 2 << a])
        row = across[m].sum(axis=0) - across[m, m] + head[0, m] - head[1, m]
        np.add(out[: 1 << m], row, out=out[1 << m : 2 << m])
        out[1 << m : 2 << m] -= lost
    return out


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
    left, u = chosen(tables.splits[:, rows], u, tables.kind)
    line, members, without = np.arange(q), np.arange(d)[:, None], Places.of(d).without
    order = np.full((q, d + 1), d, np.int8)
    rest, following, side = left.copy(), np.full(q, d), np.zeros(q, np.int64)
    place = Places.of(d).n_members[left] - 1
    times, _, _ = _arithmetic(tables.kind)
    for _ in range(d):
        turns = np.flatnonzero(rest == 0)  # the left side is complete: the right one is next
        rest[turns] = (1 << d) - 1 - left[turns]
        side[turns], following[turns], place[turns] = 1, d, d
        # The state before each member came last in its set, and its step to what follows it.
        before = tables.states[without[:, rest], members, side, rows]
        values = times(before, tables.steps[members, following, side, rows])
        following, u = chosen(values, u, tables.kind)
        order[line, place] = following
        place -= 1
        rest ^= 1 << following
    return order


def chosen(values: NDArray[Any], u: Float, kind: ChainKind) -> tuple[Int64, Float]:
    """Return (int64[q] the option of values [options, q] of each draw, float64[q] the place in its interval)."""
    if kind == "best":
        return values.argmax(axis=0), u
    if kind == "logs":
        values = np.exp(values - values.max(axis=0))  # the largest of each draw is 1
    n, line = len(values), np.arange(values.shape[1])
    ends = np.concatenate([np.zeros((1, len(line))), values.cumsum(axis=0)])
    total = ends[n]
    choices = np.minimum((ends[1:] <= u * total).sum(axis=0), n - 1)
    bottom = ends[choices, line]
    # The place in the part [bottom, top) of [0, total): [3, 10) of [0, 10) and u = .65  ->  3.5 / 7.
    share = ends[choices + 1, line] - bottom
    inside = np.divide(u * total - bottom, share, out=np.zeros(len(share)), where=share > 0)
    return choices, np.clip(inside, 0.0, 1 - 2**-53)
