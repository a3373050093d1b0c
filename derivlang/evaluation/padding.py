"""Rows of unlike lengths in batches for a model: like lengths together, padded to the longest."""

from __future__ import annotations

from collections.abc import Iterator
from typing import TYPE_CHECKING

import numpy as np

from derivlang.core.arrays import Bool, Int32, Int64, lengths_of, spread
from derivlang.evaluation.examples import PAD

if TYPE_CHECKING:
    import torch


def padded(ids: Int32, offsets: Int64, rows: Int64) -> tuple[Int64, Bool]:
    """(ids int64[B, T] with `<pad>` after the end, mask bool[B, T]) of some rows of ids [M] at offsets [R + 1]."""
    lengths = lengths_of(offsets)[rows]
    out = np.full((len(rows), int(lengths.max(initial=1))), PAD, np.int64)
    mask = np.arange(out.shape[1]) < lengths[:, None]
    out[mask] = ids[spread(offsets[rows], lengths)]
    return out, mask


def inside(mask: Bool) -> Bool:
    """bool[B, T]: what stands between the first and the last mark of each row."""
    out = mask.copy()
    out[:, 0] = False
    out[:, :-1] &= mask[:, 1:]
    out[:, -1] = False
    return out


def tokens_on(device: torch.device) -> int:
    """Padded sub-words in a batch without gradients: a processor keeps the states of few in its cache."""
    return 1 << 11 if device.type == "cpu" else 1 << 14


def by_length(lengths: Int64, tokens: int) -> Iterator[Int64]:
    """Rows in batches of about so many padded sub-words, from the shortest; every row once."""
    rows = np.argsort(lengths, kind="stable")
    start = 0
    while start < len(rows):
        stop = start + 1
        while stop < len(rows) and int(lengths[rows[stop]]) * (stop + 1 - start) <= tokens:
            stop += 1
        yield rows[start:stop]
        start = stop
