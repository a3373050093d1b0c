"""Rows of tab-separated values, one a line: pairs of sentences, labelled sentences.

A row never runs over a line end. A quotation mark is a plain character, unless `quoting` is on: then a
field that is wrapped in quotation marks and has all its own ones doubled is unwrapped, each by itself.

    premise<TAB>hypothesis<TAB>label          premise     hypothesis    label
    Il dort.<TAB>Il veille.<TAB>2        ->   "Il dort."  "Il veille."  "2"
"""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Sequence
from itertools import islice
from pathlib import Path
from typing import BinaryIO

import numpy as np
import pyarrow as pa
import pyarrow.compute as pc

from derivlang.core.errors import DataError, UsageError
from derivlang.formats.opening import empty_file, open_lines
from derivlang.formats.rows import ROWS_PER_TABLE, Rows

KNOWN_NAMES = (
    {"premise", "hypothesis", "sentence1", "sentence2", "sentence", "text", "tokens", "question", "context"}
    | {"label", "gold_label"}
    | {"id", "index", "pairID", "promptID", "genre", "language"}
)


def read(
    path: Path | str,
    *,
    columns: Sequence[str] | None = None,
    header: bool | None = None,
    quoting: bool = False,
    encoding: str = "utf-8",
    limit: int | None = None,
) -> Iterator[Rows]:
    """One row a line, all values strings; a document is a row.

    columns: the names where the file has no header row; a header row's own names win. header: is the first
    line a header; None = it is one if it holds two of `KNOWN_NAMES` (one, in a file of one column).
    limit: at most that many rows.
    Raises DataError: tsv-columns (a line with too few or too many), tsv-header, empty-file, and those of
    `open_lines`; UsageError: no-columns (neither header nor names).
    """
    path = Path(path)
    lines = open_lines(path, encoding)
    first = next(lines, None)
    if first is None:
        raise empty_file(path, "row")
    names, is_header = _names(path, first[1], columns, header, quoting)
    numbered = lines if is_header else _chain(first, lines)
    done = 0
    while chunk := list(islice(numbered, _room(done, limit))):
        numbers, texts = zip(*chunk, strict=True)
        table = _table(path, names, numbers, texts, quoting)
        documents = np.arange(done, done + len(chunk), dtype=np.int64)
        yield Rows(path, table, np.array(numbers, np.int64), documents)
        done += len(chunk)
    if done == 0 and limit != 0:
        raise empty_file(path, "row below its header")


def write(tables: Iterable[pa.Table], out: BinaryIO, *, columns: Sequence[str]) -> None:
    """The named columns, tab-separated, without a header row and without quoting; null is empty.

    Raises DataError tsv-value: a value with a tab or a line end cannot be written.
    """
    for table in tables:
        values = [pc.fill_null(table.column(name).cast(pa.string()), "").to_pylist() for name in columns]
        lines = join_columns(columns, values)
        out.write("".join(f"{line}\n" for line in lines).encode())


def count(path: Path | str, encoding: str = "utf-8", *, header: bool | None = None, quoting: bool = False) -> int:
    """The number of rows, the header row left out; header, quoting: as for `read`."""
    lines = open_lines(path, encoding)
    first = next(lines, None)
    if first is None:
        return 0
    is_header = _looks_like_header(_fields(first[1], quoting)) if header is None else header
    return sum(1 for _ in lines) + (not is_header)


def split_columns(lines: Sequence[str], n_columns: int, separator: str = "\t") -> list[list[str]] | int:
    """The columns of lines with `n_columns` fields each; if one has more or fewer, the first such index."""
    n_separators = n_columns - 1
    counts = [line.count(separator) for line in lines]
    if counts.count(n_separators) != len(lines):
        return next(i for i, n in enumerate(counts) if n != n_separators)
    if not lines:
        return [[] for _ in range(n_columns)]
    fields = separator.join(lines).split(separator)  # one split for all lines, three times as fast as theirs
    return [fields[i::n_columns] for i in range(n_columns)]


def join_columns(names: Sequence[str], columns: Sequence[list[str]]) -> list[str]:
    """The rows of some columns as tab-separated lines. Raises DataError tsv-value, which names the column."""
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


def _names(
    path: Path, line: str, columns: Sequence[str] | None, header: bool | None, quoting: bool
) -> tuple[list[str], bool]:
    """The names of the columns, and whether the first line is the header row."""
    fields = _fields(line, quoting)
    if header or (header is None and _looks_like_header(fields)):
        if len(set(fields)) < len(fields) or "" in fields:
            raise DataError(
                f"the header row {fields} has an empty name or one twice",
                where=f"{path}:1",
                fix="give each column a name of its own",
                id="tsv-header",
            )
        return fields, True
    if columns is None:
        raise UsageError(
            f"the file has {len(fields)} columns without names: its first line is no header row",
            where=str(path),
            fix="name the columns, e.g. --columns premise,hypothesis,label, or say that it has a header row",
            id="no-columns",
        )
    return list(columns), False


def _looks_like_header(fields: list[str]) -> bool:
    return len(KNOWN_NAMES.intersection(fields)) >= min(2, len(fields))


def _table(path: Path, names: list[str], numbers: Sequence[int], lines: Sequence[str], quoting: bool) -> pa.Table:
    fields = split_columns(lines, len(names))
    if isinstance(fields, int):
        found = lines[fields].count("\t") + 1
        raise DataError(
            f"the row has {found} column{'s' * (found > 1)}, expected {len(names)} ({', '.join(names)})",
            where=f"{path}:{numbers[fields]}",
            fix="separate the columns with single tabs, a row a line, or name the columns that there are",
            id="tsv-columns",
        )
    if quoting:
        fields = [_unquoted(column) for column in fields]
    return pa.table({name: pa.array(column, pa.string()) for name, column in zip(names, fields, strict=True)})


def _fields(line: str, quoting: bool) -> list[str]:
    return _unquoted(line.split("\t")) if quoting else line.split("\t")


def _unquoted(fields: list[str]) -> list[str]:
    return [_unwrap(field) if field[:1] == '"' else field for field in fields]


def _unwrap(field: str) -> str:
    inner = field[1:-1]
    if len(field) < 2 or field[-1] != '"' or '"' in inner.replace('""', ""):
        return field
    return inner.replace('""', '"')


def _room(done: int, limit: int | None) -> int:
    return ROWS_PER_TABLE if limit is None else min(ROWS_PER_TABLE, limit - done)


def _chain(first: tuple[int, str], rest: Iterator[tuple[int, str]]) -> Iterator[tuple[int, str]]:
    yield first
    yield from rest
