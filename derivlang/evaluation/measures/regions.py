"""Surprisal by region, for languages that insert words: of markers, of the words after them, and of all other words.

    He clean his very messy bookshelf 🅂 .        hop:words=4
    o  o     o   o    o     o         m a         o: other, m: marker, a: after a marker

A model that has learnt the rule expects a marker where it belongs more than what would stand there without it
(Kallini et al. 2024, arXiv 2401.06416, experiment 2):

    difference = bits(. | He clean his very messy bookshelf) - bits(🅂 | He clean his very messy bookshelf)

It is positive if the marker is expected. The bits of a marker are of all its sub-words. Without the marker, the bits
are of one sub-word: the first one of the next word, or the closing </s>.
"""

from __future__ import annotations

import math
from collections.abc import Iterator
from dataclasses import replace
from typing import TYPE_CHECKING

import numpy as np

from derivlang.align.lexical import Floats
from derivlang.core.arrays import Int64, expand_ranges, lengths_of, offsets_of, owners
from derivlang.core.arrow import to_arrow
from derivlang.evaluation.columns import SIDES, Column
from derivlang.evaluation.heldout import Heldout, SpokenWords
from derivlang.evaluation.measures.base import Measure
from derivlang.evaluation.measures.bits import averaged, losses
from derivlang.evaluation.measures.sets import MeasureSets
from derivlang.evaluation.padding import framed
from derivlang.evaluation.scores import Score
from derivlang.formats.progress import stage
from derivlang.training.languages import DERIVED

if TYPE_CHECKING:
    from derivlang.training.encoder import Encoder


class Regions(Measure):
    """Surprisal of inserted words, of the words after them, and of all other words."""

    columns = (
        Column("difference", "bits without a marker − its own", unit="", formula="mean", headline=True),
        Column("marker", "bits a marker", unit="", better="down", formula="mean"),
        Column("after", "bits a word after a marker", unit="", better="down", formula="mean"),
        Column("other", "bits another word", unit="", better="down", formula="mean"),
    )
    needs_causal = True
    reads = ("sentences",)

    def lacks(self, sets: MeasureSets) -> str:
        """Return that there are no inserted words, if so."""
        return "" if sets.sentences.inserted.any() else "inserted words"

    def measure(self, model: Encoder, sets: MeasureSets) -> Iterator[Score]:
        """Yield the bits of each sentence's words by region, and the bits of markers also by form, as a group."""
        text, words = sets.sentences, sets.sentences.spoken[DERIVED]
        bits = words.sums(sets.bits(model)[DERIVED].subwords)
        sentence, markers = owners(words.offsets), np.flatnonzero(words.inserted)
        after = np.zeros_like(words.inserted)
        after[1:] = words.inserted[:-1] & (np.diff(sentence) == 0)
        regions = {"after": after & ~words.inserted, "other": ~after & ~words.inserted}

        def score(metric: str, values: Floats, some: Int64, group: str = "") -> Score:
            """Return the mean of values of some words."""
            n = np.bincount(sentence[some], minlength=text.n_sentences)
            sums = np.asarray(np.bincount(sentence[some], values, text.n_sentences), np.float64)
            return replace(averaged(metric, SIDES[DERIVED], sums, n, sets.of_sentences), group=group)

        for name, among in regions.items():
            yield score(name, bits[among], np.flatnonzero(among))
        with stage("without markers", "rows", len(markers)):
            without = bits_without(model, text, words, markers)
        assert text.derived_forms is not None
        forms = text.derived_forms.take(to_arrow(words.slots[markers])).to_numpy(zero_copy_only=False)
        for form in ("", *sorted(set(forms))):
            some = forms == form if form else np.ones(len(markers), bool)
            own = bits[markers[some]]
            yield score("marker", own, markers[some], form)
            yield score("difference", without[some] - own, markers[some], form)


def bits_without(model: Encoder, text: Heldout, words: SpokenWords, some: Int64) -> Floats:
    """Return float64[X]: the bits of the sub-word, or </s>, that follows where a word is left out of its sentence.

    some: int64[X], words of the derived language whose sub-words stand together.

        sentence we 🅂 low er, word 1      row <s> we low er </s>, asked for low
    """
    sentence, offsets = owners(words.offsets)[some], text.offsets_in(text.derived)
    lengths = lengths_of(offsets)[sentence]
    at, row = expand_ranges(offsets[sentence], lengths), np.repeat(np.arange(len(some)), lengths)
    kept = words.of_subwords[at] != some[row]
    whole, ends = framed(
        text.derived.ids[at[kept]], offsets_of(np.bincount(row[kept], minlength=len(some))), model.special_ids
    )
    first = np.searchsorted(words.of_subwords, some)
    place = ends[:-1] + first - offsets[sentence]  # of the sub-word before; <s> stands at the row's begin
    asked = np.zeros(len(whole), bool)
    asked[place] = True
    bits = losses(model, whole, ends, DERIVED, asked, np.roll(whole, -1)) / math.log(2)
    return np.asarray(bits[place])
