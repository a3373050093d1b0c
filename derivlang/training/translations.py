"""Bilingual dictionaries for training, read from a file of `derivlang dict`: pairs of numbers, each in a language.

read_entries   entries of a tokenizer and its twin          er</w>  ერ</w>    ->   (217, 2205), joint ids
read_words     words, where entries have no counterparts    dog Hund          ->   (0, 1), numbers in `words`
spelt          words of several languages as sub-words      dog chien         ->   (0, 3), numbers in `spelling`

A number of a language has the key `language * size + number`, so languages may share numbers.

`Spelling` numbers words as sub-words, by which the words of rows are looked up:

    words  dog  dogs  chien        as sub-words  17   17 9   44 102        numbers  0   1   2
"""

from __future__ import annotations

from collections.abc import Callable, Iterable, Mapping, Sequence
from dataclasses import dataclass
from functools import cached_property
from hashlib import sha256
from itertools import pairwise
from pathlib import Path

import numpy as np

from derivlang.core.arrays import Bool, Int64, Ints, UInt64, expand_ranges, lengths_of, offsets_of, positions
from derivlang.core.errors import DataError
from derivlang.formats.dictionary import read_dictionary
from derivlang.lexical.own import OwnTokenizer
from derivlang.training.batch import SubwordRows
from derivlang.training.languages import DERIVED, SOURCE, Languages
from derivlang.training.masking import whole_words


