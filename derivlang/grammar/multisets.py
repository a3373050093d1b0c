"""Chains of families with many dependents, some of them with equal labels.

Dependents with one label are interchangeable, so the value of a set of dependents (`exact`) depends on its labels only.
There are fewer multisets of labels than sets of dependents: with ten dependents and eight labels, two of which occur
twice, 3 · 3 · 2^6 = 576 instead of 1,024. They are filled by layers, then looked up for each set.

A multiset is a number with mixed radix, whose digit of label a says how often a occurs:

    labels x y x    counts x 2, y 1    strides x 1, y 3    the set {0, 1} is xy = 1 + 3 = 4, {0, 2} is xx = 2
"""

from __future__ import annotations

import math
from collections.abc import Iterator
from dataclasses import dataclass
from functools import lru_cache
from itertools import pairwise
from typing import Any

import numpy as np
from numpy.typing import NDArray

from derivlang.core.arrays import Float64, Int32, Int64

_Pattern = tuple[int, ...]  # how often each label occurs, the most frequent one first


@dataclass(frozen=True, slots=True, eq=False)
class MultisetStates:
    """The states of b families, which have d dependents each: one state for each multiset of labels.

    flat: the states of all families, one after the other, [2, N + 1, m + 1] each: by side, place of the multiset and
    label of the next member; the last column is the value of a finished side, the last row is 0. begins: int64[b],
    where a family begins. widths: int64[b], m + 1. sides: int64[b], numbers of one side. numbers: int64[2^d, b], the
    multiset of each set, an index into `ranks`, the places of all patterns. strides, columns: int64[d, b], the value in
    `numbers` of each dependent's label and its place in the pattern.
    """

    flat: NDArray[Any]
    begins: Int64
    widths: Int64
    sides: Int64
    numbers: Int64
    ranks: Int64
    strides: Int64
    columns: Int64

    def finished(self) -> tuple[NDArray[Any], NDArray[Any]]:
        """Return ([2^d, b] the value of each set left of the head, the same right of it)."""
        at = self.ranks.take(self.numbers)
        at *= self.widths
        at += self.begins + self.widths - 1
        left = self.flat.take(at)
        at += self.sides
        return left, self.flat.take(at)

    def before(self, rest: Int64, rows: Int64, side: Int64) -> NDArray[Any]:
        """Return [d, q]: the value of the state before each member came last in a set `rest`, 0 if it is not in it.

        rest, rows, side: int64[q], set, family and side of each draw.
        """
        has = (rest >> np.arange(len(self.strides))[:, None] & 1).astype(bool)
        number = self.numbers[rest, rows] - np.where(has, self.strides.take(rows, axis=1), 0)
        width, begin = self.widths.take(rows), self.begins.take(rows) + side * self.sides.take(rows)
        at = self.ranks.take(number) * width + self.columns.take(rows, axis=1)
        # The last row of a side is 0.
        return self.flat.take(np.where(has, at, self.sides.take(rows) - width) + begin)


def fill(pair: NDArray[Any], steps: NDArray[Any], start: NDArray[Any], labels: Int32) -> MultisetStates:
    """Return the states of b families.

    pair: [d, d, 2, b]. steps: [d, d + 1, 2, b]. start: [d + 1, 2, b]. labels: int32[d, b], of the dependents.
    """
    d, b = labels.shape
    patterns = list(_by_pattern(labels))
    places = [_Places.of(pattern) for pattern, _, _ in patterns]
    widths, sides, begins = np.empty((3, b), np.int64)
    numbers = np.empty((1 << d, b), np.int64)
    strides, columns = np.empty((2, d, b), np.int64)
    end, n_ranks = 0, 0
    for (pattern, families, its_columns), known in zip(patterns, places, strict=True):
        n, m = len(known.rank), len(pattern)
        widths[families], sides[families] = m + 1, (n + 1) * (m + 1)
        begins[families] = end + 2 * (n + 1) * (m + 1) * np.arange(len(families))
        end += 2 * (n + 1) * (m + 1) * len(families)
        numbers[0, families] = n_ranks
        n_ranks += n
        columns[:, families] = its_columns
        strides[:, families] = _strides(pattern)[its_columns]
    for i in range(d):
        # Dependent i doubles what is known: sets 2 and 3 are 0 and 1 with it.
        np.add(numbers[: 1 << i], strides[i], out=numbers[1 << i : 2 << i])
    flat = np.empty(end, pair.dtype)
    for (pattern, families, its_columns), known in zip(patterns, places, strict=True):
        n, m, g = len(known.rank), len(pattern), len(families)
        states = flat[begins[families[0]] :][: 2 * g * (n + 1) * (m + 1)].reshape(g, 2, n + 1, m + 1)
        label = np.arange(m)[:, None, None]
        first = (its_columns == label).argmax(axis=1)  # [m, g], a dependent with each label
        # argmax finds the first match; in the reversed columns that is the last one.
        last = d - 1 - (its_columns[::-1] == label).argmax(axis=1)  # another one, if there are several
        end_of = np.full((1, g), d)
        # A pair of equal labels needs two dependents, since the pair of a dependent with itself has no score.
        second = np.where((label[:, 0] == label[:, 0, 0])[..., None], last[:, None], first)  # [m, m, g]
        following = np.concatenate([second, np.broadcast_to(end_of, (m, 1, g))], axis=1)
        _fill_states(
            pattern,
            pair[first[:, None], second, :, families].transpose(2, 3, 0, 1),
            steps[first[:, None], following, :, families].transpose(2, 3, 0, 1),
            start[np.concatenate([first, end_of]), :, families].transpose(1, 2, 0),
            states,
        )
    ranks = np.concatenate([known.rank for known in places])
    return MultisetStates(flat, begins, widths, sides, numbers, ranks, strides, columns)


