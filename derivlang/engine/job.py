"""A job is all that a worker needs to know; a task is one shard of it. Both are plain data and can be pickled."""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import numpy as np
import pyarrow as pa
import pyarrow.compute as pc

from derivlang.core.arrays import Int64
from derivlang.core.arrow import to_arrow, to_numpy
from derivlang.core.batch import Batch, Policies
from derivlang.core.lexicon import Lexicon
from derivlang.core.rows import to_table
from derivlang.core.sentences import Rule
from derivlang.formats.text import WORDS_PER_BATCH, Piece
from derivlang.parsing.base import find_parser
from derivlang.pipeline import Pipeline
from derivlang.sources.corpus import Corpus, Part
from derivlang.sources.read import Reading, batches
from derivlang.store.shards import ShardWriter

# Columns that follow from the others, so that `--columns` may leave them out.
OPTIONAL = ("key", "source", "tokens", "text")


_PARSED_WORDS = 1 << 18  # in a batch that is parsed, and so in a row group that syn reads: trees take much room
_TYPES_AT_ONCE = 1 << 16  # of a large vocabulary, so that its images never lie in memory whole


@dataclass(frozen=True, slots=True)
class Job:
    """spec: the whole pipeline, a derived source's own included. lexicon: the text of lexicon.tsv or None. parser: what
    finds trees, as `find_parser` names it, or None."""

    spec: str
    lexicon: str | None
    corpus: Corpus
    rule: Rule = "marks"
    policies: Policies = Policies()
    encoding: str = "utf-8"
    repair_tags: bool = False
    drop_columns: tuple[str, ...] = ()
    parser: str | None = None


@dataclass(frozen=True, slots=True)
class Task:
    """One shard: a file, or a piece of a large plain one, to `file`. name is unique in the plan."""

    name: str
    split: str
    part: Part
    piece: Piece
    first_document: int
    limit: int | None
    file: Path


@dataclass(slots=True)
class Result:
    """What a task made. types, counts: the source's vocabulary in this shard."""

    task: Task
    shard: dict[str, Any]
    documents: int
    sentences: int
    tokens: int
    counts: dict[str, int]
    types: pa.Array
    type_counts: Int64


class Vocabulary:
    """Type counts over batches."""

    def __init__(self) -> None:
        self._types: list[pa.Array] = []
        self._counts: list[Int64] = []

    def add(self, types: pa.Array, counts: Int64) -> None:
        if self._types and self._types[-1] is types:
            self._counts[-1] = self._counts[-1] + counts
            return
        self._types.append(types)
        self._counts.append(counts)
        if len(self._types) >= 16:
            self._merge()

    def result(self) -> tuple[pa.Array, Int64]:
        """(Arrow strings [T] in the order of first occurrence, int64[T])."""
        self._merge()
        seen = self._counts[0] > 0  # a batch's type table may hold types that it does not use
        return self._types[0].filter(to_arrow(seen)), self._counts[0][seen]

    def _merge(self) -> None:
        if len(self._types) == 1:
            return
        encoded = pa.chunked_array(self._types, pa.string()).combine_chunks().dictionary_encode()
        codes = to_numpy(encoded.indices)
        weights = np.concatenate([np.zeros(0, np.int64), *self._counts])
        counts = np.bincount(codes, weights, minlength=len(encoded.dictionary)).astype(np.int64)
        self._types, self._counts = [encoded.dictionary], [counts]


def run_task(job: Job, task: Task) -> Result:
    """Read, derive and write one shard; nothing is left behind where it fails."""
    pipeline = Pipeline.parse(job.spec)
    lexicon = pipeline.fit(saved=job.lexicon)
    # Before the splitter: both may need spaCy, and the parser may need more of it.
    parser = None if job.parser is None else find_parser(job.parser, job.corpus.language)
    reading = Reading(job.corpus.splitter(), job.encoding, job.repair_tags)
    vocabulary, counts = Vocabulary(), reading.counts
    writer = ShardWriter(task.file, job.corpus.schema)
    left_out = _left_out(job)
    documents = sentences = tokens = 0
    last = -1
    try:
        for batch in read_part(job, task, reading):
            derived = pipeline.derive(
                batch,
                lexicon,
                policies=job.policies,
                rule=job.rule,
                counts=counts,
                split=job.corpus.format != "derived",
                parser=parser,
            )
            columns = to_table(
                derived.source,
                derived.derived,
                derived.order,
                job.corpus.schema,
                has_order=pipeline.has_order,
                exact=pipeline.is_permutation,
                policies=job.policies,
            )
            writer.write({name: column for name, column in columns.items() if name not in left_out})
            numbers = derived.source.documents
            documents += int((np.diff(numbers, prepend=last) != 0).sum()) if len(numbers) else 0
            last = int(numbers[-1]) if len(numbers) else last
            sentences += _in_rows(derived.source, np.diff(derived.source.units))
            tokens += _in_rows(derived.source, np.diff(derived.derived.unit_words))
            vocabulary.add(batch.types, count_types(batch))
        digest = writer.close()
    finally:
        writer.discard()
    types, type_counts = vocabulary.result()
    shard = {
        "file": f"data/{task.file.name}",
        "sha256": digest,
        "bytes": task.file.stat().st_size if digest else 0,
        "rows": writer.rows,
        "words": tokens,
    }
    return Result(task, shard, documents, sentences, tokens, dict(counts), types, type_counts)


