"""Rows of a sentence and a copy in which some words are replaced by their translations (code-switching).

    <s> we low er it </s> <s> we' low er it </s>          switch: share of the words with an entry that are replaced

The sentences come from the text of every language. An epoch has each once in each language, and every epoch draws other
words. The copy keeps the word order. A word has an entry if each of its sub-words has one, or the whole word in a
dictionary of words. With the tokenizer of a checkpoint, or with --language and --pairs, the sentences come from files,
and the dictionary is one of words (switched_words.py). Source: Chaudhary et al. (2020), sections 2.2 and 2.3, where
such copies stand in for translations (DICT-TLM).
"""

from __future__ import annotations

from collections.abc import Collection, Set
from dataclasses import dataclass, replace
from fractions import Fraction
from pathlib import Path
from typing import ClassVar

import numpy as np

from derivlang.core.arrays import Bool, Ints
from derivlang.core.errors import DataError, UsageError
from derivlang.training.batch import SubwordRows
from derivlang.training.masking import Keys, whole_words
from derivlang.training.streams.base import DICTIONARY_KEY, StreamInputs
from derivlang.training.streams.bitext import FilePairs, read_pairs
from derivlang.training.streams.pair_source import DerivedPairs, JoinedPairs, PairSource
from derivlang.training.streams.pairs import PairRows, SentencePairs
from derivlang.training.streams.switched_words import SwitchedWordRows, code_switched
from derivlang.training.translations import Translations

_AT_ONCE = 1 << 10  # rows in which an entry is looked for at once


@dataclass(frozen=True, kw_only=True)
class CodeSwitched(SentencePairs):
    """Sentences and code-switched copies. switch: share of the words with an entry that are replaced, from 0 to 1."""

    name: ClassVar[str] = "switched"
    share: float = 1.0
    switch: float = 0.15

    def reads(self, files: Collection[str]) -> Set[str]:
        return {"pair_length", "dictionary_seed"}  # all sentences are copied

    def pair_kinds(self) -> Set[str]:
        return frozenset()

    def source(self, material: StreamInputs, links_file: Path | None = None) -> PairSource:
        """Return each sentence of every text with itself, in each language of the text."""
        length, seed = self.length(material.settings) // 2, material.settings.dict_seed
        parts = [
            DerivedPairs(data, Fraction(100), [(number, number) for number in numbers], seed=seed)
            for data, numbers in material.texts(length)
        ]
        return parts[0] if len(parts) == 1 else JoinedPairs(parts)

    def open(self, material: StreamInputs) -> PairRows:
        dictionary: Translations = material.found[DICTIONARY_KEY]
        words = dictionary.of_words if material.has_pair_file else None
        if dictionary.words or words is not None:
            return self._of_words(material, words or dictionary)
        return SwitchedRows(self, self.source(material), self.length(material.settings), dictionary)

    def _of_words(self, material: StreamInputs, dictionary: Translations) -> SwitchedWordRows:
        """Return the rows of sentences of files. Raise UsageError if there is none."""
        settings, languages = material.settings, material.languages
        files = [(pairs.sides, pairs.path) for pairs in material.pairs if pairs.path is not None]
        if not files:
            raise UsageError(
                "a dictionary of words replaces words of the sentences of a file, but there is none",
                where="--dictionary",
                fix="give the sentences with --pairs",
                id="missing-file",
            )
        if len({(one.tokenizer.fingerprint, one.tokenizer.end) for one in languages.readers}) > 1:
            raise UsageError(
                "sentences of a file with words of several languages need one tokenizer of all of them",
                where="--pairs",
                fix="give --tokenizer: derivlang tokenizer train SOURCE --text OTHER, or leave --pairs out",
                id="other-tokenizer",
            )
        length, seed = self.length(settings), settings.dict_seed
        parts = [
            FilePairs(code_switched(read_pairs(path), dictionary, self.switch, seed, of), languages, length // 2 - 2)
            for of, path in files
        ]
        return SwitchedWordRows(self, parts[0] if len(parts) == 1 else JoinedPairs(parts), length)


class SwitchedRows(PairRows):
    """The rows of sentences and their copies, with words of the second half replaced."""

    def __init__(self, stream: CodeSwitched, source: PairSource, length: int, dictionary: Translations):
        super().__init__(stream, source, length)
        self.switch, self.dictionary = stream.switch, dictionary
        blocks = (np.arange(begin, min(begin + _AT_ONCE, self.n)) for begin in range(0, self.n, _AT_ONCE))
        if not any(self._able(super(SwitchedRows, self).rows(some, Keys.of(0, 0, some))).any() for some in blocks):
            raise DataError(
                "no word of the text has an entry in the dictionary",
                where="--dictionary",
                fix="raise --dict-coverage, or give another dictionary; a word needs entries for all of its sub-words",
                id="no-entry",
            )

    def rows(self, numbers: Ints, keys: Keys) -> SubwordRows:
        out = super().rows(numbers, keys)
        at = self._able(out) & (keys.uniform("switch", out.word_ids) < self.switch)
        bits = keys.bits("switched", self.dictionary.positions(out))
        out.clean_ids[at], out.language[at] = self.dictionary.translate_rows(out, at, bits)
        return replace(out, translated=at)

    def _able(self, rows: SubwordRows) -> Bool:
        """Return bool[B, H]: positions of the copy whose word has an entry."""
        return whole_words(rows, self.dictionary.able(rows) & (rows.side == 1))
