"""Prior counts for pairs of types that are spelled alike.

Names, numbers and punctuation are the same in many pairs of languages, and cognates often begin alike. A pair of equal
types of four letters or more gets `WEIGHT` prior counts; a pair of shorter equal types, or with the same first four
letters, gets half of that. Languages without common letters get none.
"""

from __future__ import annotations

import numpy as np

from derivlang.align.blocks import TypePairs
from derivlang.align.lexical import Floats
from derivlang.core.arrays import Int64

WEIGHT = 1.0
_LETTERS = 4


def prior_counts(table: TypePairs, source_types: list[str], target_types: list[str]) -> Floats:
    """Return float64[E + 1]: the extra prior counts of each pair of types."""
    out = np.zeros(len(table))
    for weight, length in ((0.5, _LETTERS), (0.5, None)):
        source, target = _classes(source_types, target_types, length)
        same = source[table.source_of[:-1]] == target[table.target_of[:-1]]
        out[:-1] += weight * WEIGHT * same
    return out


def _classes(source: list[str], target: list[str], length: int | None) -> tuple[Int64, Int64]:
    """Return a number for each type; two are equal if the words, or their first `length` letters, are equal.

    Words shorter than `length` equal no word of the other side (-1 and -2).
    """
    numbers: dict[str, int] = {}
    sides = []
    for types, alone in ((source, -1), (target, -2)):
        codes = [
            numbers.setdefault(word[:length], len(numbers)) if length is None or len(word) >= length else alone
            for word in types
        ]
        sides.append(np.array(codes, np.int64))
    return sides[0], sides[1]
