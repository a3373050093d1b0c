"""Sentence pairs of like lengths, padded to one shape, so that whole blocks are worked at once.

A block of S pairs, at most J target and I source words, is a box of cells [J, S, I]: the target's words come
first, as time does in an HMM over them. Each cell belongs to a pair of types; the pairs of a block are numbered
within the block, since a small table stays in the cache, where one of all pairs of the corpus does not (2.7
against 9 ns a cell to read it, 5 against 10 to add to it).
"""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np

from derivlang.align.bitext import Bitext
from derivlang.core.arrays import Bool, Int32, Int64, lengths_of

CELLS = 1 << 18  # of a block: its temporaries stay in the cache
_WASTE = 1.3  # cells of a block for each that is no padding
_LEAST = 1 << 14  # smaller blocks cost more in calls than padding does


@dataclass(frozen=True, slots=True)
class Block:
    """S sentence pairs.

    rows int64[S]: their places in the bitext. source int32[S, I], target int32[S, J]: codes; the number of types
    at padding. source_lengths, target_lengths int64[S]. cells int32[J, S, I]: the number, in `entries`, of the
    cell's pair of types. entries int32[e]: the pair's number in the table; padding has the table's last.
    """

    rows: Int64
    source: Int32
    target: Int32
    source_lengths: Int64
    target_lengths: Int64
    cells: Int32
    entries: Int32

    @property
    def source_mask(self) -> Bool:
        """bool[S, I]: words, not padding."""
        return mask(self.source_lengths, self.source.shape[1])

    @property
    def target_mask(self) -> Bool:
        """bool[S, J]: words, not padding."""
        return mask(self.target_lengths, self.target.shape[1])


@dataclass(frozen=True, slots=True)
class Table:
    """The pairs of types that occur together in a sentence pair.

    source_of, target_of int32[E + 1]: the types of each; the last is padding's, with types of its own.
    n_source, n_target: how many types there are. blocks: all sentence pairs without an empty side.
    """

    source_of: Int32
    target_of: Int32
    n_source: int
    n_target: int
    blocks: list[Block]

    def __len__(self) -> int:
        return len(self.source_of)


def build(bitext: Bitext, cells: int = CELLS) -> Table:
    """The table of a bitext, and its blocks of about so many cells. Memory: about six bytes a cell."""
    n_source, n_target = len(bitext.source_types), len(bitext.target_types)
    source_lengths, target_lengths = lengths_of(bitext.source_offsets), lengths_of(bitext.target_offsets)
    pad = n_source * n_target  # greater than every pair's key
    groups = _groups(source_lengths, target_lengths, cells)
    sides, keys = [], []
    for rows in groups:
        source = _padded(bitext.source, bitext.source_offsets, rows, n_source)
        target = _padded(bitext.target, bitext.target_offsets, rows, n_target)
        pairs = source[None, :, :].astype(np.int64) * n_target + target.T[:, :, None]
        empty = ~(
            mask(source_lengths[rows], source.shape[1])[None, :, :]
            & mask(target_lengths[rows], target.shape[1]).T[:, :, None]
        )
        pairs[empty] = pad
        distinct, local = _numbered(pairs, pad)
        sides.append((source, target, local))
        keys.append(distinct)
    entries = _distinct(np.sort(np.concatenate([*keys, np.array([pad])])))
    blocks = [
        Block(rows, source, target, source_lengths[rows], target_lengths[rows], local, _places(entries, distinct))
        for rows, (source, target, local), distinct in zip(groups, sides, keys, strict=True)
    ]
    source_of, target_of = np.divmod(entries, max(n_target, 1))
    source_of[-1], target_of[-1] = n_source, n_target
    return Table(source_of.astype(np.int32), target_of.astype(np.int32), n_source, n_target, blocks)


def mask(lengths: Int64, width: int) -> Bool:
    """bool[S, width]: places within rows of these lengths."""
    return np.arange(width) < lengths[:, None]


def _numbered(keys: Int64, most: int) -> tuple[Int64, Int32]:
    """(the distinct keys, sorted; int32 of the shape of keys: each one's number among them); keys from 0 to `most`."""
    flat = keys.ravel()
    bits = int(flat.size).bit_length()
    if int(most).bit_length() + bits < 64:  # key and place in one number: sorting those is five times as quick
        packed = np.sort((flat << bits) | np.arange(flat.size))
        place, ordered = packed & ((1 << bits) - 1), packed >> bits
    else:
        place = np.argsort(flat, kind="stable")
        ordered = flat[place]
    number = np.zeros(flat.size, np.int32)
    np.cumsum(ordered[1:] != ordered[:-1], out=number[1:])
    out = np.empty(flat.size, np.int32)
    out[place] = number
    return _distinct(ordered), out.reshape(keys.shape)


def _distinct(ordered: Int64) -> Int64:
    """Of sorted numbers; `np.unique` hashes, at three times the cost."""
    new = np.ones(len(ordered), bool)
    np.not_equal(ordered[1:], ordered[:-1], out=new[1:])
    return ordered[new]


def _places(entries: Int64, wanted: Int64) -> Int32:
    return np.searchsorted(entries, wanted).astype(np.int32)


def _groups(source_lengths: Int64, target_lengths: Int64, cells: int) -> list[Int64]:
    """The rows of each block, by length; pairs with an empty side are in none."""
    rows = np.flatnonzero((source_lengths > 0) & (target_lengths > 0))
    rows = rows[np.lexsort((source_lengths[rows], target_lengths[rows], source_lengths[rows] >> 2))]
    groups: list[Int64] = []
    begin, full, width, height = 0, 0, 0, 0
    for at, (i, j) in enumerate(zip(source_lengths[rows].tolist(), target_lengths[rows].tolist(), strict=True)):
        wide, high = max(width, i), max(height, j)
        box = (at - begin + 1) * wide * high
        if at > begin and (box > cells or (box > _LEAST and box > _WASTE * (full + i * j))):
            groups.append(rows[begin:at])
            begin, full, wide, high = at, 0, i, j
        full, width, height = full + i * j, wide, high
    if len(rows):
        groups.append(rows[begin:])
    return groups


def _padded(codes: Int32, offsets: Int64, rows: Int64, pad: int) -> Int32:
    """int32[S, L]: the words of these rows, `pad` behind them."""
    lengths = lengths_of(offsets)[rows]
    inside = mask(lengths, int(lengths.max()))
    out = np.full(inside.shape, pad, np.int32)
    at = offsets[rows][:, None] + np.arange(inside.shape[1])
    out[inside] = codes[at[inside]]
    return out
