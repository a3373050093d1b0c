"""Pieces: the stretches of a byte buffer without white space, and the gaps between them.

`find` marks the edges of pieces; `Splitting` turns them into word codes, and lists the gaps that are not one space. All
arrays are of a whole buffer; only a piece that was never seen before is split into words by itself.

    "Yes,  it's"  ->  pieces Yes, | it's      gap of two spaces before piece 1
                  ->  words Yes | , | it | 's      gaps: nothing before words 1 and 3, two spaces before word 2
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import dataclass

import numpy as np
import pyarrow as pa
import pyarrow.compute as pc

from derivlang.core.arrays import AT_ONCE, Bool, Int32, Int64, Ints, UInt8, expand_ranges, offsets_of, stretches
from derivlang.core.arrow import list_array, scalar, string_array, to_numpy
from derivlang.core.errors import DataError
from derivlang.core.gaps import NOTHING, SPACE, USUAL
from derivlang.core.vocabulary import Vocabulary
from derivlang.formats.unspaced import Undivided
from derivlang.formats.words import Splitter

_SPACE, _NEWLINE = 32, 10
# ASCII white space as `str.isspace` sees it; other control characters are parts of words.
_ASCII_SPACES = np.zeros(256, bool)
_ASCII_SPACES[[*range(9, 14), *range(28, 33)]] = True
_BLOCK = 1 << 19  # bytes of texts whose pieces are found at once


@dataclass(frozen=True, slots=True)
class Edges:
    """Byte ranges of P pieces: starts, ends: int64[P]. plain: every gap of one byte is a space or a newline."""

    starts: Int64
    ends: Int64
    plain: bool


def find(buffer: UInt8, size: int, *, unicode_spaces: bool, skip: int = 0) -> Edges:
    """Find the pieces of `buffer[:size]`, which must end in white space; the first `skip` bytes count as white space.

    unicode_spaces: whether U+00A0, U+3000 and their like divide pieces, as in raw text. In tokenised text they do not.

        buffer          H i _ a _        (_ a space)
        space           0 0 1 0 1
        flips           2, 3, 4          the bytes that differ from the byte before
        with a start    0, 2, 3, 4       where the buffer begins with a piece
        starts, ends    [0, 3], [2, 4]   every second one
    """
    bytes_ = buffer[:size]
    space = bytes_ <= _SPACE
    # Control characters other than newlines are rare: without them, a byte is white space up to 32.
    odd = int(np.count_nonzero(bytes_ < _SPACE)) != int(np.count_nonzero(bytes_ == _NEWLINE))
    if odd:
        space = _ASCII_SPACES[bytes_]
    if unicode_spaces:
        odd |= _mark_unicode_spaces(bytes_, space)
    if skip:
        space[:skip] = True
    inside = bool(size and not space[0])  # whether a piece goes on at the next flip, which then ends it
    starts, ends = [np.zeros(int(inside), np.int64)], list[Int64]()
    for at in range(1, max(size, 2), AT_ONCE):
        flips = np.flatnonzero(space[at : at + AT_ONCE] != space[at - 1 : min(at + AT_ONCE, size) - 1])
        flips += at
        starts.append(flips[int(inside) :: 2])
        ends.append(flips[int(not inside) :: 2])
        inside ^= bool(len(flips) & 1)
    return Edges(np.concatenate(starts), np.concatenate(ends), not odd and not skip)


def _mark_unicode_spaces(bytes_: UInt8, space: Bool) -> bool:
    """Set `space` at every white-space character of several bytes; return whether there was one."""
    any_space = False
    for first, rest in UNICODE_SPACES.items():
        at = np.flatnonzero(bytes_ == first)
        for tail in rest:
            hit = at[at + len(tail) < len(bytes_)]
            for i, byte in enumerate(tail, start=1):
                hit = hit[bytes_[hit + i] == byte]
            for i in range(len(tail) + 1):
                space[hit + i] = True
            any_space |= bool(hit.size)
    return any_space


def _by_first_byte(characters: str) -> dict[int, list[bytes]]:
    """Return the other bytes of the characters' UTF-8, by the first byte."""
    table: dict[int, list[bytes]] = {}
    for character in characters:
        encoded = character.encode()
        table.setdefault(encoded[0], []).append(encoded[1:])
    return table


