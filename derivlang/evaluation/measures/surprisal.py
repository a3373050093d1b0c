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
"""

from __future__ import annotations

from collections.abc import Iterator
from typing import TYPE_CHECKING

import numpy as np
import pyarrow as pa
import pyarrow.parquet as pq

from derivlang.core.arrays import owners
from derivlang.core.arrow import list_array, to_arrow
from derivlang.evaluation.columns import SIDES, Column
from derivlang.evaluation.heldout import SpokenWords
from derivlang.evaluation.measures.base import Measure
from derivlang.evaluation.measures.bits import SentenceBits, averaged
from derivlang.evaluation.measures.sets import MeasureSets
from derivlang.evaluation.scores import Score
from derivlang.store.files import writing

if TYPE_CHECKING:
    from derivlang.training.encoder import Encoder


class Surprisal(Measure):
    """Surprisal of every word of held-out sentences in both languages, as Parquet."""

    columns = (Column("bits", "bits a sentence", unit="", better="down", formula="mean", headline=True),)
    needs_causal = True
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
