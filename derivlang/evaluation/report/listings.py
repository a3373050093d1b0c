"""Lists of a section: what its facts are, test sets with signatures, doses, the origin of every number."""

from __future__ import annotations

from collections.abc import Iterable

import pandas as pd

from derivlang.core.messages import first_names
from derivlang.evaluation.report.cells import EMPTY, Table, number
from derivlang.evaluation.report.compare import is_whole
from derivlang.evaluation.report.factors import Section, told_of
from derivlang.evaluation.report.frame import CHANCE, not_finite
from derivlang.evaluation.scores import counts_of
from derivlang.evaluation.signature import seeds_told, set_told, signature_line, units_told


def facts_of(section: Section) -> list[str]:
    """Return what is known of a section, a line each: its factors, what all runs share, and what a reader must know."""
    facts = [f"{name}: {', '.join(level or 'none' for level in section.levels[name])}" for name in section.factors]
    if section.follows:
        facts.append(f"Given by these, or by the seed: {', '.join(section.follows)}.")
    if section.constant:
        facts.append(f"The same in all runs: {told_of(section.constant)}")
    facts += [f"{task}: {told_of(settings)}" for task, settings in section.of_task.items()]
    if section.primary:
        what = "interactions" if section.test == "interaction" else "differences from the baseline, in each condition"
        facts.append(f"Primary outcome: {'.'.join(filter(None, section.primary))}; tested: {what}.")
    facts += section.notes
    if any(section.runs[run][0] for run in section.runs):
        facts.append(f"{EMPTY}: planned, but without a result here. A blank cell: never planned.")
    return [*facts, *_not_finite(section.rows)]


def _not_finite(rows: pd.DataFrame) -> Iterable[str]:
    """Yield a line for each metric with values that are NaN: they are shown, and means over them are NaN."""
    for (task, metric), some in rows[not_finite(rows["value"])].groupby(["task", "metric"], sort=False):
        runs = first_names(some["run"].unique())
        yield f"{len(some):,} values of {task} {metric} are NaN or infinite: {runs}."


def test_sets(section: Section) -> Table | None:
    """Return the table of the data that scores were measured on; None if nothing is known."""
    rows = section.rows.drop_duplicates(["run", "task", "metric", "split", "set", "set_hash", "unit"])
    known = rows[(rows["set"] != "") | (rows["set_hash"] != "")]
    sets = []
    for names, some in known.groupby(["task", "split", "set", "set_hash"], sort=False):
        units = max(_units_of(row) for _, row in some.drop_duplicates("formula").iterrows())
        sets.append((*names, f"{units:,}" if units else EMPTY, some["unit"].iloc[0], some["run"].nunique()))
    if not sets:
        return None
    names = ["Task", "Split", "Set", "Hash", "Units", "Unit", "Runs"]
    data = pd.DataFrame(sets, columns=names).astype(str)
    return Table(
        "test-sets",
        "Test sets",
        data.set_index("Task"),
        data,
        "The hash is of the rows of a set and of their units. Scores with the same hash are compared on the same "
        "units; where it differs, an interval leaves the units out.",
    )


def test_rows(section: Section) -> Table | None:
    """Return the table of the rows of test sets (cut, unscored, in train), by task; None if nothing is known.

    Runs cut sentences with their own tokenizers, so a cell has the range over runs.
    """
    by_task: dict[str, dict[str, list[int]]] = {}
    for run in section.runs:
        for task, numbers in (section.scores.of_run("tests", section.name, run) or {}).items():
            for name, value in numbers.items():
                by_task.setdefault(task, {}).setdefault(name, []).append(value)
    if not by_task:
        return None
    ranges = [
        {name.replace("_", " "): " to ".join(dict.fromkeys([f"{min(some):,}", f"{max(some):,}"]))
         for name, some in numbers.items()} for numbers in by_task.values()
    ]  # fmt: skip
    shown = pd.DataFrame(ranges, pd.Index(by_task, name="Task")).fillna(EMPTY)
    note = (
        "Numbers of the derived test set. Cut: sentences longer than the model reads. Unscored: labels that have no "
        "score. Cut answers: answers outside of what the model reads; they count as wrong. In train: rows that "
        "also stand in the part of the train set that was taken, or in the whole of it."
    )
    return Table("test-rows", "Rows of test sets", shown, shown.reset_index(), note)


