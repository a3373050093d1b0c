"""Rows of a labelled file, with the lines that they stand in.

A reader is a function `read(path, *, encoding="utf-8", limit=None) -> Iterator[Rows]`. Its columns keep the names that
the source set uses (`tokens`, `ner_tags`, `premise` …).
"""

from __future__ import annotations

from collections.abc import Iterable, Iterator
from dataclasses import dataclass
from itertools import islice
from pathlib import Path
from typing import TypeVar

import numpy as np
import pyarrow as pa

from derivlang.core.arrow import filled
from derivlang.core.errors import DataError, DerivlangError
from derivlang.formats.opening import WHOLE, Piece, empty_file

Item = TypeVar("Item")

ROWS_PER_TABLE = 4096  # about 100,000 words of labelled text: enough for numpy to be fast, and little memory


@dataclass(frozen=True, slots=True)
class Rows:
    """Consecutive rows of one file.

    table: R rows. lines: int64[R], the 1-based line at which each row begins, 0 in a format without lines. documents:
    int64[R], the document of each row, numbered from 0 in the file. word_lines: list<int32>[R], the line of each word,
    in formats with a line for each word. first_row: the number of rows of the file before these. names: what the rows
    are called in messages, "" for no name; () if they have only numbers. parts: the rows that were put together.
    """

    path: Path
    table: pa.Table
    lines: np.ndarray
    documents: np.ndarray
    word_lines: pa.ListArray | None = None
    first_row: int = 0
    names: tuple[str, ...] = ()
    parts: tuple[Rows, ...] = ()

    @classmethod
    def of_documents(
        cls,
        path: Path,
        table: pa.Table,
        lines: np.ndarray,
        first: int,
        word_lines: pa.ListArray | None = None,
        names: tuple[str, ...] = (),
    ) -> Rows:
        """Return rows each of which is a document. first: the number of the first document."""
        return cls(path, table, lines, np.arange(first, first + len(lines), dtype=np.int64), word_lines, first, names)

    def where(self, row: int, word: int | None = None) -> str:
        """Return `file:line (name)` of a row, or of a word of the row; both are counted from 0.

        Without a name it is `file:line`, in formats without lines `file (name)`, or `file: row N`, also counted from 0.
        """
        for part in self.parts:
            if row < part.table.num_rows:
                return part.where(row, word)
            row -= part.table.num_rows
        line = self.lines[row] if word is None or self.word_lines is None else self.word_lines[row][word].as_py()
        name = f" ({self.names[row]})" if self.names and self.names[row] else ""
        if line > 0 or name:
            return f"{self.path}:{line}{name}" if line > 0 else f"{self.path}{name}"
        return f"{self.path}: row {self.first_row + row}"

    def slice(self, begin: int, end: int) -> Rows:
        """Return the rows from `begin` to before `end`."""
        return Rows(
            self.path,
            self.table[begin:end],
            self.lines[begin:end],
            self.documents[begin:end],
            None if self.word_lines is None else self.word_lines[begin:end],
            self.first_row + begin,
            self.names[begin:end],
        )


def joined(parts: list[Rows]) -> Rows:
    """Return rows that follow each other, of one file or several. Columns may have different types."""
    if len(parts) == 1:
        return parts[0]
    table = pa.concat_tables([rows.table for rows in parts], promote_options="permissive").combine_chunks()
    lines, documents = np.concatenate([rows.lines for rows in parts]), np.concatenate([r.documents for r in parts])
    return Rows(parts[0].path, table, lines, documents, parts=tuple(parts))


def in_tables(
    items: Iterable[Item], limit: int | None, path: Path, kind: str, piece: Piece = WHOLE
) -> Iterator[tuple[int, list[Item]]]:
    """Yield the first `limit` items in lists of at most ROWS_PER_TABLE, each with the number of its first item.

    kind: what an item is ("row", "sentence"), for the message. piece: what is read of the file.
    Raises DataError empty-file if a whole file has no items. An error in reading the items is raised behind the items
    before it, which may have faults themselves.
    """
    rest, done = iter(items), 0
    error: DerivlangError | None = None
    while error is None:
        chunk: list[Item] = []
        try:
            chunk.extend(islice(rest, ROWS_PER_TABLE if limit is None else min(ROWS_PER_TABLE, limit - done)))
        except DerivlangError as raised:
            error = raised
        if not chunk:
            break
        yield done, chunk
        done += len(chunk)
    if error is not None:
        raise error
    if done == 0 and limit != 0 and piece == WHOLE:
        raise empty_file(path, kind)


def together(tables: Iterable[Rows]) -> Iterator[Rows]:
    """Yield the same rows, joining small neighbouring tables that have the same columns."""
    held: list[Rows] = []
    for rows in tables:
        n_rows = sum(before.table.num_rows for before in held) + rows.table.num_rows
        if held and (n_rows > ROWS_PER_TABLE or not held[0].table.schema.equals(rows.table.schema)):
            yield joined(held)
            held = []
        held.append(rows)
    if held:
        yield joined(held)


def as_strings(table: pa.Table, columns: Iterable[str]) -> list[list[str]]:
    """Return the values of each column as strings, for a format that has only strings. null becomes an empty string.

    Raises DataError text-value for a column without such strings (bytes).
    """
    strings: list[list[str]] = []
    for name in columns:
        try:
            values = filled(table.column(name).cast(pa.string()), "")
        except (pa.ArrowInvalid, pa.ArrowNotImplementedError):
            raise DataError(
                f"the values of {name}, of type {table.schema.field(name).type}, cannot be written as text",
                fix="leave out the column; a set itself is Parquet, and `undo -o FILE.parquet` writes Parquet",
                id="text-value",
            ) from None
        strings.append(values.to_pylist())
    return strings


def whole_runs(tables: Iterable[Rows], column: str) -> Iterator[Rows]:
    """Yield the same rows, cut so that adjacent rows with the same value of a column are in one table.

    tables with the values [1, 2], [2, 3]    ->    [1], [2, 2], [3]
    """
    held: list[Rows] = []  # rows with the same value, which the next table may continue
    for rows in tables:
        values = rows.table[column]
        begin = len(values) - 1
        if begin < 0:
            continue
        while begin > 0 and values[begin - 1].equals(values[begin]):
            begin -= 1
        goes_on = bool(held) and held[0].table[column][0].equals(values[0])
        if begin > 0:
            held.append(rows.slice(0, begin))
        if held and (begin > 0 or not goes_on):
            yield joined(held)
            held = []
        held.append(rows.slice(begin, len(values)))
    if held:
        yield joined(held)
