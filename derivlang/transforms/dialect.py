"""dialect: a dialect of the source, by near letters, other suffixes and made-up words.

    One of the old ferries crossed the lake .   ->   Ome ov the old felriec crossed the lake .     dialect:phon=0.07

Each of its three parts is a probability. Everything is drawn once, by the seed, so the whole language has one map:

    phon=0.07     drawn for each context of a letter: the letter with its two neighbours, as `of_` or `rri`. In all
                  words with that context the letter becomes one of its near letters (`sounds.txt`), each as likely.
                  All contexts are of the source word.
    suffix=0.5    drawn for each of the `suffixes` most frequent suffixes, by running words. A suffix has 2 to 16
                  letters and at most half of the word. The longest one that a word has becomes another one: each of its
                  length is as likely, and a vowel sign at its beginning stays one.
    nonce=0.8     drawn for each word, or each one of a list. It becomes a made-up word: its length is from a Poisson
                  distribution around the word's length, its letters are from a model of the vocabulary (letters.py),
                  and it is not in the vocabulary.

The parts follow each other. Suffixes are counted in the words that phon makes, and the vocabulary of nonce has the
words that suffix makes. A part with a larger probability changes what it changes with a smaller one, in the same way.

The case of a word makes no difference and is kept. Words without an alphabet (letters.py) stay: numbers, punctuation,
special tokens, Chinese. phon is a rule for any text. suffix and nonce are fitted on a reference vocabulary and saved in
`lexicon.tsv` as rules, not as pairs of words: words that the vocabulary lacks change by the same rules.

Several words may become one, so dialect is not injective: undo reads the stored source, and lemmas stay as they are.
Source: Bafna et al. 2024 (EMNLP) and 2025 (DialUp, arXiv 2501.16581), with phon 0.07, suffix 0.5, and nonce 0.8 for
function words, 0.001 for others. Their released program draws a new map for every input, and gives a suffix and a
function word other letters in place of another suffix and a made-up word.
"""

from __future__ import annotations

import unicodedata
from collections.abc import Mapping
from dataclasses import dataclass, replace
from functools import cached_property
from hashlib import sha256

import numpy as np
import pyarrow as pa
import pyarrow.compute as pc

from derivlang.core.arrays import Bool, Float64, Int64, UInt64, lengths_of, offsets_of
from derivlang.core.arrow import string_array, to_arrow, to_numpy
from derivlang.core.errors import UsageError
from derivlang.core.keys import Draws, codepoints, fractions, from_codepoints, hash_types
from derivlang.core.lexicon import TypeMap, read_rows, write_rows
from derivlang.core.spec import Named, param
from derivlang.formats.dictionary import read_word_list
from derivlang.formats.places import once_per_version
from derivlang.transforms.base import Transform, if_many
from derivlang.transforms.letters import LetterModel, in_case, is_capitals, letters

_LONGEST_SUFFIX = 16  # letters
_LONGEST = 64  # letters, around which the length of a made-up word is drawn at most
_TRIES = 16  # made-up words that may be words of the vocabulary; then the last one is taken
# Positions of draws. A try of a made-up word has as many as it has letters, and one for its length.
_CHANGES, _BECOMES, _MADE_UP = 0, 1, 2
_TRY = 1 << 10
_HEADER = "kind\tword\timage"


