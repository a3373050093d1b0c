"""Word splitters for raw text: spaCy's rule tokenizer (default), Unicode words (`word_breaks.py`), or white space.

A splitter gets one piece without white space at a time, each distinct piece once (`pieces.py`), and returns words that
spell the piece. Declared special tokens (`<unk>`, `[MASK]`) are separated first. The time for a piece is bounded:
spaCy's tokenizer strips punctuation marks one by one and searches the whole rest each time, so `_at_end` limits the
search, and pieces longer than any word are cut beforehand.

    Splitter("spacy", "en").words("(don't)")  ->  ["(", "do", "n't", ")"]
"""

from __future__ import annotations

import re
import sys
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from functools import cache
from importlib.util import find_spec
from pathlib import Path
from typing import Any

from derivlang.core.errors import DataError, UsageError, unknown
from derivlang.core.lexicon import SPECIALS
from derivlang.core.rules import MODES, Mode
from derivlang.formats.unspaced import WITH_RULES, rules_for

_SPECIAL = re.compile("(" + "|".join(re.escape(token) for token in SPECIALS) + ")")


# What spaCy's own tokenizers of these languages need; its extra has the packages.
_INSTALLED = {
    "ja": 'pip install "spacy[ja]"',
    "ko": 'pip install "spacy[ko]", and mecab-ko',
    "th": 'pip install "spacy[th]"',
    "vi": "pip install pyvi",
}
# spaCy's suffixes of these languages lack the full stop. Abbreviations of one letter keep theirs.
_WITHOUT_STOP = ("ar", "grc")
_STOP = r"(?:(?<=[^\s.][^\s.])|(?<=\d))\.$"
_LONGEST = 4096  # characters of a piece that spaCy's tokenizer sees at once
_SUFFIX = 64  # characters: longer than any of spaCy's suffixes except runs of dots


class Splitter:
    """Splits pieces without white space into words. Raises UsageError for a missing mode, language or package."""

    def __init__(self, mode: Mode = "spacy", language: str = "en"):
        if mode not in MODES:
            raise unknown("word splitter", mode, MODES, where="--words", id="unknown-word")
        self.mode, self.language, self.version = mode, language, ""
        self._split: Callable[[str], list[str]] = list  # `space` never splits a piece
        if mode != "space":
            self._split = self._spacy() if mode == "spacy" else self._unicode()

    @property
    def divides(self) -> tuple[str, ...]:
        """The codes of the languages whose words it finds without spaces between them."""
        return WITH_RULES.get(self.language, ()) if self.mode == "spacy" else ()

    def words(self, piece: str) -> list[str]:
        """Return the words of a piece, in order; joined, they are the piece."""
        if self.mode == "space":
            return [piece]
        words: list[str] = []
        for i, part in enumerate(_SPECIAL.split(piece)):
            if part and i % 2:
                words.append(part)
            elif part:
                words += self._split(part)
        if "".join(words) != piece:
            raise DataError(
                f"the {self.language} tokenizer splits {piece!r} into words that do not spell it: {words}",
                id="tokenizer",
            )
        return words

    def __str__(self) -> str:
        """Return the text for the manifest: `spacy 3.8.7 en`, `unicode 15.0.0`, `space`."""
        return " ".join(filter(None, (self.mode, self.version, self.language if self.mode == "spacy" else "")))

    def _unicode(self) -> Callable[[str], list[str]]:
        from derivlang.formats.word_breaks import VERSION, unicode_words  # imported here: its patterns take 10 ms

        self.version = VERSION
        return unicode_words

    def _spacy(self) -> Callable[[str], list[str]]:
        try:
            self.version = _version()
            tokenizer = _tokenizer(self.language)
        except ImportError as error:
            if "E048" in str(error):  # spaCy's id of this error: it has no such language
                raise UsageError(
                    f"spaCy has no word rules for the language {self.language!r}",
                    where="--lang",
                    fix=rules_for(self.language)
                    or "pass --lang xx for rules that fit most alphabets, or --words unicode or --words space",
                    id="language",
                ) from None
            named = f": {error.name}" if error.name and error.name != "spacy" else f": {error}"
            first = str(named).splitlines()[0]
            raise UsageError(
                f"spaCy's tokenizer of the language {self.language!r} needs a missing package{first}",
                where="--lang",
                fix=_INSTALLED.get(self.language, "install the package")
                + ("" if self.language in WITH_RULES else ", or pass --words unicode or --words space"),
                id="language",
            ) from None
        return lambda text: [token.text for stretch in _stretches(text) for token in tokenizer(stretch)]


def has_rules(language: str) -> bool:
    """Return whether spaCy has word rules for a language, by its code, without loading them."""
    spacy = find_spec("spacy")
    return spacy is not None and spacy.origin is not None and (Path(spacy.origin).parent / "lang" / language).is_dir()


@cache
def _version() -> str:
    from importlib.metadata import version  # imported here: a third of the package's own start-up time

    return version("spacy")


@cache
def _tokenizer(language: str) -> Callable[[str], Any]:
    """Return spaCy's rule tokenizer of a language, built once per process (some tenths of a second)."""
    with _without("torch"):
        import spacy

    tokenizer: Any = spacy.blank(language).tokenizer
    suffixes = getattr(getattr(tokenizer, "suffix_search", None), "__self__", None)
    if isinstance(suffixes, re.Pattern):  # a rule tokenizer; some languages have tokenizers of other kinds
        if language in _WITHOUT_STOP:
            suffixes = re.compile(f"{suffixes.pattern}|{_STOP}")
        tokenizer.suffix_search = _at_end(suffixes)
    return tokenizer  # type: ignore[no-any-return]


def _at_end(suffixes: re.Pattern[str]) -> Callable[[str], re.Match[str] | None]:
    """Return `suffixes.search` for a pattern that matches only at the end of a text.

    It searches the last characters, and the whole text only if the match may begin before them.
    """

    def search(text: str) -> re.Match[str] | None:
        begin = max(0, len(text) - _SUFFIX)
        match = suffixes.search(text, begin)
        return suffixes.search(text) if match is not None and 0 < begin == match.start() else match

    return search


def _stretches(piece: str) -> Iterator[str]:
    """Yield a piece in stretches of at most _LONGEST characters, cut after a mark if the second half has one."""
    begin = 0
    while len(piece) - begin > _LONGEST:
        cuts = (at for at in range(begin + _LONGEST, begin + _LONGEST // 2, -1) if not piece[at - 1].isalnum())
        end = next(cuts, begin + _LONGEST)
        yield piece[begin:end]
        begin = end
    yield piece[begin:]


@contextmanager
def _without(package: str) -> Iterator[None]:
    """Prevent a package from being imported: spaCy imports torch (seconds), which its rule tokenizers never use."""
    if package in sys.modules:
        yield
        return
    sys.modules[package] = None  # type: ignore[assignment]  # makes `import` raise ImportError
    try:
        yield
    finally:
        del sys.modules[package]
