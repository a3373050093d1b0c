"""How a language reads a batch: words to the joint ids of a run, in its own order; and which ids belong together.

    mapped    source batch ──SubwordEncoder──▶ ids ──▶ order lifted to sub-words, joint ids of the twin ──▶ derived ids
    spoken    source batch ──Pipeline.derive──▶ derived words ──▶ text ──tokenizer──▶ ids, words by offsets

Mapped languages have the sub-words of one tokenizer, so no text is written. The tokenizer of a spoken language is of
its own text, of several texts or of a checkpoint. Orders of sub-words (unit=token) need a mapped language.

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

from dataclasses import dataclass, field
from hashlib import sha256
from typing import Any

import numpy as np
import pyarrow as pa

from derivlang.core.arrays import Bool, Int32, Int64, lengths_of, owners, positions
from derivlang.core.arrow import string_array, to_arrow
from derivlang.core.batch import Batch
from derivlang.core.errors import UsageError
from derivlang.core.lexicon import Lexicon
from derivlang.core.order import Order
from derivlang.lexical.encoding import is_token, subword_order
from derivlang.lexical.foreign import ForeignTokenizer
from derivlang.lexical.own import OwnTokenizer
from derivlang.lexical.twin import Twin
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


@dataclass(frozen=True, slots=True, eq=False)
class Form:
    """A batch of N words in one language, in its order, as U units: words, or sub-words if the words are mapped.

    ids: int32[M]. sizes, word, place: int64[U], the sub-words of each unit, its word in the batch, and its slot there;
    of an inserted unit the word that it marks, and its slot after it. new: int64[K], the inserted units. widths:
    int64[N], the slots that each word needs. blocks: int64[B + 1], the words that the order keeps together.
    """

    ids: Int32
    sizes: Int64
    word: Int64
    place: Int64
    widths: Int64
    blocks: Int64
    new: Int64 = field(default_factory=lambda: np.zeros(0, np.int64))


@dataclass(frozen=True, eq=False)
class LanguageReader:
    """A language of a run. lexicon: the pipeline's, fitted; None if the words of the source are mapped.

    tokenizer: of its text; if they are mapped, the source's, with a twin.
    """

    pipeline: Pipeline
    tokenizer: ForeignTokenizer | OwnTokenizer
    lexicon: Lexicon | None = None

    @property
    def twin(self) -> Twin | None:
        """The twin that the words are mapped to, if they are."""
        return self.tokenizer.twin if isinstance(self.tokenizer, OwnTokenizer) else None

    @property
    def saved(self) -> str | None:
        """The text of the lexicon; None without one."""
        return None if self.lexicon is None else self.pipeline.save(self.lexicon)

    @property
    def fingerprint(self) -> str:
        """16 hex digits that identify the transforms and their lexicon."""
        return self.pipeline.fingerprint(self.saved)

    @property
    def identity(self) -> dict[str, Any]:
        """What identifies twin and lexicon."""
        if self.twin is not None:
            recipe = self.twin.tokenizer.recipe
            return {"twin": recipe["fingerprint"], "lexicon": recipe["lexicon"]}
        return {"twin": None, "lexicon": None if self.saved is None else sha256(self.saved.encode()).hexdigest()}

    def form(self, batch: Batch, blocks: Int64) -> Form:
        """Return a batch, split into sentences, in the language. blocks: sentences that others keep together."""
        return self._mapped(batch, blocks) if self.lexicon is None else self._spoken(batch, self.lexicon, blocks)

    def _mapped(self, batch: Batch, blocks: Int64) -> Form:
        assert isinstance(self.tokenizer, OwnTokenizer)
        encoded = self.tokenizer.encoder.batch(batch)
        word, place = (of(encoded.offsets).astype(np.int64) for of in (owners, positions))
        ids = encoded.ids if self.twin is None else self.twin.ids(encoded, batch)
        one, widths = np.ones(len(ids), np.int64), lengths_of(encoded.offsets)
        if not self.pipeline.transforms:
            return Form(ids, one, word, place, widths, blocks)
        order = subword_order(self.pipeline, batch, encoded, self.tokenizer.tokenizer.entries())
        at, ends = order.index, batch.sentences
        kept = ends[np.searchsorted(encoded.offsets[ends], order.sentences)]
        return Form(ids[at], one, word[at], place[at], widths, kept)

    def _spoken(self, batch: Batch, lexicon: Lexicon, blocks: Int64) -> Form:
        """Return the form of a text that is tokenized.

        Words a b, images A B of 2 and 1 sub-words, and the order X B A, where X marks a and has 2 sub-words:

            sizes 2 1 2     word 0 1 0     place 0 0 0     new 0     widths 2 1
        """
        if not self.pipeline.transforms:
            encoded, every = self.tokenizer.encode(batch.types, batch.words, blocks), np.arange(batch.n_words)
            sizes = lengths_of(encoded.offsets)
            return Form(encoded.ids, sizes, every, np.zeros_like(every), sizes, blocks)
        derivation = self.pipeline.derive(batch, lexicon, split=False)
        order, derived = derivation.order, derivation.derived
        encoded = self.tokenizer.encode(derived.types, derived.words, order.sentences)
        sizes, word, kept = lengths_of(encoded.offsets), order.index.astype(np.int64), order.index >= 0
        place, widths, new = np.zeros(len(sizes), np.int64), np.zeros(batch.n_words, np.int64), np.flatnonzero(~kept)
        np.maximum.at(widths, word[kept], sizes[kept])
        if order.anchors is not None:
            word[new] = order.anchors
            by_word, room = new[np.argsort(order.anchors, kind="stable")], np.maximum(sizes, 1)
            before = np.cumsum(room[by_word]) - room[by_word]
            place[by_word] = before - before[np.searchsorted(word[by_word], word[by_word], "left")]
        return Form(encoded.ids, sizes, word, place, widths, _blocks(order, derivation.source.sentences), new)

    def words(self, batch: Batch) -> pa.Array:
        """Return the form of each word of a batch that is split into sentences, Arrow strings [N]; "" if deleted."""
        if self.lexicon is None:
            return (batch.types if self.twin is None else self.twin.map.apply(batch.types)).take(to_arrow(batch.words))
        derivation = self.pipeline.derive(batch, self.lexicon, split=False)
        types, kept = derivation.derived.types, derivation.order.index >= 0
        codes = np.full_like(batch.words, len(types))
        codes[derivation.order.index[kept]] = derivation.derived.words[kept]
        return pa.concat_arrays([types, string_array([""])]).take(to_arrow(codes))


def check_words(pipeline: Pipeline) -> None:
    """Raise UsageError for a pipeline that draws in sequence, or orders sub-words, which only a twin has twice."""
    pipeline.check_keyed("the input of a model")
    for transform in pipeline.transforms:
        if is_token(transform):
            raise UsageError(
                f"{transform} orders sub-words, which differ between languages without a twin",
                where="--t",
                fix="order words: leave out unit=token",
                id="unit",
            )


def _blocks(order: Order, sentences: Int64) -> Int64:
    """Return int64[B + 1]: offsets of the source words that an order keeps together. sentences: the source's.

    They are the order's sentences, each one or several of the source's. Without words that are inserted or deleted,
    both have the same offsets.
    """
    if order.is_permutation:
        return order.sentences
    if len(order.sentences) == len(sentences):
        return sentences
    last = np.maximum.accumulate(np.append(-1, order.index))[order.sentences[1:]]  # the highest source word so far
    ends = sentences[np.searchsorted(sentences, last + 1)]
    return np.concatenate([[0], ends[:-1], sentences[-1:]])
