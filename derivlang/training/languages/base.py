"""Languages as input of a model: the sub-word ids of each, and which belong together.

    words          we      lower        it                slots of the words   [0, 1, 3, 4]
    source         17      4 9          22                slots                0    1 2    3
    derived (inv)  22'     4' 9'        17'               slots                3    1 2    0

Each word has as many *slots* as the longest of its forms has sub-words. The k-th sub-word of a form is in the k-th
slot of its word. So a range of slots is a part of a sentence in every language, however it is divided into sub-words.
Between a tokenizer and its twin the k-th sub-words of both forms belong together, too; with the tokenizer of a
checkpoint, or tokenizers of several texts, only words do. A word that an order inserts has slots of its own, after the
word that it marks. A sub-word that two words share belongs to the first one. Unless all languages have the sub-words of
one tokenizer, a word without sub-words has a slot, too.
"""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np

from derivlang.core.arrays import Bool, Int32, Int64, owners

TOKENIZER, TWIN, DERIVED_TOKENIZER = "tokenizer", "twin", "derived-tokenizer"
SOURCE, DERIVED = 0, 1  # numbers of the languages, also used as token types
NO_MASK = -1
_UNKNOWN = 5.0  # percent of unknown sub-words from which on a language is hardly represented


@dataclass(frozen=True, slots=True)
class SpecialIds:
    """The special ids that rows need. mask: NO_MASK if there is none, as in the tokenizers of causal models."""

    begin: int
    pad: int
    end: int
    mask: int


@dataclass(frozen=True, slots=True, eq=False)
class LanguageSide:
    """A batch in one language. ids: int32[M], in the order of the language; slots: int64[M], the slot of each.

    words: int64[W], the slots at which its words begin, in its order; None if these are the words of its sub-words.
    """

    ids: Int32
    slots: Int64
    words: Int64 | None = None


@dataclass(frozen=True, slots=True, eq=False)
class ParallelBatch:
    """A batch in several languages, `sides`, of which an evaluation reads the first two.

    offsets: int64[N + 1], the slots of its words; an inserted word has its slots after the word that it marks. blocks:
    int64[S + 1], the slots of what orders keep together: a sentence, or all sentences that a tree spans. inserted:
    int64[K], the slots at which inserted words begin.
    """

    offsets: Int64
    sides: tuple[LanguageSide, ...]
    blocks: Int64
    inserted: Int64

    @property
    def source(self) -> LanguageSide:
        return self.sides[SOURCE]

    @property
    def derived(self) -> LanguageSide:
        return self.sides[DERIVED]

    def words(self, side: LanguageSide) -> Int64:
        """Return int64[M]: the source word of each sub-word of a side; of an inserted word, the one that it marks."""
        return owners(self.offsets).astype("int64")[side.slots]

    def begins(self) -> Bool:
        """Return bool[K]: the slots that begin a word, of the source or inserted."""
        begins: Bool = np.diff(owners(self.offsets), prepend=-1) != 0
        begins[self.inserted] = True
        return begins

    def of_inserted(self) -> Bool:
        """Return bool[K]: the slots of inserted words."""
        starts = np.flatnonzero(self.begins())
        return np.repeat(np.isin(starts, self.inserted), np.diff(starts, append=int(self.offsets[-1])))


def unknown_warning(percent: float, side: str, tokenizer: str, hint: str = "") -> str | None:
    """Return a warning if a tokenizer hardly knows a side. percent: of its unknown sub-words; None below 5 %."""
    return (
        f"{percent:.1f} % of the sub-words of {side} are unknown to {tokenizer}{hint}" if percent > _UNKNOWN else None
    )
