"""BareBatch: a batch without its layers; what a layer sees of the words that it annotates.

    words -> sentences -> units -> records      (offsets of offsets; a record's units by number)

A *record* is an output row: a sentence of running text, an annotated sentence, a pair, a question. It holds a *unit*
(one word sequence) for each *side* of the set: `("",)` for one sequence, `("premise", "hypothesis")` for a pair.
Records may share a unit: the context of several questions is stored, and derived, once.

    a b . c | d e .   two units, the first of two sentences; three records, the first two of the same unit
    sentences [0, 3, 4, 7]      units [0, 2, 3]      records [[0], [0], [1]]      unit_words [0, 4, 7]
"""

from __future__ import annotations

from dataclasses import dataclass
from functools import cached_property

import numpy as np
import pyarrow as pa
import pyarrow.compute as pc

from derivlang.core.arrays import Bool, Int32, Int64, UInt64, expand_ranges, lengths_of, offsets_of, owners
from derivlang.core.arrow import filled, list_array, scalar, to_arrow, to_numpy
from derivlang.core.errors import LayerError
from derivlang.core.gaps import Gaps
from derivlang.core.keys import hash_types, joined, mix, sequence_keys


@dataclass(frozen=True, eq=False)
class BareBatch:
    """A struct of arrays: N words, T types, S sentences, U units, R records, K sides.

    words: int32[N], codes into types. types: Arrow strings [T], distinct. hashes: uint64[T] or None.
    sentences: int64[S + 1], word offsets. tails: int32[S], words in each sentence's tail.
    units: int64[U + 1], sentence offsets. records: int32[R, K], the unit of each side.
    documents: int64[R], number of the document that a record stands in. keys: uint64[S], content keys
    of the *source* words; empty until the units are split into sentences.
    running: records are the sentences of running text, documents its lines.
    gaps: the source's white space, where it is known.
    grouped: bool[N], words that continue the group of the word before (`answers=atomic`), where groups are settled:
    the groups of a context come from the answers to all its questions, which a single row does not know.
    """

    words: Int32
    types: pa.Array
    sentences: Int64
    tails: Int32
    units: Int64
    records: Int32
    documents: Int64
    keys: UInt64
    hashes: UInt64 | None = None
    sides: tuple[str, ...] = ("",)
    running: bool = False
    gaps: Gaps | None = None
    grouped: Bool | None = None

    @property
    def n_words(self) -> int:
        """N."""
        return len(self.words)

    @property
    def n_units(self) -> int:
        """U."""
        return len(self.units) - 1

    @property
    def n_records(self) -> int:
        """R."""
        return len(self.records)

    @property
    def lines(self) -> Int64 | None:
        """int64[U]: the line of each unit of running text; None elsewhere."""
        return self.documents if self.running else None

    @cached_property
    def type_hashes(self) -> UInt64:
        """uint64[T]: content hashes of the types."""
        return hash_types(self.types) if self.hashes is None else self.hashes

    @cached_property
    def unit_words(self) -> Int64:
        """int64[U + 1]: word offsets of the units."""
        return self.sentences[self.units]

    @cached_property
    def unit_keys(self) -> UInt64:
        """uint64[U]: content keys of the units' source words."""
        if len(self.keys) == self.n_units and (self.units == np.arange(len(self.units))).all():
            return self.keys
        return sequence_keys(self.type_hashes[self.words], self.unit_words)

    @cached_property
    def record_keys(self) -> UInt64:
        """uint64[R]: a record's key: its unit's key, or the keys of its units mixed in order."""
        keys = self.unit_keys[self.records[:, 0]]
        for side in range(1, len(self.sides)):
            # mix first: a plain sum would be the same for (premise, hypothesis) and (hypothesis, premise).
            keys = mix(keys) + self.unit_keys[self.records[:, side]]
        return keys

    def in_sequence(self) -> Int64:
        """Return int64[S]: the sentences row by row, and in a row side by side, however the rows are cut into batches.

        Two pairs of sentences, whose sides follow each other in a batch   ->   [0, 2, 1, 3]
        """
        units, first = np.unique(self.records, return_index=True)
        units = units[np.argsort(first)]
        return expand_ranges(self.units[units], lengths_of(self.units)[units])

    def strings(self) -> pa.Array:
        """Return Arrow strings [N]: the words, written out. For small batches."""
        return self.types.take(to_arrow(self.words))

    def unit_lists(self) -> pa.Array:
        """Return list<string>[U]: the words of each unit."""
        return list_array(self.unit_words, self.strings())

    def texts(self) -> pa.Array:
        """Return Arrow strings [U]: each unit as text, with its gaps if they are known, else joined by one space."""
        if self.gaps is not None:
            return self.gaps.texts(self.words, self.types, self.unit_words)
        first = np.zeros(self.n_words, np.int32)
        first[self.unit_words[:-1][lengths_of(self.unit_words) > 0]] = len(self.types)
        spaced = pc.binary_join_element_wise(scalar(" "), self.types, scalar(""))
        both = pa.concat_arrays([spaced, self.types])
        return joined(both.take(to_arrow(self.words + first)), self.unit_words)

    def word_lengths(self) -> Int64:
        """Return int64[N]: code points of each word."""
        return np.asarray(to_numpy(pc.utf8_length(self.types))[self.words], np.int64)

    def word_starts(self) -> Int64:
        """Return int64[N]: where each word begins in its unit's text, in code points.

        "ab c" and "de", joined by spaces: lengths [2, 1, 2], before [0, 1, 0], ends [2, 4, 6], starts [0, 3, 4];
        the second unit's first word is to begin at 0, so 4 is subtracted in it: [0, 3, 0].
        """
        lengths = self.word_lengths()
        first = self.unit_words[:-1]
        full = first < self.unit_words[1:]
        if self.gaps is not None:
            before = self.gaps.widths(self.unit_words)
        else:
            before = np.ones(self.n_words, np.int64)
            before[first[full]] = 0
        starts = np.cumsum(lengths + before) - lengths
        # zero[u]: what the running sum has reached where the text of unit u begins.
        zero = np.zeros(len(first), np.int64)
        zero[full] = starts[first[full]] - before[first[full]]
        return np.asarray(starts - zero[owners(self.unit_words)])


