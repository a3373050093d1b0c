"""Word splitters for raw text: spaCy's rule tokenizer (default), Unicode words (`word_breaks.py`), or white space.

A splitter gets one piece without white space at a time, each distinct piece once (`pieces.py`), and returns words that
spell the piece. Declared special tokens (`<unk>`, `[MASK]`) are separated first. The time for a piece is bounded:
spaCy's tokenizer strips punctuation marks one by one and searches the whole rest each time, so `_at_end` limits the
search, and pieces longer than any word are cut beforehand.

    Splitter("spacy", "en").words("(don't)")  ->  ["(", "do", "n't", ")"]

In a script without spaces between words, a line is undivided if most of its letters are of the script and its words
are longer than the words of the language are on average. Word rules that need spaces leave such a line as one word or a
few, which no order can move.

    我喜欢猫。       --lang en   ->   我喜欢猫 。         undivided: a word of 4 letters
    我喜欢猫。       --lang zh   ->   我 喜 欢 猫 。
    我 喜欢 猫 。    --lang en   ->   我 喜欢 猫 。        divided by its spaces
"""

from __future__ import annotations

import re
import sys
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from dataclasses import dataclass
from functools import cache, partial
from importlib.util import find_spec
from pathlib import Path
from typing import Any

import numpy as np
import pyarrow as pa
import pyarrow.compute as pc

from derivlang.core.arrays import Int32, Int64, expand_ranges, offsets_of
from derivlang.core.arrow import to_arrow, to_numpy
from derivlang.core.errors import DataError, UsageError, unknown
from derivlang.core.keys import string_buffers
from derivlang.core.lexicon import SPECIALS
from derivlang.core.messages import counted, warn
from derivlang.core.takes import MODES, Mode

_BY_A_TOOL = "divide its words with a tool for the language, put spaces between them, and pass --words space"


@dataclass(frozen=True, slots=True)
class Unspaced:
    """A language without spaces between words.

    code: its ISO code. letters: a class of a regular expression. least: letters of a word, on average over a line, from
    which on the line is undivided: about twice those in running text. rules: what divides its words.
    """

    code: str
    name: str
    letters: str
    least: int
    rules: str


# Words of running text have 1.7 letters on average in Chinese, 2 in Japanese, 4 to 6 in the others, with vowel signs.
LANGUAGES = (
    Unspaced(
        "ja", "Japanese", "\u3040-\u30ff\u31f0-\u31ff\uff66-\uff9d", 3,
        'pass --lang ja, which needs `pip install "spacy[ja]"`',
    ),
    Unspaced("th", "Thai", "\u0e00-\u0e7f", 6, 'pass --lang th, which needs `pip install "spacy[th]"`'),
    Unspaced("lo", "Lao", "\u0e80-\u0eff", 6, _BY_A_TOOL),
    Unspaced("bo", "Tibetan", "\u0f00-\u0fff", 8, _BY_A_TOOL),
    Unspaced("my", "Burmese", "\u1000-\u109f\ua9e0-\ua9ff\uaa60-\uaa7f", 8, _BY_A_TOOL),
    Unspaced("km", "Khmer", "\u1780-\u17ff", 8, _BY_A_TOOL),
    Unspaced(
        "zh", "Chinese", "\u3400-\u4dbf\u4e00-\u9fff\uf900-\ufaff\U00020000-\U0003134f", 3,
        f"pass --lang zh, which makes each character a word, or {_BY_A_TOOL} (jieba and spacy-pkuseg are such tools)",
    ),
)  # fmt: skip
WITH_RULES = {"ja": ("ja", "zh"), "zh": ("zh", "ja"), "th": ("th",)}  # what spaCy's tokenizers of a language divide
# Compiled when they are first used: that takes 5 ms, and many texts need none of them.
_ANY = f"[{''.join(language.letters for language in LANGUAGES)}]"
_SHOWN = 30  # characters of a line in a message


def rules_for(code: str) -> str | None:
    """Return what divides the words of a language without spaces, None for any other language."""
    return next((language.rules for language in LANGUAGES if language.code == code), None)


def language_of(text: str) -> Unspaced | None:
    """Return the language without spaces that text is in, or None. Kanji without kana are Chinese."""
    return next((language for language in LANGUAGES if re.search(f"[{language.letters}]", text)), None)


