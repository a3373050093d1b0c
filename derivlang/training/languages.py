"""A source language and its derived one as a model sees them: sub-word ids of both, and the order between them.

    source batch ──Encoder──▶ ids ──▶ order lifted to sub-words, joint ids of the twin ──▶ derived ids

The derived ids of a sentence are `twin.ids(encoded, batch)[order.index]`: no derived text is written or tokenised.
A folder of languages (that of a run) holds `tokenizer/`, `twin/` and, where something was fitted, `lexicon.tsv`.
"""

from __future__ import annotations

from dataclasses import dataclass
from functools import cached_property
from pathlib import Path

from derivlang.core.arrays import Int32, Int64
from derivlang.core.batch import Batch, Policies
from derivlang.core.errors import UsageError
from derivlang.core.order import Order
from derivlang.lexical.encoding import Encoded, Encoder
from derivlang.lexical.subwords import subword_order
from derivlang.lexical.tokenizer import Tokenizer
from derivlang.lexical.twin_folder import Twin, trans_of
from derivlang.pipeline import Pipeline

TOKENIZER, TWIN = "tokenizer", "twin"
SOURCE, DERIVED = 0, 1  # the languages' numbers, and their token types where a model has any


@dataclass(frozen=True, slots=True, eq=False)
class Both:
    """A batch in both languages. source: sub-words of its words. order: of those sub-words. joint: int32[M], the
    derived language's id of each source sub-word, in the source's order."""

    source: Encoded
    order: Order
    joint: Int32

    @property
    def derived(self) -> Int32:
        """int32[M]: the derived language's ids, in its order."""
        return self.joint[self.order.index]

    @property
    def word_numbers(self) -> Int64:
        """int64[M]: the source word that each derived sub-word is of."""
        return self.source.words().astype("int64")[self.order.index]


class Languages:
    """Raises UsageError for a pipeline that has no twin, or that inserts or deletes words."""

    def __init__(self, pipeline: Pipeline, tokenizer: Tokenizer, twin: Twin):
        check_pipeline(pipeline)
        self.pipeline, self.tokenizer, self.twin = pipeline, tokenizer, twin

    @classmethod
    def load(cls, folder: Path, spec: str) -> Languages:
        """Of a folder that holds `tokenizer/` and `twin/`; StoreError where it does not."""
        return cls(Pipeline.parse(spec), Tokenizer.load(folder / TOKENIZER), Twin.load(folder / TWIN))

    @property
    def size(self) -> int:
        """Rows of a joint embedding: the source's ids are 0 … V - 1, the twin's table says where its own are."""
        return self.twin.joint.size

    @cached_property
    def encoder(self) -> Encoder:
        return Encoder(self.tokenizer)

    def both(self, batch: Batch, policies: Policies | None = None) -> Both:
        """A batch whose sentences are split, in both languages."""
        encoded = self.encoder.batch(batch)
        order = subword_order(self.pipeline, batch, encoded, self.tokenizer.entries(), policies=policies)
        return Both(encoded, order, self.twin.ids(encoded, batch))


def check_pipeline(pipeline: Pipeline) -> None:
    """UsageError for a pipeline that a trainer cannot take."""
    trans_of(str(pipeline))
    if not pipeline.is_permutation:
        raise UsageError(
            f"{pipeline} inserts or deletes words; a trainer takes orders that are permutations",
            where="--t",
            fix="leave that transform out, or make a derived set of it",
            id="no-permutation",
        )
