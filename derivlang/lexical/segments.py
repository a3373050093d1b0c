"""Sentence pairs of a batch: which source words and which derived words are one pair, and their gold links.

    source   s0 | s1 | s2       An order keeps each word in its sentence, so a sentence and its derived form are a pair.
    derived  s0 | s2 s1         What an order does mix (a tree over two sentences) is one pair of all its sentences.

A cut stands where no source sentence has derived words on both sides. A sentence with a side that is empty (all its
words deleted, or nothing but inserted ones) is no pair.
"""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np

from derivlang.core.arrays import Bool, Int32, Int64, UInt64, owners, spread
from derivlang.core.batch import Batch
from derivlang.core.keys import sequence_keys
from derivlang.core.order import Order


@dataclass(frozen=True, slots=True)
class Segments:
    """P pairs by ranges of words: source begin, end; derived begin, end; unit: each int64[P]. By unit, then place."""

    source_begin: Int64
    source_end: Int64
    begin: Int64
    end: Int64
    unit: Int64

    def __len__(self) -> int:
        return len(self.unit)

    def take(self, which: Int64 | Bool) -> Segments:
        return Segments(
            self.source_begin[which], self.source_end[which], self.begin[which], self.end[which], self.unit[which]
        )


def segments(source: Batch, derived: Batch, order: Order) -> Segments:
    """The sentence pairs of a batch's units; the units of both sides have the same numbers."""
    units = derived.unit_words
    n = len(order.index)
    if n == 0 or source.n_words == 0:
        none = np.zeros(0, np.int64)
        return Segments(none, none, none, none, none)
    kept = order.index >= 0
    unit = owners(units)
    sentence = np.where(kept, owners(source.sentences)[np.where(kept, order.index, 0)], -1)
    if not kept.all():
        sentence = _with_inserted(sentence, kept, unit)
    highest = np.maximum.accumulate(sentence)
    lowest = np.minimum.accumulate(np.where(sentence < 0, np.iinfo(np.int32).max, sentence)[::-1])[::-1]
    first = np.ones(n, bool)
    first[1:] = (highest[:-1] < lowest[1:]) | (unit[1:] != unit[:-1])
    begin = np.flatnonzero(first)
    end = np.append(begin[1:], n)
    low, high = np.minimum.reduceat(sentence, begin), np.maximum.reduceat(sentence, begin)
    found = Segments(source.sentences[low], source.sentences[high + 1], begin, end, unit[begin].astype(np.int64))
    links = np.add.reduceat(kept, begin)
    return found.take((low >= 0) & (links > 0))


def segment_keys(source: Batch, found: Segments) -> UInt64:
    """uint64[P]: the content keys of the pairs' source words."""
    sizes = found.source_end - found.source_begin
    words = source.words[spread(found.source_begin, sizes)]
    return sequence_keys(source.type_hashes[words], np.concatenate([[0], np.cumsum(sizes)]))


@dataclass(frozen=True, slots=True)
class Links:
    """Gold word links of P pairs: pair, source and derived place (from 0 in the pair), int64[L] each, by pair and
    derived place."""

    pair: Int64
    source: Int64
    derived: Int64

    def sorted(self) -> Links:
        """By pair, then source place, then derived place."""
        by = np.lexsort((self.derived, self.source, self.pair))
        return Links(self.pair[by], self.source[by], self.derived[by])


def links_of(order: Order, found: Segments) -> Links:
    """The links (index[j], j) inside the pairs; inserted and deleted words have none."""
    sizes = found.end - found.begin
    place = spread(found.begin, sizes)
    pair = np.repeat(np.arange(len(found)), sizes)
    kept = order.index[place] >= 0
    place, pair = place[kept], pair[kept]
    return Links(pair, order.index[place] - found.source_begin[pair], place - found.begin[pair])


def _with_inserted(sentence: Int64, kept: Bool, unit: Int32) -> Int64:
    """An inserted word stands in the sentence of the word before it in its unit, else of the word after it."""
    at = np.arange(len(sentence))
    before = np.maximum.accumulate(np.where(kept, at, -1))
    after = np.minimum.accumulate(np.where(kept, at, len(at))[::-1])[::-1]
    has_before = (before >= 0) & (unit[np.maximum(before, 0)] == unit)
    last = np.minimum(after, len(at) - 1)
    has_after = (after < len(at)) & (unit[last] == unit)
    found = np.where(has_before, sentence[np.maximum(before, 0)], np.where(has_after, sentence[last], -1))
    return np.asarray(found, np.int64)
