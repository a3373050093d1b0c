"""Surprisal of words and sentences under a causal model, as Parquet for other tools: a row for each sentence.

    RUN/evaluation/surprisal.source.parquet, surprisal.derived.parquet           of RUN@STEP: RUN/evaluation/step-…/

    words    list<string>    the words of the sentence, in the order of the language
    bits     list<float>     -log2 p(word | what is before it in the sentence), the sum over its sub-words
    end      double          the same for the closing </s>
    total    double          -log2 p(sentence), of all its sub-words and of </s>
    subword_bits     list<float>    the same for each sub-word, in the order of the language
    subword_words    list<int32>    the place of its word in `words`

Row i of both files is the same sentence, each with its own words: a word that the derived language inserts is only in
its file, a word that it deletes only in the source's. With an order of sub-words (unit=token) the sub-words of a word
may be apart: its place is the place of the first, and its bits are of all. A sub-word that words share belongs to the
first of them, so the others may have 0 bits. With a tokenizer of derivlang and its twin, words of only white space are
left out. Source: Hale (2001), section 2.

The measure regions, for languages that insert words, has the bits of markers, of the words after them, and of all other
words.

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
import pyarrow as pa
import pyarrow.parquet as pq

from derivlang.align.lexical import Floats
from derivlang.core.arrays import Int64, expand_ranges, lengths_of, offsets_of, owners
from derivlang.core.arrow import list_array, to_arrow
from derivlang.evaluation.columns import SIDES, Column
from derivlang.evaluation.examples import framed
from derivlang.evaluation.heldout import Heldout, SpokenWords
from derivlang.evaluation.measures.base import Measure
from derivlang.evaluation.measures.bits import SentenceBits, averaged, losses
from derivlang.evaluation.measures.sets import MeasureSets
from derivlang.evaluation.scores import Score
from derivlang.formats.progress import stage
from derivlang.store.files import writing
from derivlang.training.languages import DERIVED

if TYPE_CHECKING:
    from derivlang.training.encoder import Encoder


class Surprisal(Measure):
    """Surprisal of every word of held-out sentences in both languages, as Parquet."""

    columns = (Column("bits", "bits a sentence", unit="", better="down", formula="mean", headline=True),)
    needs = ("causal",)
    reads = ("sentences",)
    files = tuple(f"surprisal.{side}.parquet" for side in SIDES)

    def measure(self, model: Encoder, sets: MeasureSets) -> Iterator[Score]:
        """Write both files. Yield the bits of each sentence in both languages."""
        text = sets.sentences
        sets.files.mkdir(parents=True, exist_ok=True)
        columns = zip(SIDES, self.files, sets.bits(model), text.spoken, (text.forms, text.derived_forms), strict=True)
        for name, file, bits, words, forms in columns:
            with writing(sets.files / file) as stream:
                pq.write_table(_table(words, bits, forms), stream, compression="zstd")
            yield averaged("bits", name, bits.sentences, np.ones(text.n_sentences), sets.of_sentences)


def _table(words: SpokenWords, bits: SentenceBits, forms: pa.Array) -> pa.Table:
    """Return the table of a language. forms: [K], the word of each slot."""
    places = words.of_subwords - words.offsets[:-1][owners(bits.offsets)]
    return pa.table(
        {
            "words": list_array(words.offsets, forms.take(to_arrow(words.slots))),
            "bits": list_array(words.offsets, to_arrow(words.sums(bits.subwords).astype(np.float32))),
            "end": bits.ends,
            "total": bits.sentences,
            "subword_bits": list_array(bits.offsets, to_arrow(bits.subwords.astype(np.float32))),
            "subword_words": list_array(bits.offsets, to_arrow(places.astype(np.int32))),
        }
    )


class Regions(Measure):
    """Surprisal of inserted words, of the words after them, and of all other words."""

    columns = (
        Column("difference", "bits without a marker − its own", unit="", formula="mean", headline=True),
        Column("marker", "bits a marker", unit="", better="down", formula="mean"),
        Column("after", "bits a word after a marker", unit="", better="down", formula="mean"),
        Column("other", "bits another word", unit="", better="down", formula="mean"),
    )
    needs = ("causal",)
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
