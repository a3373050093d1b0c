"""Pieces: the white-space-free stretches of a byte buffer, and the gaps between them, by whole buffers.

`find` marks word edges; `Splitting` turns them into word codes (each distinct piece is split into words once)
and into the few gaps that are not one space. Nothing here works a word at a time.
"""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np

from derivlang.core.arrays import Bool, Int32, Int64, Ints, UInt8, offsets_of, spread
from derivlang.core.errors import DataError
from derivlang.core.layers.gaps import NOTHING, SPACE, USUAL
from derivlang.core.vocabulary import Vocabulary
from derivlang.formats.words import Splitter

_SPACE, _NEWLINE = 32, 10
# ASCII white space as `str.isspace` sees it; other control characters are parts of words.
_ASCII_SPACES = np.zeros(256, bool)
_ASCII_SPACES[[*range(9, 14), *range(28, 33)]] = True
_SPARE = np.zeros(8, np.uint8)


@dataclass(frozen=True, slots=True)
class Edges:
    """starts, ends: int64[W], byte range of each piece. plain: every gap of one byte is a space or newline."""

    starts: Int64
    ends: Int64
    plain: bool


def find(buffer: UInt8, size: int, *, unicode_spaces: bool, skip: int = 0) -> Edges:
    """The pieces of `buffer[:size]`, which must end in white space; the first `skip` bytes count as such.

    unicode_spaces: U+00A0, U+3000 and their like divide too (raw text); in tokenised text they are in words.
    """
    bytes_ = buffer[:size]
    space = bytes_ <= _SPACE
    # Are there control characters besides newlines? Hardly ever; then all of this is skipped.
    odd = int(np.count_nonzero(bytes_ < _SPACE)) != int(np.count_nonzero(bytes_ == _NEWLINE))
    if odd:
        space = _ASCII_SPACES[bytes_]
        space |= bytes_ == 0  # the unit mark of `Splitting.texts`; text files are checked for NUL on reading
    if unicode_spaces:
        odd |= _mark_unicode_spaces(bytes_, space)
    if skip:
        space[:skip] = True
    flips = np.flatnonzero(space[1:] != space[:-1])
    flips += 1
    if size and not space[0]:
        flips = np.concatenate([np.zeros(1, np.int64), flips])
    plain = not odd and not skip
    return Edges(np.ascontiguousarray(flips[0::2]), np.ascontiguousarray(flips[1::2]), plain)


def _mark_unicode_spaces(bytes_: UInt8, space: Bool) -> bool:
    """Set `space` at every multi-byte white-space character; was there one?"""
    found = False
    for first, rest in UNICODE_SPACES.items():
        at = np.flatnonzero(bytes_ == first)
        for tail in rest:
            hit = at[at + len(tail) < len(bytes_)]
            for i, byte in enumerate(tail, start=1):
                hit = hit[bytes_[hit + i] == byte]
            for i in range(len(tail) + 1):
                space[hit + i] = True
            found |= bool(hit.size)
    return found


def _by_first_byte(characters: str) -> dict[int, list[bytes]]:
    table: dict[int, list[bytes]] = {}
    for character in characters:
        encoded = character.encode()
        table.setdefault(encoded[0], []).append(encoded[1:])
    return table


# The characters beyond ASCII for which str.isspace() holds; frozen here, as Unicode's categories may change.
UNICODE_SPACES = _by_first_byte(
    "\x85\xa0\u1680\u2000\u2001\u2002\u2003\u2004\u2005\u2006\u2007\u2008\u2009\u200a\u2028\u2029\u202f\u205f\u3000"
)


@dataclass(frozen=True, slots=True)
class Split:
    """The words of some units. words: int32[N] codes; units: int64[U + 1] word offsets.

    lead, trail: int32[U] gap codes; at: int64[G] words with another gap than one space before them, inner:
    int32[G] that gap (never a unit's first word).
    """

    words: Int32
    units: Int64
    lead: Int32
    trail: Int32
    at: Int64
    inner: Int32


