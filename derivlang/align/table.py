"""The pairs of types that occur together in a sentence pair, and the blocks that point into them."""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np

from derivlang.align.bitext import Bitext
from derivlang.align.blocks import Block, padded, pair_keys, row_groups
from derivlang.core.arrays import Int32, Int64, lengths_of


@dataclass(frozen=True, slots=True)
class Table:
    """source_of, target_of int32[E + 1]: the types of each entry; the last entry is padding's, of types of its own.

    blocks: all sentence pairs, cells pointing at entries.
    """

    source_of: Int32
    target_of: Int32
    n_source: int
    n_target: int
    blocks: list[Block]

    def __len__(self) -> int:
        return len(self.source_of)


def build(bitext: Bitext) -> Table:
    """The table and the blocks of a bitext. Memory: four bytes a cell (pair of words in a sentence pair)."""
    n_source, n_target = len(bitext.source_types), len(bitext.target_types)
    source_lengths, target_lengths = lengths_of(bitext.source_offsets), lengths_of(bitext.target_offsets)
    groups = row_groups(source_lengths, target_lengths)
    entries = _distinct([pair_keys(bitext, rows) for rows in groups])
    blocks = []
    for rows in groups:
        keys = pair_keys(bitext, rows)
        cells = np.searchsorted(entries, keys).astype(np.int32)
        cells[keys < 0] = len(entries)
        blocks.append(
            Block(
                rows,
                padded(bitext.source, bitext.source_offsets, rows, n_source),
                padded(bitext.target, bitext.target_offsets, rows, n_target),
                source_lengths[rows],
                target_lengths[rows],
                cells,
            )
        )
    source_of = np.append(entries // n_target, n_source).astype(np.int32)
    target_of = np.append(entries % n_target, n_target).astype(np.int32)
    return Table(source_of, target_of, n_source, n_target, blocks)


def _distinct(keys: list[Int64]) -> Int64:
    """The distinct keys that are not negative, sorted."""
    found = np.unique(np.concatenate([np.unique(k) for k in keys]) if keys else np.zeros(0, np.int64))
    return found[found >= 0]
