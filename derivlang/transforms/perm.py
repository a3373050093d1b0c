"""perm: a uniform random permutation of the words before the tail.

    perm            the whole sentence                 perm:window=3     within blocks of three words

The word at position p gets the draw of (sentence key, p). The words of a sentence (or block) are sorted by the top 32
bits of their draws, ties by position. So equal sentences are permuted alike, in every file.
Source: MultilingualAnalysis (Deshpande et al. 2022), `modify_inputs_permute_sentence`.
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import Literal

import numpy as np

from derivlang.core.arrays import Int32, Int64, UInt64, expand_ranges, lengths_of
from derivlang.core.batch import Batch
from derivlang.core.keys import Draws
from derivlang.core.order import Order
from derivlang.core.spec import param
from derivlang.transforms.base import Transform, check_unit

_BLOCK = 1 << 16  # words sorted at once: group and position fit 16 bits each, and the array stays in the cache


@dataclass(frozen=True, kw_only=True)
class Perm(Transform):
    """Permutation: the words of each sentence in a random order, final punctuation last."""

    name = "perm"
    window: int = param(0, "number of words in a permuted block; 0: the whole sentence", low=0, high=2**31 - 1)
    unit: Literal["word", "token"] = param(
        "word", "unit to order: words of a text, or sub-words of an encoded batch", draws=False
    )
    seed: int = param(1, "seed of the permutations: each seed gives another language", low=0)

    def order(self, batch: Batch, draws: Draws) -> Order:
        """Return the permutation. Raise UsageError for `unit=token` on a batch of words."""
        check_unit(self, self.unit, batch)
        lengths = lengths_of(batch.sentences)
        place = np.arange(batch.n_words) - np.repeat(batch.sentences[:-1], lengths)
        random = draws.draw(np.repeat(batch.keys, lengths), place)
        index = _sort_within(random, batch.sentences, batch.tails, self.window)
        return Order(index, batch.sentences, batch.tails, batch.n_words)


def _sort_within(random: UInt64, sentences: Int64, tails: Int32, window: int) -> Int32:
    """Return int32[N]: the words of each group sorted by the top 32 bits of their draws. Tails stay.

    A group is a sentence without its tail, or a window of it. Each word of a group of two or more becomes one integer,
    group << 48 | draw << 16 | position. So one sort keeps the groups apart and needs no second array:

        two groups, "a b" and "c d e", draws 7 2 and 5 9 1
        packed   0|7|0  0|2|1    1|5|2  1|9|3  1|1|4
        sorted   0|2|1  0|7|0    1|1|4  1|5|2  1|9|3     positions 1 0 4 2 3: "b a e c d"
    """
    index = np.arange(len(random), dtype=np.int32)
    start, body = sentences[:-1], lengths_of(sentences) - tails
    if window:  # a body of 7 words in windows of 3: starts 0 3 6, lengths 3 3 1
        per_sentence = -(-body // window)
        first = expand_ranges(np.zeros_like(per_sentence), per_sentence) * window
        owner = np.repeat(np.arange(len(body)), per_sentence)
        start = start[owner] + first
        body = np.minimum(body[owner] - first, window)
    start, body = start[body > 1], body[body > 1]
    begin = 0
    while begin < len(start):
        # As many whole groups as fit a block. A group longer than a block is sorted by itself, as positions exceed 16
        # bits.
        stop = int(np.searchsorted(start, start[begin] + _BLOCK, "left"))
        # The last group that begins in the block may end behind it.
        while stop > begin + 1 and start[stop - 1] + body[stop - 1] > start[begin] + _BLOCK:
            stop -= 1
        where = expand_ranges(start[begin:stop], body[begin:stop])
        top = random[where] >> np.uint64(32)
        if len(where) > _BLOCK:
            index[where] = where[np.argsort(top, kind="stable")]
        else:
            group = np.repeat(np.arange(stop - begin, dtype=np.uint64), body[begin:stop])
            packed = (group << np.uint64(48)) | (top << np.uint64(16)) | np.arange(len(where), dtype=np.uint64)
            packed.sort()
            index[where] = where[(packed & np.uint64(0xFFFF)).astype(np.int64)]
        begin = stop
    return index
