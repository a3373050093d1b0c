"""Gaps: the source's white space: before the first word of a unit, after its last, and between words.

Derived text is joined by one space, so gaps never move; `undo` alone reads them. Only what differs from the
usual is stored: one space between words; nothing around a unit, but in running text one space before a
sentence that goes on its line, and a newline after the last one of a line.

Column `gaps`, list<string> a unit: [before the first word, after the last, before word 1, before word 2 …],
cut after its last unusual entry; so the usual case is an empty list.
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import TYPE_CHECKING

import numpy as np
import pyarrow as pa
import pyarrow.compute as pc

from derivlang.core.arrays import Int32, Int64, lengths_of, offsets_of, owners
from derivlang.core.arrow import list_array, string_array, to_arrow, to_numpy

if TYPE_CHECKING:
    from derivlang.core.batch import Batch

SPACE, NOTHING, NEWLINE = 0, 1, 2
USUAL = (" ", "", "\n")


@dataclass(frozen=True, slots=True, eq=False)
class Gaps:
    """strings: Arrow [V], distinct, beginning with USUAL. lead, trail: int32[U] into strings.

    at: int64[G], words (in the batch, ascending, never the first of a unit) with an unusual gap before them;
    inner: int32[G], that gap.
    """

    strings: pa.Array
    lead: Int32
    trail: Int32
    at: Int64
    inner: Int32

    def recut(self, unit_sentences: Int64, sentences: Int64) -> Gaps:
        """Gaps of lines as gaps of their sentences. unit_sentences: int64[U + 1]; sentences: word offsets."""
        n = len(sentences) - 1
        lead, trail = np.full(n, SPACE, np.int32), np.full(n, NOTHING, np.int32)
        lead[unit_sentences[:-1]], trail[unit_sentences[1:] - 1] = self.lead, self.trail
        unit = np.searchsorted(sentences, self.at, "right") - 1
        first = sentences[unit] == self.at
        lead[unit[first]] = self.inner[first]
        return Gaps(self.strings, lead, trail, self.at[~first], self.inner[~first])

    def line_offsets(self, batch: Batch) -> Int64:
        """int64[L + 1]: word offsets of the lines: units, cut where a gap holds a line end."""
        breaks = to_numpy(pc.match_substring(self.strings, "\n"))
        return np.union1d(batch.unit_words, self.at[breaks[self.inner]])

    def usual(self, batch: Batch) -> tuple[Int32, Int32]:
        """The lead and trail that go without saying, int32[U] each."""
        n = len(batch.units) - 1
        if not batch.running:
            return np.full(n, NOTHING, np.int32), np.full(n, NOTHING, np.int32)
        first = np.ones(n, bool)
        first[1:] = batch.documents[1:] != batch.documents[:-1]
        last = np.append(first[1:], True)
        return (
            np.where(first, np.int32(NOTHING), np.int32(SPACE)),
            np.where(last, np.int32(NEWLINE), np.int32(NOTHING)),
        )

    def column(self, batch: Batch) -> pa.Array:
        """list<dictionary<string>>[U] (see the module's head)."""
        units = batch.unit_words
        usual_lead, usual_trail = self.usual(batch)
        unit = np.searchsorted(units, self.at, "right") - 1
        lengths = np.where(self.trail != usual_trail, 2, np.where(self.lead != usual_lead, 1, 0))
        np.maximum.at(lengths, unit, self.at - units[unit] + 2)
        offsets = offsets_of(lengths)
        codes = np.zeros(int(offsets[-1]), np.int32)
        some, more = lengths > 0, lengths > 1
        codes[offsets[:-1][some]] = self.lead[some]
        codes[offsets[:-1][more] + 1] = self.trail[more]
        codes[offsets[unit] + 1 + self.at - units[unit]] = self.inner
        values = pa.DictionaryArray.from_arrays(to_arrow(codes), self.strings)
        return list_array(offsets, values)

    @classmethod
    def read(cls, column: pa.Array, batch: Batch) -> Gaps:
        """From the column of U rows; `batch` without gaps tells the units."""
        flat = column.flatten()
        codes = np.zeros(0, np.int32)
        strings = string_array(USUAL)
        if len(flat):
            both = pa.concat_arrays([strings, flat.cast(pa.string())]).dictionary_encode()
            strings, codes = both.dictionary, to_numpy(both.indices)[3:].astype(np.int32)
        offsets = offsets_of(to_numpy(pc.list_value_length(column)))
        lengths = lengths_of(offsets)
        n = len(lengths)
        gaps = cls(strings, np.zeros(n, np.int32), np.zeros(n, np.int32), np.zeros(0, np.int64), codes[:0])
        lead, trail = (side.copy() for side in gaps.usual(batch))
        some, more = lengths > 0, lengths > 1
        lead[some], trail[more] = codes[offsets[:-1][some]], codes[offsets[:-1][more] + 1]
        place = np.arange(len(codes)) - np.repeat(offsets[:-1], lengths)
        unusual = np.flatnonzero((place >= 2) & (codes != SPACE))
        unit = np.repeat(np.arange(n), lengths)[unusual]
        at = batch.unit_words[unit] + place[unusual] - 1
        return cls(strings, lead, trail, at, codes[unusual])

    def before(self, batch: Batch) -> Int32:
        """int32[N]: the gap before each word, into strings."""
        codes = np.full(batch.n_words, SPACE, np.int32)
        units = batch.unit_words
        full = units[:-1] < units[1:]
        codes[units[:-1][full]] = self.lead[full]
        codes[self.at] = self.inner
        return codes

    def widths(self, batch: Batch) -> Int64:
        """int64[N]: code points of the gap before each word."""
        lengths = to_numpy(pc.utf8_length(self.strings))
        return np.asarray(lengths[self.before(batch)], np.int64)

    def texts(self, batch: Batch) -> pa.Array:
        """Arrow strings [U]: the units' text, exactly as it was."""
        n, units = batch.n_words, batch.unit_words
        unit = owners(units)
        # Flat pieces of each unit: (gap, word) for every word, then the trailing gap; empty units hold lead, trail.
        both = pa.concat_arrays([batch.types, self.strings])
        shift = np.int32(len(batch.types))
        empty = lengths_of(units) == 0
        sizes = 2 * lengths_of(units) + 1 + empty
        offsets = offsets_of(sizes)
        pieces = np.empty(int(offsets[-1]), np.int32)
        at = offsets[unit] + 2 * (np.arange(n) - units[unit])
        pieces[at] = self.before(batch) + shift
        pieces[at + 1] = batch.words
        pieces[offsets[1:] - 1] = self.trail + shift
        pieces[offsets[:-1][empty]] = self.lead[empty] + shift
        flat = both.take(to_arrow(pieces))
        return pc.binary_join(list_array(offsets, flat), "")
