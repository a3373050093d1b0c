"""Bilingual dictionaries for training, read from a file of `derivlang dict`.

JointDictionary     pairs of joint ids, for a tokenizer and its twin
                    er</w>  ერ</w>   ->   (217, 2205): an entry of the source's, and the joint id of the twin's
WordDictionary      words, for the tokenizer of a checkpoint, whose entries have no counterparts
                    dog Hund         ->   SOURCE: {"dog": ("Hund", "Rüde")}
                    dog Rüde              DERIVED: {"Hund": ("dog",), "Rüde": ("dog",)}
"""

from __future__ import annotations

from collections.abc import Callable, Mapping
from dataclasses import dataclass
from hashlib import sha256
from pathlib import Path

import numpy as np

from derivlang.core.arrays import Bool, Int32, Int64, Ints, UInt64, offsets_of
from derivlang.core.errors import DataError
from derivlang.formats.dictionary import Dictionary, read_dictionary
from derivlang.training.languages import TwinLanguages

DICTIONARY = "dictionary.tsv"  # in the folder of a run


@dataclass(frozen=True, slots=True, eq=False)
class JointDictionary:
    """Translation pairs as joint ids.

    pairs: int32[K, 2], joint ids (source, derived). offsets: int64[size + 1] and images: int32[2K], the translations of
    every joint id, in both directions. sha256: hash of the file.
    """

    pairs: Int32
    offsets: Int64
    images: Int32
    sha256: str

    @classmethod
    def read(
        cls, path: Path, languages: TwinLanguages, warn: Callable[[str], None] = lambda message: None
    ) -> JointDictionary:
        """Read a dictionary file. Raise DataError, with examples, for entries outside the vocabularies."""
        dictionary = read_dictionary(path)
        if told := dictionary.warning(path):
            warn(told)
        source = {entry: i for i, entry in enumerate(languages.tokenizer.bpe.entries)}
        twin = dict(zip(languages.twin.tokenizer.bpe.entries, languages.twin.joint.table().tolist(), strict=True))
        pairs, unknown = [], []
        for left, right in dictionary.pairs:
            if left in source and right in twin:
                pairs.append((source[left], twin[right]))
            else:
                unknown.append(left if left not in source else right)
        if unknown:
            raise DataError(
                f"is a dictionary of another vocabulary: {len(unknown):,} of its {len(dictionary.pairs):,} pairs have "
                f"an entry that the tokenizers lack, e.g. {', '.join(map(repr, unknown[:3]))}",
                where=str(path),
                fix="make one with derivlang dict --level token --tokenizer DIR and this run's tokenizer",
                id="other-vocabulary",
            )
        if not pairs:
            raise DataError("holds no pair", where=str(path), id="empty-dictionary")
        return cls.of(np.array(pairs, np.int32), languages.size, sha256(path.read_bytes()).hexdigest())

    @classmethod
    def of(cls, pairs: Int32, size: int, digest: str = "") -> JointDictionary:
        """Return the dictionary of pairs int32[K, 2] of joint ids below `size`, without pairs of an id with itself."""
        pairs = pairs[pairs[:, 0] != pairs[:, 1]]
        left = np.concatenate([pairs[:, 0], pairs[:, 1]])
        right = np.concatenate([pairs[:, 1], pairs[:, 0]])
        order = np.argsort(left, kind="stable")
        return cls(pairs, offsets_of(np.bincount(left, minlength=size)), right[order].astype(np.int32), digest)

    def has(self, ids: Ints) -> Bool:
        """Return bool of the shape of `ids`: whether an id has a translation."""
        return self.offsets[np.asarray(ids) + 1] > self.offsets[ids]

    def synonyms(self, ids: Ints, bits: UInt64) -> Int64:
        """Return a translation of each id, chosen uniformly by uint64 bits of the same shape. Each id must have one."""
        n = (self.offsets[np.asarray(ids) + 1] - self.offsets[ids]).astype(np.uint64)
        return self.images[self.offsets[ids] + ((bits >> np.uint64(1)) % n).astype(np.int64)].astype(np.int64)


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
        dictionary = read_dictionary(path)
        if told := dictionary.warning(path):
            warn(told)
        pairs = tuple(pair for pair in dictionary.pairs if pair[0] != pair[1])
        there, back = (
            Dictionary(some, (), "").entries() for some in (pairs, tuple((right, left) for left, right in pairs))
        )
        return cls(pairs, (there, back), dictionary.sha256)

    def of(self, word: str, language: int) -> tuple[str, ...]:
        """Return the translations of a word of a language, looked up as it is, else in lower case."""
        known = self.translations[language]
        return known.get(word) or known.get(word.lower(), ())
