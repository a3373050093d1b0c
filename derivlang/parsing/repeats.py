"""Equal sentences: found by a hash of their words, so that each is parsed once.

Headings and short lines come again in any corpus, and in NLI each premise stands in several pairs.
"""

from __future__ import annotations

import numpy as np

from derivlang.core.arrays import Int32, Int64, expand_ranges, lengths_of, offsets_of, segment_any
from derivlang.core.keys import mix, sequence_keys


def distinct_sentences(words: Int32, sentences: Int64) -> tuple[Int64, Int64]:
    """Return (int64[D] the first of each kind of equal sentences, ascending; int64[S] the kind of each sentence).

    words: int32[N], codes of the words. sentences: int64[S + 1]. A sentence whose hash belongs to other words counts as
    a kind of its own. Sentences a b a c -> [0, 1, 3], [0, 1, 0, 2].
    """
    keys = sequence_keys(mix(words.astype(np.uint64)), sentences)
    _, first, kind = np.unique(keys, return_index=True, return_inverse=True)
    first = first[kind]  # of each sentence
    lengths = lengths_of(sentences)
    again = np.flatnonzero(first != np.arange(len(first)))
    here, there = (expand_ranges(sentences[:-1][of], lengths[again]) for of in (again, first[again]))
    differs = segment_any(words[here] != words.take(there, mode="clip"), offsets_of(lengths[again]))
    differs |= lengths[first[again]] != lengths[again]
    first[again[differs]] = again[differs]
    return np.unique(first, return_inverse=True)


def take_sentences(sentences: Int64, chosen: Int64) -> tuple[Int64, Int64]:
    """Return (int64[M] the words of some sentences, int64[C + 1] their offsets); chosen: int64[C]."""
    lengths = lengths_of(sentences)[chosen]
    return expand_ranges(sentences[:-1][chosen], lengths), offsets_of(lengths)