def _by_pattern(labels: Int32) -> Iterator[tuple[_Pattern, Int64, Int64]]:
    """Yield (a pattern, int64[g] the families that have it, int64[d, g] the place in it of each dependent's label).

    Labels x y x: pattern (2, 1), places 0 1 0.
    """
    groups: dict[_Pattern, tuple[list[int], list[list[int]]]] = {}
    for family, column in enumerate(labels.T.tolist()):
        counts = sorted((-column.count(label), label) for label in set(column))
        place = {label: at for at, (_, label) in enumerate(counts)}
        families, columns = groups.setdefault(tuple(-count for count, _ in counts), ([], []))
        families.append(family)
        columns.append([place[label] for label in column])
    for pattern, (families, columns) in groups.items():
        yield pattern, np.array(families), np.array(columns).T


def _fill_states(
    pattern: _Pattern, pair: NDArray[Any], steps: NDArray[Any], start: NDArray[Any], states: NDArray[Any]
) -> None:
    """Fill the states of all N multisets of g families: [g, 2, N + 1, m + 1], the multisets in the order of `_Places`.

    pair: [g, 2, m, m]. steps: [g, 2, m, m + 1]. start: [g, 2, m + 1].
    """
    g, m = len(pair), len(pattern)
    places = _Places.of(pattern)
    n = len(places.rank)
    inside = np.empty((g, 2, n, m), pair.dtype)  # the product of the pairs of all members with a next one
    inside[:, :, 0] = 1
    for a, stride in enumerate(_strides(pattern).tolist()):
        for begin in range(stride, stride * (pattern[a] + 1), stride):
            # Multisets with one more a are `stride` numbers further on, and only lower labels have been filled in so
            # far.
            before = inside[:, :, begin - stride : begin]
            np.multiply(before, pair[:, :, a, None], out=inside[:, :, begin : begin + stride])
    inside = inside.take(places.order, axis=2)
    states[:, :, 0], states[:, :, n] = start, 0
    flat = states.reshape(g, 2, -1)
    steps = np.ascontiguousarray(steps)
    for begin, end in pairwise(places.sizes):
        layer = states[:, :, begin:end]
        np.matmul(flat.take(places.before[begin:end], axis=2, mode="clip"), steps, out=layer)
        layer[..., :m] *= inside[:, :, begin:end]
    # So far orders of labels. Each of them is several orders of dependents, as equal labels can be exchanged.
    if pattern[0] > 1:
        states[:, :, :n] *= places.exchanges


def _strides(pattern: _Pattern) -> Int64:
    """Return int64[m]: the value of one member of each label: (2, 1) -> [1, 3]."""
    return np.cumprod([1, *(count + 1 for count in pattern[:-1])])


@dataclass(frozen=True, slots=True, eq=False)
class _Places:
    """The N multisets of a pattern by size, so that multisets of one size stand side by side.

    (2, 1): numbers 0 none, 1 x, 2 xx, 3 y, 4 xy, 5 xxy  ->  order [0, 1, 3, 2, 4, 5], sizes [1, 3, 5, 6]

    order: int64[N], the number at each place; rank: its inverse. sizes: the end of each size. before: int32[N, m], for
    each place and label the flat index of the state before that label came last: before the x of xy the state was (y,
    next x), at 2 · 3 + 0. A label that is not in the multiset points at the row of zeros behind all states. exchanges:
    float64[N, 1], the number of orders of dependents in each order of labels: 2 for xx, xxy.
    """

    order: Int64
    rank: Int64
    sizes: list[int]
    before: Int32
    exchanges: Float64

    @classmethod
    @lru_cache(maxsize=256)  # some 15 MB: there are about as many patterns of 9 to 14 dependents in 8 M words
    def of(cls, pattern: _Pattern) -> _Places:
        m, strides = len(pattern), _strides(pattern)
        n = int(strides[-1]) * (pattern[-1] + 1)
        counts = np.arange(n)[:, None] // strides % (np.array(pattern) + 1)
        order = np.argsort(counts.sum(axis=1), kind="stable")
        rank = np.empty(n, np.int64)
        rank[order] = np.arange(n)
        counts = counts[order]
        without = rank[np.where(counts > 0, order[:, None] - strides, 0)]
        before = np.where(counts > 0, without * (m + 1) + np.arange(m), n * (m + 1))
        sizes = np.cumsum(np.bincount(counts.sum(axis=1))).tolist()
        exchanges = np.array([math.factorial(count) for count in range(pattern[0] + 1)], np.float64)[counts]
        return cls(order, rank, sizes, before.astype(np.int32), exchanges.prod(axis=1)[:, None])
