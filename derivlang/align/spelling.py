"""What spelling says of translations: prior counts for pairs of types that are written alike.

Names, numbers and punctuation are the same in many pairs of languages, and cognates often begin alike. A pair of
equal types gets `WEIGHT` prior counts, one whose first four letters are equal half of that. Pairs of languages
without common letters have none, and nothing changes.
"""

from __future__ import annotations

import numpy as np

from derivlang.align.blocks import Table
from derivlang.align.lexical import Floats
from derivlang.core.arrays import Int64

WEIGHT = 1.0
_LETTERS = 4


def prior_counts(table: Table, source_types: list[str], target_types: list[str]) -> Floats:
    """float64[E + 1]: extra prior counts of each pair of types."""
    out = np.zeros(len(table))
    for weight, length in ((0.5, _LETTERS), (0.5, None)):
        source, target = _classes(source_types, target_types, length)
        same = source[table.source_of[:-1]] == target[table.target_of[:-1]]
        out[:-1] += weight * WEIGHT * same
    return out


def _classes(source: list[str], target: list[str], length: int | None) -> tuple[Int64, Int64]:
    """Numbers that are equal where words, or their first letters, are; shorter words have no first letters."""
    numbers: dict[str, int] = {}
    sides = []
    for types, alone in ((source, -1), (target, -2)):
        codes = [
            numbers.setdefault(word[:length], len(numbers)) if length is None or len(word) >= length else alone
            for word in types
        ]
        sides.append(np.array(codes, np.int64))
    return sides[0], sides[1]