@dataclass(frozen=True, eq=False)
class Spelling:
    """The sub-words of numbered words.

    numbers: of words, by the bytes of their sub-words. ids: int64[M]. starts, lengths: int64[N], where the sub-words of
    each word begin in `ids`, and how many they are.
    """

    numbers: Mapping[bytes, int]
    ids: Int64
    starts: Int64
    lengths: Int64

    @classmethod
    def of(cls, ids: Int64, offsets: Int64) -> Spelling:
        """Return the spelling of words. ids: int64[M]; offsets: int64[K + 1], of each word in `ids`."""
        numbers = {word: number for number, word in enumerate(dict.fromkeys(filter(None, as_bytes(ids, offsets))))}
        lengths = np.array([len(word) // 8 for word in numbers], np.int64)
        return cls(numbers, np.frombuffer(b"".join(numbers), np.int64), offsets_of(lengths)[:-1], lengths)

    def __len__(self) -> int:
        return len(self.starts)

    def find(self, ids: Int64, offsets: Int64) -> Int64:
        """Return int64[K]: the number of each word, -1 of one that has none. ids, offsets: as of `of`."""
        return np.array([self.numbers.get(word, -1) for word in as_bytes(ids, offsets)], np.int64)

    def of_rows(self, rows: SubwordRows) -> tuple[Int64, Int64]:
        """Return int64[B, H] twice: the number of the word of each sub-word, -1 if there is none; its place in it."""
        offsets = word_offsets(rows.word_ids)
        numbers = np.repeat(self.find(rows.clean_ids.ravel(), offsets), lengths_of(offsets))
        numbers[rows.word_ids.ravel() < 0] = -1
        return numbers.reshape(rows.shape), positions(offsets).astype(np.int64).reshape(rows.shape)

    def take(self, numbers: Int64) -> tuple[Int64, Int64]:
        """Return the sub-words of words by number, int64[M], and where each begins, int64[K + 1]."""
        sizes = self.lengths[numbers]
        return self.ids[expand_ranges(self.starts[numbers], sizes)], offsets_of(sizes)


def as_bytes(ids: Int64, offsets: Int64) -> list[bytes]:
    """Return the sub-words of each word, int64[M] at offsets int64[K + 1], as bytes."""
    data = ids.astype(np.int64).tobytes()
    return [data[begin:end] for begin, end in pairwise((8 * offsets).tolist())]


def word_offsets(words: Ints) -> Int64:
    """Return int64[W + 1]: where the words of sub-words begin, in flattened rows. words: [B, H], numbers in each row.

    words [[0, 0, 1], [1, 2, 2]]  ->  [0, 2, 3, 4, 6]
    """
    new = np.ones(words.shape, bool)
    new[:, 1:] = words[:, 1:] != words[:, :-1]
    return np.append(np.flatnonzero(new), words.size)


DICTIONARY = "dictionary.tsv"  # in the folder of a run


@dataclass(frozen=True, eq=False)
class Translations:
    """Pairs of translations.

    pairs: int64[K, 2], ids in two languages. size: number of ids. keys: int64[E], ascending, of the ids with a
    translation. images: int64[2K], keys of the translations of each key, in both directions, by language. offsets:
    int64[E + 1], where the images of each key begin. words: what the ids of a dictionary of words stand for, distinct;
    none for sub-words. sha256: hash of the file.

    spelling: None, or what the ids stand for that are numbers of words, as sub-words. Then images are only of as many
    sub-words, and `of_words` has the same pairs as words.
    """

    pairs: Int64
    size: int
    keys: Int64
    offsets: Int64
    images: Int64
    words: Sequence[str] = ()
    sha256: str = ""
    spelling: Spelling | None = None
    of_words: Translations | None = None

    @classmethod
    def of(
        cls,
        pairs: Int64,
        size: int,
        words: Sequence[str] = (),
        digest: str = "",
        sides: tuple[Ints | int, Ints | int] = (SOURCE, DERIVED),
        spelling: Spelling | None = None,
        of_words: Translations | None = None,
    ) -> Translations:
        """Return the translations of pairs int64[K, 2] of ids below `size`, without pairs of an id with itself.

        sides: the language of the left and of the right side of each pair, or of all.
        """
        differs = pairs[:, 0] != pairs[:, 1]
        left, right = (pairs[:, side] + size * np.asarray(language) for side, language in enumerate(sides))
        fits = differs if spelling is None else differs & (np.diff(spelling.lengths[pairs])[:, 0] == 0)
        keys, images = np.concatenate([left[fits], right[fits]]), np.concatenate([right[fits], left[fits]])
        images = images[np.lexsort((images // size, keys))]
        keys, counts = np.unique(keys, return_counts=True)
        return cls(pairs[differs], size, keys, offsets_of(counts), images, words, digest, spelling, of_words)

    def has(self, ids: Ints, language: Ints | int) -> Bool:
        """Return bool of the shape of `ids`: whether an id has a translation. language: of each id, or of all."""
        keys = self._keys(ids, language)
        found: Bool = np.append(self.keys, -1)[np.searchsorted(self.keys, keys)] == keys
        return found

    def able(self, rows: SubwordRows) -> Bool:
        """Return bool[B, H]: the sub-words of words that have a translation, and are not in both languages."""
        able: Bool = (rows.word_ids >= 0) & ~rows.shared
        if self.spelling is None:
            return self.has(rows.clean_ids, rows.language) & able
        numbers, _ = self.spelling.of_rows(rows)
        return whole_words(rows, able & (numbers >= 0) & self.has(np.maximum(numbers, 0), rows.language))

    def positions(self, rows: SubwordRows) -> Ints:
        """Return [B, H] or [1, H]: equal positions of a row are translated together, by one draw."""
        return np.arange(rows.shape[1])[None] if self.spelling is None else rows.word_ids

    def translate_rows(self, rows: SubwordRows, at: Bool, bits: UInt64) -> tuple[Int64, Int64]:
        """Return the ids and the languages of translations, int64[n], of the sub-words at the n places of bool[B, H].

        They must be `able`. bits: uint64[B, H], equal for equal `positions`.
        """
        if self.spelling is None:
            return self.translate(rows.clean_ids[at], rows.language[at], bits[at])
        numbers, place = self.spelling.of_rows(rows)
        images, language = self.translate(numbers[at], rows.language[at], bits[at])
        return self.spelling.ids[self.spelling.starts[images] + place[at]], language

    def side(self, side: int) -> tuple[Int64, Int64]:
        """Return the sub-words of one side of all pairs, int64[M], and where each begins, int64[K + 1]."""
        numbers = self.pairs[:, side]
        return (numbers, np.arange(len(numbers) + 1)) if self.spelling is None else self.spelling.take(numbers)

    def translate(self, ids: Ints, language: Ints, bits: UInt64) -> tuple[Int64, Int64]:
        """Return a translation of each id and its language, chosen by uint64 bits of the same shape.

        The choice is uniform over languages, then over the translations in it (Chaudhary et al. 2020, section 2.2).
        language: of each id, which must have a translation.
        """
        key = np.searchsorted(self.keys, self._keys(ids, language))
        first, last = (np.searchsorted(self._groups, self.offsets[at]) for at in (key, key + 1))
        group = first + _drawn(bits >> np.uint64(33), last - first)
        begin, end = self._groups[group], self._groups[group + 1]
        images = self.images[begin + _drawn(bits >> np.uint64(1), end - begin)]
        return images % self.size, images // self.size

    @cached_property
    def _groups(self) -> Int64:
        """int64[G + 1]: where the translations of another key, or in another language, begin."""
        begins = np.zeros(len(self.images) + 1, bool)
        begins[self.offsets] = True
        begins[1:-1] |= np.diff(self.images // self.size) != 0
        return np.flatnonzero(begins)

    def _keys(self, ids: Ints, language: Ints | int) -> Int64:
        return np.asarray(ids) + self.size * np.asarray(language, np.int64)

    def find(self, words: Iterable[str], language: int) -> Int64:
        """Return int64[N]: the ids of words of a language as they are, else in lower case; -1 without a translation."""
        numbers = {word: number for number, word in enumerate(self.words)}
        ids = np.array([[numbers.get(word, -1), numbers.get(word.lower(), -1)] for word in words], np.int64)
        as_is, lower = np.where((ids >= 0) & self.has(ids, language), ids, -1).reshape(-1, 2).T
        return np.where(as_is >= 0, as_is, lower)


def _drawn(bits: UInt64, below: Int64) -> Int64:
    return (bits % below.astype(np.uint64)).astype(np.int64)


def read_entries(
    path: Path, languages: Languages, warn: Callable[[str], None] = lambda message: None, target: int = DERIVED
) -> Translations:
    """Read a dictionary of entries of the source and of another language.

    Raise DataError, with examples, for entries outside the vocabularies.
    """
    pairs, digest = word_pairs(path, warn)
    sides = (languages.readers[number].tokenizer for number in (SOURCE, target))
    source, twin = (one.ids for one in sides if isinstance(one, OwnTokenizer))
    unknown = [right if left in source else left for left, right in pairs if not (left in source and right in twin)]
    if unknown:
        raise DataError(
            f"is a dictionary of another vocabulary: {len(unknown):,} of its {len(pairs):,} pairs have "
            f"an entry that the tokenizers lack, e.g. {', '.join(map(repr, unknown[:3]))}",
            where=str(path),
            fix="make one with derivlang dict --level token --tokenizer DIR and this run's tokenizer; a dictionary of "
            "words needs --language",
            id="other-vocabulary",
        )
    ids = np.array([(source[left], twin[right]) for left, right in pairs], np.int64)
    return Translations.of(ids, languages.size, digest=digest, sides=(SOURCE, target))


def joined(dictionaries: Mapping[int, Translations]) -> Translations:
    """Return the pairs of the dictionaries of a run, by the language of the right side."""
    every = list(dictionaries.values())
    target = np.repeat(list(dictionaries), [len(one.pairs) for one in every])
    digest = sha256("".join(one.sha256 for one in every).encode()).hexdigest()
    pairs, sides = np.concatenate([one.pairs for one in every]), (SOURCE, target)
    return Translations.of(pairs, every[0].size, (), digest, sides)


def read_words(path: Path, warn: Callable[[str], None] = lambda message: None) -> Translations:
    """Read a dictionary of words in any form of `derivlang dict`. Raise DataError if it is missing or has no pair."""
    pairs, digest = word_pairs(path, warn)
    return of_words([(SOURCE, DERIVED)] * len(pairs), pairs, digest)


def of_words(sides: Sequence[tuple[int, int]], pairs: Sequence[tuple[str, str]], digest: str = "") -> Translations:
    """Return the translations of pairs of words. sides: the languages of each pair."""
    numbers = {word: number for number, word in enumerate(dict.fromkeys(word for pair in pairs for word in pair))}
    ids = np.array([(numbers[left], numbers[right]) for left, right in pairs], np.int64)
    left, right = np.array(sides).T
    return Translations.of(ids, len(numbers), tuple(numbers), digest, (left, right))


def word_pairs(path: Path, warn: Callable[[str], None]) -> tuple[Sequence[tuple[str, str]], str]:
    """Return the pairs of a file and its hash; warn of lines that are skipped."""
    dictionary = read_dictionary(path)
    if told := dictionary.warning(path):
        warn(told)
    return dictionary.pairs, dictionary.sha256
