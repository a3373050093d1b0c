"""What a reader has to know of a section, in sentences and small tables: result, languages, settings, sets, runs."""

from __future__ import annotations

import re
from collections.abc import Callable, Iterable, Iterator
from contextlib import suppress
from typing import Any

import numpy as np
import pandas as pd

from derivlang.core.errors import DerivlangError
from derivlang.core.messages import counted, first_names
from derivlang.evaluation.columns import PERCENT, Column
from derivlang.evaluation.report.compare import DIFFERENCE, is_whole, leading
from derivlang.evaluation.report.factors import CONTROL, UNTRAINED, Condition, Section, told_of
from derivlang.evaluation.report.frame import CHANCE, DELTA, RANGE, SUP, ZS
from derivlang.evaluation.report.tables import EMPTY, ReportedScore, Table, grid, interval, number, p_value, signed
from derivlang.evaluation.table import SETTING
from derivlang.evaluation.tasks.registry import TASKS
from derivlang.pipeline import Pipeline
from derivlang.training.language import Language, read_languages
from derivlang.training.objectives.registry import find_objective, objective_names
from derivlang.transforms.registry import find_transform, transform_names

_SHOWN = {"source": "Text of pre-training", "spec": "Derived languages", "objective": "Objectives", "model": "Model",
          "parameters": "Parameters", "steps": "Training steps"}  # fmt: skip
_HASHES = ("data", "derived_data", "init", "ft_data")  # settings whose values say nothing to a reader


def results_of(score: ReportedScore) -> Iterator[str]:
    """Yield the result in sentences, then what it is about: the differences of a score, floors, languages, models."""
    section, column = score.section, score.column
    regime = section.primary[2] if section.primary else ZS if ZS in score.regimes else score.regimes[-1]
    differences = score.of_kind(DIFFERENCE)
    for _, some in differences[differences["regime"] == regime].groupby(["factor", "contrast"], sort=False):
        row = some.loc[some["conditions"].idxmax()]  # the mean over conditions, if there are several
        p = f", p {p_value(row['p'])}"
        factor, base = row["factor"], section.baseline[row["factor"]]
        level = row["contrast"].removesuffix(f" − {base}")
        yield f"{score.title(regime)}: {factor} {level} − {factor} {base} = {_difference(row, column, p)}."
    named = [name for name in section.factors if name not in _HASHES]
    first = [*section.baseline, *(name for name in named if name == "objective"), *named]
    rows = score.scores[score.scores["final"] & is_whole(score.scores.assign(step=pd.NA))]
    if first and column.better and not column.over and (row := leading(section, rows, regime, first[0], column.better)):
        best, _, second = row["contrast"].partition(" − ")
        if float(number(row["value"], column.unit).replace("−", "-")) == 0:
            told = f"no {first[0]} is ahead, {best} and {second} differ by {_difference(row, column)}"
        else:
            told = f"the best {first[0]} is {best}, before {second} by {_difference(row, column)}"
        chance = score.means.loc[score.means["regime"] == CHANCE, "value"].min()
        if column.better == "up" and regime != DELTA and row["best"] < chance:
            told += f"; both are below chance ({number(chance, column.unit)})"
        yield f"{score.title(regime)}: {told}."
    shares = [(row["value"], row["condition"])
              for row in score.means[score.means["regime"] == RANGE].to_dict("records")
              if section.levels_of(row["condition"]).get(CONTROL) != UNTRAINED]  # fmt: skip
    if shares and max(shares)[0] < 0:
        yield f"{score.title()}: ZS is below the floor ({_from_floor(score, max(shares)[1])})."
    elif shares:
        ends = dict.fromkeys([min(shares), max(shares)])
        way = " to ".join(f"{number(value)} % ({_from_floor(score, condition)})" for value, condition in ends)
        yield f"{score.title()}: of the way from the floor to SUP, ZS goes {way}."
    means = score.means[score.means["regime"] == SUP].set_index("condition")["value"]
    behind = [
        f"{section.label(one) or 'the trained one'} by {number(floor - value)}"
        for one, value in means.items()
        if value < (floor := means.get(section.untrained(one), -np.inf))
    ]
    if column.better == "up" and behind:
        yield f"{score.title(SUP)}: the untrained model is ahead of {first_names(behind)}."
    yield from section.notes
    languages = _languages(section)
    if languages:
        yield f"Languages: {', '.join(_named(one, languages[0]) for one in languages)}."
    for name, shown in _SHOWN.items():
        if (values := _values(section, name)) and not (languages and name == "spec"):
            yield f"{shown}: {'; '.join(values)}."
    yield from _summaries(
        section, [one.t for one in languages if not one.text] if languages else _values(section, "spec")
    )


