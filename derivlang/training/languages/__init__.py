"""A source language and its derived language as input of a model (base.py), of two kinds.

    twins.py    a tokenizer of derivlang and its twin: both languages have the same sub-words, in different scripts
    texts.py    tokenizers of the text: one that reads both languages, as a checkpoint's does, or one for each

The folder of a run holds what `load` reads: `tokenizer/`, and `twin/`, `derived-tokenizer/` or `lexicon.tsv` where
there is one.
"""

from __future__ import annotations

from pathlib import Path

from derivlang.lexical.foreign import ForeignTokenizer, is_foreign
from derivlang.lexical.tokenizer import Tokenizer
from derivlang.pipeline import Pipeline
from derivlang.training.languages.base import (
    DERIVED,
    DERIVED_TOKENIZER,
    NO_MASK,
    SOURCE,
    TOKENIZER,
    TWIN,
    Languages,
    LanguageSide,
    ParallelBatch,
    SpecialIds,
)
from derivlang.training.languages.texts import LEXICON, TextLanguages, check_words
from derivlang.training.languages.twins import TwinLanguages, has_twin, twin_trans

__all__ = [
    "DERIVED",
    "DERIVED_TOKENIZER",
    "LEXICON",
    "NO_MASK",
    "SOURCE",
    "TOKENIZER",
    "TWIN",
    "ParallelBatch",
    "Languages",
    "LanguageSide",
    "SpecialIds",
    "TextLanguages",
    "TwinLanguages",
    "check_words",
    "fingerprint_of",
    "has_twin",
    "load",
    "tokenizer_of",
    "twin_trans",
]


def load(folder: Path, pipeline: Pipeline) -> Languages:
    """Read the languages of a run. Raise StoreError if files are missing or do not fit each other."""
    if (folder / TWIN).exists():
        return TwinLanguages.load(folder, pipeline)
    by_text = is_foreign(folder / TOKENIZER) or (folder / DERIVED_TOKENIZER).exists() or not has_twin(pipeline)
    if by_text or Tokenizer.load(folder / TOKENIZER).recipe["kind"] == "both":
        return TextLanguages.load(folder, pipeline)
    return TwinLanguages.load(folder, pipeline)  # which says what is missing


def tokenizer_of(folder: Path) -> Tokenizer | ForeignTokenizer:
    """Return the tokenizer of a folder. Raise StoreError if there is none, or if it is damaged."""
    return ForeignTokenizer.load(folder) if is_foreign(folder) else Tokenizer.load(folder)


def fingerprint_of(tokenizer: Path) -> str:
    """Return 16 hex digits that identify the tokenizer of a folder. Raise StoreError as `tokenizer_of`."""
    loaded = tokenizer_of(tokenizer)
    return loaded.fingerprint if isinstance(loaded, ForeignTokenizer) else loaded.fingerprint()