@dataclass(frozen=True, kw_only=True)
class Dialect(Transform):
    """Dialect: letters become near ones, suffixes others, and words made-up ones, with given probabilities."""

    name = "dialect"
    injective = False

    phon: float = param(
        0.0, "probability that a letter, between the same two, becomes a near one", draws=False, low=0, high=1
    )
    suffix: float = param(0.0, "probability that a frequent suffix becomes another", draws=False, low=0, high=1)
    nonce: float = param(0.0, "probability that a word becomes a made-up one", draws=False, low=0, high=1)
    words: str = param("", "file with the words that nonce is for, one a line; else all", draws=False, file=Named())
    suffixes: int = param(200, "number of suffixes: the most frequent ones", draws=False, low=2)
    seed: int = param(1, "seed of the draws: each seed gives another dialect", low=0)

    def validate(self) -> None:
        """Raise UsageError if nothing would change, or for words without `nonce`."""
        if not (self.phon or self.suffix or self.nonce):
            raise UsageError(
                "dialect needs a probability above 0",
                where="--t",
                fix="give phon, suffix or nonce, e.g. dialect:phon=0.07; the source itself is: identity",
                id="bad-spec",
            )
        if self.words and not self.nonce:
            raise UsageError(
                "dialect: words lists the words that nonce replaces, but nonce is 0",
                fix="give nonce, e.g. nonce=0.8, or leave words out",
                id="bad-value",
            )

    @property
    def needs_reference(self) -> bool:
        """Whether suffixes are counted or words are made up."""
        return bool(self.suffix or self.nonce)

    @property
    def resources(self) -> tuple[str, ...]:
        """The hash of the list of words."""
        return (f"words {sha256(' '.join(_read(self.words)).encode()).hexdigest()}",) if self.words else ()

    def fit(self, types: pa.Array, counts: Int64, draws: Draws) -> TypeMap:
        """Return the map, with suffixes and words of a reference vocabulary. Their order makes no difference."""
        step = DialectMap(self.phon, self.nonce, draws)
        if not self.needs_reference:
            return step
        plain = _has_alphabet(types, between=False)
        words, counts = _small(step.sounds(types.filter(to_arrow(plain)))), counts[plain]
        if self.suffix:
            step = replace(step, suffixes=self._suffixes(_frequent(words, counts, self.suffixes), draws))
            words = step.endings(words)
        if self.nonce:
            step = replace(step, vocabulary=tuple(sorted(set(words.to_pylist()))), listed=self._listed())
        return step

    def _listed(self) -> frozenset[str] | None:
        """Return the words of the list in small letters, None without one. Others than words with an alphabet stay."""
        if not self.words:
            return None
        words = string_array(_read(self.words))
        return frozenset(_small(words.filter(to_arrow(_has_alphabet(words)))).to_pylist())

    def _suffixes(self, frequent: list[str], draws: Draws) -> dict[str, str]:
        """Return each of the frequent suffixes with its image, which may be itself."""
        keys = hash_types(string_array(frequent))
        changes, becomes = (fractions(draws.draw(keys, np.full(len(keys), n))) for n in (_CHANGES, _BECOMES))
        images = {}
        for suffix, change, become in zip(frequent, changes, becomes, strict=True):
            others = [other for other in frequent if other != suffix and _is_mark(other[0]) == _is_mark(suffix[0])]
            others = [other for other in others if len(other) == len(suffix)] or others
            images[suffix] = others[int(become * len(others))] if others and change < self.suffix else suffix
        return images

    def load(self, state: str, draws: Draws) -> TypeMap:
        """Return the saved map. Raise ValueError if it is damaged."""
        kinds: dict[str, dict[str, str]] = {"suffix": {}, "listed": {}, "word": {}}
        for kind, word, image in read_rows(state, _HEADER):
            if not word or word in kinds.get(kind, {"": ""}) or bool(image) != (kind == "suffix"):
                raise ValueError(f"the row {kind!r}, {word!r}, {image!r} is damaged, or there twice")
            kinds[kind][word] = image
        if not set(kinds["suffix"].values()) <= set(kinds["suffix"]):
            raise ValueError("the image of a suffix must be a suffix")
        if not _has_alphabet(string_array([*kinds["suffix"], *kinds["word"]]), between=False).all():
            raise ValueError("a suffix or a word has a letter of no alphabet")
        suffixes = kinds["suffix"] if self.suffix else None
        vocabulary = tuple(kinds["word"]) if self.nonce else None
        listed = frozenset(kinds["listed"]) if self.words else None
        return DialectMap(self.phon, self.nonce, draws, suffixes, vocabulary, listed)

    def warnings(self, step: TypeMap, types: pa.Array, counts: Int64) -> list[str]:
        """Return a warning if more than 1 % of the running words have letters, but no alphabet of the table."""
        strange = to_numpy(pc.match_substring_regex(types, r"^[\pL\pM]+$")) & ~_has_alphabet(types)
        return if_many(strange, counts, "are in an alphabet that dialect has no sounds for; they stay")


