"""Bilingual dictionaries for training, read from a file of `derivlang dict`: pairs of ids, each in a language.

read_entries   entries of a tokenizer and its twin          er</w>  ერ</w>    ->   (217, 2205), joint ids
read_words     words, where entries have no counterparts    dog Hund          ->   (0, 1), numbers in `words`

An id of a language has the key `language * size + id`, so languages may share ids.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable, Sequence
from dataclasses import dataclass
from pathlib import Path

import numpy as np

from derivlang.core.arrays import Bool, Int64, Ints, UInt64, offsets_of
from derivlang.core.errors import DataError
from derivlang.formats.dictionary import read_dictionary
from derivlang.training.batch import SubwordRows
from derivlang.training.languages import DERIVED, SOURCE, TwinLanguages

DICTIONARY = "dictionary.tsv"  # in the folder of a run


@dataclass(frozen=True, slots=True, eq=False)
class Translations:
    """Pairs of translations.

    pairs: int64[K, 2], ids in the source and in the derived language. size: number of ids. images: int64[2K], keys of
    the translations of every key, in both directions; offsets: int64[2 * size + 1], where the images of each key begin.
    words: what the ids of a dictionary of words stand for, distinct; none for sub-words. sha256: hash of the file.
    """

    pairs: Int64
    size: int
    offsets: Int64
    images: Int64
    words: Sequence[str] = ()
    sha256: str = ""

    @classmethod
    def of(cls, pairs: Int64, size: int, words: Sequence[str] = (), digest: str = "") -> Translations:
        """Return the translations of pairs int64[K, 2] of ids below `size`, without pairs of an id with itself."""
        pairs = pairs[pairs[:, 0] != pairs[:, 1]]
        left, right = (pairs + size * np.array([SOURCE, DERIVED])).T
        keys, images = np.concatenate([left, right]), np.concatenate([right, left])
        offsets = offsets_of(np.bincount(keys, minlength=2 * size))
        return cls(pairs, size, offsets, images[np.argsort(keys, kind="stable")], words, digest)

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
        """Return a translation of each id and its language, chosen uniformly by uint64 bits of the same shape.

        language: of each id, which must have a translation.
        """
        keys = self._keys(ids, language)
        n = (self.offsets[keys + 1] - self.offsets[keys]).astype(np.uint64)
        images = self.images[self.offsets[keys] + ((bits >> np.uint64(1)) % n).astype(np.int64)]
        return images % self.size, images // self.size

    def _keys(self, ids: Ints, language: Ints | int) -> Int64:
        return np.asarray(ids) + self.size * np.asarray(language, np.int64)

    def find(self, words: Iterable[str], language: int) -> Int64:
        """Return int64[N]: the ids of words of a language as they are, else in lower case; -1 without a translation."""
        numbers = {word: number for number, word in enumerate(self.words)}
        ids = np.array([[numbers.get(word, -1), numbers.get(word.lower(), -1)] for word in words], np.int64)
        as_is, lower = np.where((ids >= 0) & self.has(ids, language), ids, -1).reshape(-1, 2).T
        return np.where(as_is >= 0, as_is, lower)


def read_entries(
    path: Path, languages: TwinLanguages, warn: Callable[[str], None] = lambda message: None
) -> Translations:
    """Read a dictionary of entries. Raise DataError, with examples, for entries outside the vocabularies."""
    pairs, digest = _pairs_of(path, warn)
    source = {entry: i for i, entry in enumerate(languages.tokenizer.bpe.entries)}
    twin = dict(zip(languages.twin.tokenizer.bpe.entries, languages.twin.joint.table().tolist(), strict=True))
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
    return Translations.of(ids, languages.size, digest=digest)


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
