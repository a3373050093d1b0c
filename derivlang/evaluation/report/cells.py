"""How numbers are written, and tables of texts.

A cell is a text; what follows its line break is printed smaller: "79.2\\n78.1–80.3, n=3".
"""

from __future__ import annotations

import re
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass
from typing import Any, TypeAlias
from zlib import crc32

import pandas as pd

from derivlang.evaluation.columns import PERCENT, Column
from derivlang.evaluation.report.frame import DELTA, RANGE

EMPTY = "–"
MEAN = "mean"
Line: TypeAlias = tuple[Sequence[str], Mapping[str, str]]  # labels of a row, and its cells by column


@dataclass(frozen=True, eq=False)
class Table:
    """A table. shown: its cells as text, with named labels of rows. data: its numbers, one a row, for the CSV file.

    name: of its files. note, signature: plain text. A table with a signature has a LaTeX file.
    """

    name: str
    title: str
    shown: pd.DataFrame
    data: pd.DataFrame
    note: str = ""
    signature: str = ""

    @property
    def csv(self) -> str:
        """The numbers as CSV, without columns that are empty; lists of numbers are separated by spaces."""
        data = self.data.drop(columns="condition", errors="ignore").dropna(axis=1, how="all")
        data = data.map(lambda value: " ".join(map(str, value)) if isinstance(value, tuple) else value)
        return str(data.loc[:, (data != "").any()].to_csv(index=False, lineterminator="\n"))


def grid(lines: Iterable[Line], names: Sequence[str]) -> pd.DataFrame:
    """Return lines as a table; those with the same labels are one row. names: of the labels.

    Labels that are empty in all rows are left out.
    """
    rows: dict[tuple[str, ...], dict[str, str]] = {}
    for labels, cells in lines:
        rows.setdefault(tuple(labels), {}).update(cells)
    used = [place for place in range(len(names)) if any(labels[place] for labels in rows)] or [0]
    index = pd.MultiIndex.from_tuples([[labels[place] for place in used] for labels in rows])
    return pd.DataFrame(list(rows.values()), index.set_names([names[place] for place in used])).fillna(EMPTY)


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


def interval(row: Mapping[str, Any], column: Column) -> str:
    """Return the interval of a row of `compare`, "" without one; of a share it is cut at 0 and 100."""
    low, high = row["low"], row["high"]
    if row["kind"] == MEAN and row["regime"] not in (DELTA, RANGE) and column.unit == PERCENT:
        low, high = max(low, 0.0), min(high, 100.0)
    write = number if row["kind"] == MEAN else signed
    between = "–" if row["kind"] == MEAN and low >= 0 else " to "
    return between.join([write(low, column.unit), write(high, column.unit)]) if row["low"] == row["low"] else ""


def estimate_cell(row: Mapping[str, Any], column: Column, planned: int = 0) -> str:
    """Return the cell of a row of `compare`: the value; its interval, or the values of two seeds; and n.

    planned: the number of runs.
    """
    write = number if row["kind"] == MEAN else signed
    seeds = ", ".join(write(value, column.unit) for value in row["values"]) if row["n"] == 2 else ""
    why = row["why"] if row["n"] > 2 or not row["n"] else ""
    n = f"n={row['n']}" + (f" of {planned}" if row["n"] < planned else "")
    star = "*" if row["p_holm"] < 0.05 else ""
    told = ", ".join(filter(None, [interval(row, column) or seeds, why, n]))
    return f"{write(row['value'], column.unit)}{star}\n{told}"


def file_name(*texts: str) -> str:
    """Return the name of a file for texts: letters, digits and hyphens, with a hash of a text that has others."""
    return "-".join(map(_plain, filter(None, texts)))


def _plain(text: str) -> str:
    plain = re.sub(r"[^A-Za-z0-9_]+", "-", text).strip("-")
    return plain if plain == text else f"{plain[:40]}-{crc32(text.encode()):08x}".lstrip("-")


def listed(names: Iterable[str]) -> str:
    """Return names as text: a, b and c."""
    several = list(names)
    return " and ".join(filter(None, [", ".join(several[:-1]), *several[-1:]]))
