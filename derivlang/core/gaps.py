"""Gaps: the source's white space before the first word of a unit, after its last word, and between words.

Derived text is joined by single spaces, so gaps never move; only `undo` reads them. Only unusual gaps are stored.
The usual gap between words is one space. The usual gap around a unit is nothing; in running text it is one space
before a sentence that continues its line, and a newline after the last sentence of a line.

The column `gaps` has a list<string> for each unit: [before the first word, after the last, before word 1, before
word 2 …], cut after its last unusual entry; the usual case is an empty list.

    "a  b c\n"  as a unit of a labelled set   ->   ["", "\n", "  "]

Methods take the word offsets of the units, `unit_words` int64[U + 1], and `lines` int64[U]: the line of each unit of
running text, None elsewhere.
"""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np
import pyarrow as pa
import pyarrow.compute as pc

from derivlang.core.arrays import Int32, Int64, lengths_of, offsets_of, owners
from derivlang.core.arrow import list_array, string_array, to_arrow, to_numpy
from derivlang.core.keys import joined

SPACE, NOTHING, NEWLINE = 0, 1, 2
USUAL = (" ", "", "\n")


@dataclass(frozen=True, slots=True, eq=False)
class Gaps:
    """strings: Arrow [V], distinct, the first three are USUAL. lead, trail: int32[U], codes into strings.

    at: int64[G], the words with an unusual gap before them (numbers in the batch, ascending, never the first of a
    unit). inner: int32[G], that gap.
    """

    strings: pa.Array
    lead: Int32
    trail: Int32
    at: Int64
    inner: Int32

    def recut(self, unit_sentences: Int64, sentences: Int64) -> Gaps:
        """Return the gaps of the sentences that units are cut into.

        unit_sentences: int64[U + 1], sentence offsets of the units. sentences: int64[S + 1], word offsets.
        """
        n = len(sentences) - 1
        lead, trail = np.full(n, SPACE, np.int32), np.full(n, NOTHING, np.int32)
        lead[unit_sentences[:-1]], trail[unit_sentences[1:] - 1] = self.lead, self.trail
        unit = np.searchsorted(sentences, self.at, "right") - 1
        first = sentences[unit] == self.at
        lead[unit[first]] = self.inner[first]
        return Gaps(self.strings, lead, trail, self.at[~first], self.inner[~first])

    def line_offsets(self, unit_words: Int64) -> Int64:
        """Return int64[L + 1]: word offsets of the lines, which are units cut where a gap holds a line end."""
        breaks = to_numpy(pc.match_substring(self.strings, "\n"))
        return np.union1d(unit_words, self.at[breaks[self.inner]])

    def column(self, unit_words: Int64, lines: Int64 | None) -> pa.Array:
        """Return list<dictionary<string>>[U], described at the top of this file."""
        usual_lead, usual_trail = _usual(len(unit_words) - 1, lines)
        unit = np.searchsorted(unit_words, self.at, "right") - 1
        lengths = np.where(self.trail != usual_trail, 2, np.where(self.lead != usual_lead, 1, 0))
        np.maximum.at(lengths, unit, self.at - unit_words[unit] + 2)
        offsets = offsets_of(lengths)
        codes = np.zeros(int(offsets[-1]), np.int32)
        some, more = lengths > 0, lengths > 1
        codes[offsets[:-1][some]] = self.lead[some]
        codes[offsets[:-1][more] + 1] = self.trail[more]
        codes[offsets[unit] + 1 + self.at - unit_words[unit]] = self.inner
        values = pa.DictionaryArray.from_arrays(to_arrow(codes), self.strings)
        return list_array(offsets, values)

    @classmethod
    def read(cls, column: pa.Array, unit_words: Int64, lines: Int64 | None) -> Gaps:
        """Return the gaps that `column` wrote."""
        flat = column.flatten()
        codes = np.zeros(0, np.int32)
        strings = string_array(USUAL)
        if len(flat):
            both = pa.concat_arrays([strings, flat.cast(pa.string())]).dictionary_encode()
            strings, codes = both.dictionary, to_numpy(both.indices)[3:].astype(np.int32)
        offsets = offsets_of(to_numpy(pc.list_value_length(column)))
        lengths = lengths_of(offsets)
        lead, trail = _usual(len(unit_words) - 1, lines)
        some, more = lengths > 0, lengths > 1
        lead[some], trail[more] = codes[offsets[:-1][some]], codes[offsets[:-1][more] + 1]
        place = np.arange(len(codes)) - np.repeat(offsets[:-1], lengths)
        unusual = np.flatnonzero((place >= 2) & (codes != SPACE))
        unit = np.repeat(np.arange(len(lengths)), lengths)[unusual]
        at = unit_words[unit] + place[unusual] - 1
        return cls(strings, lead, trail, at, codes[unusual])

    def before(self, unit_words: Int64) -> Int32:
        """Return int32[N]: the gap before each word, as codes into strings."""
        codes = np.full(int(unit_words[-1]), SPACE, np.int32)
        full = unit_words[:-1] < unit_words[1:]
        codes[unit_words[:-1][full]] = self.lead[full]
        codes[self.at] = self.inner
        return codes

    def widths(self, unit_words: Int64) -> Int64:
        """Return int64[N]: code points of the gap before each word."""
        lengths = to_numpy(pc.utf8_length(self.strings))
        return np.asarray(lengths[self.before(unit_words)], np.int64)

    def texts(self, words: Int32, types: pa.Array, unit_words: Int64) -> pa.Array:
        """Return Arrow strings [U]: the text of each unit, exactly as it was. words: int32[N], codes into types."""
        unit = owners(unit_words)
        # Pieces of a unit: (gap, word) for every word, then the trailing gap; an empty unit has lead and trail.
        both = pa.concat_arrays([types, self.strings])
        shift = np.int32(len(types))
        empty = lengths_of(unit_words) == 0
        offsets = offsets_of(2 * lengths_of(unit_words) + 1 + empty)
        pieces = np.empty(int(offsets[-1]), np.int32)
        at = offsets[unit] + 2 * (np.arange(len(words)) - unit_words[unit])
        pieces[at] = self.before(unit_words) + shift
        pieces[at + 1] = words
        pieces[offsets[1:] - 1] = self.trail + shift
        pieces[offsets[:-1][empty]] = self.lead[empty] + shift
        return joined(both.take(to_arrow(pieces)), offsets)


def _usual(n_units: int, lines: Int64 | None) -> tuple[Int32, Int32]:
    """Return the usual lead and trail, int32[U] each.

    lines [0, 0, 1] (two sentences, then one)   ->   lead [nothing, space, nothing], trail [nothing, newline, newline]
    """
    lead, trail = np.full(n_units, NOTHING, np.int32), np.full(n_units, NOTHING, np.int32)
    if lines is not None and n_units:
        first = np.append(True, lines[1:] != lines[:-1])
        lead[~first] = SPACE
        trail[np.append(first[1:], True)] = NEWLINE
    return lead, trail
