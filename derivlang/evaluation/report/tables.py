"""The scores of a section, and their tables, from the rows of `compare`.

There is a table of a score by condition, of its contrasts, of its course over steps, and of every score.
"""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from dataclasses import dataclass
from functools import cached_property
from typing import Any

import pandas as pd

from derivlang.core.messages import counted, first_names
from derivlang.evaluation.columns import Column
from derivlang.evaluation.lines import seeds_told, set_told, signature_line
from derivlang.evaluation.report.cells import (
    EMPTY,
    MEAN,
    Table,
    estimate_cell,
    file_name,
    grid,
    listed,
    number,
    p_value,
    signed,
)
from derivlang.evaluation.report.compare import OTHER_SETS, PRIMARY, is_whole, last_layer
from derivlang.evaluation.report.factors import INTERACTION, Condition, Section, told_of
from derivlang.evaluation.report.frame import CHANCE, FLOORS, RANGE, REGIMES
from derivlang.evaluation.scores import counts_of
from derivlang.evaluation.statistics import FEW_UNITS
from derivlang.evaluation.table import FACTOR


def score_table(score: ReportedScore) -> Table:
    """Return the table of a score: a row for each condition that was planned, a column for each regime."""
    section, column, means = score.section, score.column, score.means
    published = [one for one in section.published if _is_of(one, score)]
    cells: dict[tuple[Condition, str], str] = {}  # (condition, title of a column) -> text
    for row in means.to_dict("records"):
        condition, title = row["condition"], regime_title(row["regime"]) or column.shown
        cells[condition, title] = estimate_cell(row, column, section.planned[condition])
    for one in published:
        title = regime_title(one.get("regime", "")) or column.shown
        named = (condition for condition in section.planned if _named_by(section, one, condition))
        cells |= {(condition, f"{title}, published"): number(one["value"], column.unit) for condition in named}
    shown = [regime_title(one) or column.shown for one in (*score.regimes, *FLOORS)]
    there = {title for _, title in cells}
    titles = [title for one in shown for title in (one, f"{one}, published") if title in there]
    lines = (
        (_levels(condition) or ["all"], {title: cells.get((condition, title), EMPTY) for title in titles})
        for condition in section.planned
    )
    note = [
        f"Unit: {column.unit}." if column.unit else "",
        "Smaller is better." if column.better == "down" else "",
        f"Layer {score.layer}." if score.layer is not None else "",
        _floor(section, means),
        f"Published: {'; '.join(dict.fromkeys(str(one.get('source')) for one in published))}." if published else "",
        _intervals(means),
    ]
    return Table(
        score.name,
        f"{score.title()}{f', by {listed(section.factors)}' if section.factors else ''}",
        grid(lines, section.factors or [section.name or "runs"]),
        means,
        " ".join(filter(None, note)),
        signature(score),
    )


def contrast_table(score: ReportedScore, kind: str) -> Table | None:
    """Return the table of differences or of interactions, a row for each; None if there are none."""
    section, column, some = score.section, score.column, score.of_kind(kind)
    some = some[some["regime"].isin(score.regimes)]
    if some.empty:
        return None
    lines = []
    for row in some.to_dict("records"):
        condition = section.label(row["condition"], row["factor"].split(" × "))
        told = f"mean of {row['conditions']} conditions" if row["conditions"] > 1 else condition
        cells = {
            "difference": estimate_cell(row, column),
            "p": p_value(row["p"]),
            "by seed": ", ".join(signed(value, column.unit) for value in row["values"]),
            **({"p (Holm)": p_value(row["p_holm"])} if row["family"] == PRIMARY else {}),
        }
        lines.append(((regime_title(row["regime"]), row["factor"], row["contrast"], told), cells))
    tests, baseline, sets = some["family"].eq(PRIMARY).sum(), told_of(section.baseline), _other_sets(some)
    paired = "paired by pre-training seed" if sets else "paired by pre-training seed, on the same test set"
    note = [
        f"How far a difference from the baseline ({baseline}) depends on another factor."
        if kind == INTERACTION
        else f"A level minus the baseline ({baseline}), {paired}.",
        sets,
        "A mean of conditions is over those that all sides have, each with the same weight."
        if some["conditions"].max() > 1
        else "",
        f"p: of no difference. The primary outcome is {'.'.join(filter(None, section.primary))}: "
        f"{counted(tests, 'test')}, corrected by Holm's method; * is p < 0.05 after it. All other p-values are "
        "exploratory."
        if tests and section.primary
        else "p: of no difference; all are exploratory and not corrected.",
        _few(some),
    ]
    return Table(
        f"{score.name}-{kind}s",
        score.title("", "interactions" if kind == INTERACTION else "contrasts with the baseline"),
        grid(lines, ["Regime", "Factor", "Contrast", "Condition"]),
        some,
        " ".join(filter(None, note)),
        signature(score),
    )


