"""[report] of a study file: what is compared, the main outcome, names of levels, and published numbers.

    [report]
    baseline = { objective = "mlm" }
    x = "overlap"
    lines = "objective"
    primary = "pos.zs"                           TASK.REGIME, TASK.METRIC.REGIME or MEASURE.METRIC
    test = "interaction"                         by default "level": each level against the baseline
    [report.names.objective]                     by factor
    align-mlm = "ALIGN-MLM"
    [[report.published]]                         a row for each number
    task = "pos"
    metric = "accuracy"                          by default the one that stands for the task
    objective = "mlm"                            levels of the study
    values = { sup = 94.1, zs = 56.5 }           or regime and value; of a measure, only value
    source = "Name (2022), Table 3"

study.json has each published number as a row of its own, with `regime` and `value`.
"""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Mapping, Sequence
from itertools import chain
from typing import Any

from derivlang.core.errors import UsageError, unknown
from derivlang.core.settings import text_of
from derivlang.evaluation.columns import SIDES, Column
from derivlang.evaluation.finetune_settings import REGIMES
from derivlang.evaluation.measures.registry import MEASURES
from derivlang.evaluation.settings import tasks_and_measures
from derivlang.evaluation.tasks.base import Task
from derivlang.evaluation.tasks.registry import task_of
from derivlang.studies.commands import Level

_KEYS = ("baseline", "x", "lines", "primary", "test", "names", "published")
_TESTS = ("level", "interaction")
_ROW = ("task", "metric", "regime", "value", "values", "source")
_TUNED = (*REGIMES, "delta", "source", "oracle")


def read_report(
    report: Mapping[str, Any],
    factors: Mapping[str, Sequence[Level]],
    evaluations: Iterable[Mapping[str, Any]],
    place: str,
) -> dict[str, Any]:
    """Return [report] as study.json has it. evaluations: the options of `evaluate` of all cells. place: of the file.

    Raise UsageError for a key, factor, level or outcome that the study does not have, and for values of another type.
    """
    where = f"{place} [report]"
    for key in report:
        if key not in _KEYS:
            raise unknown("key of [report]", key, _KEYS, where=where)
    checked = dict(report)
    for name in (report[key] for key in ("x", "lines") if key in report):
        if not isinstance(name, str):
            raise UsageError(f"{name!r} must be the name of a factor", where=where, id="bad-value")
        _check_factor(name, factors, where)
    if baseline := _levels(report, factors, where):
        checked["baseline"] = baseline
    if "names" in report:
        checked["names"] = dict(_names(report["names"], factors, f"{where} names"))
    if report.get("test", _TESTS[0]) not in _TESTS:
        raise unknown("test", text_of(report["test"]), _TESTS, where=where)
    rows = tables_of(report, "published", where, "report.published")
    asked = [*filter(None, [report.get("primary")]), *(row.get("task") for row in rows)]
    outcomes = dict(_outcomes(evaluations, [str(name).partition(".")[0] for name in asked])) if asked else {}
    if "primary" in report:
        _check_outcome(str(report["primary"]), outcomes, where)
    if "published" in report:
        checked["published"] = list(chain.from_iterable(
            _published(row, factors, outcomes, f"{where} published {number}") for number, row in enumerate(rows, 1)
        ))  # fmt: skip
    return checked


def tables_of(table: Mapping[str, Any], name: str, where: str, path: str = "") -> list[dict[str, Any]]:
    """Return the tables [[path]] of a file, by default [[name]]; [] without any.

    where: place of the file. Raise UsageError for anything else that `name` is.
    """
    tables = table.get(name, [])
    if not isinstance(tables, list) or not all(isinstance(one, dict) for one in tables):
        fix = f"write [[{path or name}]]"
        raise UsageError(f"{name} must be a list of tables", where=where, fix=fix, id="study")
    return tables


def _check_factor(name: str, factors: Mapping[str, Sequence[Level]], where: str) -> None:
    if name not in factors:
        raise unknown("factor", name, factors, where=where)


