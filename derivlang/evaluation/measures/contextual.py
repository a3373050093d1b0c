"""Contextual alignment: the percentage of source words whose most similar derived word is their own, by layer.

    words     source words whose most similar word of the derived sentence, by cosine, is theirs (ties: the first)

A guess reaches the mean over words of the share of right words among the words of the sentence. Equal words of a
sentence are right for each other (`ParallelWords`).
"""

from __future__ import annotations

from collections.abc import Iterator
from itertools import pairwise
from typing import TYPE_CHECKING

import numpy as np

from derivlang.align.lexical import Floats
from derivlang.align.similarity import cosine
from derivlang.core.arrays import Int64, lengths_of
from derivlang.core.threads import one_thread
from derivlang.evaluation.columns import Column
from derivlang.evaluation.formulas import fixed
from derivlang.evaluation.measures.base import Measure
from derivlang.evaluation.measures.sets import MeasureSets
from derivlang.evaluation.measures.states import ParallelWords
from derivlang.evaluation.scores import Score

if TYPE_CHECKING:
    from derivlang.training.encoder import Encoder


class Contextual(Measure):
    """Words whose most similar word in the other language is their own."""

    columns = (Column("words", headline=True, over="layer", chance=True),)
    reads = ("pairs",)

    def measure(self, model: Encoder, sets: MeasureSets) -> Iterator[Score]:
        """Yield the words of each sentence of `sets.pairs` that are right, by layer, and of a guess."""
        for layer, (ours, theirs) in enumerate(sets.states(model).words):
            counts = right_words(ours.cpu().numpy(), theirs.cpu().numpy(), sets.words)
            yield Score("words", counts, layer=layer, set=sets.of_pairs)
        yield Score("words", chance(sets.words), regime="chance", set=sets.of_pairs)


@one_thread()
def right_words(source: Floats, derived: Floats, words: ParallelWords) -> Int64:
    """Return int64[S, 2]: right words, words. source, derived: states [W, D], in the order of their language."""
    nearest = [
        begin + cosine(source[begin:end], derived[begin:end]).argmax(1) for begin, end in pairwise(words.offsets)
    ]
    right = words.sums(words.derived[np.concatenate(nearest)] == words.source)
    return np.stack([right.astype(np.int64), lengths_of(words.offsets)], axis=1)


def chance(words: ParallelWords) -> Int64:
    """Return int64[S, 2], for a guess.

    the cat the  ->  two of three words are right for each `the`, one for `cat`:  2/3 + 1/3 + 2/3 of 3 words
    """
    sizes = lengths_of(words.offsets)
    return fixed(words.sums(np.bincount(words.source)[words.source] / np.repeat(sizes, sizes)), sizes)
