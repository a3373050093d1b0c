"""`stats` and `match` on sources and sets, for the command line and for Python."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import replace
from pathlib import Path

from derivlang.core.errors import StoreError, UsageError
from derivlang.core.names import split_name
from derivlang.distance.match import LOCAL_WORDS, Family, Match, match, orders_of
from derivlang.distance.measure import Encoder, Figures, load_encoder, measure_set, measure_specs
from derivlang.distance.settings import MatchOptions, StatsOptions
from derivlang.engine.batches import Source
from derivlang.formats.places import located
from derivlang.pipeline import Pipeline
from derivlang.sources.request import SourceRequest
from derivlang.store.manifest import sets_near

_DOCUMENTS = 1000  # whose orders show Kendall's tau well enough


def run_stats(
    sources: Sequence[str],
    pipelines: Sequence[Pipeline],
    request: SourceRequest,
    settings: StatsOptions,
    *,
    parser: str | None = None,
    parses: Path | None = None,
) -> list[Figures]:
    """Return the figures of each derived set, or with pipelines of each of these on one source.

    request: how the source is read. Raise UsageError for several sources with pipelines, and as `find` does; DataError
    for a folder without a tokenizer, before anything is read.
    """
    if pipelines and len(sources) != 1:
        raise UsageError(
            f"--t measures languages of one source, but {len(sources)} are given",
            where="SOURCES",
            fix="give one source, or derived sets without --t",
            id="usage",
        )
    encoder = None if settings.tokenizer is None else load_encoder(settings.tokenizer)
    if not pipelines:
        return [_of_set(located(folder), settings, encoder) for folder in sources]
    together = Pipeline(tuple(transform for pipeline in pipelines for transform in pipeline.transforms))
    source = _open(together, replace(request, source=sources[0]), settings, parser, parses)
    return list(measure_specs(source, pipelines, settings, encoder))


def _of_set(folder: Path, settings: StatsOptions, encoder: Encoder | None) -> Figures:
    if not folder.is_dir():
        raise StoreError(
            "there is no such folder of a derived set",
            where=str(folder),
            fix=sets_near(folder) or f"to measure languages of a source or file: derivlang stats --t … {folder}",
            id="missing-folder",
        )
    return measure_set(folder, settings.split, settings.entropy_words, encoder)


def run_match(
    language: Pipeline,
    request: SourceRequest,
    settings: MatchOptions,
    *,
    parser: str | None = None,
    parses: Path | None = None,
) -> Match:
    """Return the match of a language on a sample of a source. Raise UsageError as `match`, and as `find` does."""
    family = Family.parse(settings.family, language)
    source = _open(language, request, settings, parser, parses)
    split = source.corpus.splits[0] if settings.split is None else split_name(settings.split)
    limit = _DOCUMENTS if settings.limit is None and settings.by == "tau" else settings.limit
    batches, words = [], 0
    for batch in source.batches(split, limit):
        batches.append(batch)
        words += batch.n_words
        if settings.by == "entropy" and words >= LOCAL_WORDS:
            break
    orders = orders_of(language)
    lexicon = orders.fit(*source.vocabulary()) if orders.needs_counts() else None
    return match(batches, language, family, settings.by, lexicon)


def _open(
    pipeline: Pipeline,
    request: SourceRequest,
    settings: StatsOptions | MatchOptions,
    parser: str | None,
    parses: Path | None,
) -> Source:
    splits = () if settings.split is None else (split_name(settings.split),)
    return Source.open(pipeline, request, splits=splits, parser=parser, parses=parses, limit=settings.limit)
