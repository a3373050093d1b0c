"""Rows of a sentence and a copy in which some words are replaced by their translations (code-switching).

    <s> we low er it </s> <s> we' low er it </s>          switch: share of the words with an entry that are replaced

The sentences are those of both corpora. An epoch has each once in each language, and every epoch draws other words.
The copy keeps the word order. A word has an entry if each of its sub-words has one. Source: Chaudhary et al. (2020),
sections 2.2 and 2.3, where such copies stand in for translations (DICT-TLM).
"""

from __future__ import annotations

from dataclasses import dataclass
from fractions import Fraction
from typing import ClassVar

import numpy as np

from derivlang.core.arrays import Int64, Ints, offsets_of
from derivlang.training.data import PieceTokens, SubwordRows
from derivlang.training.dictionary import JointDictionary
from derivlang.training.masking import Keys, whole_words
from derivlang.training.objectives.needs import DICTIONARY
from derivlang.training.streams.base import Material
from derivlang.training.streams.pair_source import DerivedPairs
from derivlang.training.streams.pairs import PairRows, SentencePairs


@dataclass(frozen=True, kw_only=True)
class CodeSwitched(SentencePairs):
    """Sentences and code-switched copies. switch: share of the words with an entry that are replaced, from 0 to 1."""

    name: ClassVar[str] = "switched"
    share: float = 1.0
    switch: float = 0.15

    def open(self, material: Material) -> SwitchedRows:
        settings = material.settings
        data = material.encoded[self.piece_length(settings)]
        copies = Copies(data, Fraction(100), seed=settings.dictionary_seed)
        return SwitchedRows(self, copies, self.length(settings), material.found[DICTIONARY.name])


class Copies(DerivedPairs):
    """Each piece twice: the source's with itself, then the derived language's with itself."""

    def __init__(self, *args: object, **options: object):
        super().__init__(*args, **options)  # type: ignore[arg-type]
        self.pieces, self.sizes = np.tile(self.pieces, 2), np.tile(self.sizes, (2, 1))

    def side(self, pairs: Int64, side: int) -> PieceTokens:
        return self.in_language(pairs, (pairs >= len(self.pieces) // 2).astype(np.int8))

    def links(self, pairs: Int64) -> Int64:
        """Return int64[2, L]: each sub-word is linked to its copy."""
        return np.repeat(np.arange(offsets_of(self.sizes[pairs, 0])[-1])[None], 2, axis=0)


class SwitchedRows(PairRows):
    """The rows of `Copies`, with words of the second half replaced."""

    def __init__(self, stream: CodeSwitched, source: Copies, length: int, dictionary: JointDictionary):
        super().__init__(stream, source, length)
        self.switch, self.dictionary = stream.switch, dictionary

    def rows(self, numbers: Ints, keys: Keys) -> SubwordRows:
        out = super().rows(numbers, keys)
        able = whole_words(out, self.dictionary.has(out.ids) & (out.word_ids >= 0) & ~out.shared & (out.side == 1))
        at = able & (keys.uniform("switch", out.word_ids) < self.switch)
        bits = keys.bits("switched", np.arange(self.length)[None])
        out.ids[at] = self.dictionary.synonyms(out.ids[at], bits[at])
        out.language[at] = 1 - out.language[at]
        return out