def signatures(section: Section) -> Table:
    """Return the table of the signatures of all metrics."""
    texts = {key: signature(section, *key) for key in section.of_score}
    index = pd.MultiIndex.from_tuples(texts, names=["Task", "Score"])
    shown = pd.DataFrame({"Signature": list(texts.values())}, index)
    note = "How a score was computed, for a paper that prints it."
    return Table("signatures", "Signatures", shown, shown.reset_index(), note)


def signature(section: Section, task: str, metric: str) -> str:
    """Return the signature of a metric in a section. What differs among its runs is listed."""
    rows = section.of_score[task, metric]
    some = rows[(rows["regime"] != CHANCE) & rows["final"]]
    some = some[is_whole(some.assign(step=pd.NA, layer=pd.NA))]
    of_sets = some.drop_duplicates(["set_hash", "formula"])
    parts = {
        "set": dict.fromkeys(set_told(*names) for names in zip(some["set"], some["set_hash"], strict=True)),
        "split": some["split"].unique(),
        "units": dict.fromkeys(units_told(_units_of(row), row["unit"]) for _, row in of_sets.iterrows()),
        **{name: [value] for name, value in section.of_task.get(task, {}).items()},
        "seeds": [seeds_told(some["seed"])],
        "ft_seeds": [seeds_told(some["ft_seed"].dropna())],
        "derivlang": some["version"].unique(),
    }
    return signature_line(f"{task}.{metric}", parts)


def _units_of(row: pd.Series[str]) -> int:
    """Return the number of units of a row of scores; 0 without counts."""
    known = row["counts"] is not None and row["formula"]
    return len(counts_of(row["formula"], row["counts"])) if known else 0


def doses(section: Section) -> Table | None:
    """Return the table of the training data of runs, over the whole run; None if nothing is known."""
    of_runs = {run: section.scores.of_run("doses", section.name, run) for run in section.runs}
    known = {run: told for run, told in of_runs.items() if told}
    if not known:
        return None
    names = list(dict.fromkeys(name for told in known.values() for name in told))
    values = [[told.get(name) for name in names] for told in known.values()]
    data = pd.DataFrame(values, pd.Index(known, name="Run"), names)
    shown = pd.DataFrame(
        [list(map(_amount, line)) for line in values], data.index, [n.replace("_", " ") for n in names]
    )
    note = "Measured over the whole run. Tokens: sub-words of all streams, without padding. Shares are from 0 to 1."
    return Table("doses", "Doses", shown, data.reset_index(), note)


def run_list(section: Section) -> Table:
    """Return the table of all runs, the origin of every number; those without a result, too."""
    first = section.rows.groupby("run", sort=False).first()
    steps = section.rows.groupby("run")["step"].max()
    prefix = f"{section.name}/"
    told = section.scores.told.get("states") or {}
    states = {name.removeprefix(prefix): state for name, state in told.items() if name.startswith(prefix)}
    lines = {}
    for run in dict.fromkeys([*section.runs, *states]):
        condition, seed = section.runs.get(run, ((EMPTY,) * len(section.factors), EMPTY))
        origin = first.loc[run, ["fingerprint", "weights", "version"]] if run in first.index else [""] * 3
        state = states.get(run, "done" if run in section.runs else "")
        lines[run] = [*condition, seed, f"{steps.get(run, 0):,}", *origin, state]
    names = [*section.factors, "seed", "steps", "fingerprint", "weights", "derivlang", "state"]
    shown = pd.DataFrame(list(lines.values()), pd.Index(lines, name="Run"), names).astype(str).replace("", EMPTY)
    return Table("runs", "Runs", shown, shown.reset_index(), "The origin of every number above.", folded=True)


def _amount(value: object) -> str:
    """Return a dose as text."""
    if isinstance(value, bool) or not isinstance(value, int | float):
        return EMPTY if value is None else str(value)
    return f"{value:,}" if isinstance(value, int) else number(value)
