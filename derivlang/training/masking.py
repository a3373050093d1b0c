"""Masking: 15 % of the sub-words are masked; of these 80 % become `<mask>`, 10 % another sub-word, 10 % stay.

    draw(seed, step, row; position) -> masked? how? by which?      keyed, so a resumed run masks the same positions

Special ids and padding are never masked. Another sub-word is one that occurs in the text of the position's language
(the released ALIGN-MLM takes source sub-words in derived text, too); `replacements` takes both vocabularies, as Dufter
and Schütze (2020), or none. For whole words, all sub-words of a word share one draw. Source: Devlin et al. (2019),
section 3.1; methods, section 4.
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass

import numpy as np

from derivlang.core.arrays import Bool, Int32, Int64, Ints, UInt64
from derivlang.core.keys import GOLDEN, draw, mix, text_key
from derivlang.training.batch import SubwordRows
from derivlang.training.data import Data
from derivlang.training.languages import Languages, SpecialIds
from derivlang.training.settings import Replacements

_HIDE, _OTHER = 0.8, 0.1


@dataclass(frozen=True, slots=True, eq=False)
class LanguageIds:
    """The joint vocabulary. own: int32[K], joint ids of each language without special tokens. size: number of ids.

    replacements: what random replacements are drawn from: the position's own language, both, or none, for masks in
    their place. seen: the ids that occur in the text of each language, fewer than its own if it shares its tokenizer
    with other languages. None if there is no text.
    """

    own: tuple[Int32, ...]
    special_ids: SpecialIds
    size: int
    replacements: Replacements = "own"
    seen: tuple[Int32, ...] | None = None

    @classmethod
    def of(
        cls, languages: Languages, replacements: Replacements = "own", texts: Mapping[int, Data] | None = None
    ) -> LanguageIds:
        """Return the joint vocabulary of the languages of a run. texts: of each language, by its number."""
        own, seen = languages.own, None
        if texts:  # all words of a text may be unknown
            found = [np.intersect1d(own[n], text.seen(n)) for n, text in sorted(texts.items())]
            seen = tuple(some if len(some) else every for some, every in zip(found, own, strict=True))
        return cls(own, languages.special_ids, languages.size, replacements, seen)

    @property
    def drawn(self) -> tuple[Int32, ...]:
        """The ids that random replacements are drawn from, of each language."""
        found = self.seen or self.own
        return found if self.replacements == "own" else (np.unique(np.concatenate(found)),) * len(found)


@dataclass(frozen=True, slots=True, eq=False)
class Keys:
    """The keys of B rows, for their draws. rows: uint64[B]; seed: of the run; view: number of the stream's view."""

    seed: int
    rows: UInt64
    view: int = 1

    @classmethod
    def of(cls, seed: int, step: Ints | int, rows: Ints) -> Keys:
        """Return the keys of rows [B], numbered in the whole step over all processes. step: one, or one a row."""
        with np.errstate(over="ignore"):
            keys = mix(np.asarray(rows, np.uint64) + np.asarray(step, np.uint64) * GOLDEN)
        return cls(seed, keys)

    def take(self, which: Ints | slice) -> Keys:
        return Keys(self.seed, self.rows[which], self.view)

    def of_view(self, view: int) -> Keys:
        """Return the keys of the same rows in another view, from 1."""
        return Keys(self.seed, self.rows, view)

    def uniform(self, what: str, places: Ints) -> np.ndarray[tuple[int, ...], np.dtype[np.float64]]:
        """Return float64[B, H], uniform draws in [0, 1), for positions [B, H]."""
        return (self.bits(what, places) >> np.uint64(11)).astype(np.float64) * 2.0**-53

    def bits(self, what: str, places: Ints) -> UInt64:
        """Return uint64[B, H], the draws for positions [B, H]."""
        view = f"|view={self.view}" if self.view > 1 else ""
        return draw(text_key(f"{what}|seed={self.seed}{view}"), self.rows[:, None], np.asarray(places))


def choose_masked(rows: SubwordRows, keys: Keys, rate: float, *, whole_words: bool = False) -> Bool:
    """Return bool[B, H]: the positions to predict."""
    places = rows.word_ids if whole_words else np.arange(rows.shape[1])[None]
    hidden: Bool = (keys.uniform("hide", places) < rate) & (rows.word_ids >= 0)
    return hidden


def with_masks(rows: SubwordRows, chosen: Bool, keys: Keys, vocabulary: LanguageIds) -> Int64:
    """Return int64[B, H]: the rows with the chosen positions masked, 80 / 10 / 10.

    Without replacements 90 % become masks.
    """
    inputs: Int64 = rows.clean_ids.copy()
    places, none = np.arange(rows.shape[1])[None], vocabulary.replacements == "none"
    how = keys.uniform("how", places)
    inputs[chosen & (how < _HIDE + (_OTHER if none else 0))] = vocabulary.special_ids.mask
    if none:
        return inputs
    other = chosen & (how >= _HIDE) & (how < _HIDE + _OTHER)
    ids, bits = inputs[other], keys.bits("other", places)[other] >> np.uint64(1)
    for language, drawn in enumerate(vocabulary.drawn):
        here = rows.language[other] == language
        ids[here] = drawn[(bits[here] % np.uint64(len(drawn))).astype(np.int64)]
    inputs[other] = ids
    return inputs


def mask(
    rows: SubwordRows, keys: Keys, vocabulary: LanguageIds, rate: float, *, whole_words: bool = False
) -> SubwordRows:
    """Mask rows in the usual way, with the original sub-words as labels."""
    chosen = choose_masked(rows, keys, rate, whole_words=whole_words)
    return rows.predicting(np.flatnonzero(chosen), with_masks(rows, chosen, keys, vocabulary))


def whole_words(rows: SubwordRows, able: Bool) -> Bool:
    """Return bool[B, H]: whether every sub-word of the position's word is able.

    Words of all rows get distinct numbers, row * (H + 1) + word id + 1. Special ids and padding have word id -1 and
    form one word per row, which is able only if all of them are.

    word ids [-1, 1, 1, 3, -1], able [0, 1, 0, 1, 0]  ->  [0, 0, 0, 1, 0]
    """
    height, width = rows.shape
    word = np.arange(height)[:, None] * (width + 1) + rows.word_ids + 1
    out = np.ones(height * (width + 1), bool)
    np.logical_and.at(out, word.ravel(), able.ravel())
    return np.asarray(out[word])
