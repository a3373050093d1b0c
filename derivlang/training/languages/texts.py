"""Languages whose texts are tokenized each by itself, for every pipeline that `make` takes.

    source sentence ──────────────────────▶ text ──tokenizer──▶ ids
           └──Pipeline.derive──▶ derived sentence ──▶ text ──▶ ids, words by offsets, source words by the order

One tokenizer reads both texts, of a checkpoint or trained on both, or each language has its own. A word and its image
may have different numbers of sub-words, so its slots are as many as the longer one has. There is no twin, so there are
no pairs of entries, and no order of sub-words (unit=token).
"""

from __future__ import annotations

from hashlib import sha256
from pathlib import Path
from typing import Any

import numpy as np
import pyarrow as pa

from derivlang.core.arrays import Int32, Int64, expand_ranges, lengths_of, offsets_of
from derivlang.core.arrow import string_array, to_arrow
from derivlang.core.batch import Batch
from derivlang.core.errors import StoreError, UsageError
from derivlang.core.lexicon import Lexicon
from derivlang.core.order import Order
from derivlang.lexical.encoding import Encoded
from derivlang.lexical.foreign import ForeignTokenizer, is_foreign
from derivlang.lexical.own import OwnTokenizer
from derivlang.lexical.subwords import is_token
from derivlang.pipeline import Pipeline
from derivlang.training.languages.base import (
    DERIVED,
    DERIVED_TOKENIZER,
    NO_MASK,
    SOURCE,
    TOKENIZER,
    Languages,
    LanguageSide,
    ParallelBatch,
    SpecialIds,
)
from derivlang.transforms.lexicon_file import read_lexicon

LEXICON = "lexicon.tsv"
SCRIPT_HINT = ": choose a script that it knows (trans:script=NAME)"  # of a derived language with unknown sub-words


