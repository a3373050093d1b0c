"""Chains of families with many dependents, some of them with equal labels.

Dependents with one label are interchangeable, so the value of a set of dependents (`exact`) depends on its labels only.
There are fewer multisets of labels than sets of dependents: with ten dependents and eight labels, two of which occur
twice, 3 · 3 · 2^6 = 576 instead of 1,024. They are filled by layers, then looked up for each set.

A multiset is a number with mixed radix, whose digit of label a says how often a occurs:

    labels x y x    counts x 2, y 1    strides x 1, y 3    the set {0, 1} is xy = 1 + 3 = 4, {0, 2} is xx = 2
"""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass
from functools import lru_cache
from itertools import pairwise
from typing import Any

import numpy as np
from numpy.typing import NDArray

from derivlang.core.arrays import Int8, Int32, Int64

_Pattern = tuple[int, ...]  # how often each label occurs, the most frequent one first


def fill(pair: NDArray[Any], steps: NDArray[Any], start: NDArray[Any], labels: Int32) -> NDArray[Any]:
    """Return the states [2^d, d + 1, 2, b] of b families (see `exact.Chains`).

    pair: [d, d, 2, b]. steps: [d, d + 1, 2, b]. start: [d + 1, 2, b]. labels: int32[d, b], of the dependents.
    """
    d, b = labels.shape
    states = np.empty((b, 2, 1 << d, d + 1), pair.dtype)
    for pattern, families, columns in _by_pattern(labels):
        m = len(pattern)
        label = np.arange(m)
        first = (columns == label[:, None, None]).argmax(axis=1)  # [m, g], a dependent with each label
        # argmax finds the first match; in the reversed columns that is the last one.
        last = d - 1 - (columns[::-1] == label[:, None, None]).argmax(axis=1)  # another one, if there are several
        end = np.full((1, len(families)), d)
        # A pair of equal labels needs two dependents, since the pair of a dependent with itself has no score.
        second = np.where((label[:, None] == label)[..., None], last[:, None], first)  # [m, m, g]
        following = np.concatenate([second, np.broadcast_to(end, (m, *end.shape))], axis=1)
        few = _states(
            pattern,
            pair[first[:, None], second, :, families].transpose(2, 3, 0, 1),
            steps[first[:, None], following, :, families].transpose(2, 3, 0, 1),
            start[np.concatenate([first, end]), :, families].transpose(1, 2, 0),
        )
        strides, rank = _strides(pattern)[columns], _Places.of(pattern).rank  # [d, g]
        number = np.zeros((1 << d, len(families)), np.int64)
        for i in range(d):
            number[1 << i : 2 << i] = number[: 1 << i] + strides[i]
        # number[S]: the multiset of set S. Dependent i doubles what is known, as in `exact`: sets 2 and 3 are 0 and 1
        # with it.
        number = rank[number]
        for at, family in enumerate(families.tolist()):
            column = np.append(columns[:, at], m)
            np.take(few[at].take(column, axis=2), number[:, at], axis=1, out=states[family], mode="clip")
    return states.transpose(2, 3, 1, 0)


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


def _states(pattern: _Pattern, pair: NDArray[Any], steps: NDArray[Any], start: NDArray[Any]) -> NDArray[Any]:
    """Return the states of all N multisets of g families: [g, 2, N, m + 1], the multisets in the order of `_Places`.

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
    states = np.zeros((g, 2, n + 1, m + 1), pair.dtype)
    states[:, :, 0] = start
    flat = states.reshape(g, 2, -1)
    steps = np.ascontiguousarray(steps)
    for begin, end in pairwise(places.sizes):
        values = flat.take(places.before[begin:end], axis=2, mode="clip")
        # Which of several equal dependents came last makes no difference, but each choice is an order of its own.
        values *= places.counts[begin:end]
        layer = np.matmul(values, steps, out=states[:, :, begin:end])
        layer[..., :m] *= inside[:, :, begin:end]
    return states[:, :, :n]


def _strides(pattern: _Pattern) -> Int64:
    """Return int64[m]: the value of one member of each label: (2, 1) -> [1, 3]."""
    return np.cumprod([1, *(count + 1 for count in pattern[:-1])])


@dataclass(frozen=True, slots=True, eq=False)
class _Places:
    """The N multisets of a pattern by size, so that multisets of one size stand side by side.

    (2, 1): numbers 0 none, 1 x, 2 xx, 3 y, 4 xy, 5 xxy  ->  order [0, 1, 3, 2, 4, 5], sizes [1, 3, 5, 6]

    order: int64[N], the number at each place; rank: its inverse. sizes: the end of each size. before: int32[N, m], for
    each place and label the flat index of the state before that label came last: before the x of xy the state was (y,
    next x), at 2 · 3 + 0. A label that is not in the multiset points at the row of zeros behind all states. counts:
    int8[N, m], how often the label occurs: so many members may be the last.
    """

    order: Int64
    rank: Int64
    sizes: list[int]
    before: Int32
    counts: Int8

    @classmethod
    @lru_cache(maxsize=64)  # some 70 MB if all are the largest
    def of(cls, pattern: _Pattern) -> _Places:
        m, strides = len(pattern), _strides(pattern)
        n = int(strides[-1]) * (pattern[-1] + 1)
        counts = np.arange(n)[:, None] // strides % (np.array(pattern) + 1)
        order = np.argsort(counts.sum(axis=1), kind="stable")
        rank = np.empty(n, np.int64)
        rank[order] = np.arange(n)
        counts = counts[order].astype(np.int8)
        without = rank[np.where(counts > 0, order[:, None] - strides, 0)]
        before = np.where(counts > 0, without * (m + 1) + np.arange(m), n * (m + 1))
        sizes = np.cumsum(np.bincount(counts.sum(axis=1, dtype=np.int64))).tolist()
        return cls(order, rank, sizes, before.astype(np.int32), counts)
