"""Code-switched copies of sentences from files. A dictionary of words translates; one tokenizer reads all languages.

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

from derivlang.align.bitext import WordLists
from derivlang.core.arrays import Int64, Ints, UInt64, owners, positions
from derivlang.core.errors import DataError
from derivlang.core.keys import draw, text_key
from derivlang.training.batch import SubwordRows
from derivlang.training.languages import DERIVED, SOURCE
from derivlang.training.masking import Keys
from derivlang.training.streams.bitext import PairFile
from derivlang.training.streams.pairs import PairRows
from derivlang.training.translations import Translations


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
