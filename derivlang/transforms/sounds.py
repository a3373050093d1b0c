"""Letters of seven alphabets: their case, and the letters with near sounds, from the table `sounds.txt`.

    letters of a    p -> b     b -> p v     e -> i a     é -> á í     h -> (none)

A word *has an alphabet* if it consists of letters and marks of the table, with apostrophes and hyphens between them:
don't, Café, мама; but not B2B, 2023, 中文 or a full stop.
"""

from __future__ import annotations

import re
from collections.abc import Callable
from dataclasses import dataclass
from functools import cache
from importlib.resources import files

import numpy as np

from derivlang.core.arrays import Bool, Int64, UInt8, UInt32, offsets_of

_SIZE = 0x2040  # the table has no code point from here on
_OTHER, _BETWEEN, _LETTER = 0, 1, 2


@dataclass(frozen=True, slots=True, eq=False)
class Letters:
    """Tables by code point, [_SIZE] each; near_at has one entry more.

    kind: whether it is of no alphabet, between letters, or a letter. small, capital: the letter in that case, or itself
    if it has none. near: the near letters of small letter c are near[near_at[c]:near_at[c + 1]].
    """

    kind: UInt8
    small: UInt32
    capital: UInt32
    near: UInt32
    near_at: Int64

    def has_alphabet(self, points: UInt32, offsets: Int64, *, between: bool = True) -> Bool:
        """Return bool[T]: which words have an alphabet. points: uint32[L], code points; offsets: int64[T + 1].

        between: whether apostrophes and hyphens may stand between their letters.
        """
        kind = self.kind[np.minimum(points, np.uint32(_SIZE - 1))]
        wrong = kind == _OTHER if between else kind != _LETTER
        n_letters, n_wrong = (np.diff(np.append(0, np.cumsum(some))[offsets]) for some in (kind == _LETTER, wrong))
        has: Bool = (n_letters > 0) & (n_wrong == 0)
        return has


@cache
def letters() -> Letters:
    """Return the tables, read once per process."""
    kind = np.full(_SIZE, _OTHER, np.uint8)
    near: dict[int, set[int]] = {}
    for line in files("derivlang.transforms").joinpath("sounds.txt").read_text("utf-8").split("\n"):
        first, *cells = line.split(" ")
        if first in ("between", "alphabet"):
            for begin, end in map(_range, cells if first == "between" else cells[1:]):
                kind[begin : end + 1] = _BETWEEN if first == "between" else _LETTER
        elif first and first != "#":
            group = {_point(cell) for cell in (first, *cells)}
            for point in group:
                near[point] = near.get(point, set()) | group - {point}
    return Letters(
        kind,
        _in_case(str.lower, kind),
        _in_case(str.upper, kind),
        np.array([other for point in sorted(near) for other in sorted(near[point])], np.uint32),
        offsets_of(np.array([len(near.get(point, ())) for point in range(_SIZE)])),
    )


def _in_case(convert: Callable[[str], str], kind: UInt8) -> UInt32:
    """Return uint32[_SIZE]: each letter in a case; itself if that is not a letter of the table, as `ß` in capitals."""
    table = np.arange(_SIZE, dtype=np.uint32)
    for point in np.flatnonzero(kind == _LETTER).tolist():
        other = convert(chr(point))
        if len(other) == 1 and ord(other) < _SIZE and kind[ord(other)] == _LETTER:
            table[point] = ord(other)
    return table


def _range(cell: str) -> tuple[int, int]:
    """Return the first and last code point of `a-z`, `U+0300-U+036F` or one character."""
    ends = re.fullmatch(r"(U\+[0-9A-F]{4}|.)-(U\+[0-9A-F]{4}|.)", cell)
    return (_point(ends[1]), _point(ends[2])) if ends else (_point(cell), _point(cell))


def _point(cell: str) -> int:
    return int(cell[2:], 16) if cell.startswith("U+") else ord(cell)
