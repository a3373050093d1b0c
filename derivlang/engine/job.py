"""A job is a source and all that is made of it, a task is one shard of it. Both can be pickled. Events report a run."""

from __future__ import annotations

from collections.abc import Callable, Iterator, Mapping
from contextlib import closing
from dataclasses import dataclass, field, replace
from pathlib import Path

import pyarrow as pa

from derivlang.core.arrays import Int64
from derivlang.core.articles import RowCounts
from derivlang.core.batch import Batch
from derivlang.core.lexicon import Lexicon
from derivlang.core.messages import warn
from derivlang.core.policies import Policies
from derivlang.core.schema import left_out
from derivlang.core.takes import Rule
from derivlang.core.to_table import to_table
from derivlang.engine.vocabulary import TypeCounts, count_types
from derivlang.formats.inspection import FileStamp, unchanged
from derivlang.formats.progress import found, words_done
from derivlang.parsing.registry import find_parser
from derivlang.pipeline import Pipeline
from derivlang.sources.corpus import Corpus, FileSpan
from derivlang.sources.read import WORDS_PER_BATCH, Reading, batches
from derivlang.sources.request import SourceRequest
from derivlang.store.set_plan import Target, TaskRecord
from derivlang.store.shards import ShardWriter

# Words of a batch that is parsed, and so of a row group that `syn` reads: trees take much room.
_PARSED_WORDS = 1 << 18


@dataclass(frozen=True, slots=True)
class Job:
    """How to read a source and what to make of it.

    pipeline: the whole one, the pipeline of a derived source included. lexicon: the fitted one; empty until it is
    fitted. lexicon_text: the text of lexicon.tsv; before the fit, the text of the saved lexicon to start from. parser:
    finds the trees, a name that `find_parser` knows.
    options: the recipe's options, as words of a command line. reference: the corpus whose first split a lexicon is
    fitted on, if `corpus` lacks a part of it: of a source that is parsed here, `corpus` has only what is parsed.
    request: what the user named. seen: the source files as they were planned; other files are not checked.

    The plan is fixed before anything runs (`plan.py`). plan: the tasks of each split, those that are done included;
    {} before. limit: of documents per split. fitted_on: the split that the lexicon is fitted on, None if nothing is
    fitted.
    """

    corpus: Corpus
    pipeline: Pipeline = Pipeline(())
    lexicon: Lexicon = field(default_factory=Lexicon)
    lexicon_text: str | None = None
    rule: Rule = "marks"
    policies: Policies = Policies()
    encoding: str = "utf-8"
    repair_tags: bool = False
    drop_columns: tuple[str, ...] = ()
    parser: str | None = None
    options: tuple[str, ...] = ()
    reference: Corpus | None = None
    request: SourceRequest = SourceRequest("")
    seen: Mapping[Path, FileStamp] = field(default_factory=dict)
    plan: Plan = field(default_factory=dict)
    limit: int | None = None
    fitted_on: str | None = None

    @property
    def for_lexicon(self) -> Job:
        """The job of reading what the lexicon is fitted on."""
        return self if self.reference is None else replace(self, corpus=self.reference, reference=None)

    @property
    def tasks(self) -> list[ShardTask]:
        """All tasks, in the order of the plan."""
        return [task for tasks in self.plan.values() for task in tasks]

    @property
    def names(self) -> list[str]:
        """The names of all tasks, in the order of the plan."""
        return [task.name for task in self.tasks]


@dataclass(frozen=True, slots=True)
class ShardTask:
    """One shard: what to read (small files one after the other, a file, or a piece of a large one), and what to write.

    name: unique in the plan. spans: in order, their documents numbered without a break.
    """

    name: str
    spans: tuple[FileSpan, ...]

    @property
    def split(self) -> str:
        """The split that it belongs to."""
        return self.spans[0].part.split


Plan = dict[str, list[ShardTask]]  # the tasks of each split


def run_task(job: Job, task: ShardTask, target: Target) -> tuple[str, int]:
    """Read, derive and write one shard, then its record. A task that fails leaves no file behind.

    Returns the name of the task, and the number of words of its shard.
    """
    # The parser comes before the splitter: both may load spaCy, and the parser may need more of it.
    parser = None if job.parser is None else find_parser(job.parser, job.corpus.language)
    pipeline = job.pipeline.begin()
    reading = Reading(
        job.corpus.splitter(),
        job.encoding,
        job.repair_tags,
        no_null_strings=True,
        shares=pipeline.keyed,
        whole_trees=pipeline.needs_heads,
    )
    vocabulary, counts, numbers = TypeCounts(), reading.counts, RowCounts()
    dropped = left_out(job.corpus.schema, job.drop_columns)
    with (
        target.writing(task.name) as path,
        closing(ShardWriter(path, job.corpus.schema, target.where(task.name))) as writer,
    ):
        for batch in read_task(job, task, reading):
            derived = pipeline.derive(
                batch,
                job.lexicon,
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
                job.lexicon,
                has_order=pipeline.has_order,
                exact=pipeline.is_permutation,
                policies=job.policies,
            )
            writer.write({name: column for name, column in columns.items() if name not in dropped})
            numbers.add(derived.source, derived.derived)
            if parser is None:  # a parser reports its words itself
                words_done(derived.derived.n_words)
            vocabulary.add(batch.types, count_types(batch))
        digest = writer.finish()
    made = {"sha256": digest, "bytes": writer.bytes, "rows": writer.rows, "words": numbers.tokens}
    entry = {
        "shard": {"file": target.file(task.name), **made},
        "documents": numbers.documents,
        "articles": numbers.articles,
        "sentences": numbers.sentences,
        "tokens": numbers.tokens,
        "counts": dict(counts),
    }
    target.commit(task.name, TaskRecord(entry, *vocabulary.result()))
    return task.name, numbers.tokens


def read_task(job: Job, task: ShardTask, reading: Reading) -> Iterator[Batch]:
    """Yield the source batches of a task. DataError if one of its files is not the one that was planned."""
    corpus = job.corpus
    reading = replace(reading, whole_contexts=job.policies.answers == "atomic")
    paths = [span.part.path for span in task.spans]
    seen = {path: job.seen[path] for path in paths if path in job.seen}
    if corpus.format == "hub" and seen:  # the rows that are loaded are compared
        corpus = replace(corpus, options={**corpus.options, "sha256": seen[paths[0]].sha256})
    if not corpus.has_files:
        seen = {}
    with unchanged(seen):
        yield from batches(
            corpus,
            task.spans,
            reading,
            lexicon=corpus.lexicon,
            batch_words=_PARSED_WORDS if job.parser else WORDS_PER_BATCH,
        )


def count_vocabulary(job: Job, tasks: list[ShardTask]) -> tuple[pa.Array, Int64]:
    """Return the vocabulary of some tasks: their types, Arrow strings [T], and counts, int64[T]."""
    vocabulary = TypeCounts()
    for task in tasks:
        reading = Reading(job.corpus.splitter(), job.encoding, job.repair_tags)
        for batch in read_task(job, task, reading):
            vocabulary.add(batch.types, count_types(batch))
    return vocabulary.result()


@dataclass(frozen=True, slots=True)
class Events:
    """Callbacks of a run.

    warn: a warning, by default one of `warnings`. found: the folder of a set that is complete already, so that nothing
    is made.
    Stages and their progress are reported by `formats/progress.py`.
    """

    warn: Callable[[str], None] = warn
    found: Callable[[Path], None] = found
