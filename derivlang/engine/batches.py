"""The batches of a source, ready for a pipeline: sentences are split, and there are trees if it needs them.

For callers that want arrays instead of a set on disk: tokenizing, training, evaluation.
"""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass, field
from pathlib import Path

import pyarrow as pa

from derivlang.core.arrays import Int64
from derivlang.core.batch import Batch, groups, split_sentences
from derivlang.core.errors import UsageError
from derivlang.core.lexicon import Lexicon
from derivlang.core.messages import warn
from derivlang.core.policies import Policies
from derivlang.engine.build import vocabulary_of
from derivlang.engine.job import Events, Job, read_task
from derivlang.engine.options import MakeOptions
from derivlang.engine.parse import no_parser, parsed
from derivlang.engine.plan import look, make_plan, source_files
from derivlang.formats.inspection import FileStamp
from derivlang.pipeline import Pipeline
from derivlang.sources.find import find
from derivlang.sources.read import Reading, warn_of_relations
from derivlang.sources.request import SourceRequest


@dataclass(frozen=True, slots=True)
class Source(Job):
    """A job that is only read: a corpus, with trees if the pipeline needs them.

    seen: the files that were hashed so far, each before it was first read. A file that changes later is an error.
    """

    seen: dict[Path, FileStamp] = field(default_factory=dict, repr=False, compare=False)

    @classmethod
    def open(
        cls,
        pipeline: Pipeline,
        request: SourceRequest,
        *,
        splits: tuple[str, ...] = (),
        parser: str | None = None,
        parses: Path | None = None,
        limit: int | None = None,
        events: Events | None = None,
        trees: bool = True,
    ) -> Source:
        """Find a source, and parse it if the pipeline needs trees and it has none.

        splits, limit: what to parse. trees: False for only its words, which need no parse. The other options and errors
        are as in `make`. Also raises UsageError for a derived set: name its source instead.
        """
        corpus = find(request)
        if corpus.spec is not None:
            raise UsageError(
                f"{corpus.name} is derived already ({corpus.spec})",
                where=request.source,
                fix="name its source, and the whole pipeline with --t",
                id="derived-source",
            )
        pipeline.warn_of_misfits(corpus.language)
        if trees and pipeline.needs_trees and not corpus.schema.has_trees:
            options = MakeOptions(Path(), splits=splits, limit=limit, parser=parser, parses=parses)
            corpus = parsed(corpus, request, options, events or Events())
        elif parser is not None and (corpus.schema.has_trees or not pipeline.needs_trees):
            of = " on it" if pipeline.needs_trees else ""  # another set of the same command may have none
            warn(f"{no_parser(corpus, pipeline)}, so --parser has no effect{of}")
        return cls(corpus, pipeline, encoding=request.encoding)

    def batches(self, split: str, limit: int | None = None) -> Iterator[Batch]:
        """Yield the batches of a split, at most `limit` documents.

        DataError if there is no such split, or a file changes while it is read.
        """
        self._look([split])
        for task in make_plan(self, splits=[split], limit=limit)[split]:
            reading = Reading(
                self.corpus.splitter(),
                self.encoding,
                shares=self.pipeline.keyed,
                whole_trees=self.pipeline.needs_heads,
            )
            for batch in read_task(self, task, reading):
                yield self._split(batch)
            warn_of_relations(reading.counts, self.corpus.name)

    def vocabulary(self) -> tuple[pa.Array, Int64]:
        """Return types and counts of the split that lexicons are fitted on: train, else the first."""
        split = self.corpus.splits[0]
        self._look([split])
        return vocabulary_of(self, split)

    def fit(self) -> Lexicon:
        """Return the pipeline's lexicon, fitted on the reference vocabulary."""
        return self.pipeline.fit(*self.vocabulary()) if self.pipeline.needs_counts() else self.pipeline.fit()

    def files(self, splits: list[str]) -> list[dict[str, object]]:
        """Return names and hashes of the files that are read, as the manifest lists them."""
        if "files" not in self.corpus.options:
            self._look(splits)
        return self.corpus.options.get("files") or source_files(self, splits)

    def _look(self, splits: list[str]) -> None:
        """Hash the files of some splits, unless they were hashed before."""
        for split in splits:
            if any(part.split == split and part.path not in self.seen for part in self.corpus.parts):
                self.seen.update(look(self, [split]))

    def _split(self, batch: Batch) -> Batch:
        if self.corpus.format == "derived":  # a parsed source: its sentences are stored
            return batch
        return split_sentences(batch, "marks", groups(batch, Policies()))
