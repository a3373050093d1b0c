"""`stats` and `match`: how far derived languages are from their source, and which others are as far."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import asdict
from pathlib import Path
from typing import Any

from derivlang.commands.sets import DerivedSet
from derivlang.commands.shared import PathLike, path_of, request_of
from derivlang.core.keywords import takes
from derivlang.core.settings import given
from derivlang.display.bar import ProgressBar
from derivlang.distance.settings import MatchOptions, StatsOptions
from derivlang.pipeline import Pipeline
from derivlang.sources.request import SourceRequest


@takes(StatsOptions, SourceRequest)
def stats(
    sources: Sequence[DerivedSet | PathLike] | DerivedSet | PathLike,
    spec: Sequence[str | Pipeline] | str | Pipeline = (),
    *,
    parser: str | None = None,
    parses: Path | None = None,
    **options: Any,
) -> list[dict[str, Any]]:
    """Measure how far languages are from their source, as `derivlang stats` does.

    sources: derived sets; or with specs one source, on which each of them is measured without a set being made.

    Return a row for each language: "language", "source", "split", and the figures by the names of
    `derivlang.distance.measure.ALL_MEANINGS`, None where nothing was to be measured. Raise DerivlangError where the
    command would fail.
    """
    from derivlang.distance.run import run_stats

    several = [sources] if isinstance(sources, (str, Path, DerivedSet)) else list(sources)
    specs = [spec] if isinstance(spec, (str, Pipeline)) else list(spec)
    pipelines = [one if isinstance(one, Pipeline) else Pipeline.parse(one) for one in specs]
    settings = StatsOptions(**given(StatsOptions, options))
    request = request_of("", options)
    with ProgressBar() as bar, bar.stage("measuring"):
        names = [str(path_of(one)) if isinstance(one, DerivedSet) else str(one) for one in several]
        return list(map(dict, run_stats(names, pipelines, request, settings, parser=parser, parses=parses)))


@takes(MatchOptions, SourceRequest)
def match(
    source: PathLike,
    spec: str | Pipeline,
    *,
    parser: str | None = None,
    parses: Path | None = None,
    **options: Any,
) -> dict[str, Any]:
    """Find the language of a family that is as far from the source as another one, as `derivlang match` does.

    Return {"spec", "parameter", "value", "low", "high", "wanted", "reached", "units", "by"}: the language, its
    parameter with its 95 % interval over samples of sentences, the distance of both languages (Kendall's tau, or bits
    per word), and the number of sentences. Raise DerivlangError where the command would fail.
    """
    from derivlang.distance.run import run_match

    language = spec if isinstance(spec, Pipeline) else Pipeline.parse(spec)
    settings = MatchOptions(**given(MatchOptions, options))
    with ProgressBar() as bar, bar.stage("matching"):
        return asdict(run_match(language, request_of(source, options), settings, parser=parser, parses=parses))
