"""Languages of a tokenizer and its twin: both have the same sub-words, so no derived text is written or tokenised.

    source batch ──SubwordEncoder──▶ ids ──▶ order lifted to sub-words, joint ids of the twin ──▶ derived ids

The derived ids of a sentence are `twin.ids(encoded, batch)[order.index]`. The slots of a word are its sub-words.
"""

from __future__ import annotations

from functools import cached_property
from pathlib import Path
from typing import Any

import numpy as np
import pyarrow as pa

from derivlang.core.arrays import Int32, Int64
from derivlang.core.arrow import to_arrow
from derivlang.core.batch import Batch
from derivlang.lexical.bpe import SUFFIX
from derivlang.lexical.encoding import Encoded, SubwordEncoder
from derivlang.lexical.subwords import subword_order
from derivlang.lexical.tokenizer import Tokenizer
from derivlang.lexical.twin_folder import Twin, check_twin
from derivlang.pipeline import Pipeline
from derivlang.training.languages.base import (
    DERIVED,
    TOKENIZER,
    TWIN,
    Languages,
    LanguageSide,
    ParallelBatch,
    SpecialIds,
)
from derivlang.transforms.trans import Trans


class TwinLanguages(Languages):
    """A language pair with a tokenizer of derivlang and its twin.

    Of a language that keeps all words, both have the same ids. The pipeline must have a twin (`has_twin`).
    """

    has_twin = True

    tokenizer: Tokenizer

    def __init__(self, pipeline: Pipeline, tokenizer: Tokenizer, twin: Twin):
        self.pipeline, self.tokenizer, self.twin = pipeline, tokenizer, twin
        self.unknown_id = tokenizer.unknown
        self.special_ids = SpecialIds(*tokenizer.special_ids)
        # The source's ids are 0 … V - 1. The twin's table has the others, or the same if both languages share all ids.
        self.size = twin.joint.size
        if not twin.joint.shift:
            self.rules = 3  # 2: the derived language had a block of ids of its own, which no text used
        source = np.arange(tokenizer.n_special, tokenizer.size, dtype=np.int32)
        self.own = source, twin.joint.table()[source]

    @classmethod
    def load(cls, folder: Path, pipeline: Pipeline) -> TwinLanguages:
        """Read the languages of a folder with `tokenizer/` and `twin/`. Raise StoreError if they are missing."""
        return cls.of(pipeline, Tokenizer.load(folder / TOKENIZER), folder / TWIN, "restore the run's own folder")

    @classmethod
    def of(cls, pipeline: Pipeline, tokenizer: Tokenizer, folder: Path, fix: str) -> TwinLanguages:
        """Return the languages of a tokenizer and the twin of a folder.

        Raise StoreError, with this advice, if the twin belongs to another tokenizer or pipeline.
        """
        twin = Twin.load(folder)
        check_twin(twin.tokenizer, tokenizer, twin_trans(pipeline).stored, folder, fix)
        return cls(pipeline, tokenizer, twin)

    @cached_property
    def encoder(self) -> SubwordEncoder:
        return SubwordEncoder(self.tokenizer)

    def both(self, batch: Batch) -> ParallelBatch:
        encoded = self.encoder.batch(batch)
        order = subword_order(self.pipeline, batch, encoded, self.tokenizer.entries())
        slots: Int64 = order.index.astype(np.int64)
        source = LanguageSide(encoded.ids, np.arange(encoded.n_subwords))
        return ParallelBatch(
            encoded.offsets, source, LanguageSide(self.twin.ids(encoded, batch)[slots], slots), order.sentences
        )

    def encode(self, types: pa.Array, codes: Int32, offsets: Int64, language: int) -> Encoded:
        if language == DERIVED:
            return self.twin.encode_words(self.encoder, types, codes)
        return self.encoder.types(types).take(codes)

    def derived_words(self, batch: Batch) -> pa.Array:
        return self.twin.map.apply(batch.types).take(to_arrow(batch.words))

    @property
    def entries(self) -> list[str]:
        out = [""] * self.size
        twin = zip(self.twin.joint.table().tolist(), self.twin.tokenizer.bpe.entries, strict=True)
        for number, entry in (*twin, *enumerate(self.tokenizer.bpe.entries)):
            out[number] = entry.removesuffix(SUFFIX)
        return out

    @property
    def recipe(self) -> dict[str, Any]:
        twin = self.twin.tokenizer.recipe
        return {
            "tokenizer": self.tokenizer.fingerprint(),
            "twin": twin["fingerprint"],
            "lexicon": twin["lexicon"],
        }

    @property
    def signature(self) -> dict[str, Any]:
        return {"tokenizer": self.tokenizer.fingerprint(), "twin": dict(self.twin.tokenizer.recipe)}


def has_twin(pipeline: Pipeline) -> bool:
    """Return whether the derived language has a twin: all words of the source, in their own script or another one.

    An order that is fitted has none, since a twin holds no counts of words.
    """
    lexical = [transform for transform in pipeline.transforms if transform.has_lexicon]
    fitted = any(transform.fits_order for transform in pipeline.transforms)
    only_trans = len(lexical) < 2 and all(isinstance(transform, Trans) for transform in lexical)
    return only_trans and pipeline.is_permutation and not fitted


def twin_trans(pipeline: Pipeline) -> Trans:
    """Return the `trans` of a pipeline whose language has a twin, trans:overlap=100 if it has none: all words stay."""
    return next((transform for transform in pipeline.transforms if isinstance(transform, Trans)), Trans(overlap=100))
