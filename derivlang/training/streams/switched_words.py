"""Code-switched copies of the sentences of a file, by a dictionary of words, for the tokenizer of a checkpoint.

    the dog sleeps .        ->    <s> the dog sleeps . </s> <s> the Hund sleeps . </s>
    der Hund schläft .      ->    <s> der Hund schläft . </s> <s> der dog schläft . </s>

The sentences come from both sides of --pairs, each with a copy of itself; which of them belong together is not used.
A word and its translation may have different numbers of sub-words, so the words of the copies are drawn once for a run,
and not anew in every epoch as in switched.py.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import replace

import numpy as np
import pyarrow as pa

from derivlang.core.arrays import Int64, Ints, UInt64, offsets_of, owners, positions
from derivlang.core.errors import DataError
from derivlang.core.keys import draw, text_key
from derivlang.training.batch import SubwordRows
from derivlang.training.dictionary import WordDictionary
from derivlang.training.languages import DERIVED, SOURCE
from derivlang.training.masking import Keys
from derivlang.training.streams.bitext import FilePairs, PairFile, WordLists
from derivlang.training.streams.pairs import PairRows, SentencePairs


def code_switched(file: PairFile, dictionary: WordDictionary, switch: float, seed: int) -> PairFile:
    """Return the sentences of both sides, each with its copy. switch: share of the words with an entry to replace.

    Raise DataError if no word has an entry, or if more have one in the dictionary with its sides exchanged.
    """
    both = (file.source, file.derived)
    types: list[str] = []
    n_images: list[int] = []
    images: list[str] = []
    for language, side in enumerate(both):
        for word in side.types.to_pylist():
            types.append(word)
            translations = dictionary.of(word, language)
            n_images.append(len(translations))
            images += translations
    n, first = np.array(n_images, np.int64), offsets_of(np.array(n_images, np.int64))[:-1] + len(types)
    codes = np.concatenate([both[0].codes, both[1].codes + len(both[0].types)]).astype(np.int64)
    offsets = np.append(both[0].offsets, both[0].offsets[-1] + both[1].offsets[1:])
    if not n[codes].any():
        raise DataError(
            "no word of the sentence pairs has an entry in the dictionary",
            where="--dictionary",
            fix="give a dictionary of words of both languages, the source's first",
            id="no-entry",
        )
    if (n[codes] > 0).sum() < _n_known(both, dictionary):
        raise DataError(
            "more words of the sentence pairs have an entry if the sides of the dictionary are exchanged",
            where="--dictionary",
            fix="give the words of the source first, as in the sentence pairs",
            id="exchanged",
        )
    uniform = (_bits("switch", seed, offsets) >> np.uint64(11)).astype(np.float64) * 2.0**-53
    at = (n[codes] > 0) & (uniform < switch)
    chosen = (_bits("switched", seed, offsets)[at] >> np.uint64(1)) % n[codes[at]].astype(np.uint64)
    copies = codes.copy()
    copies[at] = first[codes[at]] + chosen.astype(np.int64)
    every = pa.array(types + images, pa.string())
    spoken = np.repeat(np.array([SOURCE, DERIVED], np.int8), [len(side.codes) for side in both])
    own, copied = (WordLists(every, some.astype(np.int32), offsets) for some in (codes, copies))
    return PairFile(own, copied, None, file.sha256, (spoken, spoken ^ at))


def _n_known(sides: Sequence[WordLists], dictionary: WordDictionary) -> int:
    """Return the number of words in the text that have an entry in the dictionary with its sides exchanged."""
    known = 0
    for language, side in enumerate(sides):
        has = [bool(dictionary.of(word, 1 - language)) for word in side.types.to_pylist()]
        known += int(np.array(has, bool)[side.codes].sum())
    return known


def _bits(what: str, seed: int, offsets: Int64) -> UInt64:
    """Return uint64[N]: a draw for each word of sentences at offsets int64[S + 1]."""
    stream = text_key(f"{what}|seed={seed}")
    return draw(stream, owners(offsets).astype(np.uint64), positions(offsets).astype(np.int64))


class SwitchedWordRows(PairRows):
    """The rows of sentences and their code-switched copies."""

    def __init__(self, stream: SentencePairs, source: FilePairs, length: int):
        super().__init__(stream, source, length)
        first = source.side(np.arange(len(source.sizes)), SOURCE)
        self.language = first.language[offsets_of(source.sizes[:, SOURCE])[:-1]]

    def rows(self, numbers: Ints, keys: Keys) -> SubwordRows:
        """Return the rows. Special ids and padding have the language of the row's first sentence."""
        out = super().rows(numbers, keys)
        pair = self.instances[np.asarray(numbers)][:, None] + np.maximum(out.sentence_ids, 0)
        of_sentence, special = self.language[pair], out.word_ids < 0
        out.language[special] = of_sentence[special]
        return replace(out, translated=out.language != of_sentence)
