"""Languages of a checkpoint's own tokenizer, which reads the text of both languages.

    source sentence ──────────────────────▶ text ──tokenizer──▶ ids
           └──Pipeline.derive──▶ derived sentence ──▶ text ──▶ ids, words by offsets, source words by the order

A word and its image may have different numbers of sub-words, so its slots are as many as the longer one has. There is
no twin, so there are no pairs of entries, and no order of sub-words (unit=token).
"""

from __future__ import annotations

from hashlib import sha256
from pathlib import Path
from typing import Any

import numpy as np
import pyarrow as pa

from derivlang.core.arrays import Int32, Int64, expand_ranges, lengths_of, offsets_of
from derivlang.core.arrow import to_arrow
from derivlang.core.batch import Batch
from derivlang.core.errors import StoreError, UsageError
from derivlang.core.lexicon import Lexicon
from derivlang.lexical.encoding import Encoded
from derivlang.lexical.foreign import ForeignTokenizer
from derivlang.lexical.subwords import is_token
from derivlang.pipeline import Pipeline
from derivlang.training.languages.base import NO_MASK, TOKENIZER, Languages, LanguageSide, ParallelBatch, SpecialIds
from derivlang.training.languages.twins import check_permutation
from derivlang.transforms.fingerprint import FORMAT
from derivlang.transforms.lexicon_file import read_lexicon

LEXICON = "lexicon.tsv"
SCRIPT_HINT = ": choose a script that it knows (trans:script=NAME)"  # of a derived language with unknown sub-words


class TextLanguages(Languages):
    """A language pair with the tokenizer of a checkpoint.

    lexicon: the pipeline's, fitted. The constructor raises UsageError for a pipeline that inserts or deletes words, or
    orders sub-words, StoreError for a tokenizer without a token that ends a sentence.
    """

    has_twin = False

    tokenizer: ForeignTokenizer

    def __init__(self, pipeline: Pipeline, tokenizer: ForeignTokenizer, lexicon: Lexicon):
        check_permutation(pipeline)
        for transform in pipeline.transforms:
            if is_token(transform):
                raise UsageError(
                    f"{transform} orders sub-words, which differ between the languages of a checkpoint's tokenizer",
                    where="--t",
                    fix="order words: leave out unit=token",
                    id="unit",
                )
        self.pipeline, self.tokenizer, self.lexicon = pipeline, tokenizer, lexicon
        self.special_ids = _special_ids(tokenizer)
        self.size, self.unknown_id = tokenizer.size, tokenizer.unknown
        self.own = tokenizer.own, tokenizer.own

    @classmethod
    def load(cls, folder: Path, pipeline: Pipeline) -> TextLanguages:
        """Read the languages of a run's folder. Raise StoreError if the tokenizer or the lexicon is missing."""
        saved = read_lexicon(folder / LEXICON) if (folder / LEXICON).exists() else None
        if pipeline.needs_counts(saved):
            raise StoreError(
                f"the lexicon of {pipeline} is missing",
                where=str(folder / LEXICON),
                fix="restore the run's own folder",
                id="no-lexicon",
            )
        lexicon = pipeline.fit(saved=saved, where=str(folder / LEXICON))
        return cls(pipeline, ForeignTokenizer.load(folder / TOKENIZER), lexicon)

    def both(self, batch: Batch) -> ParallelBatch:
        found = self.pipeline.derive(batch, self.lexicon, split=False)
        order, sentences = found.order, found.order.sentences
        source = self.tokenizer.encode(batch.types, batch.words, sentences)
        derived = self.tokenizer.encode(found.derived.types, found.derived.words, sentences)
        ours, theirs = lengths_of(source.offsets), lengths_of(derived.offsets)
        slots = ours.copy()
        np.maximum.at(slots, order.index, theirs)
        offsets = offsets_of(slots)
        return ParallelBatch(
            offsets,
            LanguageSide(source.ids, expand_ranges(offsets[:-1], ours)),
            LanguageSide(derived.ids, expand_ranges(offsets[order.index], theirs)),
            offsets[sentences],
        )

    def encode(self, types: pa.Array, codes: Int32, offsets: Int64, language: int) -> Encoded:
        return self.tokenizer.encode(types, codes, offsets)

    def images(self, forms: pa.Array) -> pa.Array:
        if self.lexicon.chooses:
            raise UsageError(
                f"{self.pipeline} chooses images by their place, so a single word has no image",
                where="--t",
                id="images",
            )
        return self.lexicon.apply(forms)

    def derived_words(self, batch: Batch) -> pa.Array:
        found = self.pipeline.derive(batch, self.lexicon, split=False)
        codes = np.empty_like(batch.words)
        codes[found.order.index] = found.derived.words
        return found.derived.types.take(to_arrow(codes))

    def fingerprint(self, format: int = FORMAT) -> str:
        return self.pipeline.fingerprint(self.pipeline.save(self.lexicon), format=format)

    @property
    def entries(self) -> list[str]:
        return self.tokenizer.entries

    @property
    def recipe(self) -> dict[str, Any]:
        saved = self.pipeline.save(self.lexicon)
        digest = None if saved is None else sha256(saved.encode()).hexdigest()
        return {"tokenizer": self.tokenizer.fingerprint, "twin": None, "lexicon": digest}

    @property
    def signature(self) -> dict[str, Any]:
        return self.recipe


def _special_ids(tokenizer: ForeignTokenizer) -> SpecialIds:
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