class Splitting:
    """Word and gap vocabularies of one task, and the splitter that both grow by."""

    def __init__(self, splitter: Splitter):
        self.splitter = splitter
        self.raw = splitter.mode != "space"
        self.words = Vocabulary()
        self.gaps = Vocabulary()
        usual = np.frombuffer("".join(USUAL).encode() + bytes(8), np.uint8)
        self.gaps.encode(usual, np.array([0, 1, 1]), np.array([1, 0, 1]))
        self._pieces = Vocabulary() if self.raw else self.words
        self._counts = np.zeros(0, np.int64)  # words of each piece
        self._flat = np.zeros(0, np.int32)  # words of all pieces, one after the other

    def units(self, buffer: UInt8, edges: Edges, cuts: Int64, begins: Int64, ends: Int64) -> Split:
        """Words and gaps of units. cuts: int64[U + 1], offsets of each unit's pieces; begins, ends: int64[U],
        the bytes that belong to a unit, gaps around it included. `buffer` has eight spare bytes."""
        starts, stops = edges.starts, edges.ends
        codes = self._pieces.encode(buffer, starts, stops - starts)
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
        """int64[G]: pieces, not the first of a unit, with another gap than one space before them."""
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
        """Pieces to the words that the splitter finds in them; each new piece is split once."""
        known = len(self._counts)
        if known < len(self._pieces):
            self._split_new(known)
        counts = self._counts[codes]
        offsets = offsets_of(counts)
        piece_starts = offsets_of(self._counts)[:-1]
        words = self._flat[spread(piece_starts[codes], counts)]
        first = np.zeros(len(words), bool)
        first[offsets[:-1]] = True
        gap = np.full(len(words), NOTHING, np.int32)
        gap[offsets[:-1]] = SPACE
        gap[offsets[split.at]] = split.inner
        units = offsets[split.units]
        gap[units[:-1][units[:-1] < units[1:]]] = SPACE  # a unit's first word: its gap is the lead
        at = np.flatnonzero(gap != SPACE)
        return Split(words, units, split.lead, split.trail, at, gap[at])

    def _split_new(self, known: int) -> None:
        new = np.arange(known, len(self._pieces))
        if (bad := self._pieces.first_invalid(known)) is not None:
            raise UnicodeDecodeError("utf-8", bad, 0, 1, "invalid")
        words = [self.splitter.words(piece) for piece in self._pieces.subset(new).to_pylist()]
        encoded = [word.encode() for piece in words for word in piece]
        lengths = np.array([len(word) for word in encoded], np.int64)
        buffer = np.frombuffer(b"".join(encoded) + bytes(8), np.uint8)
        codes = self.words.encode(buffer, offsets_of(lengths)[:-1], lengths)
        self._flat = np.concatenate([self._flat, codes])
        self._counts = np.concatenate([self._counts, [len(piece) for piece in words]])

    def texts(self, texts: list[str]) -> Split:
        """Words and gaps of U separate texts (a unit each); DataError at a NUL character."""
        encoded = [text.encode() for text in texts]
        lengths = np.array([len(text) for text in encoded], np.int64)
        if any(b"\0" in text for text in encoded):
            at = next(i for i, text in enumerate(encoded) if b"\0" in text)
            raise DataError(f"a NUL character in the text {texts[at][:40]!r}", id="nul-byte")
        begins = offsets_of(lengths + 1)[:-1]
        size = int(lengths.sum()) + len(texts)
        buffer = np.frombuffer(b"\0".join(encoded) + b"\0" + bytes(8), np.uint8)
        if not texts:
            edges = Edges(np.zeros(0, np.int64), np.zeros(0, np.int64), True)
        else:
            edges = find(buffer, size, unicode_spaces=self.raw)
        cuts = np.append(np.searchsorted(edges.starts, begins), len(edges.starts)).astype(np.int64)
        return self.units(buffer, edges, cuts, begins, begins + lengths)
