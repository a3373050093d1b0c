"""Bits per word of held-out sentences under n-gram models of the run's training text, beside a causal model's.

    train        we low er </s> it is low </s> …     the sub-words of the run's training text
    held out     it is low er </s>                   the same sentences as `perplexity`, with the same divisor

Interpolated Kneser-Ney models of 2 to 5 sub-words (`core/ngrams.py`) predict each sub-word and the closing </s> of
a sentence, as the causal model does. `bits_5`, by 5-grams, stands beside `perplexity.bits`. `bits_m` is the m-local
entropy of Someya et al. (2025, arXiv 2506.05136) of the text as the model reads it, in sub-words; `derivlang stats` has
it over words, without a tokenizer. Each language that the run was trained on has a figure. The model itself is not
asked.
"""

from __future__ import annotations

from collections.abc import Iterator
from typing import TYPE_CHECKING

import numpy as np

from derivlang.core.arrays import owners
from derivlang.core.ngrams import word_bits
from derivlang.evaluation.columns import SIDES, Column
from derivlang.evaluation.measures.base import Measure
from derivlang.evaluation.measures.bits import averaged
from derivlang.evaluation.measures.sets import MeasureSets
from derivlang.evaluation.scores import Score
from derivlang.evaluation.training_text import closed
from derivlang.formats.progress import stage

if TYPE_CHECKING:
    from derivlang.training.encoder import Encoder

LONGEST = 5


class NGrams(Measure):
    """Bits per word of held-out sentences under Kneser-Ney models of the run's training text."""

    columns = tuple(
        Column(
            f"bits_{m}",
            f"bits a word, {m}-grams",
            unit="",
            better="down",
            formula="mean",
            headline=m == LONGEST,
            explains="perplexity.bits",
        )
        for m in range(2, LONGEST + 1)
    )
    needs_training_text = True
    reads = ("sentences", "ngram_sentences")

    def measure(self, model: Encoder, sets: MeasureSets) -> Iterator[Score]:
        """Yield the bits of each sentence in the languages of the training, by 2- to 5-grams."""
        text, train = sets.sentences, sets.training_text
        for regime, side, known in zip(SIDES, (text.source, text.derived), (train.source, train.derived), strict=True):
            if known is None:
                continue
            held_out = closed(side.ids, text.offsets_in(side), model.special_ids.end)
            with stage(f"{LONGEST}-grams, {regime}"):
                by_length = word_bits(known, held_out, LONGEST)
            for m, bits in by_length.items():
                sums = np.asarray(np.bincount(owners(held_out.offsets), bits, text.n_sentences), np.float64)
                yield averaged(f"bits_{m}", regime, sums, text.n_words, sets.of_sentences)