def count_types(batch: Batch) -> Int64:
    """int64[T]: how often each type stands in the rows; a unit that several rows share counts in each."""
    weights = None
    if not batch.running:
        rows = np.bincount(batch.records.ravel(), minlength=len(batch.units) - 1)
        weights = np.repeat(rows, np.diff(batch.unit_words))
    return np.bincount(batch.words, weights, minlength=len(batch.types)).astype(np.int64)


def _left_out(job: Job) -> set[str]:
    """The output columns that `--columns` leaves out, of every side."""
    out = {"key"} & set(job.drop_columns)
    for side in job.corpus.schema.sides:
        out |= {side.column(part) for part in ("source", "tokens") if part in job.drop_columns}
        if "text" in job.drop_columns and side.text is not None:
            out.add(side.text)
    return out


def _in_rows(batch: Batch, per_unit: Int64) -> int:
    """The sum over rows; a unit that several rows share counts in each."""
    return int(per_unit[batch.records].sum())


def read_part(job: Job, task: Task, reading: Reading) -> Iterator[Batch]:
    """The source batches of a task."""
    corpus = job.corpus
    prior = Lexicon()
    if corpus.format == "derived" and corpus.spec is not None:
        prior = Pipeline.parse(corpus.spec).fit(saved=corpus.lexicon)
    return batches(
        corpus,
        task.part,
        reading,
        piece=task.piece,
        limit=task.limit,
        first_document=task.first_document,
        lexicon=prior,
        batch_words=_PARSED_WORDS if job.parser else WORDS_PER_BATCH,
    )


def count_vocabulary(job: Job, tasks: list[Task]) -> tuple[pa.Array, Int64]:
    """The reference vocabulary: all types of these tasks, and their counts."""
    vocabulary = Vocabulary()
    for task in tasks:
        reading = Reading(job.corpus.splitter(), job.encoding, job.repair_tags)
        for batch in read_part(job, task, reading):
            vocabulary.add(batch.types, count_types(batch))
    return vocabulary.result()


def shares(types: pa.Array, counts: Int64, lexicon: Lexicon, listed: int = 100) -> dict[str, Any]:
    """How much of the vocabulary looks the same in both languages; what stays or clashes, the first `listed`.

    stay: types equal to their image. clash: types whose image is another type of the source. Neither is known where
    words of one type look unlike.
    """
    total = int(counts.sum())
    out: dict[str, Any] = {"types": len(types), "tokens": total}
    if lexicon.is_identity or lexicon.chooses or not len(types):
        return out
    parts = []
    for start in range(0, len(types), _TYPES_AT_ONCE):
        some = types.slice(start, _TYPES_AT_ONCE)
        image = lexicon.apply(some)
        equal = to_numpy(pc.equal(some, image))
        parts.append((equal, to_numpy(pc.is_in(image, value_set=types)) & ~equal))
    same, clash = (np.concatenate(part) for part in zip(*parts, strict=True))
    return {
        **out,
        "same_types": int(same.sum()),
        "same_types_percent": round(100 * float(same.mean()), 3),
        "same_tokens": int(counts[same].sum()),
        "same_tokens_percent": round(100 * float(counts[same].sum()) / max(total, 1), 3),
        "clashing_types": int(clash.sum()),
        "stay": types.filter(to_arrow(same)).to_pylist()[:listed],
        "clash": types.filter(to_arrow(clash)).to_pylist()[:listed],
    }
