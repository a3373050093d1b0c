"""A score of a section: what is declared of it, and its comparisons by layer, over steps, and of finished models."""

from __future__ import annotations

from dataclasses import dataclass
from functools import cached_property

import pandas as pd

from derivlang.evaluation.columns import Column
from derivlang.evaluation.report.cells import MEAN, file_name
from derivlang.evaluation.report.compare import is_whole, last_layer
from derivlang.evaluation.report.factors import Section
from derivlang.evaluation.report.frame import CHANCE, FLOORS, REGIMES


def regime_title(regime: str) -> str:
    """Return the title of a regime."""
    return {**REGIMES, **FLOORS}.get(regime, regime)


@dataclass(frozen=True, eq=False)
class ReportedScore:
    """A score of a section.

    scores: its rows of the table of scores. rows: its comparisons on whole test sets, of all layers and steps.
    """

    section: Section
    task: str
    column: Column
    scores: pd.DataFrame
    rows: pd.DataFrame

    @property
    def name(self) -> str:
        """The name of its files."""
        return file_name(self.task, self.column.name)

    def title(self, regime: str = "", *more: str) -> str:
        """Return the name of the score for titles, such as "pos: accuracy, ZS"."""
        return ", ".join(filter(None, [f"{self.task}: {self.column.shown}", regime_title(regime), *more]))

    @cached_property
    def layer(self) -> int | None:
        """The last layer, None if the score is not by layer. Tables by condition and over steps are of this one."""
        return last_layer(self.rows, self.task, self.column.name)

    @cached_property
    def regimes(self) -> list[str]:
        """The regimes that tables by factor show: SUP, ZS, CS, Δ, or of a measure all but chance."""
        there = self.means["regime"].unique()
        return [one for one in REGIMES if one in there] or [one for one in there if one != CHANCE]

    @cached_property
    def means(self) -> pd.DataFrame:
        """The means of finished models."""
        return self.of_kind(MEAN)

    def of_kind(self, kind: str) -> pd.DataFrame:
        """Return the comparisons of finished models."""
        return self.rows[(self.rows["kind"] == kind) & is_whole(self.rows, self.layer)]

    @property
    def layers(self) -> pd.DataFrame:
        """The means of finished models, of all layers."""
        return self.rows[(self.rows["kind"] == MEAN) & self.rows["step"].isna()]

    @cached_property
    def steps(self) -> pd.DataFrame:
        """The means of checkpoints and of finished models, which get their last step; no rows without checkpoints."""
        means = self.rows[(self.rows["kind"] == MEAN) & is_whole(self.rows.assign(step=pd.NA), self.layer)]
        if means["step"].isna().all():
            return means[:0]
        last: dict[tuple[str, ...], int] = {}
        for run, step in self.section.rows.groupby("run")["step"].max().items():
            condition = self.section.runs[run][0]
            last[condition] = max(last.get(condition, 0), int(step))
        steps = means["step"].fillna(means["condition"].map(last.get).astype("Int64"))
        return means.assign(step=steps).sort_values("step", kind="stable")


def scores_of(section: Section, comparisons: pd.DataFrame) -> list[ReportedScore]:
    """Return the scores of a section, in the order of their columns. comparisons: all of it."""
    whole = comparisons[is_whole(comparisons.assign(layer=pd.NA, step=pd.NA))]
    scores, rows = (dict(iter(one.groupby(["task", "metric"]))) for one in (section.rows, whole))
    return [
        ReportedScore(section, key[0], column, scores[key], rows.get(key, whole[:0]))
        for key, column in section.columns.items()
        if key in scores
    ]
