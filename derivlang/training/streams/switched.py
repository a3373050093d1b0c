"""Rows of a sentence and a copy in which some words are replaced by their translations (code-switching).

    <s> we low er it </s> <s> we' low er it </s>          switch: share of the words with an entry that are replaced

The sentences come from the text of every language. An epoch has each once in each language, and every epoch draws other
words. The copy keeps the word order. A word has an entry if each of its sub-words has one, or the whole word in a
dictionary of words. Source: Chaudhary et al. (2020), sections 2.2 and 2.3, where such copies stand in for
translations (DICT-TLM).

With the tokenizer of a checkpoint, or with --language and --pairs, the sentences come from both sides of files, each
with a copy of itself; which of them belong together is not used. A dictionary of words translates, and one tokenizer
reads all languages:

    the dog sleeps .        ->    <s> the dog sleeps . </s> <s> the Hund sleeps . </s>
    der Hund schläft .      ->    <s> der Hund schläft . </s> <s> der dog schläft . </s>

A word and its translation may have different numbers of sub-words then, so the words of the copies are drawn once for a
run, and not anew in every epoch.
"""

from __future__ import annotations

from collections.abc import Collection, Sequence, Set
from dataclasses import dataclass, replace
from fractions import Fraction
from pathlib import Path
from typing import ClassVar

import numpy as np
import pyarrow as pa

from derivlang.align.bitext import WordLists
from derivlang.core.arrays import Bool, Int64, Ints, UInt64, owners, positions
from derivlang.core.errors import DataError, UsageError
from derivlang.core.keys import draw, text_key
from derivlang.training.batch import SubwordRows
from derivlang.training.languages import DERIVED, SOURCE
from derivlang.training.masking import Keys, whole_words
from derivlang.training.prepare import Prepared
from derivlang.training.streams.bitext import FilePairs, PairFile, read_pairs
from derivlang.training.streams.pair_source import DerivedPairs, JoinedPairs, PairSource
from derivlang.training.streams.pairs import PairRows, SentencePairs
from derivlang.training.translations import Translations

_AT_ONCE = 1 << 10  # rows in which an entry is looked for at once


@dataclass(frozen=True, kw_only=True)
class CodeSwitched(SentencePairs):
    """Sentences and code-switched copies. switch: share of the words with an entry that are replaced, from 0 to 1."""

    name: ClassVar[str] = "switched"
    pair_kinds: ClassVar[Set[str]] = frozenset()
    share: float = 1.0
    switch: float = 0.15

    def reads(self, files: Collection[str]) -> Set[str]:
        return {"pair_length", "dictionary_seed"}  # all sentences are copied

    def source(self, prepared: Prepared, links_file: Path | None = None) -> PairSource:
        """Return each sentence of every text with itself, in each language of the text."""
        length, seed = self.length(prepared.settings) // 2, prepared.settings.dict_seed
        parts = [
            DerivedPairs(data, Fraction(100), [(number, number) for number in numbers], seed=seed)
            for data, numbers in prepared.texts_of(length)
        ]
        return parts[0] if len(parts) == 1 else JoinedPairs(parts)

    def open(self, prepared: Prepared) -> PairRows:
        dictionary = prepared.dictionary
        assert dictionary is not None  # an objective with this stream reads one
        words = dictionary.of_words if prepared.pair_files else None
        if dictionary.words or words is not None:
            return self._of_words(prepared, words or dictionary)
        return SwitchedRows(self, self.source(prepared), self.length(prepared.settings), dictionary)

    def _of_words(self, prepared: Prepared, dictionary: Translations) -> SwitchedWordRows:
        """Return the rows of sentences of files. Raise UsageError if there is none."""
        settings, languages = prepared.settings, prepared.languages
        if not prepared.pair_files:
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
            for of, path in prepared.pair_files.items()
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


def code_switched(
    file: PairFile, dictionary: Translations, switch: float, seed: int, of: tuple[int, int] = (SOURCE, DERIVED)
) -> PairFile:
    """Return the sentences of both sides, each with its copy. switch: share of the words with an entry to replace.

    of: the language of each side. Raise DataError if no word has an entry, or if more have one in the dictionary with
    its sides exchanged.
    """
    sides = (file.source, file.derived)
    types = pa.concat_arrays([side.types for side in sides])
    codes = np.concatenate([sides[0].codes, sides[1].codes + len(sides[0].types)]).astype(np.int64)
    offsets = np.append(sides[0].offsets, sides[0].offsets[-1] + sides[1].offsets[1:])
    spoken = np.repeat(np.array(of, np.int8), [len(side.codes) for side in sides])
    known, exchanged = (_known(sides, dictionary, languages)[codes] for languages in (of, of[::-1]))
    able = known >= 0
    if not able.any():
        raise DataError(
            "no word of the sentence pairs has an entry in the dictionary",
            where="--dictionary",
            fix="give a dictionary of words of both languages, the source's first",
            id="no-entry",
        )
    if able.sum() < (exchanged >= 0).sum():
        raise DataError(
            "more words of the sentence pairs have an entry if the sides of the dictionary are exchanged",
            where="--dictionary",
            fix="give the words of the source first, as in the sentence pairs",
            id="exchanged",
        )
    uniform = (_bits("switch", seed, offsets) >> np.uint64(11)).astype(np.float64) * 2.0**-53
    at = able & (uniform < switch)
    copies, language = codes.copy(), spoken.copy()
    ids, language[at] = dictionary.translate(known[at], spoken[at], _bits("switched", seed, offsets)[at])
    copies[at] = ids + len(types)
    every = pa.concat_arrays([types, pa.array(dictionary.words, pa.string())])
    own, copied = (WordLists(every, some.astype(np.int32), offsets) for some in (codes, copies))
    return PairFile(own, copied, None, file.sha256, (spoken, language))


def _known(sides: Sequence[WordLists], dictionary: Translations, languages: Sequence[int]) -> Int64:
    """Return int64[T]: the id of each type of both sides, read in a language each; -1 without a translation."""
    found = (dictionary.find(side.types.to_pylist(), language) for side, language in zip(sides, languages, strict=True))
    return np.concatenate(list(found))


def _bits(what: str, seed: int, offsets: Int64) -> UInt64:
    """Return uint64[N]: a draw for each word of sentences at offsets int64[S + 1]."""
    stream = text_key(f"{what}|seed={seed}")
    return draw(stream, owners(offsets).astype(np.uint64), positions(offsets).astype(np.int64))


class SwitchedWordRows(PairRows):
    """The rows of sentences and their code-switched copies."""

    def rows(self, numbers: Ints, keys: Keys) -> SubwordRows:
        """Return the rows. Special ids and padding have the language of the row's first sentence."""
        out = super().rows(numbers, keys)
        pair = self.instances[np.asarray(numbers)][:, None] + np.maximum(out.sentence_ids, 0)
        of_sentence, special = self.source.languages[pair, 0], out.word_ids < 0
        out.language[special] = of_sentence[special]
        return replace(out, translated=out.language != of_sentence)
