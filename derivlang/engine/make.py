"""`make`: from a source to a derived set in a folder."""

from __future__ import annotations

import time
from collections.abc import Sequence
from pathlib import Path
from typing import Any

from derivlang.core.errors import UsageError
from derivlang.core.messages import first_names
from derivlang.core.names import split_name
from derivlang.core.policies import warn_of_unused
from derivlang.engine.build import build, over_own_source, summary
from derivlang.engine.engines import check_main
from derivlang.engine.job import Events, Job
from derivlang.engine.manifest import continued, recipe_of
from derivlang.engine.options import MakeOptions
from derivlang.engine.parse import no_parser, parsed
from derivlang.engine.plan import warn_of_uncut
from derivlang.formats.inspection import inspecting
from derivlang.formats.opening import check_encoding
from derivlang.formats.places import located
from derivlang.formats.progress import LOOKING, stage
from derivlang.parsing.registry import unused_parser
from derivlang.pipeline import Pipeline
from derivlang.sources.find import find
from derivlang.sources.request import SourceRequest
from derivlang.store.storage import store_at
from derivlang.transforms.fitting import read_lexicon

# Columns that follow from the others, so that `--columns` may leave them out.
_OPTIONAL = ("key", "source", "tokens", "text")


@inspecting()
def make(
    pipeline: Pipeline, request: SourceRequest, options: MakeOptions, events: Events | None = None
) -> dict[str, Any]:
    """Make a derived set. The same call continues where an earlier one stopped.

    A source without trees is parsed first if the pipeline needs them. A derived set as the source continues its own
    pipeline.

    Returns {"out", "splits": {name: {"documents", "sentences", "tokens"}}, "document", "changed", "dropped",
    "seconds", "tokens_per_second"}; docs/reference/counts.md describes the counts. Raises DerivlangError; finished
    shards are kept, and no file is half-written.
    """
    began = time.perf_counter()
    events = events or Events()
    check_main()  # before the source is looked at
    job, options = job_of(pipeline, request, options, events)
    return summary(options.out, build(job, options, events), began)


def job_of(
    pipeline: Pipeline, request: SourceRequest, options: MakeOptions, events: Events, *, parses: bool = True
) -> tuple[Job, MakeOptions]:
    """Find a source, and parse it if the pipeline needs trees. Returns the job of its derived set, and its options.

    The options are those that a derived source was made with, as far as they hold for all transforms of a set. parses:
    whether a source without trees is parsed; else it is refused.
    """
    check_encoding(request.encoding)
    store_at(options.out)  # raises for a place where no set can be made
    with stage(LOOKING):
        corpus = find(request)
    if request.source and corpus.format == "derived" and located(request.source).resolve() == options.out.resolve():
        raise over_own_source()
    pipeline = pipeline.after(corpus.spec, corpus.spec_files)
    if options.workers > 1:
        pipeline.check_keyed("more than one process", "--workers")
    if corpus.format == "derived":
        options = continued(corpus, options)
    recipe = recipe_of(corpus, request, options)
    if corpus.missing and not options.splits:
        events.warn(f"{corpus.name}: no {' and no '.join(corpus.missing)} split was found; the others are made")
    if corpus.unnamed and "train" in (options.splits or ["train"]):
        events.warn(f"these files belong to train, as their names contain no split: {first_names(corpus.unnamed)}")
    reference = None
    if pipeline.needs_trees and not corpus.schema.has_trees:
        if not parses:
            fix = "parse it first, `derivlang parse SOURCE -o PARSE`, and plan the set of PARSE"
            raise UsageError(
                f"{corpus.name} has no trees, which {pipeline} needs", where="--defer", fix=fix, id="defer"
            )
        parsed_splits = [split_name(split) for split in options.splits] or corpus.splits
        if options.limit is not None or corpus.splits[0] not in parsed_splits:
            reference = corpus
        corpus = parsed(corpus, request, options, events)
    elif options.parser is not None:
        raise unused_parser(no_parser(corpus, pipeline))
    elif options.parses is not None:
        events.warn(f"{no_parser(corpus, pipeline)}, so --parses has no effect")
    pipeline.warn_of_misfits(corpus.language, events.warn)
    warn_of_unused(corpus.name, corpus.schema, options.policies, events.warn, repair_tags=options.repair_tags)
    job = Job(
        corpus,
        pipeline,
        lexicon_text=read_lexicon(Path(options.lexicon)) if options.lexicon else corpus.lexicon_text,
        rule=options.sentences,
        policies=options.policies,
        encoding=request.encoding,
        repair_tags=options.repair_tags,
        drop_columns=_dropped_columns(options.columns, pipeline),
        options=tuple(recipe),
        reference=reference,
        request=request,
    )
    warn_of_uncut(job, options, events.warn)
    return job, options


def _dropped_columns(columns: Sequence[str], pipeline: Pipeline) -> tuple[str, ...]:
    """Return the optional columns to leave out, given those to keep; () keeps all.

    UsageError if the source or the derived words could not be restored from what is kept.
    """
    if not columns:
        return ()
    for name in columns:
        if name not in _OPTIONAL:
            raise UsageError(
                f"{name!r} is not an optional column; optional columns: {', '.join(_OPTIONAL)}",
                where="--columns",
                fix="name the optional columns to keep; order and labels are always there",
                id="columns",
            )
    exact = pipeline.is_permutation and pipeline.injective
    if not {"source", "tokens"} & set(columns) or not (exact or {"source", "tokens"} <= set(columns)):
        what = "tokens or source" if exact else f"tokens and source (neither follows from the other under {pipeline})"
        raise UsageError(f"{what} must be kept", where="--columns", fix="e.g. --columns source,tokens", id="columns")
    return tuple(name for name in _OPTIONAL if name not in columns)
