"""The report's tables as data: labels, columns in groups, rows of cells. `page.py` and `markdown.py` write them out.

A cell without a measured value is empty, never a guess. Rows of "paper" are its printed numbers.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable, Sequence
from dataclasses import dataclass
from statistics import mean
from typing import TypeAlias

from derivlang.evaluation.report.columns import REGIMES, Column
from derivlang.evaluation.report.published import Line
from derivlang.evaluation.report.runs import Run, Score
from derivlang.evaluation.report.settings import Entry, spread

EMPTY = "–"
HERE, PAPER = "here", "paper"
Regimes: TypeAlias = Sequence[tuple[str, str]]
# keys of `alignment`; what is trained on is reported last
ALIGNMENTS = (
    ("heldout", "held-out"), ("csls_heldout", "held-out, CSLS"), ("mass", "by token mass"), ("csls", "all, CSLS"),
    ("all", "all"),
)  # fmt: skip


@dataclass(frozen=True, slots=True)
class Cell:
    """text, a smaller note below it, and a title that is shown when one points at it."""

    text: str = EMPTY
    note: str = ""
    title: str = ""


@dataclass(frozen=True, slots=True)
class Row:
    labels: tuple[str, ...]
    cells: tuple[Cell, ...]
    paper: bool = False


@dataclass(frozen=True, slots=True)
class Table:
    """labels: the first columns' names. columns: (group, names of its columns). title, note: plain text."""

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
    """What was found, and what was printed."""
    cells = [score_cell(entry, column, regime) for column in found for regime, _ in regimes]
    yield Row((*labels, HERE), (*cells, runs_cell(entry.runs if entry else ())))
    if line is not None:
        printed = [column.of(line, regime) for column in found for regime, _ in regimes]
        yield Row((*labels, PAPER), (*map(number_cell, printed), Cell("")), paper=True)


def score_columns(found: Sequence[Column], regimes: Regimes = REGIMES) -> tuple[tuple[str, tuple[str, ...]], ...]:
    names = tuple(name for _, name in regimes)
    return (*((column.title, names) for column in found), ("", ("runs",)))


# cells


def score_cell(entry: Entry | None, column: Column, regime: str) -> Cell:
    scores = entry.scores(column, regime) if entry else []
    if not scores:
        return Cell()
    title = "\n".join(f"{decimal(score.mean)} {run.signature}" for run, score in scores)
    if len(scores) == 1:
        (_, score), *_ = scores
        return Cell(decimal(score.mean), interval(score.low, score.high), title)
    return _seeds_cell([score.mean for _, score in scores], title)


def alignment_cell(entry: Entry | None, name: str) -> Cell:
    runs = entry.runs if entry else ()
    values = [(run, value) for run in runs if (value := run.alignment(name)) is not None]
    title = "\n".join(f"{decimal(value)} {run.signature}" for run, value in values)
    if len(values) < 2:
        if not values:
            return Cell()
        (run, value), *_ = values
        return Cell(decimal(value), interval(run.alignment(f"{name}_low"), run.alignment(f"{name}_high")), title)
    return _seeds_cell([value for _, value in values], title)


def _seeds_cell(values: Sequence[float], title: str) -> Cell:
    return Cell(decimal(mean(values)), f"± {decimal(spread(values) or 0.0)}, n={len(values)}", title)


def full_cell(score: Score | None, run: Run) -> Cell:
    if score is None:
        return Cell()
    told = decimal(score.mean) + ("" if score.deviation is None else f" ± {decimal(score.deviation)}")
    notes = [
        interval(score.low, score.high),
        f"({', '.join(map(decimal, score.seeds))})" if len(score.seeds) > 1 else "",
    ]
    return Cell(told, " ".join(filter(None, notes)), run.signature)


def number_cell(value: float | None, run: Run | None = None) -> Cell:
    return Cell() if value is None else Cell(decimal(value), "", run.signature if run else "")


def runs_cell(runs: Iterable[Run]) -> Cell:
    """Those that have been evaluated: the others have no part in the row."""
    found = list(runs)
    counted = [run for run in found if run.evaluation] or found
    told = ", ".join(run.id for run in counted) or EMPTY
    return Cell(told, "" if not found or counted[0].evaluation else "not evaluated", titles(counted))


# numbers


def titles(runs: Iterable[Run]) -> str:
    return "\n".join(run.signature for run in runs)


def interval(low: float | None, high: float | None, write: Callable[[float], str] | None = None) -> str:
    if low is None or high is None:
        return ""
    write = write or decimal
    return f"{write(low)}–{write(high)}" if low > 0 and write is decimal else f"{write(low)} to {write(high)}"


def decimal(value: float) -> str:
    """One place, as the paper; a true minus; never -0.0."""
    text = f"{value:.1f}"
    return "0.0" if text == "-0.0" else text.replace("-", "−")


def signed(value: float) -> str:
    text = decimal(value)
    return text if text.startswith("−") or text == "0.0" else f"+{text}"


def yes(value: object) -> str:
    return {True: "yes", False: "no"}.get(value, "") if isinstance(value, bool) else ""
