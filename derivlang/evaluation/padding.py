"""Sentences as rows, and batches of rows with similar lengths, padded to the longest."""

from __future__ import annotations

from collections.abc import Iterator
from typing import TYPE_CHECKING

import numpy as np

from derivlang.core.arrays import Bool, Int32, Int64, expand_ranges, lengths_of, offsets_of
from derivlang.training.languages import SpecialIds

if TYPE_CHECKING:
    import torch


def framed(ids: Int32, offsets: Int64, special_ids: SpecialIds, n_sides: int = 1) -> tuple[Int32, Int64]:
    """Return sub-words [M] with special ids: one that begins each row, one that ends each segment; and new offsets.

    offsets: int64[R * n_sides + 1], of segments in ids, int32[M], n_sides for a row. The id that begins a row belongs
    to its first segment.
    """
    lengths = lengths_of(offsets)
    first = np.arange(len(lengths)) % n_sides == 0
    ends = offsets_of(lengths + 1 + first)
    out = np.full(int(ends[-1]), special_ids.end, np.int32)
    out[ends[:-1][first]] = special_ids.begin
    out[expand_ranges(ends[:-1] + first, lengths)] = ids
    return out, ends


def padded(ids: Int32, offsets: Int64, rows: Int64) -> tuple[Int64, Bool]:
    """Return (ids int64[B, T], mask bool[B, T]) of rows of ids [M] at offsets [R + 1]; 0 after the end of a row.

    A model gets its own id for padding (`training/encoder.py`).
    """
    lengths = lengths_of(offsets)[rows]
    out = np.zeros((len(rows), int(lengths.max(initial=1))), np.int64)
    mask = np.arange(out.shape[1]) < lengths[:, None]
    out[mask] = ids[expand_ranges(offsets[rows], lengths)]
    return out, mask


def tokens_on(device: torch.device) -> int:
    """Return the number of padded sub-words in a batch without gradients. On a CPU, few fit into the cache."""
    return 1 << 11 if device.type == "cpu" else 1 << 14


def by_length(lengths: Int64, tokens: int) -> Iterator[Int64]:
    """Yield batches of rows, shortest first, of at most `tokens` padded sub-words; a longer row is its own batch."""
    rows = np.argsort(lengths, kind="stable")
    start = 0
    while start < len(rows):
        stop = start + 1
        while stop < len(rows) and int(lengths[rows[stop]]) * (stop + 1 - start) <= tokens:
            stop += 1
        yield rows[start:stop]
        start = stop
