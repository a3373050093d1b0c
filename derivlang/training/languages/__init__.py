"""A source language and its derived language as input of a model (base.py), of two kinds.

    twins.py    a tokenizer of derivlang and its twin: both languages have the same sub-words, in different scripts
    texts.py    the tokenizer of a checkpoint, which reads the text of both languages

The folder of a run holds what `load` reads: `tokenizer/`, and `twin/` or `lexicon.tsv` where there is one.
"""

from __future__ import annotations

from pathlib import Path

from derivlang.lexical.foreign import ForeignTokenizer
from derivlang.lexical.tokenizer import CONFIG, RECIPE, Tokenizer
from derivlang.pipeline import Pipeline
from derivlang.training.languages.base import (
    DERIVED,
    NO_MASK,
    SOURCE,
    TOKENIZER,
    TWIN,
    Languages,
    LanguageSide,
    ParallelBatch,
    SpecialIds,
)
from derivlang.training.languages.texts import LEXICON, TextLanguages
from derivlang.training.languages.twins import TwinLanguages, check_permutation, twin_trans

__all__ = [
    "DERIVED",
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
    "check_permutation",
    "fingerprint_of",
    "is_foreign",
    "load",
    "tokenizer_of",
    "twin_trans",
]


def load(folder: Path, pipeline: Pipeline) -> Languages:
    """Read the languages of a run. Raise StoreError if files are missing or do not fit each other."""
    if is_foreign(folder / TOKENIZER) and not (folder / TWIN).exists():
        return TextLanguages.load(folder, pipeline)
    return TwinLanguages.load(folder, pipeline)


def is_foreign(tokenizer: Path) -> bool:
    """Return whether a folder holds a tokenizer that derivlang did not make."""
    return (tokenizer / CONFIG).is_file() and not (tokenizer / RECIPE).exists()


def tokenizer_of(folder: Path) -> Tokenizer | ForeignTokenizer:
    """Return the tokenizer of a folder. Raise StoreError if there is none, or if it is damaged."""
    return ForeignTokenizer.load(folder) if is_foreign(folder) else Tokenizer.load(folder)


def fingerprint_of(tokenizer: Path) -> str:
    """Return 16 hex digits that identify the tokenizer of a folder. Raise StoreError as `tokenizer_of`."""
    found = tokenizer_of(tokenizer)
    return found.fingerprint if isinstance(found, ForeignTokenizer) else found.fingerprint()