def _level(name: str, level: Any, factors: Mapping[str, Sequence[Level]], where: str) -> Level:
    """Return a level as the factor has it: `"25"` and `25` are one."""
    _check_factor(name, factors, where)
    known = {text_of(one): one for one in factors[name]}
    text = text_of(level) if isinstance(level, (str, int, float)) else repr(level)
    if text not in known and level not in known.values():
        raise unknown(f"level of {name}", text, known, where=where)
    return known[text] if text in known else next(one for one in known.values() if one == level)


def _levels(report: Mapping[str, Any], factors: Mapping[str, Sequence[Level]], where: str) -> dict[str, Level]:
    """Return the baseline, {} without one."""
    baseline = report.get("baseline", {})
    if not isinstance(baseline, dict):
        fix = 'write e.g. baseline = { objective = "mlm" }'
        raise UsageError(f"baseline = {baseline!r} must be a factor with a level", where=where, fix=fix, id="bad-value")
    return {name: _level(name, level, factors, f"{where} baseline") for name, level in baseline.items()}


def _names(names: Any, factors: Mapping[str, Sequence[Level]], where: str) -> Iterator[tuple[str, dict[str, str]]]:
    """Yield a factor and the names of its levels."""
    tables = names.items() if isinstance(names, dict) else [("names", names)]
    for factor, levels in tables:
        if not isinstance(levels, dict) or not all(isinstance(name, str) for name in levels.values()):
            fix = 'write e.g. [report.names.objective] and align-mlm = "ALIGN-MLM"'
            raise UsageError(f"{factor} is not a table of names", where=where, fix=fix, id="bad-value")
        yield factor, {text_of(_level(factor, level, factors, where)): name for level, name in levels.items()}


def _outcomes(evaluations: Iterable[Mapping[str, Any]], measures: Iterable[str]) -> Iterator[tuple[str, str]]:
    """Yield outcomes that the evaluations may have, as TASK.METRIC.REGIME, under each of their names.

    measures: those that are asked for; other names are passed over.
    """
    asked = dict.fromkeys(text for options in evaluations if "{" not in (text := text_of(options.get("task", "none"))))
    for name in dict.fromkeys(chain.from_iterable(tasks_and_measures(text)[0] for text in asked)):
        task = task_of(name)
        yield from _named(task.label, task.columns, _TUNED if isinstance(task, Task) else SIDES)
    for name in dict.fromkeys(name for name in measures if name in MEASURES):
        yield from _named(name, MEASURES.find(name).columns, ("", *SIDES))


def _named(label: str, columns: Iterable[Column], regimes: Iterable[str]) -> Iterator[tuple[str, str]]:
    for column in columns:
        for regime in regimes:
            full = ".".join(filter(None, (label, column.name, regime)))
            yield full, full
            if column.headline:
                yield ".".join(filter(None, (label, regime))), full


def _check_outcome(name: str, outcomes: Mapping[str, str], where: str) -> None:
    if name not in outcomes:
        fix = "give TASK.REGIME, TASK.METRIC.REGIME or MEASURE.METRIC, of a task of [evaluate]"
        raise unknown("outcome", name, {*outcomes, *MEASURES.names()}, where=where, fix=fix)


def _published(
    row: Mapping[str, Any], factors: Mapping[str, Sequence[Level]], outcomes: Mapping[str, str], where: str
) -> Iterator[dict[str, Any]]:
    """Yield a row for each published number of a table."""
    if missing := [key for key in ("task", "source") if not isinstance(row.get(key), str)]:
        raise UsageError(f"{missing[0]} is missing, or is not a text", where=where, id="bad-value")
    values = row.get("values", {row.get("regime", ""): row["value"]} if "value" in row else None)
    if not isinstance(values, dict) or not values or ("values" in row and {"value", "regime"} & row.keys()):
        fix = "write values = { zs = 56.5 }, or regime and value"
        raise UsageError("there is no published value, or there are two", where=where, fix=fix, id="bad-value")
    told = {key: row[key] for key in ("task", "metric", "source") if key in row}
    levels = {name: text_of(_level(name, level, factors, where)) for name, level in row.items() if name not in _ROW}
    for regime, value in values.items():
        if isinstance(value, bool) or not isinstance(value, (int, float)):
            raise UsageError(f"{value!r} is not a number", where=where, id="bad-value")
        _check_outcome(".".join(filter(None, (row["task"], row.get("metric"), regime))), outcomes, where)
        yield {**told, **levels, "regime": regime, "value": float(value)}
