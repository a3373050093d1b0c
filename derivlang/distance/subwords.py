"""How many sub-words two languages share, under the tokenizer of a model.

    the cat / the act   ->   the c at / the a ct      one of the three derived sub-words is shared

Each word is encoded by itself.
"""

from __future__ import annotations

from collections.abc import Mapping
from pathlib import Path

import numpy as np

from derivlang.core.arrays import Int64
from derivlang.core.arrow import string_array
from derivlang.lexical.foreign import ForeignTokenizer, is_foreign
from derivlang.lexical.overlap import subword_counts
from derivlang.lexical.own import OwnTokenizer


def subword_overlap(tokenizer: Path, source: Mapping[str, int], derived: Mapping[str, int]) -> dict[str, float | None]:
    """Return what the sub-words of two vocabularies share, by the names of `measure.SUBWORDS`; None without words.

    tokenizer: the folder of one of derivlang, or of one that `transformers` reads. source, derived: words and their
    counts. A sub-word that the tokenizer does not know is never shared. Raise StoreError for a folder without a
    tokenizer.
    """
    encoder = ForeignTokenizer.load(tokenizer) if is_foreign(tokenizer) else OwnTokenizer.load(tokenizer)
    ours, theirs = (_counts(encoder, words) for words in (source, derived))
    n, kinds = int(theirs.sum()), int((theirs > 0).sum())
    unknown = 0
    if encoder.unknown is not None:
        unknown, theirs[encoder.unknown] = int(theirs[encoder.unknown]), 0
    shared = theirs[ours > 0]
    return {
        "subword_overlap_percent": 100 * int(shared.sum()) / n if n else None,
        "subword_type_overlap_percent": 100 * int((shared > 0).sum()) / kinds if kinds else None,
        "unknown_subwords_percent": 100 * unknown / n if n else None,
    }


def _counts(encoder: ForeignTokenizer | OwnTokenizer, words: Mapping[str, int]) -> Int64:
    """Return int64[V]: how often each entry occurs in the running words of a vocabulary."""
    number = np.arange(len(words) + 1)
    encoded = encoder.encode(string_array(list(words)), number[:-1].astype(np.int32), number)
    return subword_counts(encoded, np.fromiter(words.values(), np.int64, len(words)), encoder.size)
