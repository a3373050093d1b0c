"""Made-up words: drawn letter by letter from a model of some words, each of which counts once.

A letter is drawn given the two letters before it and whether it is the last one. If the words have no such place, less
is given: one letter before, then only whether it is the last one, then nothing.

    cat car    the last letter after "ca": t or r         after "cr": no word; after "r": no word; of any word: t or r
"""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass
from typing import Self

import numpy as np
from numpy.typing import NDArray

from derivlang.core.arrays import Bool, Int64, Ints, UInt32, UInt64, lengths_of, offsets_of, positions

_BITS = np.uint64(14)  # of a code point of an alphabet
_LETTER = np.uint64((1 << 14) - 1)
_GIVEN = 4  # ways to give less and less


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

    def words(self, lengths: Int64, fractions: Callable[[Int64, int], NDArray[np.float64]]) -> UInt32:
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

    def _letters(self, second: UInt32, first: UInt32, last: Bool, fractions: NDArray[np.float64]) -> UInt32:
        """Return uint32[n], a letter for each context. second, first: the letters before it, 0 where there are none."""
        out = np.zeros(len(first), np.uint32)
        left = np.arange(len(first))
        for given in range(_GIVEN):
            context = _context(second[left], first[left], last[left], given)
            begin, end = (self.running[np.searchsorted(self.keys, (context + np.uint64(n)) << _BITS)] for n in (0, 1))
            known = end > begin
            drawn = (begin + fractions[left] * (end - begin)).astype(np.int64)[known]
            entry = np.searchsorted(self.running, drawn, "right") - 1
            out[left[known]] = self.keys[entry] & _LETTER
            left = left[~known]
        return out


def _context(second: UInt32, first: UInt32, last: Bool, given: int) -> UInt64:
    """Return uint64[n]: the contexts of letters, of which `given` = 0, 1, 2, 3 uses less and less."""
    parts: tuple[tuple[Ints | Bool, int], ...] = ((last, 2), (first, 3), (second, 17))
    context = np.full(len(last), given, np.uint64)
    for part, shift in parts[: _GIVEN - 1 - given]:
        context |= part.astype(np.uint64) << np.uint64(shift)
    return context
