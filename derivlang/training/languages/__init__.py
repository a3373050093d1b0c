"""The languages of a run as input of a model (joint.py), each with a reader of its own (readers.py).

The folder of a run holds what `load` reads: `tokenizer/`, and `twin/`, `derived-tokenizer/` or `lexicon.tsv` where
there is one.
"""

from __future__ import annotations

from pathlib import Path

from derivlang.lexical.foreign import ForeignTokenizer, is_foreign
from derivlang.lexical.tokenizer import Tokenizer
from derivlang.training.languages.joint import (
    LEXICON,
    Languages,
    is_mapped,
    load,
    of_several,
    of_texts,
    of_twin,
    twin_trans,
)
from derivlang.training.languages.readers import (
    DERIVED,
    DERIVED_TOKENIZER,
    NO_MASK,
    SOURCE,
    TOKENIZER,
    TWIN,
    LanguageReader,
    LanguageSide,
    ParallelBatch,
    SpecialIds,
    check_words,
)

__all__ = [
    "DERIVED",
    "DERIVED_TOKENIZER",
    "LEXICON",
    "NO_MASK",
    "SOURCE",
    "TOKENIZER",
    "TWIN",
    "LanguageSide",
    "Languages",
    "ParallelBatch",
    "LanguageReader",
    "SpecialIds",
    "check_words",
    "fingerprint_of",
    "is_mapped",
    "load",
    "of_several",
    "of_texts",
    "of_twin",
    "tokenizer_of",
    "twin_trans",
]


def tokenizer_of(folder: Path) -> Tokenizer | ForeignTokenizer:
    """Return the tokenizer of a folder. Raise StoreError if there is none, or if it is damaged."""
    return ForeignTokenizer.load(folder) if is_foreign(folder) else Tokenizer.load(folder)


def fingerprint_of(tokenizer: Path) -> str:
    """Return 16 hex digits that identify the tokenizer of a folder. Raise StoreError as `tokenizer_of`."""
    loaded = tokenizer_of(tokenizer)
    return loaded.fingerprint if isinstance(loaded, ForeignTokenizer) else loaded.fingerprint()