def curve_table(score: ReportedScore) -> Table | None:
    """Return the table of a score over steps, or None if no checkpoint was evaluated."""
    some = score.steps[score.steps["regime"].isin(score.regimes)]
    several = some["regime"].nunique() > 1
    lines = [
        ([regime_title(row["regime"]) * several, *_levels(row["condition"])],
         {f"{row['step']:,}": estimate_cell(row, score.column, score.section.planned[row["condition"]])})
        for row in some.to_dict("records")
    ]  # fmt: skip
    shown = grid(lines, ["Regime", *score.section.factors]) if lines else None
    title = score.title("", "over steps")
    return None if shown is None else Table(f"{score.name}-steps", title, shown, some, _intervals(some))


def every_score(section: Section, comparisons: pd.DataFrame, task: str) -> Table:
    """Return the table of all numbers of a task in finished models: rows of outcomes, columns of conditions."""
    some = comparisons[(comparisons["task"] == task) & (comparisons["kind"] == MEAN) & comparisons["step"].isna()]
    lines = []
    for row in some.to_dict("records"):
        column, layer = section.columns[task, row["metric"]], "" if pd.isna(row["layer"]) else str(row["layer"])
        labels = (column.shown, regime_title(row["regime"]), row["split"], row["group"], layer)
        lines.append((labels, {section.label(row["condition"]) or "mean": estimate_cell(row, column)}))
    shown = grid(lines, ["Score", "Regime", "Split", "Part", "Layer"])
    return Table(file_name(task, "scores"), f"{task}: every score", shown, some, _intervals(some))


def signature(score: ReportedScore) -> str:
    """Return the signature of a score in its section. What differs among its runs is listed."""
    rows = score.scores
    some = rows[(rows["regime"] != CHANCE) & rows["final"] & is_whole(rows.assign(step=pd.NA, layer=pd.NA))]
    of_sets = some[some["counts"].notna() & (some["formula"] != "")].drop_duplicates(["set_hash", "formula"])
    parts: dict[str, Iterable[Any]] = {
        "set": dict.fromkeys(set_told(*names) for names in zip(some["set"], some["set_hash"], strict=True)),
        "split": some["split"].unique(),
        "units": dict.fromkeys(
            counted(len(counts_of(*row)), unit)
            for *row, unit in of_sets[["formula", "counts", "unit"]].to_numpy()
            if len(row[1])
        ),
        **{name: [value] for name, value in score.section.of_task.get(score.task, {}).items()},
        "seeds": [seeds_told(some["seed"])],
        "ft_seeds": [seeds_told(some["ft_seed"].dropna())],
        "derivlang": some["version"].unique(),
    }
    return signature_line(f"{score.task}.{score.column.name}", parts)


def signatures(scores: Iterable[ReportedScore]) -> Table:
    """Return the table of the signatures of all scores."""
    lines = (((score.task, score.column.name), {"Signature": signature(score)}) for score in scores)
    shown = grid(lines, ["Task", "Score"])
    return Table("signatures", "Signatures", shown, shown.reset_index(), "How a score was computed, for a paper.")


def _levels(condition: Condition) -> list[str]:
    return [level or "none" for level in condition]


def _intervals(some: pd.DataFrame) -> str:
    """Return what the cells of means have: intervals, if some do, and a warning if they are of few units."""
    told = ", with 95 % intervals" if some["low"].notna().any() else ""
    return f"Means over n pre-training seeds{told}. {_few(some)}".rstrip()


def _other_sets(some: pd.DataFrame) -> str:
    """Return which comparisons are of several test sets, as a sentence."""
    others = some["why"].str.contains(OTHER_SETS) & (some["conditions"] == 1)  # a mean may be over several sets
    told = first_names(some.loc[others, "contrast"].unique())
    return f"There are {OTHER_SETS} in {told}: these differences may come from what was tested." if told else ""


def _few(some: pd.DataFrame) -> str:
    few = some[some["low"].notna() & (some["units"] < FEW_UNITS)].sort_values("units")[["units", "unit"]].to_numpy()
    return f"The test set has {counted(*few[0])}: intervals of fewer than {FEW_UNITS} are inexact." if len(few) else ""


def _floor(section: Section, some: pd.DataFrame) -> str:
    """Return what the floor of a score is, as a sentence: of a task in ZS, or the range of chance levels."""
    if RANGE in some["regime"].unique():
        known = {section.untrained(condition) is None for condition in section.planned}
        floor = ", or else ".join(("ZS of the untrained model", "the chance level")[one] for one in sorted(known))
        return f"% of range: (ZS − floor) / (SUP − floor), with {floor} as the floor."
    values = some.loc[some["regime"] == CHANCE, "value"].dropna()
    ends = dict.fromkeys([number(values.min()), number(values.max())])
    return f"Chance: {' to '.join(ends)}." if len(values) else ""


def _is_of(published: Mapping[str, Any], score: ReportedScore) -> bool:
    """Return whether a published number is of a score; one without a metric is of the headline."""
    headline = score.column.name if score.column.headline else None
    return (published["task"], published.get("metric", headline)) == (score.task, score.column.name)


def _named_by(section: Section, published: Mapping[str, Any], condition: Condition) -> bool:
    """Return whether a condition has the levels that a published number names."""
    levels = section.levels_of(condition).items()
    return all(str(published.get(name, published.get(f"{FACTOR}{name}", level))) == level for name, level in levels)


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