@dataclass(frozen=True, eq=False)
class DialectMap:
    """The fitted map.

    suffixes: the frequent suffixes and their images, None if none is to change. vocabulary: the words, in small
    letters, that made-up words are like and not equal to, None if no word is to be made up. listed: the words that
    nonce is for, None for all.
    """

    phon: float
    nonce: float
    draws: Draws
    suffixes: Mapping[str, str] | None = None
    vocabulary: tuple[str, ...] | None = None
    listed: frozenset[str] | None = None
    injective: bool = False

    def apply(self, types: pa.Array) -> pa.Array:
        """Return the image of each type."""
        changes = _has_alphabet(types)
        words = types.filter(to_arrow(changes))
        image = self.made_up(words, self.endings(self.sounds(words)))
        return pc.replace_with_mask(types, to_arrow(changes), image)

    def sounds(self, words: pa.Array) -> pa.Array:
        """Return words with their letters changed. The draws of a context are of its three letters as one number."""
        if not self.phon:
            return words
        table = letters()
        points, offsets = codepoints(words)
        small = table.small[points].astype(np.uint64)
        before, after = np.roll(small, 1), np.roll(small, -1)
        before[offsets[:-1]], after[offsets[1:] - 1] = 0, 0
        context = (before << np.uint64(42)) | (small << np.uint64(21)) | after
        n_near = lengths_of(table.near_at)[small]
        at = np.flatnonzero((n_near > 0) & (self._fractions(context, _CHANGES) < self.phon))
        number = (self._fractions(context[at], _BECOMES) * n_near[at]).astype(np.int64)
        image = table.near[table.near_at[small[at]] + number]
        out = points.copy()
        out[at] = np.where(points[at] == small[at], image, table.capital[image])
        return from_codepoints(out, offsets)

    def endings(self, words: pa.Array) -> pa.Array:
        """Return words with their longest frequent suffix replaced."""
        if not self.suffixes:
            return words
        sizes = sorted({len(suffix) for suffix in self.suffixes}, reverse=True)
        out = words.to_pylist()
        for row, small in enumerate(_small(words).to_pylist()):
            for size in sizes:
                image = self.suffixes.get(small[-size:]) if 2 * size <= len(small) else None
                if image is not None:
                    if image != small[-size:]:
                        out[row] = out[row][:-size] + (image.upper() if is_capitals(out[row]) else image)
                    break
        return string_array(out)

    def made_up(self, words: pa.Array, image: pa.Array) -> pa.Array:
        """Return the images of words, or made-up words in their place. words: as they were before any change."""
        if not self.vocabulary:
            return image
        small = _small(words)
        keys = hash_types(small)
        drawn = self._fractions(keys, _CHANGES) < self.nonce
        if self.listed is not None:
            drawn &= to_numpy(pc.is_in(small, value_set=string_array(sorted(self.listed))))
        rows = np.flatnonzero(drawn)
        new = self._new_words(small.take(to_arrow(rows)), keys[rows])
        cased = [in_case(*pair) for pair in zip(words.take(to_arrow(rows)).to_pylist(), new, strict=True)]
        return pc.replace_with_mask(image, to_arrow(drawn), string_array(cased))

    def _new_words(self, small: pa.Array, keys: UInt64) -> list[str]:
        """Return a made-up word for each word. One that is in the vocabulary, or the word itself, is drawn again."""
        model, vocabulary = self._fitted
        around = np.minimum(to_numpy(pc.utf8_length(small)), _LONGEST)
        words, out = small.to_pylist(), [""] * len(small)
        left = np.arange(len(small))
        for start in range(_MADE_UP, _MADE_UP + _TRIES * _TRY, _TRY):
            lengths = _poisson(around[left], self._fractions(keys[left], start))
            first, some = start + 1, keys[left]
            points = model.words(lengths, lambda rows, place: self._fractions(some[rows], first + place))  # noqa: B023
            made = from_codepoints(points, offsets_of(lengths))
            for row, word in zip(left.tolist(), made.to_pylist(), strict=True):
                out[row] = word
            again = to_numpy(pc.is_in(made, value_set=vocabulary))
            left = left[again | np.array([out[row] == words[row] for row in left.tolist()], bool)]
        return out

    @cached_property
    def _fitted(self) -> tuple[LetterModel, pa.Array]:
        """The model and the vocabulary's words, made when the first word is made up."""
        words = string_array(self.vocabulary or ())
        return LetterModel.of(*codepoints(words)), words

    def _fractions(self, keys: UInt64, position: int) -> Float64:
        return fractions(self.draws.draw(keys, np.full(len(keys), position)))

    def invert(self) -> TypeMap:
        """Raise UsageError: several words may become one."""
        raise UsageError("a dialect has no inverse", id="not-injective")

    def state(self) -> str | None:
        """Return the section of `lexicon.tsv`: kind, word, image; None if nothing is fitted."""
        if self.suffixes is None and self.vocabulary is None:
            return None
        rows = [
            *(("suffix", *pair) for pair in (self.suffixes or {}).items()),
            *(("listed", word, "") for word in sorted(self.listed or ())),
            *(("word", word, "") for word in self.vocabulary or ()),
        ]
        return write_rows(_HEADER, rows)


