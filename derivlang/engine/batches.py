"""The batches of a source, as a pipeline takes them: sentences known, trees where it needs them. Nothing is written.

What `make` reads shard by shard, for callers that want arrays instead of a set: tokenizing, training, evaluation.
"""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass
from pathlib import Path

import pyarrow as pa

from derivlang.core.arrays import Int64
from derivlang.core.batch import Batch, Policies, groups, split_sentences
from derivlang.core.errors import UsageError
from derivlang.core.lexicon import Lexicon
from derivlang.engine.job import Job, count_vocabulary, read_part
from derivlang.engine.make import Events, Options
from derivlang.engine.parse import parsed
from derivlang.engine.plan import make_plan, source_files
from derivlang.pipeline import Pipeline
from derivlang.sources.corpus import Corpus
from derivlang.sources.find import Request, find
from derivlang.sources.read import Reading


@dataclass(frozen=True, slots=True)
class Source:
    """A source for a pipeline: the corpus (with trees, if the pipeline needs them) and how it is read."""

    corpus: Corpus
    pipeline: Pipeline
    policies: Policies = Policies()
    encoding: str = "utf-8"

    @classmethod
    def open(
        cls,
        pipeline: Pipeline,
        request: Request,
        *,
        splits: tuple[str, ...] = (),
        policies: Policies | None = None,
        parser: str | None = None,
        parses: Path | None = None,
        limit: int | None = None,
        events: Events | None = None,
    ) -> Source:
        """Find a source, and parse it where the pipeline needs trees that it lacks; DerivlangError as `make` raises.

        splits, limit: what is parsed; the other options are those of `make`. UsageError for a derived set: a pipeline
        reads its source.
        """
        corpus = find(request)
        if corpus.spec is not None:
            raise UsageError(
                f"{corpus.name} is derived already ({corpus.spec})",
                where=request.source,
                fix="name its source, and the whole pipeline with --t",
                id="derived-source",
            )
        policies = policies or Policies()
        if pipeline.needs_trees and not corpus.schema.has_trees:
            options = Options(Path(), splits=splits, limit=limit, policies=policies, parser=parser, parses=parses)
            corpus = parsed(corpus, request, options, events or Events())
        return cls(corpus, pipeline, policies, request.encoding)

    def batches(self, split: str, limit: int | None = None) -> Iterator[Batch]:
        """The batches of a split, at most `limit` documents; DataError where there is no such split."""
        job = self._job()
        for task in make_plan(job, Path(), splits=[split], shard_tokens=1 << 40, limit=limit)[split]:
            for batch in read_part(job, task, Reading(self.corpus.splitter(), self.encoding)):
                yield self._split(batch)

    def vocabulary(self) -> tuple[pa.Array, Int64]:
        """Types and counts of the reference vocabulary, that of the split which lexicons are fitted on (train)."""
        job, split = self._job(), self.corpus.splits[0]
        return count_vocabulary(job, make_plan(job, Path(), splits=[split], shard_tokens=1 << 40, limit=None)[split])

    def lexicon(self, saved: str | None = None) -> Lexicon:
        """The pipeline's lexicon: saved, or fitted on the reference vocabulary where one is needed."""
        if self.pipeline.needs_counts(saved):
            return self.pipeline.fit(*self.vocabulary(), saved=saved)
        return self.pipeline.fit(saved=saved)

    def files(self, splits: list[str]) -> list[dict[str, object]]:
        """Names and hashes of what is read, as the manifest has them."""
        return self.corpus.options.get("files") or source_files(self._job(), splits)

    def _job(self) -> Job:
        return Job(str(self.pipeline), None, self.corpus, policies=self.policies, encoding=self.encoding)

    def _split(self, batch: Batch) -> Batch:
        if self.corpus.format == "derived":  # a parse: its sentences are stored
            return batch
        return split_sentences(batch, "marks", groups(batch, self.policies))
