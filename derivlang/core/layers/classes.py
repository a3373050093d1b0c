"""Class labels: read and check the names or numbers of classes."""

from __future__ import annotations

from collections.abc import Callable

import numpy as np
import pyarrow as pa

from derivlang.core.arrays import Int32
from derivlang.core.arrow import filled, to_numpy
from derivlang.core.errors import LayerError
from derivlang.core.schema import NLI, NLI_SPELLINGS, Field

_UD_V1 = "CONJ is a tag of Universal Dependencies version 1, for CCONJ: take a release of version 2"


def read_classes(field: Field, flat: pa.Array, where: Callable[[int], str | None], missing: str | None = None) -> Int32:
    """Return int32[n]: the class number of each value. flat: Arrow [n], names or numbers of classes.

    missing: the name that means "no class", numbered -1; if it is given, so is a null among numbers. where: returns the
    place of a value. Raise LayerError for the first value that is not a class.
    """
    if field.classes is None:  # of a schema that somebody else wrote
        raise LayerError(f"{field.column} has no classes", id="class")
    if pa.types.is_dictionary(flat.type) and pa.types.is_integer(flat.type.value_type):
        flat = flat.cast(flat.type.value_type)
    if pa.types.is_integer(flat.type):
        lowest, beyond = -1 if missing else 0, len(field.classes)
        given = to_numpy(filled(flat, 0))  # an unsigned type has no -1
        codes = np.where((given >= lowest) & (given < beyond), given, beyond).astype(np.int32)
        if flat.null_count:
            codes[to_numpy(flat.is_null())] = -1
        bad = np.flatnonzero((codes < lowest) | (codes >= beyond))
    else:
        encoded = flat.dictionary_encode()
        numbers = {name: i for i, name in enumerate(field.classes)}
        same = NLI_SPELLINGS if field.classes == NLI else {}
        names = [same.get(n, n) for n in encoded.dictionary.to_pylist()]
        table = np.array([-1 if n == missing else numbers.get(n, -2) for n in names] + [-2], np.int32)
        codes = np.asarray(table[to_numpy(filled(encoded.indices.cast(pa.int32()), len(names)))], np.int32)
        bad = np.flatnonzero(codes == -2)
    if bad.size:
        at = int(bad[0])
        raise LayerError(
            f"{field.column} is {flat[at].as_py()!r}, which is not one of {', '.join(field.classes)}",
            where=where(at),
            fix=_UD_V1 if (field.column, flat[at].as_py()) == ("upos", "CONJ") else None,
            id="unknown-label",
        )
    return np.asarray(codes, np.int32)


def stored_classes(field: Field, flat: pa.Array, *, lowest: int = -1, null: int = -2) -> Int32:
    """Return int32[n]: the class numbers of a derived set. Raise LayerError if one is below `lowest` or too high."""
    assert field.classes is not None
    codes = to_numpy(filled(flat, null))
    if codes.min(initial=lowest) < lowest or codes.max(initial=lowest) >= len(field.classes):
        raise LayerError(f"{field.column} holds a class that is not one of {field.classes}", id="class")
    return np.asarray(codes, np.int32)
