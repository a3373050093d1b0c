"""The scores that lie beside the study pages, their comparisons, and tables of them."""

from __future__ import annotations

import re
from collections.abc import Callable, Iterable, Mapping, Sequence
from functools import cache
from html import escape
from pathlib import Path
from typing import Any

import pandas as pd
from outcomes import FLOORS, GRIDS, IMPOSSIBLE, OUTCOMES, STARTS, Outcome

import derivlang
from derivlang.evaluation.report.compare import DIFFERENCE, MEAN, is_whole
from derivlang.evaluation.report.factors import Section, sections_of
from derivlang.evaluation.report.frame import DELTA, SUP, ZS, with_names
from derivlang.evaluation.report.tables import estimate_cell, number, p_value, signed
from derivlang.evaluation.table import FACTOR, SETTING, write_scores

PAGES = Path(__file__).parents[1] / "studies"
KEPT = PAGES / "scores"
_MARKDOWN = re.compile(r"[\\`*_\[\]~|]|://")  # markup of emphasis, code, links and cell borders


def section_of(name: str, *outcomes: Outcome) -> Section:
    """Return the one section of kept scores. outcomes: as of `some_scores`."""
    (section,) = sections_of(with_names(some_scores(name, outcomes)))
    return section


@cache
def scores(name: str) -> pd.DataFrame:
    """Return kept scores."""
    return derivlang.scores(KEPT / f"{name}.parquet")


def some_scores(name: str, outcomes: Sequence[Outcome]) -> pd.DataFrame:
    """Return kept scores of the metrics of these outcomes and of the study's primary outcome; without any, all."""
    found = scores(name)
    if not outcomes:
        return found
    metrics = {parts(outcome)[:2] for outcome in outcomes}
    primary = {str(study.get("primary")).partition(".")[0] for study in found.attrs["studies"].values()}
    places = zip(found["task"], found["metric"], strict=True)
    return found[[(task, metric) in metrics or task in primary for task, metric in places]].reset_index(drop=True)


@cache
def compared(name: str, *outcomes: Outcome, **baseline: str) -> pd.DataFrame:
    """Return the comparisons of kept scores. outcomes: as of `some_scores`, each of which is compared by itself."""
    return derivlang.compare(some_scores(name, outcomes), baseline=baseline or None)


@cache
def columns(name: str) -> Mapping[tuple[str, str], Any]:
    """Return what is declared of the metrics of kept scores."""
    return section_of(name).columns


def contrasts(
    name: str, outcomes: Mapping[str, Outcome], levels: Iterable[str], baseline: Mapping[str, str] | None = None
) -> list[tuple[tuple[str, ...], dict[str, str]]]:
    """Return lines of differences from the baseline, which is the study's if none is given."""
    found, lines = compared(name, *(outcomes.values() if baseline else ()), **(baseline or {})), []
    for level in levels:
        cells: dict[str, str] = {}
        contrast = ""
        for title, outcome in outcomes.items():
            row = row_of(found, DIFFERENCE, outcome, **{f"{FACTOR}objective": level})
            # Of another baseline than the study's, nothing was planned.
            holm = f" ({p_value(row['p_holm'])})" if row["p_holm"] == row["p_holm"] and not baseline else ""
            cells[title] = estimate(name, row, outcome)
            cells[f"{title}: p"] = p_value(row["p"]) + holm
            cells[f"{title}: by seed"] = ", ".join(map(signed, row["values"]))
            contrast = row["contrast"]
        lines.append(((contrast,), cells))
    return lines


def means(
    name: str,
    outcomes: Mapping[str, Outcome],
    factors: Sequence[str],
    labels: Sequence[str],
    named: Callable[..., tuple[str, ...]],
    *,
    intervals: bool = False,
) -> str:
    """Return the table of means: a line for each condition, a column for each outcome.

    named: levels of the factors -> labels of a line. intervals: whether cells have one, in place of a column of seeds.
    """
    found, lines = compared(name), []
    columns = [f"{FACTOR}{factor}" for factor in factors]
    measured = found["task"] == next(iter(outcomes.values())).partition(".")[0]  # not every condition has all
    conditions = found.loc[(found["kind"] == MEAN) & measured, columns].fillna("").drop_duplicates()
    for levels in conditions.itertuples(index=False, name=None):
        wanted = dict(zip(columns, levels, strict=True))
        rows = {title: (row_of(found, MEAN, outcome, **wanted), outcome) for title, outcome in outcomes.items()}
        cells = {title: estimate(name, *row) if intervals else number(row[0]["value"]) for title, row in rows.items()}
        n = {row["n"] for row, _ in rows.values()}
        lines.append((named(*levels), cells if intervals else {"seeds": ", ".join(map(str, n)), **cells}))
    if name not in (IMPOSSIBLE, FLOORS, *GRIDS):  # whose lines are in the order of the file
        lines.sort(key=lambda line: (line[0][:-1], line[0][-1] not in STARTS.values()))
    return text(lines, labels)


