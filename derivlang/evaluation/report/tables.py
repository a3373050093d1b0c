"""Tables of a section, from the rows of `compare`: a score by factor, contrasts, by layer, over steps, every score."""

from __future__ import annotations

from collections.abc import Iterable, Mapping, Sequence
from itertools import product
from typing import Any

import pandas as pd

from derivlang.core.messages import counted
from derivlang.evaluation.columns import Column
from derivlang.evaluation.report.cells import (
    EMPTY,
    MEAN,
    Table,
    estimate_cell,
    file_name,
    listed,
    number,
    p_value,
    signed,
)
from derivlang.evaluation.report.compare import DIFFERENCE, PRIMARY, is_whole, last_layer
from derivlang.evaluation.report.factors import INTERACTION, NONE, Condition, Section
from derivlang.evaluation.report.frame import CHANCE, FLOORS, RANGE, REGIMES, ZS
from derivlang.evaluation.report.listings import signature
from derivlang.evaluation.statistics import FEW_UNITS
from derivlang.evaluation.table import FACTOR

_COMPARED = ("difference", "p", "p (Holm)", "by seed")  # columns of a contrast
_ACROSS = 6  # levels at most of a factor whose levels are columns
_INTERVALS = "Means over n pre-training seeds, with 95 % intervals."


def title_of(section: Section, task: str, metric: str) -> str:
    """Return the name of a score for titles, such as "pos: accuracy"."""
    return f"{task}: {section.scores.columns[task, metric].shown}"


def regimes_of(comparisons: pd.DataFrame) -> list[str]:
    """Return the regimes of a score that tables by factor show: SUP, ZS, CS, Δ, or of a measure all but chance."""
    there = comparisons["regime"].unique()
    return [one for one in REGIMES if one in there] or [one for one in there if one != CHANCE]


def regime_title(regime: str) -> str:
    """Return the title of a regime."""
    return {**REGIMES, **FLOORS}.get(regime, regime)


def of_score(comparisons: pd.DataFrame, task: str, metric: str, kind: str, *, layers: bool = False) -> pd.DataFrame:
    """Return the comparisons of a score on whole test sets, of finished models; of the last layer, or of all."""
    some = comparisons[
        (comparisons["task"] == task) & (comparisons["metric"] == metric) & (comparisons["kind"] == kind)
    ]
    whole = is_whole(some, last_layer(comparisons, task, metric))
    return some[is_whole(some.assign(layer=pd.NA)) if layers else whole]


def condition_of(section: Section, row: Mapping[str, Any]) -> Condition:
    """Return the condition of a mean."""
    return tuple(level if isinstance(level := row[f"{FACTOR}{name}"], str) else NONE for name in section.factors)


def score_table(section: Section, comparisons: pd.DataFrame, task: str, metric: str) -> Table:
    """Return the table of a score by condition: rows of x and other factors, columns of regimes and of lines."""
    some = of_score(comparisons, task, metric, MEAN)
    column = section.scores.columns[task, metric]
    lines = next((name for name in section.factors[1:2] if len(section.levels[name]) <= _ACROSS), None)
    published = _published(section, task, metric, column.headline)
    sources = dict.fromkeys(str(one["source"]) for one in published if one.get("source"))
    layer = last_layer(comparisons, task, metric)
    note = [
        f"Columns: {lines}." if lines else "",
        f"Unit: {column.unit}." if column.unit else "",
        {"down": "Smaller is better.", "up": ""}.get(column.better, ""),
        f"Layer {layer}." if layer is not None else "",
        _floor(section, some, task, metric),
        f"Published: {'; '.join(sources)}." if sources else "",
        _INTERVALS,
        _few(some),
    ]
    return Table(
        file_name(task, metric),
        f"{title_of(section, task, metric)}{_by(section)}",
        _grid(section, some, column, lines=lines, published=published, floors=True),
        some,
        " ".join(filter(None, note)),
        signature(section, task, metric),
        latex=True,
    )


