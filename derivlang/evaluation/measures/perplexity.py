"""Perplexity of held-out sentences in both languages: exp of the mean cross-entropy of sub-words.

A masked language model predicts masked sub-words:

    <s> we <mask> er it </s>      exp(-mean log p(low | the rest))       over the vocabularies of both languages

Some 15 % of the sub-words are masked, keyed by (sentence, position), the same in the source and the derived sentence.
Unlike in training (80/10/10), all of them become `<mask>`, and a row is one sentence instead of a packed instance. So
it compares languages and runs, but not with a training loss. A perplexity above 1e14 is written as 1e14.

A causal model predicts every sub-word and the closing </s> from what is before it in the sentence, without masks:

    <s> we low er </s>        exp(-mean log p(x_t | x_<t)) over we, low, er and </s>

Its bits per word are the bits of all of these, the closing </s> included, divided by the number of words of the source,
in both languages: a word that the derived language inserts does not count, a word that it deletes does, and </s> does
not. So they compare languages, whatever the number of sub-words in a word. The perplexities of the two kinds of models
are different quantities.

The measure ngrams has the bits per word of the same sentences under n-gram models of the run's training text, to
compare with `perplexity.bits`: interpolated Kneser-Ney models of 2 to 5 sub-words (`core/ngrams.py`) predict each
sub-word and the closing </s>, as a causal model does. `bits_m` is the m-local entropy of Someya et al. (2025, arXiv
2506.05136) of the text as the model reads it; `derivlang stats` has it over words. Each language that the run was
trained on has a figure. The model itself is not asked.
"""

from __future__ import annotations

import math
from collections.abc import Iterator
from typing import TYPE_CHECKING

import numpy as np

from derivlang.align.lexical import Floats
from derivlang.core.arrays import Bool, expand_ranges, lengths_of, owners, positions
from derivlang.core.keys import Draws
from derivlang.core.ngrams import word_bits
from derivlang.evaluation.columns import SIDES, Column
from derivlang.evaluation.examples import framed
from derivlang.evaluation.heldout import Heldout, closed
from derivlang.evaluation.measures.base import Measure
from derivlang.evaluation.measures.bits import averaged, losses
from derivlang.evaluation.measures.sets import MeasureSets
from derivlang.evaluation.scores import Score
from derivlang.formats.progress import stage
from derivlang.training.languages import LanguageSide

if TYPE_CHECKING:
    from derivlang.training.encoder import Encoder


RATE = 0.15


class Perplexity(Measure):
    """Perplexity of held-out sentences in both languages; for causal models also bits per word."""

    columns = (
        Column("perplexity", unit="", better="down", formula="exp", headline=True),
        Column("bits", "bits a word", unit="", better="down", formula="mean"),
    )
    needs = ("head",)
    reads = ("sentences",)

    def measure(self, model: Encoder, sets: MeasureSets) -> Iterator[Score]:
        """Yield the losses of each sentence in both languages: NaN if no sub-word is masked."""
        text = sets.sentences
        if model.causal:
            for regime, side, bits in zip(SIDES, (text.source, text.derived), sets.bits(model), strict=True):
                n = lengths_of(text.offsets_in(side)) + 1
                yield averaged("perplexity", regime, bits.sentences * math.log(2), n, sets.of_sentences)
                yield averaged("bits", regime, bits.sentences, text.n_words, sets.of_sentences)
            return
        by_slot = chosen(text)
        with stage("perplexity", "rows", 2 * text.n_sentences):
            for language, (regime, side) in enumerate(zip(SIDES, (text.source, text.derived), strict=True)):
                masked = by_slot[side.slots]
                n = np.bincount(text.rows[side.slots][masked], minlength=text.n_sentences)
                sums = masked_losses(model, text, side, masked, language)
                yield averaged("perplexity", regime, sums, n, sets.of_sentences)


def chosen(text: Heldout) -> Bool:
    """Return bool[K]: the slots whose sub-words are masked, in both languages."""
    draws = Draws("perplexity").draw(text.keys[text.rows], positions(text.offsets))
    return np.asarray(draws < np.uint64(int(RATE * 2**64)))


def masked_losses(model: Encoder, text: Heldout, side: LanguageSide, masked: Bool, language: int) -> Floats:
    """Return float64[S]: the cross-entropy of the masked sub-words of each sentence, in nats. masked: bool[M]."""
    within = text.offsets_in(side)
    whole, offsets = framed(side.ids, within, model.special_ids)
    asked = np.zeros(len(whole), bool)
    asked[expand_ranges(offsets[:-1] + 1, lengths_of(within))] = masked
    shown = np.where(asked, np.int32(model.special_ids.mask), whole)
    nats = losses(model, shown, offsets, language, asked, whole, RATE)
    return np.asarray(np.bincount(owners(offsets), nats, text.n_sentences), np.float64)


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
    needs = ("training text",)
    reads = ("sentences", "ngram_sentences")

    def measure(self, model: Encoder, sets: MeasureSets) -> Iterator[Score]:
        """Yield the bits of each sentence in the languages of the training, by 2- to 5-grams."""
        text = sets.sentences
        for regime, side, known in zip(SIDES, (text.source, text.derived), sets.training_text(), strict=True):
            if known is None:
                continue
            held_out = closed(side.ids, text.offsets_in(side), model.special_ids.end)
            with stage(f"{LONGEST}-grams, {regime}"):
                by_length = word_bits(known, held_out, LONGEST)
            for m, bits in by_length.items():
                sums = np.asarray(np.bincount(owners(held_out.offsets), bits, text.n_sentences), np.float64)
                yield averaged(f"bits_{m}", regime, sums, text.n_words, sets.of_sentences)
