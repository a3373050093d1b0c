"""Sentence pairs of like lengths, padded to one shape, so that whole blocks are worked at once.

A block of S pairs, at most J target and I source words, is a box of cells [J, S, I]: the target's words come
first, as time does in an HMM over them. A cell holds the number of its pair of types in the table of
co-occurring pairs (`table.py`); padding has the number of an entry that is always zero.
"""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np

from derivlang.align.bitext import Bitext
from derivlang.core.arrays import Bool, Int32, Int64, lengths_of

CELLS = 1 << 17  # of a block: its temporaries stay in the cache
_WASTE = 1.3  # cells of a block per cell that is no padding
_LEAST = 1 << 14  # smaller blocks cost more in calls than padding does


@dataclass(frozen=True, slots=True)
class Block:
    """rows int64[S]: the pairs' places in the bitext. source int32[S, I], target int32[S, J]: codes, the number of
    types at padding. cells int32[J, S, I]. source_lengths, target_lengths int64[S]."""

    rows: Int64
    source: Int32
    target: Int32
    source_lengths: Int64
    target_lengths: Int64
    cells: Int32

    @property
    def source_mask(self) -> Bool:
        """bool[S, I]: which words are none of the padding."""
        return np.arange(self.source.shape[1]) < self.source_lengths[:, None]

    @property
    def target_mask(self) -> Bool:
        """bool[S, J]."""
        return np.arange(self.target.shape[1]) < self.target_lengths[:, None]


def row_groups(source_lengths: Int64, target_lengths: Int64, cells: int = CELLS) -> list[Int64]:
    """Rows of each block, by length; pairs with an empty side are in none."""
    rows = np.flatnonzero((source_lengths > 0) & (target_lengths > 0))
    order = np.lexsort((source_lengths[rows], target_lengths[rows], source_lengths[rows] >> 2))
    rows = rows[order]
    groups: list[Int64] = []
    begin, full, width, height = 0, 0, 0, 0
    for at, (i, j) in enumerate(zip(source_lengths[rows].tolist(), target_lengths[rows].tolist(), strict=True)):
        new_width, new_height = max(width, i), max(height, j)
        padded = (at - begin + 1) * new_width * new_height
        if at > begin and (padded > cells or (padded > _LEAST and padded > _WASTE * (full + i * j))):
            groups.append(rows[begin:at])
            begin, full, new_width, new_height = at, 0, i, j
        full, width, height = full + i * j, new_width, new_height
    if len(rows):
        groups.append(rows[begin:])
    return groups


def padded(codes: Int32, offsets: Int64, rows: Int64, pad: int) -> Int32:
    """int32[S, L]: the words of these rows, `pad` behind them."""
    lengths = lengths_of(offsets)[rows]
    place = np.arange(int(lengths.max(initial=0)))
    inside = place < lengths[:, None]
    at = np.where(inside, offsets[rows][:, None] + place, 0)
    return np.where(inside, codes[at], np.int32(pad)).astype(np.int32)


def pair_keys(bitext: Bitext, rows: Int64) -> Int64:
    """int64[J, S, I]: a key of the two types of each cell, source type times the number of target types plus target
    type; -1 at padding."""
    n_target = len(bitext.target_types)
    source = padded(bitext.source, bitext.source_offsets, rows, -1).astype(np.int64)
    target = padded(bitext.target, bitext.target_offsets, rows, -1).astype(np.int64)
    keys = source[None, :, :] * n_target + target.T[:, :, None]
    keys[(source < 0)[None, :, :] | (target.T < 0)[:, :, None]] = -1
    return np.asarray(keys)
