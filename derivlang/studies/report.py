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
from derivlang.studies.tables import Tables

_TESTS = ("level", "interaction")
_ROW = ("task", "metric", "regime", "value", "values", "source")
_TUNED = (*REGIMES, "delta", "source", "oracle")
Factors = Mapping[str, Sequence[Level]]


def read_report(
    report: Tables, factors: Factors, evaluations: Iterable[Mapping[str, Any]], place: str
) -> dict[str, Any]:
    """Return [report] as study.json has it. evaluations: the options of `evaluate` of all cells. place: of the file.

    Raise UsageError for a factor, level or outcome that the study does not have.
    """
    where, checked = f"{place} [report]", dict(report)
    for name in (report[key] for key in ("x", "lines") if key in report):
        if name not in factors:
            raise unknown("factor", name, factors, where=where)
    if baseline := report.get("baseline"):
        checked["baseline"] = {
            name: _level(name, level, factors, f"{where} baseline") for name, level in baseline.items()
        }
    if "names" in report:
        checked["names"] = {
            factor: {text_of(_level(factor, level, factors, f"{where} names")): name for level, name in levels.items()}
            for factor, levels in report["names"].items()
        }
    if report.get("test", _TESTS[0]) not in _TESTS:
        raise unknown("test", report["test"], _TESTS, where=where)
    rows = report.get("published", [])
    asked = [*filter(None, [report.get("primary")]), *(row.get("task", "") for row in rows)]
    outcomes = dict(_outcomes(evaluations, [name.partition(".")[0] for name in asked])) if asked else {}
    if "primary" in report:
        _check_outcome(report["primary"], outcomes, where)
    if "published" in report:
        checked["published"] = list(chain.from_iterable(
            _published(row, factors, outcomes, f"{where} published {number}") for number, row in enumerate(rows, 1)
        ))  # fmt: skip
    return checked


def _level(name: str, level: Level, factors: Factors, where: str) -> Level:
    """Return a level as the factor has it: `"25"` and `25` are one."""
    if name not in factors:
        raise unknown("factor", name, factors, where=where)
    known = {text_of(one): one for one in factors[name]}
    if text_of(level) not in known and level not in known.values():
        raise unknown(f"level of {name}", text_of(level), known, where=where)
    return known.get(text_of(level), next((one for one in known.values() if one == level), level))


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


def _published(row: Tables, factors: Factors, outcomes: Mapping[str, str], where: str) -> Iterator[dict[str, Any]]:
    """Yield a row for each published number of a table."""
    if missing := [key for key in ("task", "source") if key not in row]:
        raise UsageError(f"{missing[0]} is missing", where=where, id="bad-value")
    values = row.get("values", {row.get("regime", ""): row["value"]} if "value" in row else {})
    if not values or ("values" in row and {"value", "regime"} & row.keys()):
        fix = "write values = { zs = 56.5 }, or regime and value"
        raise UsageError("there is no published value, or there are two", where=where, fix=fix, id="bad-value")
    told = {key: row[key] for key in ("task", "metric", "source") if key in row}
    levels = {name: text_of(_level(name, level, factors, where)) for name, level in row.items() if name not in _ROW}
    for regime, value in values.items():
        _check_outcome(".".join(filter(None, (row["task"], row.get("metric"), regime))), outcomes, where)
        yield {**told, **levels, "regime": regime, "value": float(value)}
