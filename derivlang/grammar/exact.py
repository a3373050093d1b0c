"""Exact distributions over all orders of a family, by dynamic programming over the set left of the head.

Once the set S left of the head is chosen, pairs across it are settled, and each side is a chain, whose states are
(members placed so far, next member):

    chain[0, j] = start[j]
    chain[S, j] = sum over i in S of chain[S - i, i] · next[i, j]  ·  product over a in S of pair[a, j]
    Z = sum over S of  leftchain(S) · rightchain(rest) · across(S)

d · 2^d states with d steps each, instead of (d + 1)! orders. Going back through the chain draws an order; with
maxima for sums it finds the best one. Factors are scaled to at most 1 for each pair and each neighbour, so nothing
overflows, and what underflows is below 1e-300 of the bound; where the whole sum comes near that, the family is
done again in extended precision.
"""

from __future__ import annotations

from dataclasses import dataclass
from functools import cache
from typing import Any

import numpy as np
from numpy.typing import NDArray

from derivlang.core.arrays import Int64
from derivlang.grammar.local import Local
from derivlang.grammar.weights import Float

# 7 ms and 12 MB a family; from here on Gibbs sampling takes no longer. An order of 16 members fits a memo's entry.
MOST_DEPENDENTS = 14
_TINY = 1e-150
_BY_LAYER = 8  # from so many dependents on, products of matrices are quicker


@dataclass(frozen=True, slots=True, eq=False)
class Chains:
    """The filled tables of b families; d dependents, sides 0 left and 1 right.

    states: [2^d, d + 1, 2, b]; the last column is the value of a finished side. steps: [d, d + 1, 2, b], next and
    end factors. splits: [2^d, b], the value of each left set. total: [b]; log_scale: [b], what was taken out.
    """

    states: NDArray[Any]
    steps: NDArray[Any]
    splits: NDArray[Any]
    total: NDArray[Any]
    log_scale: Float
    best: bool

    @property
    def log_z(self) -> Float:
        """log Z of each family (of the best order, for maxima)."""
        with np.errstate(divide="ignore"):  # no order at all: minus infinity
            total = self.total if self.best else np.log(self.total)
        return np.asarray(total + self.log_scale, np.float64)

    def narrow(self) -> NDArray[np.intp]:
        """The families whose sum is too near to underflow to be trusted."""
        return np.flatnonzero(~(self.total > _TINY)) if not self.best else np.zeros(0, np.intp)


def chains(local: Local, *, best: bool = False, dtype: Any = np.float64) -> Chains:
    """Fill the tables. best: maxima of log scores in place of sums of products. dtype: np.longdouble for more range."""
    d = local.n_dependents
    b = local.before.shape[-1]
    diagonal = np.arange(d)
    pair = np.stack([local.left, local.right], axis=2)  # [d, d, 2, b]
    across = local.across
    head = np.stack([local.before, local.after])  # [2, d, b]
    steps = np.empty((d, d + 1, 2, b))
    steps[:, :d] = local.next[:, :, None]
    steps[:, d, 0], steps[:, d, 1] = local.to_head, local.last
    start = np.empty((d + 1, 2, b))
    start[:d, 0], start[:d, 1], start[d] = local.first, local.from_head, local.bare
    log_scale = np.zeros(b)
    times: np.ufunc = np.add if best else np.multiply
    one = 0.0 if best else 1.0
    if not best:
        pair, across, head, steps, start = (a.astype(dtype, copy=False) for a in (pair, across, head, steps, start))
        if d:
            top = np.maximum(pair.max(axis=2), across)
            top = np.maximum(top, top.transpose(1, 0, 2))
            top[diagonal, diagonal] = 0
            pair, across = np.exp(pair - top[:, :, None]), across - top
            log_scale = log_scale + top.sum(axis=(0, 1)) / 2
            top = head.max(axis=0)
            head = head - top
            log_scale += top.sum(axis=0)
            steps[diagonal, diagonal] = -np.inf
            top = steps.max(axis=(1, 2))
            steps = np.exp(steps - top[:, None, None])
            log_scale += top.sum(axis=0)
        top = start.max(axis=0)
        start = np.exp(start - top)
        log_scale = np.asarray(log_scale + top.sum(axis=0), np.float64)
    pair[diagonal, diagonal] = one
    fill = _by_set if d < _BY_LAYER else _by_layer
    states = fill(pair, steps, start, best)
    split = _across(across, head, d, b)
    split = split if best else np.exp(split)
    times(split, states[:, d, 0], out=split)
    times(split, states[::-1, d, 1], out=split)
    total = split.max(axis=0) if best else split.sum(axis=0)
    return Chains(states, steps, split, total, log_scale, best)


def _by_set(pair: NDArray[Any], steps: NDArray[Any], start: NDArray[Any], best: bool) -> NDArray[Any]:
    """The states, set after set, elementwise over families: quick for few dependents and many families."""
    d, b = len(pair), pair.shape[-1]
    times, plus, one = (np.add, np.maximum, 0.0) if best else (np.multiply, np.add, 1.0)
    # pairs of the members of S with each j, for all S: those of 0 … a - 1 doubled by a
    inside = np.empty((1 << d, d, 2, b), pair.dtype)
    inside[0] = one
    for a in range(d):
        times(inside[: 1 << a], pair[a], out=inside[1 << a : 2 << a])
    states = np.empty((1 << d, d + 1, 2, b), pair.dtype)
    states[0] = start
    spare = np.empty((d + 1, 2, b), pair.dtype)
    for s in range(1, 1 << d):
        state = states[s]
        first, *others = (i for i in range(d) if s >> i & 1)
        times(states[s ^ (1 << first), first], steps[first], out=state)
        for i in others:
            times(states[s ^ (1 << i), i], steps[i], out=spare)
            plus(state, spare, out=state)
        times(state[:d], inside[s], out=state[:d])
    return states