class Undivided:
    """Finds undivided lines among the lines that a splitter has read.

    Lines are an error if they are half of all or more; fewer are a warning. If the splitter only divides at spaces,
    half or more are a warning, and fewer nothing: words that are divided by spaces were divided by the user.
    """

    def __init__(self, splitter: Splitter):
        self._divides, self._strict = splitter.divides, splitter.mode != "space"
        self._instead = "" if splitter.mode == "spacy" else f"leave out --words {splitter.mode} and "
        self._warned = False
        self._lines = self._undivided = 0

    def check(self, pieces: pa.Array, codes: Int32, cuts: Int64, place: Callable[[int], str] | None = None) -> None:
        """Look at further lines. Raise DataError undivided-text, or warn once, if some are undivided.

        codes: int32[P], into distinct pieces, Arrow strings. cuts: int64[L + 1], piece offsets of the lines. place:
        returns the place of a line, for the error.
        """
        self._lines += int(np.count_nonzero(cuts[1:] > cuts[:-1]))
        if string_buffers(pieces)[0].tobytes().isascii():
            return
        some = np.flatnonzero(to_numpy(pc.match_substring_regex(pieces, _ANY)))
        if not some.size:
            return
        # Three numbers for each piece, as `_figures_of` returns them.
        of_pieces = np.zeros((3, len(pieces)), np.int32)
        of_pieces[1] = to_numpy(pc.utf8_length(pieces))
        for i, piece in zip(some.tolist(), pieces.take(to_arrow(some)).to_pylist(), strict=True):
            of_pieces[:, i] = self._figures_of(piece)
        hits = np.flatnonzero((of_pieces[0] > 0).take(codes, mode="clip"))
        lines = np.unique(np.searchsorted(cuts, hits, "right") - 1)  # few, or none, in text of other languages
        sizes = cuts[lines + 1] - cuts[lines]
        figures = of_pieces[:, codes[expand_ranges(cuts[lines], sizes)]]
        # Running sums of the three figures at the ends of the lines; their differences are the sums of each line.
        sums = np.stack([offsets_of(column) for column in figures])[:, offsets_of(sizes)]
        letters, total, least = sums[:, 1:] - sums[:, :-1]
        undivided = lines[(2 * letters > total) & (letters >= least)]
        self._undivided += len(undivided)
        many = 2 * self._undivided >= self._lines
        refused = many and self._strict
        if not len(undivided) or not (refused or ((many or self._strict) and not self._warned)):
            return
        line = slice(cuts[undivided[0]], cuts[undivided[0] + 1])
        text = " ".join(pieces.take(to_arrow(codes[line])).to_pylist())
        language = language_of(text)
        assert language is not None
        shown = text if len(text) <= _SHOWN else f"{text[:_SHOWN]}…"
        if refused:
            raise DataError(
                f"the words of {language.name} text are not divided: {shown!r} would stay as it is",
                where=place(int(undivided[0])) if place else None,
                fix=f"{self._how(language)}; if each line is one word, --words space says so",
                id="undivided-text",
            )
        self._warned = True
        warn(
            f"the words of {counted(len(undivided), 'line')} of {language.name} text are not divided, "
            f"such as {shown!r}; to divide them, {self._how(language)}"
        )

    def _how(self, language: Unspaced) -> str:
        return (self._instead if language.code in WITH_RULES else "") + language.rules

    def _figures_of(self, piece: str) -> tuple[int, int, int]:
        """Return the letters of languages without spaces, all letters, and a bound for the first.

        At the bound or above, the first are undivided. A run of such letters counts as one word, as rules for other
        languages divide it nowhere, or anywhere.
        """
        letters = least = 0
        for run in re.findall(f"{_ANY}+", piece):
            language = language_of(run)
            if language is not None and language.code not in self._divides:
                letters += len(run)
                least += language.least
        return letters, max(letters, sum(map(str.isalnum, piece))), least


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
                    or _near_language(self.language)
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
        long = partial(_tokenizer_of_long, self.language)
        return lambda text: [
            token.text
            for stretch in _stretches(text)
            for token in (tokenizer if len(stretch) <= _SUFFIX else long())(stretch)
        ]


def has_rules(language: str) -> bool:
    """Return whether spaCy has word rules for a language, by its code, without loading them."""
    spacy = find_spec("spacy")
    return spacy is not None and spacy.origin is not None and (Path(spacy.origin).parent / "lang" / language).is_dir()


def _near_language(language: str) -> str | None:
    """Return advice for a language that is not written as its code: FR, fr_FR, French."""
    code, spacy = re.split("[-_]", language.lower())[0], find_spec("spacy")
    if not has_rules(code) and spacy is not None and spacy.origin is not None:
        inits = sorted((Path(spacy.origin).parent / "lang").glob("*/__init__.py"))
        named = f"class {language.title().replace(' ', '')}("
        code = next((path.parent.name for path in inits if named in path.read_text("utf-8")), "")
    return f"pass --lang {code}" if code and has_rules(code) else None


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
    if language in _WITHOUT_STOP:
        tokenizer.suffix_search = re.compile(f"{tokenizer.suffix_search.__self__.pattern}|{_STOP}").search
    return tokenizer  # type: ignore[no-any-return]


@cache
def _tokenizer_of_long(language: str) -> Callable[[str], Any]:
    """Return the tokenizer of a language, whose search for suffixes is limited from now on.

    To set it takes a tenth of a second, and it brings nothing to short pieces.
    """
    tokenizer: Any = _tokenizer(language)
    suffixes = getattr(getattr(tokenizer, "suffix_search", None), "__self__", None)
    if isinstance(suffixes, re.Pattern):  # a rule tokenizer; some languages have tokenizers of other kinds
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
