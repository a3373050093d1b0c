"""Rows in which two columns differ."""

from __future__ import annotations

import numpy as np
import pyarrow as pa
import pyarrow.compute as pc

from derivlang.core.arrays import Bool, offsets_of, segment_any
from derivlang.core.arrow import filled, is_string, to_numpy


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
