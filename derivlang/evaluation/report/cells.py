"""The report's tables as data: labels, grouped columns, rows of cells. `page.py` and `markdown.py` write them.

A cell without a measured value is empty. Rows marked "paper" hold the printed numbers of the paper.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable, Sequence
from dataclasses import dataclass
from statistics import mean
from typing import TypeAlias

from derivlang.evaluation.report.columns import REGIMES, Column
from derivlang.evaluation.report.published import Line
from derivlang.evaluation.report.runs import Run, TaskScore
from derivlang.evaluation.report.settings import Entry, standard_deviation

EMPTY = "–"
HERE, PAPER = "here", "paper"
Regimes: TypeAlias = Sequence[tuple[str, str]]
# keys of `alignment`; figures that include training pairs come last
ALIGNMENTS = (
    ("heldout", "held-out"), ("csls_heldout", "held-out, CSLS"), ("mass", "by token mass"), ("csls", "all, CSLS"),
    ("all", "all"),
)  # fmt: skip


@dataclass(frozen=True, slots=True)
class TableCell:
    """A cell: text, a smaller note below it, and a title shown on hovering."""

    text: str = EMPTY
    note: str = ""
    title: str = ""


@dataclass(frozen=True, slots=True)
class Row:
    labels: tuple[str, ...]
    cells: tuple[TableCell, ...]
    paper: bool = False


@dataclass(frozen=True, slots=True)
class Table:
    """A table. labels: names of the first columns. columns: (group, names of its columns). title, note: plain text."""

    id: str
    title: str
    note: str
    labels: tuple[str, ...]
    columns: tuple[tuple[str, tuple[str, ...]], ...]
    rows: tuple[Row, ...]


# rows


def pair(
    labels: tuple[str, str],
    entry: Entry | None,
    line: Line | None,
    found: Sequence[Column],
    regimes: Regimes = REGIMES,
) -> Iterable[Row]:
    """Yield the row of our results and, if the paper has one, the row of its numbers."""
    cells = [score_cell(entry, column, regime) for column in found for regime, _ in regimes]
    yield Row((*labels, HERE), (*cells, runs_cell(entry.runs if entry else ())))
    if line is not None:
        printed = [column.of(line, regime) for column in found for regime, _ in regimes]
        yield Row((*labels, PAPER), (*map(number_cell, printed), TableCell("")), paper=True)


def score_columns(found: Sequence[Column], regimes: Regimes = REGIMES) -> tuple[tuple[str, tuple[str, ...]], ...]:
    """Return the columns of scores: a group for each score, with one column a regime, and the runs."""
    names = tuple(name for _, name in regimes)
    return (*((column.title, names) for column in found), ("", ("runs",)))


# cells


def score_cell(entry: Entry | None, column: Column, regime: str) -> TableCell:
    """Return the mean over pre-training seeds, with the interval of a single run or the deviation of several."""
    scores = entry.scores(column, regime) if entry else []
    if not scores:
        return TableCell()
    title = "\n".join(f"{decimal(score.mean)} {run.signature}" for run, score in scores)
    if len(scores) == 1:
        (_, score), *_ = scores
        return TableCell(decimal(score.mean), interval(score.low, score.high), title)
    return _seeds_cell([score.mean for _, score in scores], title)


def alignment_cell(entry: Entry | None, name: str) -> TableCell:
    """Return a figure of alignment like `score_cell`."""
    runs = entry.runs if entry else ()
    values = [(run, value) for run in runs if (value := run.alignment(name)) is not None]
    title = "\n".join(f"{decimal(value)} {run.signature}" for run, value in values)
    if len(values) < 2:
        if not values:
            return TableCell()
        (run, value), *_ = values
        return TableCell(decimal(value), interval(run.alignment(f"{name}_low"), run.alignment(f"{name}_high")), title)
    return _seeds_cell([value for _, value in values], title)


def _seeds_cell(values: Sequence[float], title: str) -> TableCell:
    return TableCell(decimal(mean(values)), f"± {decimal(standard_deviation(values) or 0.0)}, n={len(values)}", title)


def full_cell(score: TaskScore | None, run: Run) -> TableCell:
    """Return a run's score with its deviation, its interval and the values of the fine-tuning seeds."""
    if score is None:
        return TableCell()
    told = decimal(score.mean) + ("" if score.deviation is None else f" ± {decimal(score.deviation)}")
    notes = [
        interval(score.low, score.high),
        f"({', '.join(map(decimal, score.seeds))})" if len(score.seeds) > 1 else "",
    ]
    return TableCell(told, " ".join(filter(None, notes)), run.signature)


def number_cell(value: float | None, run: Run | None = None) -> TableCell:
    """Return a number with one decimal, an empty cell for None."""
    return TableCell() if value is None else TableCell(decimal(value), "", run.signature if run else "")


def runs_cell(runs: Iterable[Run]) -> TableCell:
    """Return a cell with the evaluated runs, or with all runs if none is evaluated."""
    found = list(runs)
    counted = [run for run in found if run.evaluation] or found
    told = ", ".join(run.id for run in counted) or EMPTY
    return TableCell(told, "" if not found or counted[0].evaluation else "not evaluated", titles(counted))


# numbers


def titles(runs: Iterable[Run]) -> str:
    """Return the signatures of runs, one a line."""
    return "\n".join(run.signature for run in runs)


def interval(low: float | None, high: float | None, write: Callable[[float], str] | None = None) -> str:
    """Return an interval as text, empty if it has no bounds."""
    if low is None or high is None:
        return ""
    write = write or decimal
    return f"{write(low)}–{write(high)}" if low > 0 and write is decimal else f"{write(low)} to {write(high)}"


def decimal(value: float) -> str:
    """Return a number with one decimal, as in the paper, with a true minus sign and without -0.0."""
    text = f"{value:.1f}"
    return "0.0" if text == "-0.0" else text.replace("-", "−")


def signed(value: float) -> str:
    """Return a number with one decimal and its sign; 0.0 has none."""
    text = decimal(value)
    return text if text.startswith("−") or text == "0.0" else f"+{text}"


def yes(value: object) -> str:
    """Return yes or no, empty for anything but a bool."""
    return {True: "yes", False: "no"}.get(value, "") if isinstance(value, bool) else ""