def _by_layer(pair: NDArray[Any], steps: NDArray[Any], start: NDArray[Any], best: bool) -> NDArray[Any]:
    """The same states, all sets of one size at once, as a product of matrices: quick for many dependents."""
    d, b = len(pair), pair.shape[-1]
    times, one, zero = (np.add, 0.0, -np.inf) if best else (np.multiply, 1.0, 0.0)
    pair, steps, start = (np.ascontiguousarray(a.T.swapaxes(-1, -2)) for a in (pair, steps, start[..., None, :, :]))
    inside = np.empty((b, 2, 1 << d, d), pair.dtype)
    inside[:, :, 0] = one
    for a in range(d):
        times(inside[:, :, : 1 << a], pair[:, :, a, None], out=inside[:, :, 1 << a : 2 << a])
    states = np.empty((b, 2, (1 << d) + 1, d + 1), pair.dtype)
    states[:, :, 0] = start[:, :, :, 0]
    states[:, :, 1 << d] = zero
    flat = states.reshape(b, 2, -1)
    for sets, before in _layers(d):
        values = flat.take(before, axis=2)
        layer = (values[..., None] + steps[:, :, None]).max(axis=3) if best else values @ steps
        times(layer[..., :d], inside[:, :, sets], out=layer[..., :d])
        states[:, :, sets] = layer
    return states[:, :, : 1 << d].transpose(2, 3, 1, 0)


@cache
def _layers(d: int) -> list[tuple[Int64, Int64]]:
    """For each size from 1: the sets int64[C], and int64[C, d] where the state before member i came last is found."""
    everything = np.arange(1 << d)
    bits = 1 << np.arange(d)
    sizes = (everything[:, None] & bits > 0).sum(axis=1)
    out = []
    for size in range(1, d + 1):
        sets = everything[sizes == size]
        has = (sets[:, None] & bits) > 0
        out.append((sets, np.where(has, (sets[:, None] ^ bits) * (d + 1) + np.arange(d), (1 << d) * (d + 1))))
    return out


@cache
def _set_sizes(d: int) -> Int64:
    """int64[2^d]: how many members each set has."""
    out = np.zeros(1, np.int64)
    for _ in range(d):
        out = np.concatenate([out, out + 1])
    return out


def _across(across: NDArray[Any], head: NDArray[Any], d: int, b: int) -> NDArray[Any]:
    """[2^d, b]: the log score of all pairs across the head, and of those with the head, for each left set.

    Moving m to the left adds across[m, all right of it] and takes across[all left of it, m] away.
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


def draw(tables: Chains, rows: Int64, u: Float) -> tuple[NDArray[np.int8], Float, Float]:
    """Orders by inverse distribution: (order int8[q, d + 1], low float64[q], width float64[q]).

    rows: int64[q], the family of each draw; u: float64[q] in [0, 1). Orders hold dependents 0 … d - 1 and d for the
    head. Every u in [low, low + width) gives the same order; for best orders that is [0, 1).
    """
    d = tables.states.shape[1] - 1
    q = len(rows)
    order = np.full((q, d + 1), d, np.int8)
    low, width, v = np.zeros(q), np.ones(q), u.copy()
    everyone = np.arange(q)
    bits = 1 << np.arange(d)

    def choose(values: NDArray[Any]) -> NDArray[np.intp]:
        """values [options, rows of the batch that are `at`] -> option of each; narrows low, width, v."""
        nonlocal low, width, v
        if tables.best:
            return np.asarray(values.argmax(axis=0))
        ends = values.cumsum(axis=0)
        ends /= ends[-1]
        ends = ends.astype(np.float64, copy=False)
        found = np.minimum((ends <= v[at]).sum(axis=0), len(ends) - 1)
        columns = np.arange(len(found))
        top = ends[found, columns]
        bottom = np.where(found > 0, ends[found - 1, columns], 0.0)
        share = top - bottom
        low[at] += width[at] * bottom
        width[at] *= share
        inside = np.divide(v[at] - bottom, share, out=np.zeros(len(found)), where=share > 0)
        v[at] = np.clip(inside, 0.0, 1 - 2**-53)
        return np.asarray(found)

    at = everyone
    left = choose(tables.splits[:, rows])
    sizes = _set_sizes(d)
    for side, chosen in ((0, left), (1, (1 << d) - 1 - left)):
        rest = np.array(chosen, np.int64)
        place = sizes[left] - 1 if side == 0 else np.full(q, d, np.int64)
        following = np.full(q, d, np.int64)
        while (at := np.flatnonzero(rest)).size:
            has = (rest[at] & bits[:, None]) > 0
            before = np.where(has, rest[at] & ~bits[:, None], 0)
            members = np.arange(d)[:, None]
            values = tables.states[before, members, side, rows[at]]
            steps = tables.steps[members, following[at], side, rows[at]]
            values = values + steps if tables.best else values * steps
            values = np.where(has, values, -np.inf if tables.best else 0.0)
            found = choose(values)
            order[at, place[at]] = found
            place[at] -= 1
            rest[at] &= ~bits[found]
            following[at] = found
    return order, low, width
