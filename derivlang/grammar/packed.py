"""Packed orders: an order of at most 16 members in one number, four bits per position, the first position lowest.

    [2, 0, 1]  ->  0xFEDCBA9876543102

The hexadecimal digits read from right to left are 2, 0, 1; unused positions hold their own number, as in IDENTITY.
"""

from __future__ import annotations

import numpy as np
from numpy.typing import NDArray

from derivlang.core.arrays import Int32, Int64, UInt64

IDENTITY = np.uint64(0xFEDCBA9876543210)
LONGEST = 16  # members


def pack(orders: NDArray[np.int8]) -> UInt64:
    """Return uint64[q] of orders int8[q, n], n at most `LONGEST`."""
    n = orders.shape[1]
    if n == LONGEST:
        out = np.zeros(len(orders), np.uint64)
    else:
        out = np.full(len(orders), (IDENTITY >> np.uint64(4 * n)) << np.uint64(4 * n))
    for p in range(n):
        out |= orders[:, p].astype(np.uint64) << np.uint64(4 * p)
    return out


def unpack(packed: UInt64, positions: Int32, owner: Int64) -> Int32:
    """Return int32[M]: the members of F orders, one after the other.

    packed: uint64[F]. positions: int32[M], 0 … length - 1 for each order. owner: int64[M], the order of each member.

    packed ...3102 and ...3201, positions [0, 1, 2, 0, 1], owner [0, 0, 0, 1, 1]  ->  [2, 0, 1, 1, 0]

    Orders longer than LONGEST have no packed form; their members come out wrong and must be replaced.
    """
    shift = (np.minimum(positions, LONGEST - 1) * 4).astype(np.uint64)
    return ((packed.take(owner) >> shift) & np.uint64(15)).astype(np.int32)
