"""Which sub-words are hidden, and behind what: 15 % of them; 80 % `<mask>`, 10 % another, 10 % themselves.

    draw(seed, step, row; place) -> hidden? how? by which?         no generator, so a resumed run hides the same ones

Marks and padding are never hidden. Another sub-word is one of the position's own language, never a special token (the
released ALIGN-MLM takes source sub-words in derived text, too). Whole words: one draw for all sub-words of a word.
Devlin et al. (2019), section 3.1; methods, section 4.
"""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np

from derivlang.core.arrays import Bool, Int32, Int64, Ints, UInt64
from derivlang.core.keys import GOLDEN, draw, mix, text_key
from derivlang.training.data import Marks, Rows
from derivlang.training.languages import Languages

_HIDE, _OTHER = 0.8, 0.1


@dataclass(frozen=True, slots=True, eq=False)
class Vocabulary:
    """own: for each language, int32[K] joint ids of its sub-words that are no special tokens. size: joint rows."""

    own: tuple[Int32, Int32]
    marks: Marks
    size: int

    @classmethod
    def of(cls, languages: Languages) -> Vocabulary:
        source = np.arange(languages.tokenizer.n_special, languages.tokenizer.size, dtype=np.int32)
        return cls((source, languages.twin.joint.table()[source]), Marks.of(languages), languages.size)


@dataclass(frozen=True, slots=True, eq=False)
class Keys:
    """The draws of B rows of one step. rows: uint64[B]; seed: of the run."""

    seed: int
    rows: UInt64

    @classmethod
    def of(cls, seed: int, step: Ints | int, rows: Ints) -> Keys:
        """rows: [B], their places in the whole step, whichever process has them. step: one, or one a row."""
        with np.errstate(over="ignore"):
            keys = mix(np.asarray(rows, np.uint64) + np.asarray(step, np.uint64) * GOLDEN)
        return cls(seed, keys)

    def take(self, which: Ints | slice) -> Keys:
        return Keys(self.seed, self.rows[which])

    def uniform(self, what: str, places: Ints) -> np.ndarray[tuple[int, ...], np.dtype[np.float64]]:
        """float64[B, H] from 0 to 1, for the places [B, H] of each row."""
        return (self.bits(what, places) >> np.uint64(11)).astype(np.float64) * 2.0**-53

    def bits(self, what: str, places: Ints) -> UInt64:
        """uint64[B, H]."""
        return draw(text_key(f"{what}|seed={self.seed}"), self.rows[:, None], np.asarray(places))


@dataclass(frozen=True, slots=True, eq=False)
class Masked:
    """inputs: int64[B, H], in the languages int8[B, H]. targets: int64[n], places in the flattened rows, rising.
    labels: int64[n] joint ids, of the languages int8[n]."""

    inputs: Int64
    language: Ints
    targets: Int64
    labels: Int64
    label_language: Ints


def hidden(rows: Rows, keys: Keys, rate: float, *, whole_words: bool = False) -> Bool:
    """bool[B, H]: the positions that are to be predicted."""
    places = rows.groups if whole_words else np.arange(rows.shape[1])[None]
    return (keys.uniform("hide", places) < rate) & (rows.groups >= 0)


def replace(rows: Rows, chosen: Bool, keys: Keys, vocabulary: Vocabulary) -> Int64:
    """int64[B, H]: the rows with the chosen positions hidden, 80 / 10 / 10."""
    inputs = rows.ids.copy()
    row, column = np.nonzero(chosen)
    how = keys.uniform("how", np.arange(rows.shape[1])[None])[row, column]
    mask = how < _HIDE
    inputs[row[mask], column[mask]] = vocabulary.marks.mask
    other = (how >= _HIDE) & (how < _HIDE + _OTHER)
    at = row[other], column[other]
    bits = keys.bits("other", np.arange(rows.shape[1])[None])[at] >> np.uint64(1)
    for language, own in enumerate(vocabulary.own):
        here = rows.language[at] == language
        inputs[at[0][here], at[1][here]] = own[(bits[here] % np.uint64(len(own))).astype(np.int64)]
    return inputs


def mask(rows: Rows, keys: Keys, vocabulary: Vocabulary, rate: float, *, whole_words: bool = False) -> Masked:
    """The usual masks: labels are the sub-words that were there."""
    chosen = hidden(rows, keys, rate, whole_words=whole_words)
    targets = np.flatnonzero(chosen)
    inputs = replace(rows, chosen, keys, vocabulary)
    return Masked(inputs, rows.language, targets, rows.ids.ravel()[targets], rows.language.ravel()[targets])
