"""Train a tokenizer on the words of a train split, counted once, and write its folder.

The words are of a source, of a derived language, or of both. The folder keeps them. A lexicon with an overlap is fitted
on the same words, so a twin needs no source.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator, Sequence
from dataclasses import dataclass, replace
from pathlib import Path
from typing import Any, Literal

import numpy as np
import pyarrow as pa

from derivlang.core.arrays import Int64
from derivlang.core.arrow import string_array, to_arrow, to_numpy
from derivlang.core.batch import Batch
from derivlang.core.errors import StoreError, parse_errors
from derivlang.core.lexicon import Lexicon
from derivlang.core.version import __version__
from derivlang.engine.batches import Source
from derivlang.engine.build import vocabulary_of
from derivlang.engine.job import Job
from derivlang.engine.plan import look, source_files
from derivlang.engine.vocabulary import TypeCounts
from derivlang.formats.opening import check_encoding
from derivlang.formats.progress import LOOKING, stage
from derivlang.lexical.bpe import SUFFIX, train_bpe
from derivlang.lexical.encoding import SubwordEncoder
from derivlang.lexical.settings import TokenizerOptions
from derivlang.lexical.tokenizer import AGAIN, FORMAT, RECIPE, TOKENIZERS, WORDS, Tokenizer, read_recipe
from derivlang.pipeline import Pipeline
from derivlang.sources.find import find, name_of, request_of_text
from derivlang.sources.request import SourceRequest
from derivlang.store.artifact import check_hashes
from derivlang.store.shards import read_parquet


@dataclass(frozen=True, slots=True, eq=False)
class TextToDerive:
    """The text of a derived language, for a tokenizer that is not of the source's text.

    lexicon: the pipeline's, fitted. limit: maximum number of documents. parser, parses: as of `make`. kind: whether the
    tokenizer is of the derived text, or of the source's text and the derived one. other: the text that is derived, if
    it is another one than the source's.
    """

    pipeline: Pipeline
    lexicon: Lexicon
    limit: int | None = None
    parser: str | None = None
    parses: Path | None = None
    kind: Literal["derived", "both"] = "derived"
    other: SourceRequest | None = None

    @property
    def identity(self) -> dict[str, Any]:
        """What the words depend on besides the source."""
        fingerprint = self.pipeline.fingerprint(self.pipeline.save(self.lexicon))
        identity = {"spec": self.pipeline.stored, "fingerprint": fingerprint, "limit": self.limit}
        return identity | ({} if self.other is None else {"source": name_of(self.other.source)})

    def count(self, request: SourceRequest, split: str) -> tuple[pa.Array, Int64]:
        """Return (types: Arrow strings [T], counts: int64[T]) of a split of a source, in the order of first occurrence.

        Raise DerivlangError as `Source.open` and `Source.batches` do.
        """
        counts = TypeCounts()
        for text in self._texts(request, split):
            counts.add(text.types, np.bincount(text.words, minlength=len(text.types)))
        return counts.result()

    def _texts(self, request: SourceRequest, split: str) -> Iterator[Batch]:
        """Yield the batches that the tokenizer is of."""
        if self.other is not None and self.kind == "both":
            yield from self._open(request, split).batches(split, self.limit)
        derived = self.other or request
        where = split if self.other is None else find(derived).splits[0]
        for batch in self._open(derived, where).batches(where, self.limit):
            if self.other is None and self.kind == "both":
                yield batch
            yield self.pipeline.derive(batch, self.lexicon, split=False).derived

    def _open(self, request: SourceRequest, split: str) -> Source:
        parser, parses = self.parser, self.parses
        return Source.open(self.pipeline, request, splits=(split,), parser=parser, parses=parses, limit=self.limit)


def train(
    request: SourceRequest,
    out: Path,
    options: TokenizerOptions = TokenizerOptions(),
    *,
    texts: Sequence[SourceRequest] = (),
    derived: TextToDerive | None = None,
    found: Callable[[Path], None] = lambda out: None,
) -> dict[str, Any]:
    """Train a tokenizer on the train split of a source (else its first), write its folder and return the recipe.

    texts: others to train on, besides the options' own. derived: for a tokenizer of the derived language's text, or
    of both texts. found: called if the folder already holds the same tokenizer, which is kept. Raise DerivlangError if
    the source cannot be read, the size does not fit it, or the folder holds something else; nothing is written then.
    """
    TOKENIZERS.check_free(out)  # before anything is read
    check_encoding(request.encoding)
    texts = [*(replace(request, source=text) for text in options.text), *texts]
    job, *others = map(_seen, (request, *(request_of_text(one, one.source) for one in texts)))
    corpus, split = job.corpus, job.corpus.splits[0]
    inputs = {
        "format": FORMAT,
        "derivlang": __version__,
        "kind": "source" if derived is None else derived.kind,
        "vocab_size": options.vocab_size,
        "min_frequency": options.min_frequency,
        "source": _told(job),
    }
    if others:
        inputs |= {"texts": [_told(other) for other in others], "smoothing": options.smoothing}
    if derived is not None:
        inputs["derived"] = derived.identity
    reading = corpus.reading(request.encoding)

    def write(folder: Path) -> dict[str, Any]:
        every = [
            vocabulary_of(one, one.corpus.splits[0]) if derived is None else derived.count(request, split)
            for one in (job, *others)
        ]
        types, counts = smoothed(every, options.smoothing)
        bpe = train_bpe(types, counts, options.vocab_size, options.min_frequency)
        tokenizer = Tokenizer(bpe)
        tokenizer.save(folder)
        save_words(folder / WORDS, types, counts)
        return {
            **inputs,
            "reading": reading,
            "fingerprint": tokenizer.fingerprint(),
            "vocab_size": bpe.size,
            "specials": list(bpe.entries[: bpe.n_special]),
            "suffix": SUFFIX,
            "scripts": [None],
            "merges": len(bpe.merges),
            "words": {
                "types": len(types),
                "tokens": int(counts.sum()),
                "subwords": int(np.diff(SubwordEncoder(tokenizer).types(types).offsets) @ counts),
            },
        }

    return TOKENIZERS.make(out, {**inputs, "reading": reading}, write, found, force=options.force)


def smoothed(texts: Sequence[tuple[pa.Array, Int64]], exponent: float) -> tuple[pa.Array, Int64]:
    """Return the types and counts of several texts together, with sizes as if they were size ** exponent.

    Every word counts at least once. Of one text the counts stay. Source: Lample and Conneau (2019), section 3.1.

    texts of 900 and 100 words, exponent 0.5: 750 and 250 words count
    """
    if len(texts) == 1:
        return texts[0]
    sizes = np.array([max(int(counts.sum()), 1) for _, counts in texts], float)
    factors = sizes.sum() * sizes ** (exponent - 1) / (sizes**exponent).sum()
    together = TypeCounts()
    for (types, counts), factor in zip(texts, factors, strict=True):
        together.add(types, np.maximum(np.rint(counts * factor).astype(np.int64), counts > 0))
    return together.result()


def _seen(request: SourceRequest) -> Job:
    """Return the job of a text, whose files are hashed."""
    with stage(LOOKING):
        corpus = find(request)
        corpus.splitter()  # raises for a language without word rules before any work is announced
    job = Job(corpus, encoding=request.encoding)
    return replace(job, seen=look(job, corpus.splits[:1]))


def _told(job: Job) -> dict[str, Any]:
    """Return what a recipe records of a text."""
    corpus, split = job.corpus, job.corpus.splits[0]
    return {
        "name": corpus.name,
        "language": corpus.language,
        "licence": corpus.licence,
        "split": split,
        "words": corpus.word_rule,
        "files": corpus.options.get("files") or source_files(job, [split]),
    }


def save_words(path: Path, types: pa.Array, counts: Int64) -> None:
    """Write the word types that a tokenizer was trained on, in the order of first occurrence."""
    import pyarrow.parquet as pq

    pq.write_table(pa.table({"type": types, "count": to_arrow(counts)}), path.absolute(), compression="zstd")


def read_words(folder: Path) -> tuple[pa.Array, Int64]:
    """Return (types: Arrow strings [T], counts: int64[T]) of a tokenizer's folder. Raise StoreError if damaged."""
    path = folder / WORDS
    with parse_errors(str(path), "table of words", error=StoreError, id="tokenizer", fix=AGAIN):
        table = read_parquet(path)
        table.validate(full=True)
        table = table.select(["type", "count"]).cast(pa.schema({"type": pa.string(), "count": pa.int64()}))
        table = table.combine_chunks()
        types = table["type"].chunk(0) if table.num_rows else string_array([])
        if types.null_count or table["count"].null_count:
            raise ValueError("it holds nulls")
        counts = to_numpy(table["count"])
        if len(counts) and counts.min() < 0:
            raise ValueError(f"it holds the count {counts.min()}")
    if (folder / RECIPE).exists():
        check_hashes(folder, read_recipe(folder), names={WORDS}, fix=AGAIN)
    return types, counts
