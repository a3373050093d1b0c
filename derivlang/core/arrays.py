"""Ragged arrays: offsets, runs and arithmetic on them.

A ragged array of R rows is a flat array and `offsets` int64[R + 1]; row r is `flat[offsets[r]:offsets[r + 1]]`.

    offsets [0, 2, 2, 5]  ->  lengths [2, 0, 3], owners [0, 0, 2, 2, 2]
"""

from __future__ import annotations

from itertools import pairwise
from typing import TypeAlias

import numpy as np
from numpy.typing import NDArray

Int8: TypeAlias = NDArray[np.int8]
Int32: TypeAlias = NDArray[np.int32]
Int64: TypeAlias = NDArray[np.int64]
UInt8: TypeAlias = NDArray[np.uint8]
UInt32: TypeAlias = NDArray[np.uint32]
UInt64: TypeAlias = NDArray[np.uint64]
Float32: TypeAlias = NDArray[np.float32]
Bool: TypeAlias = NDArray[np.bool_]
Float64: TypeAlias = NDArray[np.float64]
Ints: TypeAlias = NDArray[np.integer]
Objects: TypeAlias = NDArray[np.object_]


def offsets_of(lengths: Ints | Bool) -> Int64:
    """Return offsets int64[R + 1] from lengths[R]."""
    out = np.zeros(len(lengths) + 1, np.int64)
    np.cumsum(lengths, out=out[1:])
    return out


def lengths_of(offsets: Ints) -> Int64:
    """Return lengths int64[R] from offsets[R + 1]."""
    return np.diff(offsets).astype(np.int64, copy=False)


def owners(offsets: Ints) -> Int32:
    """Return int32[N]: the row of each element."""
    return np.repeat(np.arange(len(offsets) - 1, dtype=np.int32), np.diff(offsets))


def group_of(offsets: Int64) -> Int64:
    """Return int64[N]: the row of each element. offsets: int64[R + 1], without empty rows. [0, 2, 3] -> [0, 0, 1]

    The same as `owners`, but faster where rows are short. `numbers.take(group_of(offsets))` gives each element the
    number of its row, several times as fast as `np.repeat`.
    """
    begins = np.zeros(int(offsets[-1]), bool)
    begins[offsets[1:-1]] = True
    return np.cumsum(begins, dtype=np.int64)


def positions(offsets: Ints) -> Int32:
    """Return int32[N]: the position of each element in its row, from 0."""
    total = int(offsets[-1])
    return np.arange(total, dtype=np.int32) - np.repeat(offsets[:-1].astype(np.int32), np.diff(offsets))


def expand_ranges(starts: Ints, lengths: Ints) -> Int64:
    """Return int64[sum(lengths)]: the ranges `starts[i] … starts[i] + lengths[i] - 1`, one after the other.

    starts [5, 0], lengths [2, 3]  ->  [5, 6, 0, 1, 2]
    """
    offsets = offsets_of(lengths)
    places = np.repeat(np.asarray(starts, np.int64) - offsets[:-1], lengths)
    places += np.arange(offsets[-1])
    return places


def take_rows(offsets: Int64, rows: Ints) -> tuple[Int64, Int64]:
    """Return (int64[M] the elements of some rows, int64[K + 1] their offsets). [0, 2, 5], [1] -> [2, 3, 4], [0, 3]"""
    lengths = lengths_of(offsets)[rows]
    return expand_ranges(offsets[:-1][rows], lengths), offsets_of(lengths)


def take_kept(values: Int32, index: Int32) -> Int32:
    """Return int32[n]: the value of each kept word; any value where `index` is -1, for an inserted word."""
    return values.take(index, mode="clip") if len(values) else np.zeros(len(index), np.int32)


def ranks_in_runs(values: Ints) -> Int64:
    """Return int64[n]: the rank of each element in its run of equal values, [4, 4, 6, 6, 6] -> [0, 1, 0, 1, 2]."""
    begins = np.flatnonzero(np.diff(values, prepend=-1))
    return np.arange(len(values)) - np.repeat(begins, np.diff(np.append(begins, len(values))))


def segment_any(flags: Bool, offsets: Ints) -> Bool:
    """Return bool[R]: whether a row holds any True."""
    sums = offsets_of(flags)
    return np.asarray(sums[offsets[1:]] > sums[offsets[:-1]])


def stretches(offsets: Ints, elements: int = 1 << 16) -> list[tuple[int, int]]:
    """Return ranges of rows with about `elements` elements each, to fit the cache.

    A longer row is a range of its own.
    """
    ends = np.searchsorted(offsets, np.arange(elements, int(offsets[-1]) + elements, elements), "left")
    last = len(offsets) - 1
    cuts = np.concatenate([[0], np.minimum(ends, last), [last]])  # ascending; np.unique would import numpy.ma
    cuts = cuts[np.flatnonzero(np.diff(cuts, prepend=-1))]
    return [(int(a), int(b)) for a, b in pairwise(cuts)]


def first_true(flags: Bool) -> int:
    """Return the place of the first of some flags, one of which must be set."""
    return int(np.flatnonzero(flags)[0])