def _has_alphabet(types: pa.Array, *, between: bool = True) -> Bool:
    """Return bool[T]: which types have an alphabet. between: also with apostrophes and hyphens."""
    return letters().has_alphabet(*codepoints(types), between=between)


def _small(words: pa.Array) -> pa.Array:
    """Return words that have an alphabet in small letters."""
    points, offsets = codepoints(words)
    return from_codepoints(letters().small[points], offsets)


def _frequent(words: pa.Array, counts: Int64, most: int) -> list[str]:
    """Return the most frequent suffixes of words in small letters, the most frequent first, ties by the alphabet."""
    lengths = to_numpy(pc.utf8_length(words))
    found: list[tuple[int, str]] = []
    for size in range(2, min(int(lengths.max(initial=0)) // 2, _LONGEST_SUFFIX) + 1):
        long = lengths >= 2 * size
        words, counts, lengths = words.filter(to_arrow(long)), counts[long], lengths[long]
        ends = pc.utf8_slice_codeunits(words, -size).dictionary_encode()
        totals = np.bincount(to_numpy(ends.indices), counts, minlength=len(ends.dictionary))
        ranked = sorted(zip((-totals.astype(np.int64)).tolist(), ends.dictionary.to_pylist(), strict=True))
        found = sorted([*found, *ranked[:most]])[:most]
    return [suffix for _, suffix in found]


def _is_mark(character: str) -> bool:
    """Return whether a character is written on the one before it, as the vowel signs of Devanagari are."""
    return unicodedata.category(character).startswith("M")


def _poisson(around: Int64, drawn: Float64) -> Int64:
    """Return int64[n]: a length of at least 1 from the Poisson distribution around each length, by draws in [0, 1)."""
    out = np.ones(len(around), np.int64)
    for mean in np.unique(around).tolist():
        numbers = np.arange(1, 2 * mean + 40)
        logs = np.append(0, np.log(mean / numbers))
        below = np.cumsum(np.exp(np.cumsum(logs) - mean))
        rows = around == mean
        out[rows] = np.maximum(np.searchsorted(below, drawn[rows], "right"), 1)
    return out


_read = once_per_version(read_word_list)
