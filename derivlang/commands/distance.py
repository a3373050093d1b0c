"""`stats` and `match`: how far derived languages are from their source, and which others are as far."""

from __future__ import annotations

import os
from collections.abc import Sequence
from dataclasses import dataclass
from typing import TYPE_CHECKING, Annotated, cast

from derivlang.commands.command import Command, Spec, Specs, pipeline_of, transforms
from derivlang.distance.settings import MatchOptions, StatsOptions
from derivlang.engine.options import ParserNames
from derivlang.formats.places import PathLike, located
from derivlang.formats.progress import stage
from derivlang.sources.request import SourceOptions, SourceRequest

if TYPE_CHECKING:
    from derivlang.distance.match import Match
    from derivlang.distance.measure import Figures


@dataclass(frozen=True, eq=False, repr=False)
class Stats(Command["list[Figures]"], StatsOptions, ParserNames, SourceOptions):
    """Measure how far derived languages are from their source: derived sets, or transforms of a source with --t.

    Kendall's tau, words moved, changed, inserted and deleted, dependency length, vocabulary shared, and local entropy:
    how well a word is predicted from the one to four words before it. With --tokenizer also the sub-words shared. The
    entropy of orders grows with the number of sentences: compare it only where these are equal (--limit).

    \b
    derivlang stats OUT
    derivlang stats --t inv --t shuffle:local=3 --t shuffle demo --plot distances.svg
    """

    sources: PathLike | Sequence[PathLike]
    spec: Specs = transforms("Transforms to measure on one source, without a set; may be repeated.", ())

    def __call__(self) -> list[Figures]:
        """Return a row for each language: "language", "source", "split", and the figures by the names of
        `derivlang.distance.measure.ALL_MEANINGS`, None where nothing was to be measured."""
        from derivlang.distance.run import run_stats

        pipelines = [pipeline_of(one) for one in cast(Sequence[Spec], self.spec)]
        with stage("measuring"):
            return run_stats(
                self.names, pipelines, self.part(SourceRequest, source=""),
                self.part(StatsOptions), parser=self.parser, parses=self.path("parses"),
            )  # fmt: skip

    @property
    def names(self) -> list[str]:
        """The sources, by name or path."""
        several = [self.sources] if isinstance(self.sources, (str, os.PathLike)) else self.sources
        return [str(located(one)) for one in several]


@dataclass(frozen=True, eq=False, repr=False)
class FindMatch(Command["Match"], MatchOptions, ParserNames, SourceOptions):
    """Find the language of a family that is as far from SOURCE as another one, by Kendall's tau or local entropy.

    A language may be hard for a model only because it is far from the source. The spec that is printed makes a control
    that is as far: `mallows` with its theta, `shuffle` with its rate, or `flip` with its p. It holds for its seed, so
    match each seed: --family mallows:seed=2.

    \b
    derivlang match --t stride:2 demo
    derivlang match --t inv:from=random --family shuffle demo
    """

    source: PathLike
    spec: Annotated[Spec, transforms("Transforms to match.")]

    def __call__(self) -> Match:
        """Return the language, its parameter with its 95 % interval over samples of sentences, the distance of both
        languages (Kendall's tau, or bits per word), and the number of sentences."""
        from derivlang.distance.run import run_match

        with stage("matching"):
            return run_match(
                pipeline_of(self.spec), self.part(SourceRequest, source=str(self.source)), self.part(MatchOptions),
                parser=self.parser, parses=self.path("parses"),
            )  # fmt: skip