# The characters beyond ASCII that str.isspace() accepts, listed because Unicode's categories may change.
UNICODE_SPACES = _by_first_byte(
    "\x85\xa0\u1680\u2000\u2001\u2002\u2003\u2004\u2005\u2006\u2007\u2008\u2009\u200a\u2028\u2029\u202f\u205f\u3000"
)


@dataclass(frozen=True, slots=True)
class Split:
    """The words and gaps of U units, such as lines.

    words: int32[N], codes. units: int64[U + 1], word offsets. lead, trail: int32[U], codes of the gaps before and after
    each unit's words. at: int64[G], the words that have another gap than one space before them (never a unit's first
    word), inner: int32[G], the codes of these gaps.
    """

    words: Int32
    units: Int64
    lead: Int32
    trail: Int32
    at: Int64
    inner: Int32

    def first(self, count: int) -> Split:
        """Return the first `count` units, or all if there are fewer."""
        if len(self.lead) <= count:
            return self
        n_words = int(self.units[count])
        inner = self.at < n_words
        return Split(
            self.words[:n_words],
            self.units[: count + 1],
            self.lead[:count],
            self.trail[:count],
            self.at[inner],
            self.inner[inner],
        )


class Splitting:
    """The splitter of a task, and the vocabularies of words and gaps that grow as it splits."""

    def __init__(self, splitter: Splitter):
        self.splitter = splitter
        self.raw = splitter.mode != "space"
        self.words = Vocabulary()
        self.gaps = Vocabulary()
        usual = np.frombuffer("".join(USUAL).encode() + bytes(8), np.uint8)
        self.gaps.encode(usual, np.array([0, 1, 1]), np.array([1, 0, 1]))
        self._pieces = Vocabulary() if self.raw else self.words
        self._starts, self._counts = np.zeros((2, 0), np.int32)  # the first word of each piece, and how many it has
        self._flat = np.zeros(0, np.int32)  # words of all pieces, one after the other
        self._undivided = Undivided(splitter.divides, strict=self.raw)

    def units(
        self,
        buffer: UInt8,
        edges: Edges,
        cuts: Int64,
        begins: Int64,
        ends: Int64,
        place: Callable[[int], str] | None = None,
    ) -> Split:
        """Split units into words and gaps.

        Raises UnicodeDecodeError for a piece that is not UTF-8; DataError undivided-text for units in a language
        without spaces whose words stay undivided.

        cuts: int64[U + 1], piece offsets of the units. begins, ends: int64[U], the bytes of each unit with the white
        space around it. place: returns the place of a unit, for the error. After the last piece, `buffer` has eight
        spare bytes.
        """
        starts, stops = edges.starts, edges.ends
        known = len(self._pieces)
        codes = self._pieces.encode(buffer, starts, stops - starts)
        if (bad := self._pieces.first_invalid(known)) is not None:
            raise UnicodeDecodeError("utf-8", bad, 0, 1, "invalid")
        self._split_new(known)
        self._undivided.check(codes, cuts, lambda some: self._pieces.subset(some).to_pylist(), place)
        unusual = self._unusual(buffer, edges, cuts)
        inner = self._gap_codes(buffer, stops[unusual - 1], starts[unusual])
        full = cuts[:-1] < cuts[1:]
        first, last = cuts[:-1][full], cuts[1:][full] - 1
        lead_end, trail_start = ends.copy(), ends.copy()
        lead_end[full], trail_start[full] = starts[first], stops[last]
        lead = self._gap_codes(buffer, begins, lead_end)
        trail = self._gap_codes(buffer, trail_start, ends)
        if not self.raw:
            return Split(codes, cuts, lead, trail, unusual, inner)
        return self._expand(codes, Split(codes, cuts, lead, trail, unusual, inner))

    def _unusual(self, buffer: UInt8, edges: Edges, cuts: Int64) -> Int64:
        """Return int64[G]: the pieces with another gap than one space before them, the first of each unit left out."""
        starts, stops = edges.starts, edges.ends
        other = np.zeros(len(starts) + 1, bool)
        other[1:-1] = (starts[1:] - stops[:-1]) != 1
        if not edges.plain:
            other[1:-1] |= buffer[stops[:-1]] != _SPACE
        other[cuts] = False
        return np.flatnonzero(other[:-1])

    def _gap_codes(self, buffer: UInt8, starts: Ints, stops: Ints) -> Int32:
        return self.gaps.encode(buffer, np.asarray(starts, np.int64), np.asarray(stops - starts, np.int64))

    def _expand(self, codes: Int32, split: Split) -> Split:
        """Return the split of words from `split`, which is of pieces, whose codes are `codes`.

        For `Yes,  it's` with the piece codes [4, 5] (`Yes,` of 2 words, `it's` of 2 words):

            counts     [2, 2]           offsets [0, 2, 4]: the first word of each piece, and the end
            words      Yes , it 's      looked up in `_flat`, where all words of piece 4 follow each other
            gap        SPACE at 0 and 2, NOTHING at 1 and 3; then two spaces at 2, from `split.inner`
            at         [1, 2, 3]        all words but 0, whose gap is its unit's lead
        """
        starts, counts = self._starts[codes], self._counts[codes]
        offsets = offsets_of(counts)
        parts = [slice(i, i + AT_ONCE) for i in range(0, max(len(codes), 1), AT_ONCE)]
        words = np.concatenate([self._flat[expand_ranges(starts[part], counts[part])] for part in parts])
        first = np.zeros(len(words), bool)
        first[offsets[:-1]] = True
        gap = np.full(len(words), NOTHING, np.int32)
        gap[offsets[:-1]] = SPACE
        gap[offsets[split.at]] = split.inner
        units = offsets[split.units]
        gap[units[:-1][units[:-1] < units[1:]]] = SPACE  # of a unit's first word, because `lead` has its gap
        at = np.flatnonzero(gap != SPACE)
        return Split(words, units, split.lead, split.trail, at, gap[at])

    def _split_new(self, known: int) -> None:
        """Split the pieces that the splitter has not seen before. known: the number of those that it has."""
        if known == len(self._pieces):
            return
        pieces = self._pieces.since(known)
        self._undivided.add(pieces)
        if not self.raw:
            return
        words = [self.splitter.words(piece) for piece in pieces.to_pylist()]
        encoded = [word.encode() for piece in words for word in piece]
        lengths = np.array([len(word) for word in encoded], np.int64)
        buffer = np.frombuffer(b"".join(encoded) + bytes(8), np.uint8)
        codes = self.words.encode(buffer, offsets_of(lengths)[:-1], lengths)
        counts = np.array([len(piece) for piece in words], np.int32)
        starts = (offsets_of(counts)[:-1] + len(self._flat)).astype(np.int32)
        self._flat = np.concatenate([self._flat, codes])
        self._starts, self._counts = np.concatenate([self._starts, starts]), np.concatenate([self._counts, counts])

    def texts(self, texts: Sequence[str] | pa.StringArray, place: Callable[[int], str] | None = None) -> Split:
        """Split U texts, a unit each. Raises DataError nul-byte, and as `units`. place: as for `units`.

        The texts are joined with a newline after each, which a gap inside a text may be as well.
        """
        column = texts if isinstance(texts, pa.StringArray) else string_array(texts)
        n_texts, lengths = len(column), np.asarray(to_numpy(pc.binary_length(column)), np.int64)
        whole = pc.binary_join(list_array(np.array([0, n_texts]), column), scalar("\n"))[0].as_buffer()
        joined = np.frombuffer(whole, np.uint8) if whole.size else np.zeros(0, np.uint8)
        if (joined == 0).any():
            bad, text = next((i, text) for i, text in enumerate(column.to_pylist()) if "\0" in text)
            near = text[max(0, text.index("\0") - 20) :][:40]
            raise DataError(f"the text {near!r} holds a NUL character", where=place and place(bad), id="nul-byte")
        bounds = offsets_of(lengths + 1)
        begins, size = bounds[:-1], int(bounds[-1])
        buffer = np.concatenate([joined, np.zeros(9, np.uint8)])
        if n_texts:
            buffer[size - 1] = _NEWLINE
        found = [
            (bounds[first], find(buffer[bounds[first] :], int(bounds[last] - bounds[first]), unicode_spaces=self.raw))
            for first, last in stretches(bounds, _BLOCK)
        ]
        starts = np.concatenate([bounds[:0], *(part.starts + begin for begin, part in found)])
        ends = np.concatenate([bounds[:0], *(part.ends + begin for begin, part in found)])
        plain = all(part.plain for _, part in found) and int(np.count_nonzero(buffer[:size] == _NEWLINE)) == n_texts
        cuts = np.append(np.searchsorted(starts, begins), len(starts)).astype(np.int64)
        return self.units(buffer, Edges(starts, ends, plain), cuts, begins, begins + lengths, place)