def contrast_table(section: Section, comparisons: pd.DataFrame, task: str, metric: str, kind: str) -> Table | None:
    """Return the table of differences or of interactions, a line for each condition; None if there are none."""
    some = of_score(comparisons, task, metric, kind)
    regimes = regimes_of(some)
    some = some[some["regime"].isin(regimes)]
    if some.empty:
        return None
    column = section.scores.columns[task, metric]
    cells: dict[tuple[str, ...], dict[tuple[str, str], str]] = {}
    for row in some.to_dict("records"):
        contrasted = row["factor"].split(" × ")
        told = section.label(condition_of(section, row), contrasted) if row["conditions"] == 1 else (
            f"mean of {row['conditions']} conditions"
        )  # fmt: skip
        line = cells.setdefault((row["factor"], row["contrast"], told), {})
        of = regime_title(row["regime"]) or column.shown
        line[of, "difference"] = estimate_cell(row, column)
        line[of, "p"] = p_value(row["p"])
        if row["family"] == PRIMARY:
            line[of, "p (Holm)"] = p_value(row["p_holm"])
        line[of, "by seed"] = "" if row["n"] == 2 else ", ".join(signed(value, column.unit) for value in row["values"])
    used = {name for line in cells.values() for name in line}
    columns = [one for one in product([regime_title(one) or column.shown for one in regimes], _COMPARED) if one in used]
    index = pd.MultiIndex.from_tuples(cells, names=["Factor", "Contrast", "Condition"])
    shown = pd.DataFrame(cells.values(), index).reindex(columns=pd.MultiIndex.from_tuples(columns)).fillna("")
    if (shown.index.get_level_values("Condition") == "").all():
        shown.index = shown.index.droplevel("Condition")
    primary = (some["family"] == PRIMARY).any()
    baseline = ", ".join(f"{name} {level}" for name, level in section.baseline.items())
    note = {
        DIFFERENCE: f"A level minus the baseline ({baseline}), paired by pre-training seed, on the same test set.",
        INTERACTION: f"How far a difference from the baseline ({baseline}) depends on another factor.",
    }[kind]
    mean = "A mean of conditions is over those that all sides have, each with the same weight."
    family = (
        f"p: of no difference. The primary outcome is {'.'.join(filter(None, section.primary))}: "
        f"{some['family'].eq(PRIMARY).sum()} tests, corrected by Holm's method; * is p < 0.05 after it. "
        "All other p-values are exploratory."
        if primary and section.primary
        else "p: of no difference; all are exploratory and not corrected."
    )
    return Table(
        file_name(task, metric, f"{kind}s"),
        f"{title_of(section, task, metric)}, {'contrasts with the baseline' if kind == DIFFERENCE else 'interactions'}",
        shown,
        some,
        " ".join(filter(None, [note, mean if len(section.factors) > 1 else "", family, _few(some)])),
        signature(section, task, metric),
        latex=True,
    )


def layer_table(section: Section, comparisons: pd.DataFrame, task: str, metric: str) -> Table | None:
    """Return the table of a score by layer, or None if the score has no layers."""
    some = of_score(comparisons, task, metric, MEAN, layers=True)
    if some["layer"].nunique() < 2:
        return None
    return _over(section, some, task, metric, "layer", "by layer", "Layer 0 is the embeddings. ")


def curve_table(section: Section, comparisons: pd.DataFrame, task: str, metric: str) -> Table | None:
    """Return the table of a score over steps, or None if no checkpoint was evaluated."""
    some = curve_rows(section, comparisons, task, metric)
    return None if some is None else _over(section, some, task, metric, "step", "over steps", "")


def curve_rows(section: Section, comparisons: pd.DataFrame, task: str, metric: str) -> pd.DataFrame | None:
    """Return the means of checkpoints and of finished models, which get their last step; None without checkpoints."""
    layer = last_layer(comparisons, task, metric)
    some = comparisons[
        (comparisons["task"] == task) & (comparisons["metric"] == metric) & (comparisons["kind"] == MEAN)
    ]
    some = some[is_whole(some.assign(step=pd.NA), layer)]
    if some["step"].notna().sum() == 0:
        return None
    last: dict[Condition, int] = {}
    for run, step in section.rows.groupby("run")["step"].max().items():
        condition = section.runs[run][0]
        last[condition] = max(last.get(condition, 0), int(step))
    ends = pd.Series([last[condition_of(section, row)] for row in some.to_dict("records")], some.index, dtype="Int64")
    return some.assign(step=some["step"].fillna(ends)).sort_values("step", kind="stable")


def every_score(section: Section, comparisons: pd.DataFrame, task: str) -> Table:
    """Return the table of all numbers of a task in finished models: rows of outcomes, columns of conditions."""
    some = comparisons[(comparisons["task"] == task) & (comparisons["kind"] == MEAN) & comparisons["step"].isna()]
    columns = [section.label(condition) or "mean" for condition in section.planned]
    cells: dict[tuple[str, ...], dict[str, str]] = {}
    for row in some.to_dict("records"):
        layer = "" if pd.isna(row["layer"]) else str(row["layer"])
        column = section.scores.columns[task, row["metric"]]
        place = (column.shown, regime_title(row["regime"]), row["split"], row["group"], layer)
        cells.setdefault(place, {})[section.label(condition_of(section, row)) or "mean"] = estimate_cell(row, column)
    names = ["Score", "Regime", "Split", "Part", "Layer"]
    index = pd.MultiIndex.from_tuples(cells, names=names)
    shown = pd.DataFrame(cells.values(), index).reindex(columns=columns).fillna(EMPTY)
    empty = [name for name in names[1:] if (shown.index.get_level_values(name) == "").all()]
    shown.index = shown.index.droplevel(empty)
    return Table(file_name(task, "scores"), f"{task}: every score", shown, some, _INTERVALS, folded=True)


def _over(section: Section, some: pd.DataFrame, task: str, metric: str, over: str, title: str, note: str) -> Table:
    """Return the table of a score over layers or steps: rows of conditions, columns of its places."""
    some = some[some["regime"].isin(regimes_of(some)) & some[over].notna()]
    shown = _grid(section, some, section.scores.columns[task, metric], over)
    name = f"{title_of(section, task, metric)}, {title}"
    return Table(file_name(task, metric, f"{over}s"), name, shown, some, note + _INTERVALS, folded=True)


