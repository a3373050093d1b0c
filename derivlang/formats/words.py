"""Word splitters for raw text: spaCy's rule tokenizer (default), Unicode words, or white space.

A splitter sees one space-free piece at a time, each distinct piece once (`pieces.py`), and returns its words,
which spell the piece. Declared special tokens (`<unk>`, `[MASK]`) are cut out first.

    Splitter("spacy", "en").words("(don't)")  ->  ["(", "do", "n't", ")"]
"""

from __future__ import annotations

import re
import sys
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from functools import cache
from typing import Any, Literal, get_args

from derivlang.core.errors import DataError, UsageError
from derivlang.core.lexicon import SPECIALS

Mode = Literal["spacy", "unicode", "space"]
MODES: tuple[str, ...] = get_args(Mode)

_SPECIAL = re.compile("(" + "|".join(re.escape(token) for token in SPECIALS) + ")")
# A run of letters, digits and marks, or one other character. `\w` knows no combining marks, hence the class.
_UNICODE_WORD = re.compile(
    "(?:\\w|[\u0300-\u036f\u0591-\u05c7\u0610-\u061a\u064b-\u065f\u0900-\u0903\u093a-\u094f])+|.", re.DOTALL
)


class Splitter:
    """Splits space-free pieces into words. UsageError names a language or package that is missing."""

    def __init__(self, mode: Mode = "spacy", language: str = "en"):
        self.mode, self.language = mode, language
        self.version = ""
        self._split: Callable[[str], list[str]] = self._spacy() if mode == "spacy" else _UNICODE_WORD.findall

    def words(self, piece: str) -> list[str]:
        """The words of a piece, in order; joined they are the piece."""
        if self.mode == "space":
            return [piece]
        words: list[str] = []
        for i, part in enumerate(_SPECIAL.split(piece)):
            if part:
                words += [part] if i % 2 else self._split(part)
        if "".join(words) != piece:
            raise DataError(f"the {self.language} tokenizer does not spell {piece!r}: {words}", id="tokenizer")
        return words

    def __str__(self) -> str:
        """What the manifest says: `spacy 3.8.7 en`, `space` …"""
        return f"spacy {self.version} {self.language}" if self.mode == "spacy" else self.mode

    def _spacy(self) -> Callable[[str], list[str]]:
        from importlib.metadata import version  # a third of the package's own start-up time

        try:
            self.version = version("spacy")
            tokenizer = _tokenizer(self.language)
        except ImportError as error:
            named = f": {error.name}" if error.name and error.name != "spacy" else f": {error}"
            first = str(named).splitlines()[0]
            raise UsageError(
                f"spaCy's tokenizer for --lang {self.language} needs something that is missing{first}",
                where="--lang",
                fix="install what it names, or pass --words unicode or --words space",
                id="language",
            ) from None
        return lambda text: [token.text for token in tokenizer(text)]


@cache
def _tokenizer(language: str) -> Callable[[str], Any]:
    """spaCy's rule tokenizer of a language; some tenths of a second, so it is built once a process."""
    with _without("torch"):
        import spacy

    tokenizer: Callable[[str], Any] = spacy.blank(language).tokenizer
    return tokenizer


@contextmanager
def _without(package: str) -> Iterator[None]:
    """Keep a package from being loaded: spaCy looks for torch (seconds), which its rule tokenizers never use."""
    if package in sys.modules:
        yield
        return
    sys.modules[package] = None  # type: ignore[assignment]  # Python's way to say: not to be found
    try:
        yield
    finally:
        del sys.modules[package]
