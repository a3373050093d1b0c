"""Contextual alignment: the percentage of source words whose most similar derived word is their own, by layer.

    words     source words whose most similar word of the derived sentence, by cosine, is theirs (ties: the first)
    chance    the same for a guess: the mean over words of the share of right words among those of the sentence

Equal words of a sentence are right for each other (`ParallelWords`).
"""

from __future__ import annotations

from itertools import pairwise
from typing import Any

import numpy as np

from derivlang.align.lexical import Floats
from derivlang.align.similarity import cosine
from derivlang.core.threads import one_thread
from derivlang.evaluation.measures.base import Measure
from derivlang.evaluation.measures.sets import MeasureSets
from derivlang.evaluation.measures.states import ParallelWords
from derivlang.training.encoder import Encoder


class Contextual(Measure):
    """Words whose most similar word in the other language is their own."""

    reads = ("pairs",)

    def measure(self, model: Encoder, sets: MeasureSets) -> list[dict[str, Any]]:
        """Return [{"layer", "words", "chance"}, …] over the words of `sets.pairs`."""
        by_chance = chance(sets.words)
        return [
            {
                "layer": layer,
                "words": accuracy(ours.cpu().numpy(), theirs.cpu().numpy(), sets.words),
                "chance": by_chance,
            }
            for layer, (ours, theirs) in enumerate(sets.states(model).words)
        ]


@one_thread()
def accuracy(source: Floats, derived: Floats, words: ParallelWords) -> float:
    """Return the percentage of words. source, derived: states [W, D], in the order of their language."""
    nearest = [
        begin + cosine(source[begin:end], derived[begin:end]).argmax(1) for begin, end in pairwise(words.offsets)
    ]
    return float(100 * np.mean(words.derived[np.concatenate(nearest)] == words.source))


def chance(words: ParallelWords) -> float:
    """Return the percentage for a guess.

    the cat the  ->  two of three words are right for each `the`, one for `cat`:  (2/3 + 1/3 + 2/3) / 3 = 56 %
    """
    equal = np.bincount(words.source)[words.source]
    sizes = np.diff(words.offsets)
    return float(100 * np.mean(equal / np.repeat(sizes, sizes)))
