"""Forms that depend on the place of a word, not only on its type: lemmas, and suffixes chosen in the tree.

Transform.forms     the form of each word so far  ->  its new form
"""

from __future__ import annotations

from typing import NamedTuple

import numpy as np
import pyarrow as pa
import pyarrow.compute as pc

from derivlang.core.arrays import Int32, Int64
from derivlang.core.arrow import filled, scalar, string_array, to_arrow, to_numpy
from derivlang.core.batch import Batch
from derivlang.core.layers.words import Words
from derivlang.core.lexicon import Lexicon

LEMMAS = "lemmas"
_NO_LEMMA = ("", "_")


class Forms(NamedTuple):
    """The form of each word of a batch. words: int32[N], codes into types, Arrow strings [T]."""

    words: Int32
    types: pa.Array

    def changed(self, at: Int64, types: pa.Array, codes: Int64) -> Forms:
        """Return the forms with other ones at some words. at: int64[n]. codes: int64[n], into further types."""
        words = self.words.copy()
        words[at] = len(self.types) + codes
        return Forms(words, pa.concat_arrays([self.types, types.cast(self.types.type)]))


def with_lemmas(forms: Forms, batch: Batch, at: Int64, before: Lexicon) -> Forms:
    """Return the forms with the lemma at some words, int64[n]. A word without a lemma keeps its form.

    before: the lexicon of the transforms before; the lemma goes through it, as the word did. None of them replaced some
    words only (`Pipeline`).
    """
    lemmas = batch.layers[LEMMAS]
    assert isinstance(lemmas, Words)
    has_one = ~to_numpy(pc.is_in(lemmas.values, value_set=string_array(_NO_LEMMA)))
    has_one &= to_numpy(pc.is_valid(lemmas.values))
    at = at[has_one[lemmas.codes[at]]]
    values = filled(lemmas.values.cast(pa.string()), "")
    return forms.changed(at, before.apply(values), lemmas.codes[at].astype(np.int64))


def with_suffixes(forms: Forms, at: Int64, codes: Int64, suffixes: pa.Array) -> Forms:
    """Return the forms with a suffix at some words. at: int64[n]. codes: int64[n], into suffixes, Arrow strings [K].

    the cat, suffixes kar kon, at [1], codes [0]   ->   the catkar
    """
    n = len(suffixes)
    pairs, which = np.unique(forms.words[at].astype(np.int64) * n + codes, return_inverse=True)
    stems, ends = forms.types.take(to_arrow(pairs // n)), suffixes.take(to_arrow(pairs % n))
    return forms.changed(at, pc.binary_join_element_wise(stems, ends, scalar("")), which)
