"""Conversions between numpy and Arrow over the same memory, without pandas.

`pa.array` and `Array.to_numpy` import pandas if it is installed, only to test whether a value is a pandas object. This
costs 0.25 s and 40 MB in every process. The functions here avoid it.
"""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from itertools import chain
from typing import Any

import numpy as np
import pyarrow as pa
import pyarrow.compute as pc
from numpy.typing import NDArray

from derivlang.core.arrays import Bool, Ints, offsets_of, segment_any


def to_arrow(array: NDArray[Any]) -> pa.Array:
    """Return an Arrow array over the memory of a numpy array of numbers. Flags are packed into a copy."""
    if array.dtype == bool:
        kind, data = pa.bool_(), np.packbits(array, bitorder="little")
    else:
        kind, data = pa.from_numpy_dtype(array.dtype), np.ascontiguousarray(array)
    return pa.Array.from_buffers(kind, len(array), [None, pa.py_buffer(data)])


def to_numpy(array: pa.Array | pa.ChunkedArray) -> NDArray[Any]:
    """Return a read-only numpy array over the memory of Arrow numbers. Flags and several chunks are copied.

    Raise ValueError for nulls.
    """
    if isinstance(array, pa.ChunkedArray):
        array = array.chunk(0) if array.num_chunks == 1 else array.combine_chunks()
    if array.null_count:
        raise ValueError(f"{array.null_count} nulls have no number")
    if array.type == pa.bool_():
        return to_numpy(pc.cast(array, pa.uint8())).view(bool)
    dtype, data = np.dtype(array.type.to_pandas_dtype()), array.buffers()[1]
    if data is None:
        return np.zeros(0, dtype)
    return np.frombuffer(data, dtype, len(array), array.offset * dtype.itemsize)


def whole(column: pa.ChunkedArray | pa.Array) -> pa.Array:
    """Return a column as one Arrow array."""
    if isinstance(column, pa.ChunkedArray):
        return column.combine_chunks() if column.num_chunks != 1 else column.chunk(0)
    return column


def string_array(strings: Iterable[str]) -> pa.StringArray:
    """Return Arrow strings from Python strings. Raise ValueError for 2^31 bytes or more."""
    encoded = [string.encode() for string in strings]
    offsets = offsets_of(np.fromiter(map(len, encoded), np.int64, len(encoded)))
    if offsets[-1] > np.iinfo(np.int32).max:
        raise ValueError(f"{offsets[-1]} bytes in one Arrow string array")
    data = pa.py_buffer(b"".join(encoded))
    return pa.StringArray.from_buffers(len(encoded), pa.py_buffer(offsets.astype(np.int32)), data)


def scalar(value: str | int) -> pa.Scalar:
    """Return a string, flag or whole number as an Arrow scalar: a Python value would make pyarrow load pandas."""
    return (string_array([value]) if isinstance(value, str) else to_arrow(np.array([value])))[0]


def filled(column: pa.Array, value: str | int) -> pa.Array:
    """Return a column with a string, flag or whole number in place of its nulls; `fill_null` would load pandas."""
    return column.fill_null(scalar(value).cast(column.type)) if column.null_count else column


def array_of(values: Sequence[Any]) -> pa.Array:
    """Convert Python values to an Arrow array, with the type and the errors of `pa.array`."""
    kinds = set(map(type, values))
    if kinds == {str}:
        return string_array(values)
    if kinds == {int}:
        return to_arrow(np.array(values, np.int64))  # raises OverflowError, as `pa.array`
    if kinds == {list} and set(map(type, chain.from_iterable(values))) in ({str}, {int}):
        offsets = offsets_of(np.fromiter(map(len, values), np.int64, len(values)))
        return list_array(offsets, array_of(list(chain.from_iterable(values))))
    return pa.array(values)


def places_of(types: pa.Array, known: pa.Array) -> Ints:
    """Return int32[n]: where each of some strings stands in a list of different ones, -1 for another string.

    cat the of, in a list of the and dog   ->   -1, 0, -1
    """
    return to_numpy(filled(pc.index_in(types, value_set=known.cast(types.type)), -1))


def is_string(kind: pa.DataType) -> bool:
    """Return whether a type is one of strings, of either offset width."""
    return bool(pa.types.is_string(kind) or pa.types.is_large_string(kind))


def list_array(offsets: Ints, values: pa.Array) -> pa.ListArray:
    """Return list<…>[R] from values and their offsets[R + 1]. Raise ValueError for 2^31 values or more."""
    if len(offsets) and offsets[-1] > np.iinfo(np.int32).max:
        raise ValueError(f"{offsets[-1]} values in one Arrow list array")
    return pa.ListArray.from_arrays(to_arrow(offsets.astype(np.int32, copy=False)), values)


def link_lines(offsets: Ints, source: Ints, derived: Ints) -> pa.Array:
    """Return Arrow strings [R]: the links of each row as `0-0 1-2`. offsets: [R + 1], of the links."""
    ends = [to_arrow(side).cast(pa.string()) for side in (source, derived)]
    return pc.binary_join(list_array(offsets, pc.binary_join_element_wise(*ends, scalar("-"))), scalar(" "))


def decoded(column: pa.Array) -> pa.Array:
    """Return a column with the dictionaries of its lists decoded: two equal lists of strings may have other codes."""
    kind = column.type
    if pa.types.is_list(kind) and pa.types.is_dictionary(kind.value_type):
        return column.cast(pa.list_(kind.value_type.value_type))
    return column


def differs(ours: pa.Array, theirs: pa.Array) -> Bool:
    """Return bool[R]: rows of two columns that are not equal; NaN is equal to NaN.

    [[1, 2], [3]] and [[1, 4], [3]]   ->   [True, False]
    """
    kind = ours.type
    if is_string(kind):
        return _unequal(ours, theirs.cast(kind))
    if pa.types.is_list(kind) and not (pa.types.is_nested(kind.value_type) or pa.types.is_null(kind.value_type)):
        lengths, others = (to_numpy(filled(pc.list_value_length(column), 0)) for column in (ours, theirs))
        if np.array_equal(lengths, others):
            values = _unequal(ours.flatten(), theirs.flatten().cast(kind.value_type))
            missing = to_numpy(pc.xor(ours.is_null(), theirs.is_null()))
            return np.asarray(segment_any(values, offsets_of(lengths)) | missing)
    pairs = zip(ours.to_pylist(), theirs.to_pylist(), strict=True)
    return np.array([a != b and repr(a) != repr(b) for a, b in pairs], bool)  # the second for NaN, also inside a list


def _unequal(ours: pa.Array, theirs: pa.Array) -> Bool:
    """Return bool[n]: values that are not equal; two nulls are, and two NaN."""
    if pa.types.is_float16(ours.type):  # which pyarrow does not compare
        ours, theirs = ours.cast(pa.float32()), theirs.cast(pa.float32())
    unequal = filled(pc.not_equal(ours, theirs), False)
    if pa.types.is_floating(ours.type):
        unequal = pc.and_not(unequal, filled(pc.and_(pc.is_nan(ours), pc.is_nan(theirs)), False))
    return to_numpy(pc.or_(unequal, pc.xor(ours.is_null(), theirs.is_null())))
