"""Rows of sub-words in both languages, from a batch that is split into sentences, and the words that begin in them.

    sentence   <s> we low er it </s>                     pair   <s> premise </s> hypothesis </s>

Each side of a pair is derived separately. A row that is too long is cut between words of the *source*, the longer side
of a pair first, and the order is restricted to the rest. So rows of both languages hold the same slots
(`training/languages/readers.py`): with a twin the same sub-words, otherwise the same words. A word stands at its first
sub-word, or for a causal model at the last one in the row, the only one whose state has seen the whole word; its label
moves with it. An inserted word has no label.
"""

from __future__ import annotations

from collections.abc import Callable
from copy import copy
from dataclasses import dataclass

import numpy as np
import pyarrow as pa

from derivlang.core.arrays import (
    Bool,
    Int32,
    Int64,
    Ints,
    expand_ranges,
    lengths_of,
    offsets_of,
    owners,
    positions,
    take_rows,
)
from derivlang.core.batch import Batch
from derivlang.evaluation.examples import NO_TEXTS, Examples, Instances, framed
from derivlang.training.languages import DERIVED, SOURCE, Languages, LanguageSide


@dataclass(frozen=True, slots=True, eq=False)
class LanguageRows:
    """R rows of one language, and the W words that stand in them, in the order of this language.

    ids: int32[M], with special ids; segment_offsets: int64[R * n_sides + 1]. words: int64[W], words of the batch. at:
    int64[W], the position of each in its row. segments: int64[W], the segment of each: row * n_sides + side. languages:
    int64[M], the number of the language of each position, in mixed rows; None: the rows' language.
    """

    ids: Int32
    segment_offsets: Int64
    words: Int64
    at: Int64
    segments: Int64
    n_sides: int
    languages: Int64 | None = None

    @property
    def offsets(self) -> Int64:
        """int64[R + 1]: the offsets of rows."""
        return self.segment_offsets[:: self.n_sides]

    @classmethod
    def mixed(cls, source: LanguageRows, derived: LanguageRows, side: int) -> LanguageRows:
        """Return rows whose segments of one side are in the derived language, the others in the source language.

        <s> a b </s> c </s> and <s> b' a' </s> c' </s>, side 0  ->  <s> b' a' </s> c </s>, languages 1 1 1 1 0 0
        """
        there, n_sides = (source, derived), source.n_sides
        moved = np.arange(len(source.segment_offsets) - 1) % n_sides == side
        lengths = np.where(moved, *(lengths_of(rows.segment_offsets) for rows in (derived, source)))
        offsets = offsets_of(lengths)
        begins = np.where(moved, derived.segment_offsets[:-1] + len(source.ids), source.segment_offsets[:-1])

        def begins_of(offsets: Int64) -> Int64:
            """Return the place of each segment in its row."""
            return offsets[:-1] - np.repeat(offsets[:-1:n_sides], n_sides)

        columns = [
            (rows.words, rows.at - begins_of(rows.segment_offsets)[rows.segments], rows.segments) for rows in there
        ]
        words, at, segments = (np.concatenate(each) for each in zip(*columns, strict=True))
        is_derived = np.arange(len(words)) >= len(source.words)
        chosen = np.flatnonzero(moved[segments] == is_derived)
        order = chosen[np.argsort(segments[chosen], kind="stable")]
        return cls(
            np.concatenate([rows.ids for rows in there])[expand_ranges(begins, lengths)],
            offsets,
            words[order],
            (at + begins_of(offsets)[segments])[order],
            segments[order],
            n_sides,
            np.repeat(np.where(moved, DERIVED, SOURCE), lengths),
        )

    def instances(
        self, rows: Ints, at: Int64, gold: Int64, words: Int32 | None = None, texts: pa.Array = NO_TEXTS
    ) -> Instances:
        """Return the rows with G labels. rows: int64[G], ascending. gold: int64[G] or [G, k]. at, words: of them."""
        ends = offsets_of(np.bincount(rows, minlength=len(self.offsets) - 1))
        words = np.full(len(self.ids), -1, np.int32) if words is None else words
        return Instances(self.ids, self.offsets, at, _columns(gold), ends, words, self.languages, texts)

    def word_labels(self, gold: Int64, words: Int32 | None = None) -> Instances:
        """Return the rows with a label per word.

        gold: int64[W] or [W, k], the label of each; a negative one means no label.
        """
        some = np.flatnonzero((_columns(gold) >= 0).all(axis=1))
        return self.instances(self.segments[some] // self.n_sides, self.at[some], gold[some], words)

    def joined(self, gaps: Int64) -> Bool:
        """Return bool[W]: words that follow, without white space, a word that is their neighbour in the source.

        The two may have changed places. gaps: int64[N], width of the white space before each word of the batch.

        source  we don ' t know, gaps 0 1 0 0 1      reversed  know t ' don we    ->  False False True True False
        """
        words, joined = self.words, np.zeros(len(self.words), bool)
        near = (np.abs(np.diff(words)) == 1) & (np.diff(self.segments) == 0)
        joined[1:] = near & (gaps[np.maximum(words[1:], words[:-1])] == 0)
        return joined

    def at_words(self, values: Int32) -> Int32:
        """Return int32[M]: the value of the word that begins at each position, -1 elsewhere. values: int32[W]."""
        out = np.full(len(self.ids), -1, np.int32)
        out[self.offsets[self.segments // self.n_sides] + self.at] = values
        return out


class ParallelRows:
    """The R rows of a batch in both languages, of at most `max_length` sub-words. A word longer than its row is cut.

    units: int64[R * n_sides], the unit of each segment. cut: bool[R], rows that were cut. has_subwords: bool[N], the
    source words that have sub-words. in_rows: bool[W], of the words of all rows (`in_all_rows`), whether they stand in
    their source row.
    """

    def __init__(self, batch: Batch, languages: Languages, max_length: int, *, last: bool = False):
        """last: whether a word stands at its last sub-word."""
        both, n_sides = languages.parallel(batch), batch.records.shape[1]
        unit_offsets, units = both.offsets[batch.unit_words], batch.records.astype(np.int64).ravel()
        lengths, starts = lengths_of(unit_offsets)[units], unit_offsets[units]
        limits = _limits(lengths.reshape(-1, n_sides), max_length - 1 - n_sides).ravel()
        edges = both.offsets[np.searchsorted(both.offsets, starts + limits, "right") - 1]  # ends of words
        ends = np.where((limits == lengths) | (edges == starts), starts + limits, edges)
        inserted = both.of_inserted()

        def rows(side: LanguageSide) -> LanguageRows:
            # Units of 3 and 2 slots, of which 2 each are kept: of the slots 2 0 1 3 4 these are 0 1 3 4.
            unit = np.searchsorted(unit_offsets, side.slots, "right") - 1
            at, of_segments = take_rows(offsets_of(np.bincount(unit, minlength=len(unit_offsets) - 1)), units)
            segment = owners(of_segments).astype(np.int64)
            inside = side.slots[at] < ends[segment]
            at, segment = at[inside], segment[inside]
            within = offsets_of(np.bincount(segment, minlength=len(units)))
            ids, offsets = framed(side.ids[at], within, languages.special_ids, n_sides)
            # A row begins with `<s>`, and each of its segments before this one ended with `</s>`.
            places = positions(within[::n_sides]) + 1 + segment % n_sides
            words, slots = both.words(side)[at], side.slots[at]
            stand = slots == both.offsets[words]
            if last:
                stand = _is_last(segment * batch.n_words + words, ~inserted[slots])
            return LanguageRows(ids, offsets, words[stand], places[stand], segment[stand], n_sides)

        self.batch, self.units = batch, units
        self.cut = np.asarray((ends < starts + lengths).reshape(-1, n_sides).any(axis=1))
        self.source, self.derived = rows(both.source), rows(both.derived)
        self.has_subwords = np.bincount(both.words(both.source), minlength=batch.n_words) > 0
        self.in_rows = np.zeros(int(lengths_of(batch.unit_words)[units].sum()), bool)
        self.in_rows[self.in_all_rows(self.source.segments, self.source.words)] = True

    def in_all_rows(self, segments: Int64, words: Int64) -> Int64:
        """Return words of the batch, in these segments, as words of all rows, one row after the other.

        Rows of one context share its words in the batch. Contexts of 3 words and questions of 2, units 0 1 and 0 2:
        words 0 1 2 of the context are places 0 1 2 in segment 0, and 5 6 7 in segment 2.
        """
        starts = offsets_of(lengths_of(self.batch.unit_words)[self.units])
        return starts[segments] + words - self.batch.unit_words[self.units[segments]]

    def mixed(self) -> ParallelRows:
        """Return the mixed rows of pairs, in the places of both languages.

        source: rows whose first side is derived; derived: rows whose second side is.
        """
        mixed = copy(self)
        mixed.source, mixed.derived = (LanguageRows.mixed(self.source, self.derived, side) for side in (0, 1))
        return mixed

    def examples(
        self, instances: Callable[[LanguageRows], Instances], classes: tuple[str, ...], n_labels: int | None = None
    ) -> Examples:
        """Return the examples with the labels that a function gives to the rows of each language.

        n_labels: number of labels of the batch; those that no source row has are unscored. None: not counted.
        """
        source, derived = instances(self.source), instances(self.derived)
        unscored = 0 if n_labels is None else n_labels - len(source.gold)
        batch = self.batch
        documents, numbers = batch.documents.astype(np.int64), np.arange(batch.n_records)
        return Examples(source, derived, batch.record_keys, classes, self.cut, documents, unscored, (self, numbers))


def _limits(lengths: Int64, room: int) -> Int64:
    """Return int64[R, K]: the maximum number of slots of each segment, in rows with room for so many.

    lengths: int64[R, K]. 9 and 4 slots, room 10: the shorter one keeps min(4, 10 // 2), the longer one 10 - 4
    """
    if lengths.shape[1] == 1:
        return np.minimum(lengths, room)
    short = np.minimum(lengths.min(axis=1), room // 2)[:, None]
    is_first = lengths[:, :1] <= lengths[:, 1:]  # whether the first side is the shorter one
    limits = np.where(is_first ^ np.array([False, True]), short, room - short)
    return np.where(lengths.sum(axis=1, keepdims=True) > room, np.minimum(lengths, limits), lengths)


def _is_last(groups: Int64, members: Bool) -> Bool:
    """Return bool[M]: whether an element is the last member of its group. groups: int64[M]; members: bool[M].

    groups 7 7 3 7 3, members True True True False True  ->  False True False False True
    """
    some = np.flatnonzero(members)[::-1]
    _, first = np.unique(groups[some], return_index=True)
    last = np.zeros(len(groups), bool)
    last[some[first]] = True
    return last


def _columns(gold: Int64) -> Int64:
    """Return int64[G, k] of int64[G] or [G, k]."""
    return gold[:, None] if gold.ndim == 1 else gold