def text(lines: Sequence[tuple[tuple[str, ...], Mapping[str, str]]], labels: Sequence[str]) -> str:
    """Return lines of (labels, cells) as a table."""
    index = pd.MultiIndex.from_tuples([names for names, _ in lines], names=labels)
    shown = pd.DataFrame([cells for _, cells in lines], index)
    return table_text(shown)


def table_text(shown: pd.DataFrame) -> str:
    """Return a table as Markdown."""
    labels, columns = shown.index.names, list(shown.columns)
    rule = _line(["---"] * len(labels) + ["---:"] * len(columns))
    rows = zip(shown.index, shown.to_numpy(), strict=True)
    return _line(map(_plain, [*labels, *columns])) + rule + "".join(
        _line(map(_plain, [*(names if isinstance(names, tuple) else [names]), *map(_in_brackets, cells)]))
        for names, cells in rows
    )  # fmt: skip


def _plain(cell: object) -> str:
    """Return one line of Markdown that shows this text, without markup and HTML."""
    line = escape(" ".join(str(cell).split()), quote=False)
    return _MARKDOWN.sub(lambda match: "".join(f"&#{ord(c)};" for c in match[0]), line)


def _line(cells: Iterable[str]) -> str:
    return f"| {' | '.join(cells)} |\n"


def _in_brackets(cell: str) -> str:
    value, _, note = cell.partition("\n")
    return f"{value} ({note})" if note else value


def estimate(name: str, row: Mapping[str, Any], outcome: Outcome) -> str:
    """Return the cell of a report, without its number of seeds: a page says it once."""
    cell = estimate_cell(row, columns(name)[parts(outcome)[:2]])
    return cell.removesuffix(f"n={row['n']}").rstrip(", \n")


def row_of(found: pd.DataFrame, kind: str, outcome: Outcome, **wanted: str) -> dict[str, Any]:
    """Return the one row of an outcome, on the whole test set."""
    task, metric, regime, layer = parts(outcome)
    asked = {"kind": kind, "task": task, "metric": metric, "regime": regime}
    some = is_whole(found, layer)
    for column, level in asked.items():
        some &= found[column] == level
    for column, level in wanted.items():
        some &= found[column].fillna("") == level
    (row,) = found[some].to_dict("records")
    return {str(key): value for key, value in row.items()}


def parts(outcome: Outcome) -> tuple[str, str, str, int | None]:
    """Return (task, metric, regime, layer)."""
    names, _, layer = outcome.partition("@")
    task, metric, regime = (*names.split("."), "")[:3]
    return task, metric, regime, int(layer) if layer else None


def keep(name: str, study: Path) -> None:
    """Keep the scores of a study that its page has: of finished models, on whole test sets."""
    scores = derivlang.scores(study)
    wanted = set()
    for outcome in OUTCOMES[name]:
        task, metric, regime, layer = parts(outcome)
        wanted |= {(task, metric, one, layer) for one in ((SUP, ZS) if regime == DELTA else (regime,))}
    places = zip(scores["task"], scores["metric"], scores["regime"], scores["layer"], strict=True)
    rows = [
        (task, metric, regime, None if layer is pd.NA else layer) in wanted for task, metric, regime, layer in places
    ]
    whole = (scores["group"] == "") & (scores["split"] != "dev")
    kept = scores[pd.Series(rows) & whole].reset_index(drop=True)
    kept = kept.drop(columns=[one for one in kept if one.startswith((FACTOR, SETTING)) and kept[one].isna().all()])
    kept.attrs = {**scores.attrs, "states": {}, "tests": {}}
    KEPT.mkdir(exist_ok=True)
    write_scores(kept, KEPT / f"{name}.parquet")
