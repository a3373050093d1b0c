"""Bilingual dictionaries for training, read from a file of `derivlang dict`: pairs of ids, each in a language.

read_entries   entries of a tokenizer and its twin          er</w>  ერ</w>    ->   (217, 2205), joint ids
read_words     words, where entries have no counterparts    dog Hund          ->   (0, 1), numbers in `words`

An id of a language has the key `language * size + id`, so languages may share ids.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable, Mapping, Sequence
from dataclasses import dataclass
from functools import cached_property
from hashlib import sha256
from pathlib import Path

import numpy as np

from derivlang.core.arrays import Bool, Int64, Ints, UInt64, offsets_of
from derivlang.core.errors import DataError
from derivlang.formats.dictionary import read_dictionary
from derivlang.lexical.own import OwnTokenizer
from derivlang.training.batch import SubwordRows
from derivlang.training.languages import DERIVED, SOURCE, Languages

DICTIONARY = "dictionary.tsv"  # in the folder of a run


@dataclass(frozen=True, eq=False)
class Translations:
    """Pairs of translations.

    pairs: int64[K, 2], ids in two languages, of which the first is the source. size: number of ids. images: int64[2K],
    keys of the translations of every key, in both directions, by language; offsets: int64[L * size + 1], where the
    images of each key begin. words: what the ids of a dictionary of words stand for, distinct; none for sub-words.
    sha256: hash of the file.
    """

    pairs: Int64
    size: int
    offsets: Int64
    images: Int64
    words: Sequence[str] = ()
    sha256: str = ""

    @classmethod
    def of(
        cls,
        pairs: Int64,
        size: int,
        words: Sequence[str] = (),
        digest: str = "",
        target: Ints | int = DERIVED,
        n_languages: int = 2,
    ) -> Translations:
        """Return the translations of pairs int64[K, 2] of ids below `size`, without pairs of an id with itself.

        target: the language of the right side of each pair, or of all. n_languages: of the run.
        """
        differs = pairs[:, 0] != pairs[:, 1]
        pairs, target = pairs[differs], np.broadcast_to(target, len(pairs))[differs]
        left, right = pairs[:, 0], pairs[:, 1] + size * target
        keys, images = np.concatenate([left, right]), np.concatenate([right, left])
        offsets = offsets_of(np.bincount(keys, minlength=size * n_languages))
        return cls(pairs, size, offsets, images[np.lexsort((images // size, keys))], words, digest)

    def has(self, ids: Ints, language: Ints | int) -> Bool:
        """Return bool of the shape of `ids`: whether an id has a translation. language: of each id, or of all."""
        keys = self._keys(ids, language)
        found: Bool = self.offsets[keys + 1] > self.offsets[keys]
        return found

    def able(self, rows: SubwordRows) -> Bool:
        """Return bool[B, H]: the sub-words of words that have a translation, and are not in both languages."""
        able: Bool = self.has(rows.clean_ids, rows.language) & (rows.word_ids >= 0) & ~rows.shared
        return able

    def translate(self, ids: Ints, language: Ints, bits: UInt64) -> tuple[Int64, Int64]:
        """Return a translation of each id and its language, chosen by uint64 bits of the same shape.

        The choice is uniform over languages, then over the translations in it (Chaudhary et al. 2020, section 2.2).
        language: of each id, which must have a translation.
        """
        keys = self._keys(ids, language)
        first, last = (np.searchsorted(self._groups, self.offsets[at]) for at in (keys, keys + 1))
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
    pairs, digest = _pairs_of(path, warn)
    sides = (languages.readers[number].tokenizer for number in (SOURCE, target))
    source, twin = (one.ids for one in sides if isinstance(one, OwnTokenizer))
    unknown = [right if left in source else left for left, right in pairs if not (left in source and right in twin)]
    if unknown:
        raise DataError(
            f"is a dictionary of another vocabulary: {len(unknown):,} of its {len(pairs):,} pairs have "
            f"an entry that the tokenizers lack, e.g. {', '.join(map(repr, unknown[:3]))}",
            where=str(path),
            fix="make one with derivlang dict --level token --tokenizer DIR and this run's tokenizer",
            id="other-vocabulary",
        )
    ids = np.array([(source[left], twin[right]) for left, right in pairs], np.int64)
    return Translations.of(ids, languages.size, digest=digest, target=target, n_languages=len(languages.readers))


def joined(dictionaries: Mapping[int, Translations], n_languages: int) -> Translations:
    """Return the pairs of the dictionaries of a run, by the language of the right side."""
    every = list(dictionaries.values())
    target = np.repeat(list(dictionaries), [len(one.pairs) for one in every])
    digest = sha256("".join(one.sha256 for one in every).encode()).hexdigest()
    return Translations.of(np.concatenate([one.pairs for one in every]), every[0].size, (), digest, target, n_languages)


def read_words(path: Path, warn: Callable[[str], None] = lambda message: None) -> Translations:
    """Read a dictionary of words in any form of `derivlang dict`. Raise DataError if it is missing or has no pair."""
    pairs, digest = _pairs_of(path, warn)
    numbers = {word: number for number, word in enumerate(dict.fromkeys(word for pair in pairs for word in pair))}
    ids = np.array([(numbers[left], numbers[right]) for left, right in pairs], np.int64)
    return Translations.of(ids, len(numbers), words=tuple(numbers), digest=digest)


def _pairs_of(path: Path, warn: Callable[[str], None]) -> tuple[Sequence[tuple[str, str]], str]:
    """Return the pairs of a file and its hash; warn of lines that are skipped."""
    dictionary = read_dictionary(path)
    if told := dictionary.warning(path):
        warn(told)
    return dictionary.pairs, dictionary.sha256
