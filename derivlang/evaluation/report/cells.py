"""The report's tables as data: labels, grouped columns, rows of cells. `page.py` and `markdown.py` write them.

A cell without a measured value is empty. Rows marked "paper" hold the printed numbers of the paper.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable, Sequence
from dataclasses import dataclass
from typing import TYPE_CHECKING, TypeAlias

from derivlang.evaluation.report.columns import REGIMES, Column
from derivlang.evaluation.report.estimates import mean_of
from derivlang.evaluation.report.published import Line
from derivlang.evaluation.report.runs import Run, TaskScore
from derivlang.evaluation.report.settings import Entry
from derivlang.evaluation.statistics import SEEDS, Estimate, estimate

if TYPE_CHECKING:
    from derivlang.evaluation.report.drawing import Figure

EMPTY = "–"
# What a table says of its intervals.
INTERVALS = (
    "In small type: the 95 % interval of the mean, which covers pre-training seeds and test documents (explained in "
    "the documentation: What an interval in the report says). It needs three seeds; of two, their values stand there."
)
HERE, PAPER = "here", "paper"
Regimes: TypeAlias = Sequence[tuple[str, str]]
# keys of `alignment`; figures that include training pairs come last
ALIGNMENTS = (
    ("heldout", "held-out"), ("csls_heldout", "held-out, CSLS"), ("mass", "by token mass"), ("csls", "all, CSLS"),
    ("all", "all"),
)  # fmt: skip


@dataclass(frozen=True, slots=True)
class TableCell:
    """A cell: text, a smaller note below it, and a title, which says more to who can point at it."""

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


@dataclass(frozen=True, slots=True)
class Part:
    """A part of a report. id: for links. shown: tables with the figures below them. folded: longer tables."""

    id: str
    title: str
    notes: Sequence[str]
    shown: Sequence[tuple[Table, Sequence[Figure]]]
    folded: Sequence[Table] = ()


@dataclass(frozen=True, slots=True)
class Document:
    """A report, as the page and the Markdown show it."""

    title: str
    told: str
    parts: Sequence[Part]


def with_rows(tables: Iterable[Table]) -> list[Table]:
    """Return the tables that have rows. A table without any is not shown."""
    return [table for table in tables if table.rows]


# rows


def pair(
    labels: tuple[str, str],
    entry: Entry | None,
    line: Line | None,
    found: Sequence[Column],
    regimes: Regimes = REGIMES,
    mark: tuple[str, ...] = (HERE,),
) -> Iterable[Row]:
    """Yield the row of our results and, if the paper has one of the numbers, its row. mark: last labels of ours."""
    cells = [score_cell(entry, column, regime) for column in found for regime, _ in regimes]
    yield Row((*labels, *mark), (*cells, runs_cell(entry.runs if entry else ())))
    if line is not None:
        printed = [column.of(line, regime) for column in found for regime, _ in regimes]
        if any(number is not None for number in printed):
            yield Row((*labels, PAPER), (*map(number_cell, printed), TableCell("")), paper=True)


def score_columns(found: Sequence[Column], regimes: Regimes = REGIMES) -> tuple[tuple[str, tuple[str, ...]], ...]:
    """Return the columns of scores: a group for each score, with one column a regime, and the runs."""
    names = tuple(name for _, name in regimes)
    return (*((column.title, names) for column in found), ("", ("runs",)))


# cells


def score_cell(entry: Entry | None, column: Column, regime: str) -> TableCell:
    """Return the mean over pre-training seeds with its interval, or with the values of fewer than three."""
    found = mean_of(entry, column, regime) if entry else None
    scores = entry.scores(column, regime) if entry else []
    return _seeds_cell(found, [(run, score.mean) for run, score in scores], within=not regime.endswith("delta"))


def alignment_cell(entry: Entry | None, name: str) -> TableCell:
    """Return a figure of alignment like `score_cell`; its interval covers pre-training seeds alone."""
    runs = entry.runs if entry else ()
    values = [(run, value) for run in runs if (value := run.alignment(name)) is not None]
    return _seeds_cell(estimate([value for _, value in values]) if values else None, values)


def _seeds_cell(found: Estimate | None, values: Sequence[tuple[Run, float]], *, within: bool = True) -> TableCell:
    """Return the cell of a mean. values: of each run. within: whether its values are between 0 and 100."""
    if found is None:
        return TableCell()
    return TableCell(decimal(found.mean), seeds_note(found, within=within),
                     "\n".join(f"{decimal(value)} {run.signature}" for run, value in values))  # fmt: skip


def seeds_note(found: Estimate, write: Callable[[float], str] | None = None, *, within: bool = False) -> str:
    """Return what stands below a mean over pre-training seeds: its interval, or the values of two seeds, and n.

    within: cut the interval at 0 and 100.
    """
    write = write or decimal
    if found.low is None or found.high is None:
        told = ", ".join(map(write, found.values)) if found.n == 2 else found.why if found.n >= SEEDS else ""
    else:
        ends = (max(0.0, found.low), min(100.0, found.high)) if within else (found.low, found.high)
        told = interval(*ends, write)
    return ", ".join(filter(None, [told, f"n={found.n}"]))


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


def p_cell(value: float | None) -> TableCell:
    """Return a p-value with three decimals, an empty cell for None."""
    return TableCell() if value is None else TableCell("< 0.001" if value < 0.001 else f"{value:.3f}")


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
    return f"{write(low)}–{write(high)}" if low >= 0 and write is decimal else f"{write(low)} to {write(high)}"


def decimal(value: float) -> str:
    """Return a number with one decimal, as in the paper, and a true minus sign; never -0.0. From 1e9 on: 1.0e+09."""
    text = f"{value:.1f}" if abs(value) < 1e9 else f"{value:.1e}"
    return "0.0" if text == "-0.0" else text.replace("-", "−")


def signed(value: float) -> str:
    """Return a number with one decimal and its sign; 0.0 has none."""
    text = decimal(value)
    return text if text.startswith("−") or text == "0.0" else f"+{text}"


def yes(value: object) -> str:
    """Return yes or no, empty for anything but a bool."""
    return {True: "yes", False: "no"}.get(value, "") if isinstance(value, bool) else ""
