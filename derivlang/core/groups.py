"""Groups: neighbouring words that count as one word to an order (`atomic` policies), and how they are stored.

A batch says of each word whether it continues the group of the word before it:

    the Old Bay ferry     continues [no, no, yes, no]     group offsets [0, 1, 3, 4]     column [1, 2]

The column has, for each unit, the first word and the number of words of each group of two and more.
"""

from __future__ import annotations

import numpy as np
import pyarrow as pa
import pyarrow.compute as pc

from derivlang.core.arrays import Bool, Int64, expand_ranges, lengths_of, offsets_of, owners
from derivlang.core.arrow import filled, list_array, to_arrow, to_numpy
from derivlang.core.errors import LayerError


def together(group_offsets: Int64) -> Bool:
    """Return bool[N]: the words of groups of two or more words."""
    sizes = np.diff(group_offsets)
    return np.repeat(sizes > 1, sizes)


def write_groups(continues: Bool, unit_words: Int64) -> pa.Array:
    """Return list<int32>[U]: the column, described at the top of this file. continues: bool[N]."""
    edges = np.diff(np.concatenate([[False], continues, [False]]).astype(np.int8))
    begins, ends = np.flatnonzero(edges == 1) - 1, np.flatnonzero(edges == -1)
    unit = owners(unit_words)[begins]
    pairs = np.stack([begins - unit_words[unit], ends - begins], axis=1).astype(np.int32)
    offsets = offsets_of(2 * np.bincount(unit, minlength=len(unit_words) - 1))
    return list_array(offsets, to_arrow(pairs.ravel()))


def read_groups(column: pa.Array, unit_words: Int64) -> Bool:
    """Return bool[N]: the words that continue a group. Raise LayerError where the column does not fit the units."""
    lengths = to_numpy(filled(pc.list_value_length(column), 0))
    flat = to_numpy(column.flatten().cast(pa.int64()))
    sizes = lengths_of(unit_words)
    unit = np.repeat(np.arange(len(sizes)), lengths // 2)
    first, count = flat[0::2], flat[1::2]
    if (lengths % 2).any() or (first < 0).any() or (count < 2).any() or (count > sizes[unit] - first).any():
        raise LayerError("a group of words points outside its row", id="row-groups")
    out = np.zeros(int(unit_words[-1]), bool)
    out[expand_ranges(unit_words[unit] + first + 1, count - 1)] = True
    return out
