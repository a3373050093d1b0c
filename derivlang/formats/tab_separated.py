"""Lines of tab-separated fields: split into columns, joined from columns."""

from __future__ import annotations

from collections.abc import Sequence

from derivlang.core.errors import DataError


def split_columns(lines: Sequence[str], n_columns: int, separator: str = "\t") -> list[list[str]] | int:
    """Return the columns of lines with `n_columns` fields each, or the index of the first line with more or fewer.

    "a<TAB>1", "b<TAB>2"    ->    ["a", "b"], ["1", "2"]
    """
    n_separators = n_columns - 1
    counts = [line.count(separator) for line in lines]
    if counts.count(n_separators) != len(lines):
        return next(i for i, n in enumerate(counts) if n != n_separators)
    if not lines:
        return [[] for _ in range(n_columns)]
    fields = separator.join(lines).split(separator)  # one split for all lines is three times as fast as one a line
    return [fields[i::n_columns] for i in range(n_columns)]


def columns_of(line: str, separator: str = "\t") -> str:
    """Return the number of columns of a line as a message says it: "1 column", "3 columns"."""
    n = line.count(separator) + 1
    return f"{n} column{'s' * (n > 1)}"


def join_columns(names: Sequence[str], columns: Sequence[list[str]]) -> list[str]:
    """Join columns into tab-separated lines. Raises DataError tsv-value, with the name of the column."""
    lines = list(map("\t".join, zip(*columns, strict=True)))
    n_tabs = len(columns) - 1
    for row, line in enumerate(lines):
        if line.count("\t") != n_tabs or "\n" in line or line.endswith("\r"):
            values = [(name, column[row]) for name, column in zip(names, columns, strict=True)]
            name, value = next(((n, v) for n, v in values if "\t" in v or "\n" in v), values[-1])
            raise DataError(
                f"the value {value[:80]!r} of column {name} holds a tab or a line end",
                fix="replace it by a space, or write another format",
                id="tsv-value",
            )
    return lines
