"""Tables of a report as data, and how numbers are written.

A cell is a text; what follows its line break is printed smaller: "79.2\\n78.1–80.3, n=3".
"""

from __future__ import annotations

import re
from collections.abc import Mapping
from dataclasses import dataclass, field
from typing import Any
from zlib import crc32

import pandas as pd

from derivlang.evaluation.columns import PERCENT, Column
from derivlang.evaluation.report.frame import DELTA, RANGE

EMPTY = "–"
MEAN = "mean"


@dataclass(frozen=True, eq=False)
class Table:
    """A table. shown: its cells as text, with named labels of rows. data: its numbers, one a row, for the CSV file.

    name: of its files. note, signature: plain text. latex: whether it has a LaTeX file. folded: on the page.
    """

    name: str
    title: str
    shown: pd.DataFrame
    data: pd.DataFrame
    note: str = ""
    signature: str = ""
    latex: bool = False
    folded: bool = False

    @property
    def parts(self) -> tuple[list[str], list[tuple[str, ...]], list[tuple[tuple[str, ...], list[str]]]]:
        """(names of the labels, names of each column with the name of its group, rows of (labels, cells))."""
        labels, columns = ([name if isinstance(name, tuple) else (name,) for name in axis] for axis in self.shown.axes)
        cells = zip(labels, self.shown.to_numpy(), strict=True)
        rows = [(tuple(map(str, names)), list(values)) for names, values in cells]
        return list(self.shown.index.names), columns, rows

    @property
    def csv(self) -> str:
        """The numbers as CSV, without columns that are empty; lists of numbers are separated by spaces."""
        data = self.data.dropna(axis=1, how="all")
        data = data.map(lambda value: " ".join(map(str, value)) if isinstance(value, tuple) else value)
        return str(data.loc[:, (data != "").any()].to_csv(index=False, lineterminator="\n"))


@dataclass(frozen=True, eq=False)
class Part:
    """A part of a report: lines of facts, then tables and figures in order."""

    id: str
    title: str
    facts: list[str] = field(default_factory=list)
    blocks: list[Any] = field(default_factory=list)


@dataclass(frozen=True, eq=False)
class Document:
    """A report, as the page and the Markdown show it."""

    title: str
    told: str
    parts: list[Part]


def number(value: float, unit: str = PERCENT) -> str:
    """Return a number with a true minus sign: one decimal in percent, two of other small numbers; never -0.0."""
    if value != value:
        return "NaN"
    if abs(value) >= 1e9:
        return f"{value:.1e}".replace("-", "−")
    text = f"{value:.{1 if unit == PERCENT or abs(value) >= 100 else 2}f}"
    return text.lstrip("-") if float(text) == 0 else text.replace("-", "−")


def signed(value: float, unit: str = PERCENT) -> str:
    """Return a number with its sign; 0 has no sign."""
    text = number(value, unit)
    return text if value != value or text.startswith("−") or float(text) == 0 else f"+{text}"


def p_value(value: float) -> str:
    """Return a p-value with three decimals."""
    return EMPTY if value != value else "< 0.001" if value < 0.001 else f"{value:.3f}"


def estimate_cell(row: Mapping[str, Any], column: Column, planned: int = 0, more: str = "") -> str:
    """Return the cell of a row of `compare`: the value; its interval, or the values of two seeds; and n.

    planned: the number of runs. more: what else is said.
    """
    score = row["kind"] == MEAN
    write = number if score else signed
    low, high = row["low"], row["high"]
    if low == low:
        if score and row["regime"] not in (DELTA, RANGE):
            low, high = column.within(low, high)
        ends = write(low, column.unit), write(high, column.unit)
        told = f"{ends[0]}–{ends[1]}" if score and low >= 0 else f"{ends[0]} to {ends[1]}"
    else:
        told = ", ".join(write(value, column.unit) for value in row["values"]) if row["n"] == 2 else ""
    why = row["why"] if row["n"] > 2 or not row["n"] else ""
    n = f"n={row['n']}" + (f" of {planned}" if row["n"] < planned else "")
    star = "*" if row["p_holm"] < 0.05 else ""
    return f"{write(row['value'], column.unit)}{star}\n" + ", ".join(filter(None, [told, why, n, more]))


def file_name(*texts: str) -> str:
    """Return the name of a file for texts: letters, digits and hyphens, with a hash of a text that has others."""
    return "-".join(map(_plain, filter(None, texts)))


def _plain(text: str) -> str:
    plain = re.sub(r"[^A-Za-z0-9_]+", "-", text).strip("-")
    return plain if plain == text else f"{plain[:40]}-{crc32(text.encode()):08x}".lstrip("-")


def listed(names: Any) -> str:
    """Return names as text: a, b and c."""
    several = list(names)
    return " and ".join(filter(None, [", ".join(several[:-1]), *several[-1:]]))
