"""Sentence pairs of a batch as ranges of source and derived words, and their gold links.

    source   s0 | s1 | s2       Usually words stay in their sentence: a sentence and its derived form are a pair.
    derived  s0 | s2 s1         Sentences that an order mixes (one tree over both) form one pair together.

The derived text is cut where no source sentence has words on both sides. A pair with an empty side is dropped (all
words deleted, or only inserted words).
"""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np

from derivlang.core.arrays import Bool, Int32, Int64, UInt64, expand_ranges, owners
from derivlang.core.batch import Batch
from derivlang.core.keys import sequence_keys
from derivlang.core.order import Order


@dataclass(frozen=True, slots=True)
class Segments:
    """P pairs as word ranges, each array int64[P]: source begin and end, derived begin and end, unit.

    Sorted by unit, then position.
    """

    source_begin: Int64
    source_end: Int64
    begin: Int64
    end: Int64
    unit: Int64

    def __len__(self) -> int:
        return len(self.unit)

    def take(self, which: Int64 | Bool) -> Segments:
        """Return some of the pairs. which: their numbers, or a flag for each pair."""
        return Segments(
            self.source_begin[which], self.source_end[which], self.begin[which], self.end[which], self.unit[which]
        )


def segments(source: Batch, derived: Batch, order: Order) -> Segments:
    """Return the sentence pairs of a batch's units. The units of both sides have the same numbers.

    An example, with a cut where highest before < lowest, 0 0 | 2 1 2 | 3:

        source sentence of each derived word   0 0 2 1 2 3
        highest so far                         0 0 2 2 2 3
        lowest from here on                    0 0 1 1 2 3

    Position 2 begins a pair, as the highest before it (0) is below the lowest from there on (1). Position 3 does not: 2
    is not below 1. Source sentences 1 and 2 form one pair.
    """
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
    # -1 (a unit of only inserted words) must not count as the lowest for the words before it.
    lowest = np.minimum.accumulate(np.where(sentence < 0, np.iinfo(np.int32).max, sentence)[::-1])[::-1]
    first = np.ones(n, bool)
    first[1:] = (highest[:-1] < lowest[1:]) | (unit[1:] != unit[:-1])
    begin = np.flatnonzero(first)
    end = np.append(begin[1:], n)
    # low is -1 in a unit of only inserted words. What `source.sentences` gives for it is dropped in the last line.
    low, high = np.minimum.reduceat(sentence, begin), np.maximum.reduceat(sentence, begin)
    pairs = Segments(source.sentences[low], source.sentences[high + 1], begin, end, unit[begin].astype(np.int64))
    links = np.add.reduceat(kept, begin)
    return pairs.take((low >= 0) & (links > 0))


def segment_keys(source: Batch, pairs: Segments) -> UInt64:
    """Return uint64[P]: the content keys of the pairs' source words."""
    sizes = pairs.source_end - pairs.source_begin
    words = source.words[expand_ranges(pairs.source_begin, sizes)]
    return sequence_keys(source.type_hashes[words], np.concatenate([[0], np.cumsum(sizes)]))


@dataclass(frozen=True, slots=True)
class GoldLinks:
    """Gold word links of P pairs, int64[L] each: pair, source and derived position (from 0 in the pair).

    Sorted by pair and derived position.
    """

    pair: Int64
    source: Int64
    derived: Int64

    def sorted(self) -> GoldLinks:
        """Return the links by pair, then source position, then derived position."""
        # A stable sort keeps the derived positions of one source position in their order.
        by = np.argsort(self.pair * (self.source.max(initial=0) + 1) + self.source, kind="stable")
        return GoldLinks(self.pair[by], self.source[by], self.derived[by])


def links_of(order: Order, pairs: Segments) -> GoldLinks:
    """Return the links (index[j], j) inside the pairs. Inserted and deleted words have none.

    index [2, 1, 0, 4, 3] of two pairs with 3 and 2 words on both sides  ->  2-0 1-1 0-2 and 1-0 0-1
    """
    sizes = pairs.end - pairs.begin
    place = expand_ranges(pairs.begin, sizes)
    pair = np.repeat(np.arange(len(pairs)), sizes)
    kept = order.index[place] >= 0
    place, pair = place[kept], pair[kept]
    return GoldLinks(pair, order.index[place] - pairs.source_begin[pair], place - pairs.begin[pair])


def _with_inserted(sentence: Int64, kept: Bool, unit: Int32) -> Int64:
    """Return the sentences with the sentences of inserted words filled in.

    sentence: int64[M], -1 at inserted words. An inserted word belongs to the sentence of the word before it in its
    unit, else of the word after it; in a unit of inserted words only it stays -1.

        sentence -1 0 -1 1 | -1 in two units  ->  0 0 0 1 | -1
    """
    at = np.arange(len(sentence))
    before = np.maximum.accumulate(np.where(kept, at, -1))
    after = np.minimum.accumulate(np.where(kept, at, len(at))[::-1])[::-1]
    # np.maximum: before the first kept word there is -1, which would read the last unit.
    has_before = (before >= 0) & (unit[np.maximum(before, 0)] == unit)
    last = np.minimum(after, len(at) - 1)
    has_after = (after < len(at)) & (unit[last] == unit)
    filled = np.where(has_before, sentence[np.maximum(before, 0)], np.where(has_after, sentence[last], -1))
    return np.asarray(filled, np.int64)
