"""Tables of a section, from the rows of `compare`: a score by condition, contrasts, over steps, every score."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

import pandas as pd

from derivlang.core.messages import counted
from derivlang.evaluation.lines import seeds_told, set_told, signature_line, units_told
from derivlang.evaluation.report.cells import (
    EMPTY,
    MEAN,
    Line,
    Table,
    estimate_cell,
    file_name,
    grid,
    listed,
    number,
    p_value,
    signed,
)
from derivlang.evaluation.report.compare import PRIMARY, is_whole, last_layer
from derivlang.evaluation.report.factors import INTERACTION, Condition, Section, told_of
from derivlang.evaluation.report.frame import CHANCE, FLOORS, RANGE, REGIMES
from derivlang.evaluation.scores import counts_of
from derivlang.evaluation.statistics import FEW_UNITS
from derivlang.evaluation.table import FACTOR


def title_of(section: Section, task: str, metric: str) -> str:
    """Return the name of a score for titles, such as "pos: accuracy"."""
    return f"{task}: {section.columns[task, metric].shown}"


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


def score_table(section: Section, comparisons: pd.DataFrame, task: str, metric: str) -> Table:
    """Return the table of a score: a row for each condition that was planned, a column for each regime."""
    some, column = of_score(comparisons, task, metric, MEAN), section.columns[task, metric]
    regimes = [*regimes_of(some), *(one for one in FLOORS if one in set(some["regime"]))]
    published = _published(section, task, metric, column.headline)
    means = {(row["condition"], row["regime"]): row for row in some.to_dict("records")}

    def line(condition: Condition) -> Line:
        cells: dict[str, str] = {}
        for regime in regimes:
            row, title = means.get((condition, regime)), regime_title(regime) or column.shown
            cells[title] = estimate_cell(row, column, section.planned[condition]) if row else EMPTY
            cells |= {
                f"{title}, published": number(one["value"], column.unit)
                for one in published
                if one.get("regime", "") == regime and _named_by(section, one, condition)
            }
        return [level or "none" for level in condition] or ["all"], cells

    layer = last_layer(comparisons, task, metric)
    note = [
        f"Unit: {column.unit}." if column.unit else "",
        "Smaller is better." if column.better == "down" else "",
        f"Layer {layer}." if layer is not None else "",
        _floor(section, some),
        f"Published: {'; '.join(dict.fromkeys(str(one.get('source')) for one in published))}." if published else "",
        intervals_told(some),
    ]
    return Table(
        file_name(task, metric),
        f"{title_of(section, task, metric)}{f', by {listed(section.factors)}' if section.factors else ''}",
        grid(map(line, section.planned), section.factors or [section.name or "runs"]),
        some,
        " ".join(filter(None, note)),
        signature(section, task, metric),
        latex=True,
    )


def contrast_table(section: Section, comparisons: pd.DataFrame, task: str, metric: str, kind: str) -> Table | None:
    """Return the table of differences or of interactions, a row for each; None if there are none."""
    some, column = of_score(comparisons, task, metric, kind), section.columns[task, metric]
    some = some[some["regime"].isin(regimes_of(some))]
    if some.empty:
        return None

    def line(row: Mapping[str, Any]) -> Line:
        told = section.label(row["condition"], row["factor"].split(" × "))
        if row["conditions"] > 1:
            told = f"mean of {row['conditions']} conditions"
        cells = {
            "difference": estimate_cell(row, column),
            "p": p_value(row["p"]),
            "by seed": ", ".join(signed(value, column.unit) for value in row["values"]),
            **({"p (Holm)": p_value(row["p_holm"])} if row["family"] == PRIMARY else {}),
        }
        return (regime_title(row["regime"]), row["factor"], row["contrast"], told), cells

    tests, baseline = some["family"].eq(PRIMARY).sum(), told_of(section.baseline)
    title = "interactions" if kind == INTERACTION else "contrasts with the baseline"
    note = [
        f"How far a difference from the baseline ({baseline}) depends on another factor."
        if kind == INTERACTION
        else f"A level minus the baseline ({baseline}), paired by pre-training seed, on the same test set.",
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
        file_name(task, metric, f"{kind}s"),
        f"{title_of(section, task, metric)}, {title}",
        grid(map(line, some.to_dict("records")), ["Regime", "Factor", "Contrast", "Condition"]),
        some,
        " ".join(filter(None, note)),
        signature(section, task, metric),
        latex=True,
    )


def curve_table(section: Section, comparisons: pd.DataFrame, task: str, metric: str) -> Table | None:
    """Return the table of a score over steps, or None if no checkpoint was evaluated."""
    some = curve_rows(section, comparisons, task, metric)
    if some is None:
        return None
    some, column = some[some["regime"].isin(regimes_of(some))], section.columns[task, metric]
    several = some["regime"].nunique() > 1

    def line(row: Mapping[str, Any]) -> Line:
        labels = [regime_title(row["regime"]) if several else "", *(level or "none" for level in row["condition"])]
        return labels, {f"{row['step']:,}": estimate_cell(row, column, section.planned[row["condition"]])}

    shown = grid(map(line, some.to_dict("records")), ["Regime", *section.factors])
    title = f"{title_of(section, task, metric)}, over steps"
    return Table(file_name(task, metric, "steps"), title, shown, some, intervals_told(some))


def curve_rows(section: Section, comparisons: pd.DataFrame, task: str, metric: str) -> pd.DataFrame | None:
    """Return the means of checkpoints and of finished models, which get their last step; None without checkpoints."""
    some = comparisons[
        (comparisons["task"] == task) & (comparisons["metric"] == metric) & (comparisons["kind"] == MEAN)
    ]
    some = some[is_whole(some.assign(step=pd.NA), last_layer(comparisons, task, metric))]
    if some["step"].notna().sum() == 0:
        return None
    last: dict[Condition, int] = {}
    for run, step in section.rows.groupby("run")["step"].max().items():
        condition = section.runs[run][0]
        last[condition] = max(last.get(condition, 0), int(step))
    ends = some["condition"].map(last.get).astype("Int64")
    return some.assign(step=some["step"].fillna(ends)).sort_values("step", kind="stable")


def every_score(section: Section, comparisons: pd.DataFrame, task: str) -> Table:
    """Return the table of all numbers of a task in finished models: rows of outcomes, columns of conditions."""
    some = comparisons[(comparisons["task"] == task) & (comparisons["kind"] == MEAN) & comparisons["step"].isna()]

    def line(row: Mapping[str, Any]) -> Line:
        column = section.columns[task, row["metric"]]
        layer = "" if pd.isna(row["layer"]) else str(row["layer"])
        labels = (column.shown, regime_title(row["regime"]), row["split"], row["group"], layer)
        return labels, {section.label(row["condition"]) or "mean": estimate_cell(row, column)}

    shown = grid(map(line, some.to_dict("records")), ["Score", "Regime", "Split", "Part", "Layer"])
    return Table(file_name(task, "scores"), f"{task}: every score", shown, some, intervals_told(some))


def signature(section: Section, task: str, metric: str) -> str:
    """Return the signature of a metric in a section. What differs among its runs is listed."""
    rows = section.of_score[task, metric]
    some = rows[(rows["regime"] != CHANCE) & rows["final"]]
    some = some[is_whole(some.assign(step=pd.NA, layer=pd.NA))]
    of_sets = some.drop_duplicates(["set_hash", "formula"]).to_dict("records")
    parts = {
        "set": dict.fromkeys(set_told(*names) for names in zip(some["set"], some["set_hash"], strict=True)),
        "split": some["split"].unique(),
        "units": dict.fromkeys(units_told(units_of(row), row["unit"]) for row in of_sets),
        **{name: [value] for name, value in section.of_task.get(task, {}).items()},
        "seeds": [seeds_told(some["seed"])],
        "ft_seeds": [seeds_told(some["ft_seed"].dropna())],
        "derivlang": some["version"].unique(),
    }
    return signature_line(f"{task}.{metric}", parts)


def signatures(section: Section) -> Table:
    """Return the table of the signatures of all metrics."""
    lines = (((task, metric), {"Signature": signature(section, task, metric)}) for task, metric in section.of_score)
    shown = grid(lines, ["Task", "Score"])
    return Table("signatures", "Signatures", shown, shown.reset_index(), "How a score was computed, for a paper.")


def units_of(row: Mapping[str, Any]) -> int:
    """Return the number of units of a row of scores; 0 without counts."""
    return len(counts_of(row["formula"], row["counts"])) if row["counts"] is not None and row["formula"] else 0


def intervals_told(some: pd.DataFrame) -> str:
    """Return what the cells of means have: intervals, if some do, and a warning if they are of few units."""
    told = ", with 95 % intervals" if some["low"].notna().any() else ""
    return f"Means over n pre-training seeds{told}. {_few(some)}".rstrip()


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


def _published(section: Section, task: str, metric: str, headline: bool) -> list[Mapping[str, Any]]:
    """Return the published numbers of a score that the study names; those without a metric are of the headline."""
    other = metric if headline else None
    return [one for one in section.published if one["task"] == task and one.get("metric", other) == metric]


def _named_by(section: Section, published: Mapping[str, Any], condition: Condition) -> bool:
    """Return whether a condition has the levels that a published number names."""
    levels = section.levels_of(condition).items()
    return all(str(published.get(name, published.get(f"{FACTOR}{name}", level))) == level for name, level in levels)
