"""How many sub-words two languages share, under the tokenizer of a model.

    the cat / the act   ->   the c at / the a ct      one of the three derived sub-words is shared

Each word is encoded by itself.
"""

from __future__ import annotations

from collections.abc import Mapping
from pathlib import Path
from typing import TypeAlias

import numpy as np

from derivlang.core.arrays import Int64
from derivlang.core.arrow import string_array
from derivlang.core.errors import DataError
from derivlang.lexical.foreign import ForeignTokenizer, is_foreign
from derivlang.lexical.own import OwnTokenizer
from derivlang.lexical.twin import subword_counts

Encoder: TypeAlias = ForeignTokenizer | OwnTokenizer


def load_encoder(tokenizer: Path) -> Encoder:
    """Return the tokenizer of a folder: one of derivlang, or one that `transformers` reads.

    Raise DataError, at the option, for a folder without one.
    """
    try:
        return ForeignTokenizer.load(tokenizer) if is_foreign(tokenizer) else OwnTokenizer.load(tokenizer)
    except DataError as error:
        where = f"--tokenizer {error.where or tokenizer}"
        raise type(error)(error.what, where=where, fix=error.fix, id=error.id) from None


def subword_overlap(encoder: Encoder, source: Mapping[str, int], derived: Mapping[str, int]) -> dict[str, float | None]:
    """Return what the sub-words of two vocabularies share, by the names of `measure.SUBWORDS`; None without words.

    source, derived: words and their counts. A sub-word that the tokenizer does not know is never shared.
    """
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


def _counts(encoder: Encoder, words: Mapping[str, int]) -> Int64:
    """Return int64[V]: how often each entry occurs in the running words of a vocabulary."""
    number = np.arange(len(words) + 1)
    encoded = encoder.encode(string_array(list(words)), number[:-1].astype(np.int32), number)
    return subword_counts(encoded, np.fromiter(words.values(), np.int64, len(words)), encoder.size)