def together(group_offsets: Int64) -> Bool:
    """Return bool[N]: the words of groups of two or more words."""
    sizes = np.diff(group_offsets)
    return np.repeat(sizes > 1, sizes)


def write_groups(continues: Bool, unit_words: Int64) -> pa.Array:
    """Return list<int32>[U]: for each unit, the first word and the number of words of each group of two and more.

    continues: bool[N].

    the Old Bay ferry     continues [no, no, yes, no]     group offsets [0, 1, 3, 4]     column [1, 2]
    """
    edges = np.diff(np.concatenate([[False], continues, [False]]).astype(np.int8))
    begins, ends = np.flatnonzero(edges == 1) - 1, np.flatnonzero(edges == -1)
    unit = owners(unit_words)[begins]
    pairs = np.stack([begins - unit_words[unit], ends - begins], axis=1).astype(np.int32)
    offsets = offsets_of(2 * np.bincount(unit, minlength=len(unit_words) - 1))
    return list_array(offsets, to_arrow(pairs.ravel()))


def read_groups(column: pa.Array, unit_words: Int64) -> Bool:
    """Return bool[N]: the words that continue a group. Raise LayerError where the column does not fit the units."""
    lengths = to_numpy(filled(pc.list_value_length(column), 0))
    flat = to_numpy(column.flatten().cast(pa.int64()))
    sizes = lengths_of(unit_words)
    unit = np.repeat(np.arange(len(sizes)), lengths // 2)
    first, count = flat[0::2], flat[1::2]
    if (lengths % 2).any() or (first < 0).any() or (count < 2).any() or (count > sizes[unit] - first).any():
        raise LayerError("a group of words points outside its row", id="row-groups")
    out = np.zeros(int(unit_words[-1]), bool)
    out[expand_ranges(unit_words[unit] + first + 1, count - 1)] = True
    return out