def _from_floor(score: ReportedScore, condition: Condition) -> str:
    """Return how far ZS is from its floor: "mlm: +12.3 points from 25.2, the floor of 1 untrained run"."""
    section, means = score.section, {(row["regime"], row["condition"]): row for row in score.means.to_dict("records")}
    untrained = means.get((ZS, section.untrained(condition)))
    floor = (untrained or means[CHANCE, condition])["value"]
    points = signed(means[ZS, condition]["value"] - floor, score.column.unit)
    what = f"the floor of {counted(untrained['n'], 'untrained run')}" if untrained else "chance"
    return f"{section.label(condition) or 'all runs'}: {points} points from {number(floor, score.column.unit)}, {what}"


def _difference(row: Any, column: Column, p: str = "") -> str:
    """Return a difference with its unit, its interval, and what it is based on. p: of no difference."""
    facts = [f"95 % interval {interval(row, column)}{p}" if row["low"] == row["low"] else "",
             counted(row["n"], "seed"), row["why"],
             f"mean of {row['conditions']} conditions" if row["conditions"] > 1 else "",
             "no difference was found" if row["low"] <= 0 <= row["high"] else ""]  # fmt: skip
    unit = "points" if column.unit == PERCENT else column.unit
    value = " ".join(filter(None, [signed(row["value"], column.unit), unit]))
    return f"{value} ({', '.join(filter(None, facts))})"


def _values(section: Section, name: str) -> list[str]:
    rows = section.rows
    values = rows[f"{SETTING}{name}"].dropna().unique() if f"{SETTING}{name}" in rows else ()
    return [re.sub(r"(?<=\d)(?=(\d{3})+$)", ",", text) if text.isdecimal() else text
            for text in map(str, values)]  # fmt: skip


def _languages(section: Section) -> list[Language]:
    """Return the languages of runs of --language, each once; [] of runs of two languages."""
    some: dict[Language, None] = {}
    for text in _values(section, "language"):
        with suppress(DerivlangError):
            some |= dict.fromkeys(read_languages(text.split("; ")))
    return list(some)


def _named(one: Language, source: Language) -> str:
    """Return a language with its text, word rules and transforms: "ar (ar.txt, lang ar)", "rf (trans,inv of fr)"."""
    of = one.text or source.name
    return f"{one.name} ({of if one.t == 'identity' else f'{one.t} of {of}'}{f', lang {one.lang}' if one.lang else ''})"


def _summaries(section: Section, specs: list[str]) -> Iterator[str]:
    """Yield what the transforms, objectives and tasks of the runs are, where their packages are there."""
    kinds: list[tuple[Iterable[str], Callable[[str], Any], list[str]]] = [
        (transform_names(), find_transform, specs),
        (objective_names(), find_objective, _values(section, "objective")),
        (TASKS.names(), TASKS.find, list(section.rows["task"].unique())),
    ]
    for names, find, used in kinds:
        for name in names:
            if any(re.search(rf"(^|,){re.escape(name)}(?![\w-])", one) for one in used):
                yield f"{name}: {find(name).summary()}"