def _grid(
    section: Section,
    some: pd.DataFrame,
    score: Column,
    over: str = "",
    lines: str | None = None,
    published: Sequence[Mapping[str, Any]] = (),
    floors: bool = False,
) -> pd.DataFrame:
    """Return the cells of means: rows of the factors but `lines`, x last; columns of regimes, places and lines.

    over: layer or step, whose places are columns. floors: whether a task has columns of these, too. A condition that
    was planned and has no result is EMPTY; what was never planned is blank.
    """
    regimes = regimes_of(some)
    if floors and ZS in regimes:
        regimes += [one for one in FLOORS if one in some["regime"].unique()]
    order = [name for name in (*section.factors[1:], *section.factors[:1]) if name != lines]

    def row_of(condition: Mapping[str, str]) -> Condition:
        return tuple(condition[name] for name in order)

    def column_of(regime: str, place: Any, level: str) -> tuple[str, ...]:
        title = [] if over and len(regimes) == 1 else [regime_title(regime) or ("" if over else score.shown)]
        return (*title, *([f"{place:,}"] if over else []), *([level] if lines else []))

    cells: dict[Any, dict[Any, str]] = {}
    for row in some[some["regime"].isin(regimes)].to_dict("records"):
        condition = condition_of(section, row)
        told = [f"published {number(one['value'], score.unit)}" for one in published
                if one.get("regime", "") == row["regime"] and _named_by(section, one, condition)]  # fmt: skip
        named = section.levels_of(condition)
        column = column_of(row["regime"], row[over] if over else None, named[lines] if lines else "")
        cell = estimate_cell(row, score, section.planned[condition], ", ".join(told))
        cells.setdefault(row_of(named), {})[column] = cell
    places = sorted(some[over].unique()) if over else [None]
    across = section.levels[lines] if lines else ("",)
    columns = list(product(regimes, places, across))
    planned = {(row_of(one), one[lines] if lines else "") for one in map(section.levels_of, section.planned)}
    rows = [one for one in product(*(section.levels[name] for name in order)) if one in {row for row, _ in planned}]
    values = [
        [
            cells.get(row, {}).get(column_of(*column), EMPTY if (row, column[-1]) in planned else "")
            for column in columns
        ]
        for row in rows
    ]
    labels = [[level or "none" for level in row] for row in rows]
    index = pd.MultiIndex.from_tuples(labels, names=order) if order else pd.Index([section.name or "all"], name="runs")
    names = [(*head, last or "none") for *head, last in (column_of(*column) for column in columns)]
    titles = pd.MultiIndex.from_tuples(names) if len(names[0]) > 1 else pd.Index([name for (name,) in names])
    return pd.DataFrame(values, index, titles)


def _by(section: Section) -> str:
    return f", by {listed(section.factors)}" if section.factors else ""


def _few(some: pd.DataFrame) -> str:
    """Return a warning, as a sentence, if intervals are of few units."""
    few = some[some["low"].notna() & (some["units"] < FEW_UNITS)]
    if few.empty:
        return ""
    least = few.loc[few["units"].idxmin()]
    there = counted(least["units"], least["unit"])
    return f"The test set has {there}: intervals of fewer than {FEW_UNITS} are inexact."


def _floor(section: Section, some: pd.DataFrame, task: str, metric: str) -> str:
    """Return what the floor of a score is, as a sentence: of a task in ZS, or the range of chance levels."""
    if RANGE in some["regime"].unique():
        known = {section.untrained(condition) is not None for condition in section.planned}
        names = {True: "ZS of the untrained model", False: "the chance level"}
        floor = ", or else ".join(names[one] for one in (True, False) if one in known)
        return f"% of range: (ZS − floor) / (SUP − floor), with {floor} as the floor."
    rows = section.of_score[task, metric]
    some = rows[(rows["regime"] == CHANCE) & rows["final"]]
    values = some.loc[is_whole(some.assign(step=pd.NA), last_layer(some, task, metric)), "value"].dropna()
    if values.empty:
        return ""
    return f"Chance: {' to '.join(dict.fromkeys([number(values.min()), number(values.max())]))}."


def _published(section: Section, task: str, metric: str, headline: bool) -> list[Mapping[str, Any]]:
    """Return the published numbers of a score that the study names; those without a metric are of the headline."""
    published: Iterable[Mapping[str, Any]] = section.scores.of_study(section.name).get("published") or ()
    other = metric if headline else None
    return [one for one in published if one["task"] == task and one.get("metric", other) == metric]


def _named_by(section: Section, published: Mapping[str, Any], condition: Condition) -> bool:
    """Return whether a condition has the levels that a published number names."""
    levels = section.levels_of(condition).items()
    return all(str(published.get(name, published.get(f"{FACTOR}{name}", level))) == level for name, level in levels)
