"""The languages of a run as input of a model (joint.py), each with a reader of its own (readers.py).

The folder of a run holds what `load` reads: `tokenizer/`, and `twin/`, `derived-tokenizer/` or `lexicon.tsv` where
there is one.
"""

from __future__ import annotations

from derivlang.training.languages.joint import (
    LEXICON,
    Languages,
    is_mapped,
    load,
    of_several,
    of_texts,
    of_twin,
    tokenizer_of,
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
    "is_mapped",
    "load",
    "of_several",
    "of_texts",
    "of_twin",
    "tokenizer_of",
    "twin_trans",
]
