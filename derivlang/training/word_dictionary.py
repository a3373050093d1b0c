"""A bilingual dictionary of words, for the tokenizer of a checkpoint, whose entries have no counterparts.

dog Hund          SOURCE: {"dog": ("Hund", "Rüde")}
dog Rüde          DERIVED: {"Hund": ("dog",), "Rüde": ("dog",)}
"""

from __future__ import annotations

from collections.abc import Callable, Mapping
from dataclasses import dataclass
from pathlib import Path

from derivlang.formats.dictionary import Dictionary, read_dictionary


@dataclass(frozen=True, slots=True, eq=False)
class WordDictionary:
    """Translations of words in both directions.

    pairs: (word of the source, word of the derived language). translations: of the words of each language, without a
    word as its own translation. sha256: hash of the file.
    """

    pairs: tuple[tuple[str, str], ...]
    translations: tuple[Mapping[str, tuple[str, ...]], Mapping[str, tuple[str, ...]]]
    sha256: str

    @classmethod
    def read(cls, path: Path, warn: Callable[[str], None] = lambda message: None) -> WordDictionary:
        """Read a file in any form of `derivlang dict`. Raise DataError if it is missing or holds no pair."""
        found = read_dictionary(path)
        if told := found.warning(path):
            warn(told)
        pairs = tuple(pair for pair in found.pairs if pair[0] != pair[1])
        there, back = (
            Dictionary(some, (), "").entries() for some in (pairs, tuple((right, left) for left, right in pairs))
        )
        return cls(pairs, (there, back), found.sha256)

    def of(self, word: str, language: int) -> tuple[str, ...]:
        """Return the translations of a word of a language, looked up as it is, else in lower case."""
        known = self.translations[language]
        return known.get(word) or known.get(word.lower(), ())
