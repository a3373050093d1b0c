"""A source language and its derived language as input of a model: sub-word ids of both, and the order between them.

    source batch ──Encoder──▶ ids ──▶ order lifted to sub-words, joint ids of the twin ──▶ derived ids

The derived ids of a sentence are `twin.ids(encoded, batch)[order.index]`; no derived text is written or tokenised. A
folder of languages (that of a run) holds `tokenizer/`, `twin/` and, if something was fitted, `lexicon.tsv`.
"""

from __future__ import annotations

from dataclasses import dataclass
from functools import cached_property
from pathlib import Path

from derivlang.core.arrays import Int32, Int64
from derivlang.core.batch import Batch
from derivlang.core.errors import UsageError
from derivlang.core.order import Order
from derivlang.core.policies import Policies
from derivlang.lexical.encoding import Encoded, Encoder
from derivlang.lexical.subwords import subword_order
from derivlang.lexical.tokenizer import Tokenizer
from derivlang.lexical.twin_folder import Twin, trans_of
from derivlang.pipeline import Pipeline

TOKENIZER, TWIN = "tokenizer", "twin"
SOURCE, DERIVED = 0, 1  # numbers of the languages, also used as token types


@dataclass(frozen=True, slots=True, eq=False)
class Both:
    """A batch in both languages.

    source: sub-words of its words. order: of these sub-words. joint: int32[M], the derived language's id of each source
    sub-word, in source order.
    """

    source: Encoded
    order: Order
    joint: Int32

    @property
    def derived(self) -> Int32:
        """int32[M]: the derived language's ids, in derived order."""
        return self.joint[self.order.index]

    @property
    def word_numbers(self) -> Int64:
        """int64[M]: the source word of each derived sub-word."""
        return self.source.words().astype("int64")[self.order.index]


class Languages:
    """A language pair: its pipeline, its tokenizer and its twin.

    The constructor raises UsageError for a pipeline without a twin, or one that inserts or deletes words.
    """

    def __init__(self, pipeline: Pipeline, tokenizer: Tokenizer, twin: Twin):
        check_pipeline(pipeline)
        self.pipeline, self.tokenizer, self.twin = pipeline, tokenizer, twin

    @classmethod
    def load(cls, folder: Path, pipeline: Pipeline) -> Languages:
        """Read the languages of a folder with `tokenizer/` and `twin/`. Raise StoreError if they are missing."""
        return cls(pipeline, Tokenizer.load(folder / TOKENIZER), Twin.load(folder / TWIN))

    @property
    def size(self) -> int:
        """The number of rows of a joint embedding. The source's ids are 0 … V - 1; the twin's table has the others."""
        return self.twin.joint.size

    @cached_property
    def encoder(self) -> Encoder:
        return Encoder(self.tokenizer)

    def both(self, batch: Batch, policies: Policies | None = None) -> Both:
        """Return a batch, split into sentences, in both languages."""
        encoded = self.encoder.batch(batch)
        order = subword_order(self.pipeline, batch, encoded, self.tokenizer.entries(), policies=policies)
        return Both(encoded, order, self.twin.ids(encoded, batch))


def check_pipeline(pipeline: Pipeline) -> None:
    """Raise UsageError for a pipeline that training does not support."""
    trans_of(pipeline)
    if not pipeline.is_permutation:
        raise UsageError(
            f"{pipeline} inserts or deletes words; training supports only permutations",
            where="--t",
            fix="leave that transform out, or train on a derived set of it",
            id="no-permutation",
        )
