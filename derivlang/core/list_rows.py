"""Rows of columns: null in all rows but some, or the row of another column where one is null.

pyarrow's `if_else` and `coalesce` do the same, but copy lists value by value.
"""

from __future__ import annotations

from collections.abc import Mapping

import numpy as np
import pyarrow as pa
import pyarrow.compute as pc

from derivlang.core.arrays import Bool, Int64, Ints, expand_ranges, lengths_of, offsets_of
from derivlang.core.arrow import coded, decoded, filled, list_array, to_arrow, to_numpy


def only_rows(column: pa.Array, rows: Bool) -> pa.Array:
    """Return a column [R] that keeps some rows and has null in all others. rows: bool[R].

    Entries of a dictionary that are not used any more are left out.

    [[1, 2], [3], [4]] and rows [True, False, True]   ->   [[1, 2], null, [4]]
    """
    if not pa.types.is_list(column.type):
        return pc.if_else(to_arrow(rows), column, pa.nulls(len(column), column.type))
    rows = rows & to_numpy(column.is_valid())
    starts, lengths = _extents(column)
    lengths = np.where(rows, lengths, 0)
    return _lists(_taken(column.flatten(), expand_ranges(starts, lengths)), lengths, rows)


def first_known(first: pa.Array, second: pa.Array) -> pa.Array:
    """Return the rows of the first column; where they are null, the rows of the second.

    [null, [1]] and [[2, 3], [4]]   ->   [[2, 3], [1]]
    """
    if first.null_count in (0, len(first)):
        return second if first.null_count else first
    if first.type != second.type:
        second = decoded(second)
        first = decoded(first).cast(second.type)
    if not pa.types.is_list(second.type):
        return pc.coalesce(first, second)
    rows, values = to_numpy(first.is_valid()), pa.concat_arrays([first.flatten(), second.flatten()])
    (starts, lengths), (others, other_lengths) = _extents(first), _extents(second)
    starts = np.where(rows, starts, others + lengths.sum())
    lengths = np.where(rows, lengths, other_lengths)
    return _lists(values.take(to_arrow(expand_ranges(starts, lengths))), lengths, rows | to_numpy(second.is_valid()))


def take_rows(columns: Mapping[str, pa.Array], rows: Ints) -> dict[str, pa.Array]:
    """Return some rows of columns of lists without nulls. Lists of the same lengths are looked up once.

    [[1, 2], [3]] and rows [0, 0, 1]   ->   [[1, 2], [1, 2], [3]]
    """
    taken = dict[str, pa.Array]()
    known = list[tuple[Ints, Int64, pa.Array]]()  # offsets, new offsets, and where the values stand
    for name, column in columns.items():
        offsets = to_numpy(column.offsets)
        found = next((entry for entry in known if np.array_equal(entry[0], offsets)), None)
        if found is None:
            lengths = lengths_of(offsets)[rows]
            found = offsets, offsets_of(lengths), to_arrow(expand_ranges(offsets[:-1][rows], lengths))
            known.append(found)
        taken[name] = list_array(found[1], column.values.take(found[2]))
    return taken


def _extents(column: pa.Array) -> tuple[Int64, Int64]:
    """Return (where the values of each row begin in `flatten`, their numbers), int64[R] each; no values for null."""
    lengths = to_numpy(filled(pc.list_value_length(column), 0)).astype(np.int64)
    return offsets_of(lengths)[:-1], lengths


def _taken(values: pa.Array, at: Int64) -> pa.Array:
    """Return some values. Strings with a dictionary get a new one."""
    if not pa.types.is_dictionary(values.type):
        return values.take(to_arrow(at))
    if values.null_count or values.dictionary.null_count:
        return values.dictionary_decode().take(to_arrow(at)).dictionary_encode()
    return coded(to_numpy(values.indices)[at], values.dictionary)


def _lists(values: pa.Array, lengths: Int64, rows: Bool) -> pa.Array:
    """Return lists of these lengths, with null where `rows` is False."""
    lists = list_array(offsets_of(lengths), values)
    if rows.all():
        return lists
    buffers = [pa.py_buffer(np.packbits(rows, bitorder="little")), lists.buffers()[1]]
    return pa.ListArray.from_buffers(lists.type, len(lists), buffers, children=[values])
