"""Where word types stand in a list of types: found by their hashes, in a table that is sorted once."""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np
import pyarrow as pa

from derivlang.core.arrays import Int64, UInt64
from derivlang.core.keys import hash_types


@dataclass(frozen=True, slots=True, eq=False)
class TypeIndex:
    """hashes: uint64[T] of the types, ascending. places: int64[T], where in the list each of them stands."""

    hashes: UInt64
    places: Int64

    @classmethod
    def of(cls, types: pa.Array) -> TypeIndex:
        """Return the index of distinct types, Arrow strings [T]."""
        hashes = hash_types(types)
        places = np.argsort(hashes)
        return cls(hashes[places], places)

    def find(self, hashes: UInt64) -> Int64:
        """Return int64[n]: where in the list the types with these hashes, uint64[n], stand; -1 for other types.

        cat the of: the, dog  ->  1, -1
        """
        if not len(self.hashes):
            return np.full(len(hashes), -1)
        at = np.minimum(np.searchsorted(self.hashes, hashes), len(self.hashes) - 1)
        return np.where(self.hashes[at] == hashes, self.places[at], -1)
