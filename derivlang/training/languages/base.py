"""A source language and its derived language as input of a model: sub-word ids of both, and which belong together.

    words          we      lower        it                slots of the words   [0, 1, 3, 4]
    source         17      4 9          22                slots                0    1 2    3
    derived (inv)  22'     4' 9'        17'               slots                3    1 2    0

Each word has as many *slots* as the longer of its two forms has sub-words. The k-th sub-word of a form is in the k-th
slot of its word. So a range of slots is a part of a sentence in both languages, however they are divided into
sub-words. With a twin (twins.py) the k-th sub-words of both forms belong together, too; with the tokenizer of a
checkpoint, or two tokenizers (texts.py), only words do. A word that the order inserts has slots of its own,
after the word that it marks. A sub-word that two words share belongs to the first one; without a twin, a word that
has no sub-word in either language has a slot, too.
"""

from __future__ import annotations

from abc import ABC, abstractmethod
from dataclasses import dataclass, field
from typing import Any, ClassVar

import numpy as np
import pyarrow as pa

from derivlang.core.arrays import Bool, Int32, Int64, owners
from derivlang.core.arrow import string_array, to_arrow
from derivlang.core.batch import Batch
from derivlang.lexical.encoding import Encoded
from derivlang.lexical.foreign import ForeignTokenizer
from derivlang.lexical.own import OwnTokenizer
from derivlang.lexical.tokenizer import Tokenizer
from derivlang.pipeline import Pipeline

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
    """A batch in both languages.

    offsets: int64[N + 1], the slots of its words; an inserted word has its slots after the word that it marks. blocks:
    int64[S + 1], the slots of what an order keeps together: a sentence, or all sentences that a tree spans. inserted:
    int64[K], the slots at which inserted words begin. types, codes: Arrow strings and int32[W], the derived words, in
    their order; None with a twin, where they follow from the source's.
    """

    offsets: Int64
    source: LanguageSide
    derived: LanguageSide
    blocks: Int64
    inserted: Int64 = field(default_factory=lambda: np.zeros(0, np.int64))
    types: pa.Array | None = None
    codes: Int32 | None = None

    @property
    def sides(self) -> tuple[LanguageSide, LanguageSide]:
        return self.source, self.derived

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


class Languages(ABC):
    """A language pair as input of a model.

    has_twin: whether every source sub-word has one counterpart. rules: version of the rules of runs of such languages.
    size: highest id + 1, the number of embeddings. special_ids: of rows. own: int32[K], the ids of each language
    without special tokens. unknown_id: for what the tokenizer cannot represent; None if it represents everything.
    """

    has_twin: ClassVar[bool]
    rules: int = 2

    pipeline: Pipeline
    tokenizer: Tokenizer | ForeignTokenizer | OwnTokenizer
    size: int
    special_ids: SpecialIds
    own: tuple[Int32, Int32]
    unknown_id: int | None

    def unknown_percent(self, ids: Int32) -> float:
        """Return the percentage of unknown sub-words among ids, int32[M]; 0 of none."""
        return 100 * float(np.mean(ids == self.unknown_id)) if len(ids) and self.unknown_id is not None else 0.0

    @abstractmethod
    def both(self, batch: Batch) -> ParallelBatch:
        """Return a batch, split into sentences, in both languages."""

    @abstractmethod
    def encode(self, types: pa.Array, codes: Int32, offsets: Int64, language: int) -> Encoded:
        """Return the sub-words of the words of sentences, given in one of the languages.

        types: Arrow strings; codes: int32[N], the type of each word; offsets: int64[S + 1], of the sentences.
        """

    @abstractmethod
    def derived_words(self, batch: Batch) -> pa.Array:
        """Return the derived form of each word of a batch that is split into sentences, Arrow strings [N]."""

    def spelt(self, batch: Batch, both: ParallelBatch) -> pa.Array:
        """Return the derived word that begins at each slot of a batch, Arrow strings [K]; "" if none does.

        With a twin, all slots of a word have its derived word.
        """
        if both.types is None or both.codes is None:
            return self.derived_words(batch).take(to_arrow(owners(both.offsets)))
        codes = np.full(int(both.offsets[-1]), len(both.types), np.int32)
        codes[both.derived.words] = both.codes
        return pa.concat_arrays([both.types, string_array([""])]).take(to_arrow(codes))

    def fingerprint(self) -> str:
        """Return 16 hex digits that identify the derived language."""
        return self.pipeline.fingerprint()

    @property
    @abstractmethod
    def entries(self) -> list[str]:
        """The text of each id, without marks of the word's begin or end."""

    @property
    @abstractmethod
    def recipe(self) -> dict[str, Any]:
        """What identifies tokenizers and lexicon, for the recipe of encoded data."""

    @property
    @abstractmethod
    def signature(self) -> dict[str, Any]:
        """The same for the key of a task's examples."""


def unknown_warning(percent: float, side: str, tokenizer: str, hint: str = "") -> str | None:
    """Return a warning if a tokenizer hardly knows a side. percent: of its unknown sub-words; None below 5 %."""
    return (
        f"{percent:.1f} % of the sub-words of {side} are unknown to {tokenizer}{hint}" if percent > _UNKNOWN else None
    )