class TextLanguages(Languages):
    """A language pair whose texts are tokenized.

    tokenizer: of the source. derived: of the derived language, with ids that follow the source's; None if `tokenizer`
    reads both texts. lexicon: the pipeline's, fitted. The constructor raises UsageError for a pipeline that orders
    sub-words, StoreError for a tokenizer without a token that ends a sentence.
    """

    has_twin = False

    tokenizer: ForeignTokenizer | OwnTokenizer

    def __init__(
        self,
        pipeline: Pipeline,
        tokenizer: ForeignTokenizer | OwnTokenizer,
        lexicon: Lexicon,
        derived: OwnTokenizer | None = None,
    ):
        check_words(pipeline)
        self.pipeline, self.tokenizer, self.lexicon, self.derived = pipeline, tokenizer, lexicon, derived
        self.special_ids, self.unknown_id = _special_ids(tokenizer), tokenizer.unknown
        self.size = tokenizer.size if derived is None else derived.end
        if isinstance(tokenizer, ForeignTokenizer):
            self.rules = 3  # 2: positions by the model's type, no ids behind gaps, no slots of words without sub-words
        self._of = tokenizer, tokenizer if derived is None else derived
        self.own = self._of[SOURCE].own, self._of[DERIVED].own

    @classmethod
    def load(cls, folder: Path, pipeline: Pipeline) -> TextLanguages:
        """Read the languages of a run's folder. Raise StoreError if a tokenizer or the lexicon is missing."""
        saved = read_lexicon(folder / LEXICON) if (folder / LEXICON).exists() else None
        if pipeline.needs_counts(saved):
            raise StoreError(
                f"the lexicon of {pipeline} is missing",
                where=str(folder / LEXICON),
                fix="restore the run's own folder",
                id="no-lexicon",
            )
        lexicon = pipeline.fit(saved=saved, where=str(folder / LEXICON))
        if is_foreign(folder / TOKENIZER):
            return cls(pipeline, ForeignTokenizer.load(folder / TOKENIZER), lexicon)
        tokenizer, derived = OwnTokenizer.load(folder / TOKENIZER), None
        if tokenizer.kind != "both":  # a missing folder is an error
            derived = OwnTokenizer.load(folder / DERIVED_TOKENIZER, tokenizer)
        return cls(pipeline, tokenizer, lexicon, derived)

    def reader(self, language: int) -> ForeignTokenizer | OwnTokenizer:
        """Return the tokenizer of a language."""
        return self._of[language]

    def both(self, batch: Batch) -> ParallelBatch:
        """Return a batch, split into sentences, in both languages.

        Words a b of 1 and 2 sub-words, images A B of 2 and 1, and the order that gives X B A, where X marks a and has
        2 sub-words: offsets [0, 4, 6], X begins at slot 2

            source   a b b      slots  0 4 5
            derived  X X B A A  slots  2 3 4 0 1
        """
        derivation = self.pipeline.derive(batch, self.lexicon, split=False)
        order = derivation.order
        blocks = _blocks(order, derivation.source.sentences)
        source = self._of[SOURCE].encode(batch.types, batch.words, blocks)
        derived = self._of[DERIVED].encode(derivation.derived.types, derivation.derived.words, order.sentences)
        ours, theirs = lengths_of(source.offsets), lengths_of(derived.offsets)
        own, kept = np.maximum(ours, 1), order.index >= 0
        np.maximum.at(own, order.index[kept], theirs[kept])
        word, place = order.index.astype(np.int64), np.zeros(len(order.index), np.int64)
        every = own
        if order.anchors is not None:  # inserted words, in slots after the words that they mark
            new = np.flatnonzero(~kept)
            word[new] = order.anchors
            by_word, sizes = new[np.argsort(order.anchors, kind="stable")], np.maximum(theirs, 1)
            before = np.cumsum(sizes[by_word]) - sizes[by_word]
            first = np.searchsorted(word[by_word], word[by_word], "left")
            place[by_word] = own[word[by_word]] + before - before[first]
            every = own + np.bincount(order.anchors, sizes[new], len(own)).astype(np.int64)
        offsets = offsets_of(every)
        starts = offsets[word] + place
        return ParallelBatch(
            offsets,
            LanguageSide(source.ids, expand_ranges(offsets[:-1], ours), offsets[:-1]),
            LanguageSide(derived.ids, expand_ranges(starts, theirs), starts),
            offsets[blocks],
            starts[~kept],
            derivation.derived.types,
            derivation.derived.words,
        )

    def encode(self, types: pa.Array, codes: Int32, offsets: Int64, language: int) -> Encoded:
        return self._of[language].encode(types, codes, offsets)

    def derived_words(self, batch: Batch) -> pa.Array:
        derivation = self.pipeline.derive(batch, self.lexicon, split=False)
        types, kept = derivation.derived.types, derivation.order.index >= 0
        codes = np.full_like(batch.words, len(types))  # of a deleted word: ""
        codes[derivation.order.index[kept]] = derivation.derived.words[kept]
        return pa.concat_arrays([types, string_array([""])]).take(to_arrow(codes))

    def fingerprint(self) -> str:
        return self.pipeline.fingerprint(self.pipeline.save(self.lexicon))

    @property
    def entries(self) -> list[str]:
        return self.tokenizer.entries + ([] if self.derived is None else self.derived.entries[self.derived.n_special :])

    @property
    def recipe(self) -> dict[str, Any]:
        saved = self.pipeline.save(self.lexicon)
        digest = None if saved is None else sha256(saved.encode()).hexdigest()
        derived = {} if self.derived is None else {"derived_tokenizer": self.derived.fingerprint}
        return {"tokenizer": self.tokenizer.fingerprint, "twin": None, "lexicon": digest, **derived}

    @property
    def signature(self) -> dict[str, Any]:
        return self.recipe


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


def _special_ids(tokenizer: ForeignTokenizer | OwnTokenizer) -> SpecialIds:
    """Return the special ids. Causal models need none but an end: it also begins and pads rows if nothing else does."""
    begin, pad, end, mask = tokenizer.special_ids
    if end is None:
        raise StoreError(
            "its tokenizer has no token that ends a sentence (sep_token or eos_token)",
            where=str(tokenizer.folder),
            fix="use the tokenizer of a language model",
            id="special-tokens",
        )
    first, padding = (end if i is None else i for i in (begin, pad))
    return SpecialIds(first, padding, end, NO_MASK if mask is None else mask)