def settings_of(section: Section) -> list[str]:
    """Return what is known of a section: its factors, what all runs share, its test, and values that are NaN."""
    what = "interactions" if section.test == "interaction" else "differences from the baseline, in each condition"
    bad = section.rows[~np.isfinite(section.rows["value"])].groupby(["task", "metric"], sort=False)["run"]
    return [
        *(f"{name}: {', '.join(level or 'none' for level in section.levels[name])}" for name in section.factors),
        *_in_full(section),
        *([f"Given by these, or by the seed: {', '.join(section.follows)}."] if section.follows else []),
        *([f"The same in all runs: {told_of(section.constant)}"] if section.constant else []),
        *(f"{task}: {told_of(settings)}" for task, settings in section.of_task.items()),
        *([f"Primary outcome: {'.'.join(filter(None, section.primary))}; tested: {what}."] if section.primary else []),
        *(f"{len(runs):,} values of {task} {metric} are NaN or infinite: {first_names(runs.unique())}."
          for (task, metric), runs in bad),
    ]  # fmt: skip


def _in_full(section: Section) -> Iterator[str]:
    """Yield the specs with every parameter, such as the script of trans, if nothing in them is of a file or missing."""
    for spec in _values(section, "spec"):
        with suppress(DerivlangError):
            full = Pipeline.from_stored(spec).with_defaults
            if full != spec:
                yield f"{spec} is in full {full}."


def test_rows(section: Section) -> Table | None:
    """Return the table of the rows of test sets (cut, unscored, in train), by task; None if nothing is known.

    Runs cut sentences with their own tokenizers, so a cell has the range over runs.
    """
    numbers = pd.DataFrame([
        {"task": task, "name": name.replace("_", " "), "value": value}
        for run in section.runs
        for task, told in (section.of_run("tests", run) or {}).items()
        for name, value in told.items()
    ])  # fmt: skip
    if numbers.empty:
        return None
    ranges = numbers.groupby(["task", "name"], sort=False)["value"].agg(["min", "max"])
    lines = (((task,), {name: " to ".join(dict.fromkeys([f"{low:,}", f"{high:,}"]))})
             for (task, name), (low, high) in zip(ranges.index, ranges.to_numpy(), strict=True))  # fmt: skip
    note = (
        "Numbers of the derived test set. Cut: sentences longer than the model reads. Unscored: labels that have no "
        "score. Cut answers: answers outside of what the model reads; they count as wrong. In train: rows that "
        "also stand in the part of the train set that was taken, or in the whole of it."
    )
    return Table("test-rows", "Rows of test sets", grid(lines, ["Task"]), numbers, note)


def run_list(section: Section) -> Table:
    """Return the table of all runs with their training data; those without a result, too."""
    rows = section.rows.groupby("run", sort=False).agg({**dict.fromkeys(("fingerprint", "weights", "version"), "first"),
                                                        "step": "max"})  # fmt: skip
    prefix = f"{section.name}/"
    states = {name.removeprefix(prefix): state for name, state in (section.attributes.get("states") or {}).items()
              if name.startswith(prefix)}  # fmt: skip
    lines = {}
    for run in dict.fromkeys([*section.runs, *states]):
        condition, seed = section.runs.get(run, ((EMPTY,) * len(section.factors), EMPTY))
        origin = rows.loc[run].to_dict() if run in rows.index else {}
        doses = section.of_run("doses", run) or {}
        lines[run] = {
            **section.levels_of(condition),
            "seed": seed,
            **origin,
            "state": states.get(run, "done"),
            **{name.replace("_", " "): value for name, value in doses.items()},
        }
    data = pd.DataFrame(list(lines.values()), pd.Index(lines, name="Run"), dtype=object)
    note = (
        "The origin of every number above, and the training data over the whole run. Tokens: sub-words of all streams, "
        "without padding. Shares are from 0 to 1."
    )
    return Table("runs", "Runs", data.map(_amount), data.reset_index(), note)


def _amount(value: object) -> str:
    """Return a number or a name as text."""
    if isinstance(value, int | float) and not isinstance(value, bool):
        return EMPTY if value != value else f"{value:,}" if isinstance(value, int) else number(value)
    return str(value or EMPTY)
