"""Words and gaps of texts: each text is cut at the edges of its white space.

A piece is a stretch without white space, a gap one of white space only. In tokenised text a piece is a word; in raw
text the word rules split it, each distinct piece once.

    "Yes,  it's"  ->  pieces Yes, | it's      gap of two spaces before piece 1
                  ->  words Yes | , | it | 's      gaps: nothing before words 1 and 3, two spaces before word 2
"""

from __future__ import annotations

import re
from collections.abc import Callable, Sequence
from functools import lru_cache
from itertools import chain

import numpy as np
import pyarrow as pa

from derivlang.core.arrays import Int32, Int64, Ints, expand_ranges, offsets_of
from derivlang.core.arrow import string_array, to_arrow, to_numpy
from derivlang.core.errors import DataError
from derivlang.core.from_table import Splits
from derivlang.core.gaps import NOTHING, SPACE, USUAL, Gaps
from derivlang.core.keys import string_buffers, strings_from
from derivlang.formats.opening import BOM
from derivlang.formats.words import Splitter, Undivided

# White space as `str.isspace` sees it, listed because Unicode's categories, and Arrow's, may change.
ASCII_SPACES = "\t\n\v\f\r\x1c\x1d\x1e\x1f "
WIDE_SPACES = (
    "\x85\xa0\u1680\u2000\u2001\u2002\u2003\u2004\u2005\u2006\u2007\u2008\u2009\u200a\u2028\u2029\u202f\u205f\u3000"
)
_IS_SPACE = bytes(byte in ASCII_SPACES.encode() for byte in range(256))
_WIDE = re.compile("|".join(WIDE_SPACES).encode())
_MOST_PIECES = 1 << 18  # pieces whose words are remembered


class Splitting:
    """Splits texts with the rules of a splitter, which sees each distinct piece once."""

    def __init__(self, splitter: Splitter):
        self._raw = splitter.mode != "space"
        self._undivided = Undivided(splitter)
        self._words = lru_cache(_MOST_PIECES)(splitter.words)

    def texts(
        self,
        texts: Sequence[str] | pa.StringArray,
        place: Callable[[int], str] | None = None,
        heads: Ints | Sequence[int] = (),
    ) -> Splits:
        """Return the words and gaps of U texts.

        place: returns the place of a text, for errors. heads: the texts at the head of a file, where a byte-order mark
        counts as white space. Raise DataError nul-byte; undivided-text for texts in a language without spaces whose
        words stay undivided.

            text            H i _ a _        (_ a space)
            edges           0, 2, 3, 4, 5    where white space begins or ends, and texts do
            parts           Hi _ a _         between two edges
        """
        column = texts if isinstance(texts, pa.StringArray) else string_array(texts)
        data, offsets = string_buffers(column)
        if (data == 0).any():
            raise _nul(column, place)
        space = np.frombuffer(bytearray(data).translate(_IS_SPACE), bool)
        if self._raw:
            for match in _WIDE.finditer(data.data):
                space[match.start() : match.end()] = True
        for begin in offsets[heads] if len(heads) else ():
            if data[begin : begin + len(BOM)].tobytes() == BOM:
                space[begin : begin + len(BOM)] = True
        is_edge = np.ones(len(data) + 1, bool)
        np.not_equal(space[1:], space[:-1], out=is_edge[1:-1])
        is_edge[offsets] = True
        edges = np.flatnonzero(is_edge)
        is_gap = space[edges[:-1]]
        parts, at = strings_from(data, edges), np.flatnonzero(~is_gap)
        units = np.searchsorted(edges[at], offsets)
        pieces = parts.take(to_arrow(at)).dictionary_encode()
        codes = to_numpy(pieces.indices)
        self._undivided.check(pieces.dictionary, codes, units, place)

        # The code of each part as a gap; of a piece, NOTHING.
        gap = np.where(is_gap, np.int32(SPACE), np.int32(NOTHING))
        is_usual = (data == ord(" ")) & is_edge[:-1] & is_edge[1:]  # of each byte: a gap of one space
        odd = np.flatnonzero(is_gap != is_usual[edges[:-1]])
        strings = pa.concat_arrays([string_array(USUAL), parts.take(to_arrow(odd))]).dictionary_encode()
        gap[odd] = to_numpy(strings.indices)[len(USUAL) :]
        bounds = np.searchsorted(edges, offsets)  # of the texts, in parts
        lead, trail = np.full(len(column), NOTHING, np.int32), np.full(len(column), NOTHING, np.int32)
        some, full = bounds[:-1] < bounds[1:], units[:-1] < units[1:]
        lead[some], trail[full] = gap[bounds[:-1][some]], gap[bounds[1:][full] - 1]
        before = gap[at - 1]
        before[units[:-1][full]] = SPACE  # of a text's first word, because `lead` has its gap
        if self._raw:
            return self._divided(pieces.dictionary, codes, units, Gaps(strings.dictionary, lead, trail, at, before))
        unusual = np.flatnonzero(before != SPACE)
        return Splits(codes, pieces.dictionary, units, Gaps(strings.dictionary, lead, trail, unusual, before[unusual]))

    def _divided(self, pieces: pa.Array, codes: Int32, units: Int64, gaps: Gaps) -> Splits:
        """Return the words of pieces, codes into `pieces`. gaps: with the gap before each piece as `inner`.

        For `Yes,  it's` with the codes [0, 1]:

            counts     [2, 2]           offsets [0, 2, 4]: the first word of each piece, and the end
            words      Yes , it 's      looked up in `flat`, where all words of a piece follow each other
            before     SPACE at 0, two spaces at 2, from `gaps.inner`; NOTHING at 1 and 3
        """
        parts = [self._words(piece) for piece in pieces.to_pylist()]
        flat = string_array(chain.from_iterable(parts)).dictionary_encode()
        counts = np.fromiter(map(len, parts), np.int64, len(parts))
        starts, counts = offsets_of(counts)[:-1][codes], counts[codes]
        offsets = offsets_of(counts)
        words = to_numpy(flat.indices)[expand_ranges(starts, counts)]
        before = np.full(len(words), NOTHING, np.int32)
        before[offsets[:-1]] = gaps.inner
        unusual = np.flatnonzero(before != SPACE)
        gaps = Gaps(gaps.strings, gaps.lead, gaps.trail, unusual, before[unusual])
        return Splits(words, flat.dictionary, offsets[units], gaps)


def _nul(column: pa.StringArray, place: Callable[[int], str] | None) -> DataError:
    bad, text = next((i, text) for i, text in enumerate(column.to_pylist()) if "\0" in text)
    near = text[max(0, text.index("\0") - 20) :][:40]
    return DataError(f"the text {near!r} holds a NUL character", where=place and place(bad), id="nul-byte")
