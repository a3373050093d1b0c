"""The vocabulary of a source: its types and their counts, collected over batches and shards."""

from __future__ import annotations

from typing import Any

import numpy as np
import pyarrow as pa
import pyarrow.compute as pc

from derivlang.core.arrays import Int64
from derivlang.core.arrow import string_array, to_arrow, to_numpy
from derivlang.core.batch import Batch
from derivlang.core.lexicon import Lexicon

# Types of a large vocabulary whose images are computed at a time, so that what is between needs little memory.
_TYPES_AT_ONCE = 1 << 16
_LISTED = 100  # types by name in the manifest


class TypeCounts:
    """Collect type counts over batches."""

    def __init__(self) -> None:
        self._types: list[pa.Array] = [string_array([])]
        self._counts: list[Int64] = [np.zeros(0, np.int64)]

    def add(self, types: pa.Array, counts: Int64) -> None:
        """Add the counts of a batch: Arrow strings [T] and int64[T]."""
        if self._types[-1] is types:
            self._counts[-1] = self._counts[-1] + counts
            return
        self._types.append(types)
        self._counts.append(counts)
        if len(self._types) >= 16:
            self._merge()

    def result(self) -> tuple[pa.Array, Int64]:
        """Return the types, Arrow strings [T] in the order of first occurrence, and their counts, int64[T]."""
        self._merge()
        seen = self._counts[0] > 0  # the type table of a batch may have types that it does not use
        return self._types[0].filter(to_arrow(seen)), self._counts[0][seen]

    def _merge(self) -> None:
        if len(self._types) == 1:
            return
        encoded = pa.chunked_array(self._types, pa.string()).combine_chunks().dictionary_encode()
        codes = to_numpy(encoded.indices)
        weights = np.concatenate([np.zeros(0, np.int64), *self._counts])
        counts = np.bincount(codes, weights, minlength=len(encoded.dictionary)).astype(np.int64)
        self._types, self._counts = [encoded.dictionary], [counts]


def count_types(batch: Batch) -> Int64:
    """Return how often each type occurs in the rows, int64[T]. A unit that several rows share counts in each."""
    weights = None
    if not batch.running:
        rows = np.bincount(batch.records.ravel(), minlength=len(batch.units) - 1)
        weights = np.repeat(rows, np.diff(batch.unit_words)) if (rows != 1).any() else None
    return np.bincount(batch.words, weights, minlength=len(batch.types)).astype(np.int64)


def shares(types: pa.Array, counts: Int64, lexicon: Lexicon) -> dict[str, Any]:
    """Return how much of the vocabulary is the same in both languages, for the manifest.

    stay: the first _LISTED types that equal their image. clash: the first whose image is another type of the source.
    Both are left out if words of one type may have different images.
    """
    total = int(counts.sum())
    out: dict[str, Any] = {"types": len(types), "tokens": total}
    if lexicon.is_identity or lexicon.chooses or not len(types):
        return out
    pieces = range(0, len(types), _TYPES_AT_ONCE)
    images = pa.chunked_array([lexicon.apply(types.slice(start, _TYPES_AT_ONCE)) for start in pieces])
    same = to_numpy(pc.equal(types, images))
    clash = ~same
    clash[clash] = to_numpy(pc.is_in(images.filter(to_arrow(clash)), value_set=types))
    return {
        **out,
        "same_types": int(same.sum()),
        "same_types_percent": round(100 * float(same.mean()), 3),
        "same_tokens": int(counts[same].sum()),
        "same_tokens_percent": round(100 * float(counts[same].sum()) / max(total, 1), 3),
        "clashing_types": int(clash.sum()),
        "stay": types.filter(to_arrow(same)).to_pylist()[:_LISTED],
        "clash": types.filter(to_arrow(clash)).to_pylist()[:_LISTED],
    }
