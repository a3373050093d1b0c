"""Letters of words: seven alphabets, their case, the letters with near sounds, and made-up words.

The table `sounds.txt` has the alphabets and the letters with near sounds:

    letters of a    p -> b     b -> p v     e -> i a     é -> á í     h -> (none)

A word *has an alphabet* if it consists of letters and marks of the table, with apostrophes and hyphens between them:
don't, Café, мама; but not B2B, 2023, 中文 or a full stop.

Made-up words are drawn letter by letter from a model of some words, each of which counts once. A letter is drawn given
the two letters before it and whether it is the last one. If the words have no such place, less is given: one letter
before, then only whether it is the last one, then nothing.

    cat car    the last letter after "ca": t or r         after "cr": no word; after "r": no word; of any word: t or r
"""

from __future__ import annotations

import re
from collections.abc import Callable
from dataclasses import dataclass
from functools import cache
from importlib.resources import files
from typing import Self

import numpy as np

from derivlang.core.arrays import (
    Bool,
    Float64,
    Int64,
    Ints,
    UInt8,
    UInt32,
    UInt64,
    lengths_of,
    offsets_of,
    positions,
)

_SIZE = 0x2040  # the table has no code point from here on
_OTHER, _BETWEEN, _LETTER = 0, 1, 2
_BITS = np.uint64(14)  # of a code point of an alphabet
_LOWEST = np.uint64((1 << 14) - 1)
_GIVEN = 4  # ways to give less and less


def is_capitals(word: str) -> bool:
    """Return whether a word has two or more capitals and no small letter."""
    return word.isupper() and sum(map(str.isupper, word)) > 1


def in_case(word: str, other: str) -> str:
    """Return another word in the case of a word: Cat, chat -> Chat; CAT, chat -> CHAT."""
    if is_capitals(word):
        return other.upper()
    return other[:1].upper() + other[1:] if word[:1].isupper() else other


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


@dataclass(frozen=True, slots=True, eq=False)
class LetterModel:
    """How often each letter stands in each context.

    keys: uint64[E], ascending: a context and, in the lowest bits, a letter. running: int64[E + 1], sums of the counts.
    """

    keys: UInt64
    running: Int64

    @classmethod
    def of(cls, points: UInt32, offsets: Int64) -> Self:
        """Return the model of words: uint32[L], code points of alphabets, and int64[T + 1], offsets into them."""
        place = positions(offsets)
        last = place == np.repeat(lengths_of(offsets), lengths_of(offsets)) - 1
        second, first = (np.where(place >= n, np.roll(points, n), 0) for n in (2, 1))
        found = [
            np.unique((_context(second, first, last, given) << _BITS) | points.astype(np.uint64), return_counts=True)
            for given in range(_GIVEN)
        ]
        keys, counts = (np.concatenate(part) for part in zip(*found, strict=True))
        by = np.argsort(keys)
        return cls(keys[by], offsets_of(counts[by]))

    def words(self, lengths: Int64, fractions: Callable[[Int64, int], Float64]) -> UInt32:
        """Return the code points of a made-up word of each length, int64[n] of at least 1, one after the other.

        fractions: called with the numbers of words, int64[m], and the place of a letter, returns float64[m], draws from
        0 to below 1. The model must not be empty.
        """
        offsets = offsets_of(lengths)
        out = np.zeros(int(offsets[-1]), np.uint32)
        long = np.arange(len(lengths))
        for place in range(int(lengths.max(initial=0))):
            long = long[lengths[long] > place]
            at = offsets[long] + place
            second, first = (out[at - n] if place >= n else np.zeros(len(at), np.uint32) for n in (2, 1))
            out[at] = self._letters(second, first, lengths[long] == place + 1, fractions(long, place))
        return out

    def _letters(self, second: UInt32, first: UInt32, last: Bool, fractions: Float64) -> UInt32:
        """Return uint32[n], a letter for each context. second, first: the letters before it, 0 where there are none."""
        out = np.zeros(len(first), np.uint32)
        left = np.arange(len(first))
        for given in range(_GIVEN):
            context = _context(second[left], first[left], last[left], given)
            begin, end = (self.running[np.searchsorted(self.keys, (context + np.uint64(n)) << _BITS)] for n in (0, 1))
            known = end > begin
            drawn = (begin + fractions[left] * (end - begin)).astype(np.int64)[known]
            entry = np.searchsorted(self.running, drawn, "right") - 1
            out[left[known]] = self.keys[entry] & _LOWEST
            left = left[~known]
        return out


def _context(second: UInt32, first: UInt32, last: Bool, given: int) -> UInt64:
    """Return uint64[n]: the contexts of letters, of which `given` = 0, 1, 2, 3 uses less and less."""
    parts: tuple[tuple[Ints | Bool, int], ...] = ((last, 2), (first, 3), (second, 17))
    context = np.full(len(last), given, np.uint64)
    for part, shift in parts[: _GIVEN - 1 - given]:
        context |= part.astype(np.uint64) << np.uint64(shift)
    return context
