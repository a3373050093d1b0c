"""What every reader of labelled files yields: some rows, and their lines in the file.

A reader is a function `read(path, *, encoding="utf-8", limit=None) -> Iterator[Rows]`. The columns of its tables have
the names that users of the source set know (`tokens`, `ner_tags`, `premise` …).
"""

from __future__ import annotations

from collections.abc import Iterable, Iterator
from dataclasses import dataclass
from itertools import islice
from pathlib import Path
from typing import TypeVar, cast

import numpy as np
import pyarrow as pa
import pyarrow.compute as pc

from derivlang.formats.opening import empty_file

Item = TypeVar("Item")

ROWS_PER_TABLE = 4096  # some 100,000 words of labelled text: large enough for numpy, small in memory


@dataclass(frozen=True, slots=True)
class Rows:
    """Consecutive rows of one file.

    table: R rows. lines: int64[R], the 1-based line at which a row starts (0 if the format has no lines). documents:
    int64[R], counted from 0 in the file. word_lines: list<int32> of R rows, the line of each word, if each word has a
    line of its own.
    """

    path: Path
    table: pa.Table
    lines: np.ndarray
    documents: np.ndarray
    word_lines: pa.ListArray | None = None

    @classmethod
    def of_documents(
        cls, path: Path, table: pa.Table, lines: np.ndarray, first: int, word_lines: pa.ListArray | None = None
    ) -> Rows:
        """Return rows that are a document each; first: the number of the first."""
        return cls(path, table, lines, np.arange(first, first + len(lines), dtype=np.int64), word_lines)

    def where(self, row: int, word: int | None = None) -> str:
        """Return `file:line` of a row, or of one of its words (0-based)."""
        if word is not None and self.word_lines is not None:
            return f"{self.path}:{self.word_lines[row][word].as_py()}"
        if self.lines[row] > 0:
            return f"{self.path}:{self.lines[row]}"
        return f"{self.path}: row {row}"

    def slice(self, begin: int, end: int) -> Rows:
        lines = None if self.word_lines is None else self.word_lines[begin:end]
        return Rows(self.path, self.table[begin:end], self.lines[begin:end], self.documents[begin:end], lines)

    def then(self, more: Rows) -> Rows:
        """Return these rows with the next rows of the same file."""
        word_lines = None
        if self.word_lines is not None and more.word_lines is not None:
            word_lines = pa.concat_arrays([self.word_lines, more.word_lines])
        table = pa.concat_tables([self.table, more.table], promote_options="permissive")
        lines, documents = np.append(self.lines, more.lines), np.append(self.documents, more.documents)
        return Rows(self.path, table, lines, documents, word_lines)


def in_tables(items: Iterable[Item], limit: int | None, path: Path, kind: str) -> Iterator[tuple[int, list[Item]]]:
    """Yield (number of the first, items) for tables of at most ROWS_PER_TABLE items, and `limit` items in all.

    Raises DataError empty-file, with the kind of item that the file does not hold, if there are none.
    """
    rest, done = iter(items), 0
    while chunk := list(islice(rest, ROWS_PER_TABLE if limit is None else min(ROWS_PER_TABLE, limit - done))):
        yield done, chunk
        done += len(chunk)
    if done == 0 and limit != 0:
        raise empty_file(path, kind)


def as_strings(table: pa.Table, columns: Iterable[str]) -> list[list[str]]:
    """Return the values of columns as strings, for a format that has no other type; null is empty."""
    strings = (pc.fill_null(table.column(name).cast(pa.string()), "") for name in columns)
    return [cast("list[str]", values.to_pylist()) for values in strings]


def whole_runs(tables: Iterable[Rows], column: str) -> Iterator[Rows]:
    """Yield the same rows in other tables: neighbours with the same value of a column are always in one table.

    Tables with the values [1, 2], [2, 3]    ->    [1], [2, 2], [3]
    """
    held: Rows | None = None
    for rows in tables:
        held = rows if held is None else held.then(rows)
        values = held.table[column]
        begin = len(values) - 1
        while begin > 0 and values[begin - 1].equals(values[begin]):
            begin -= 1
        if begin > 0:
            yield held.slice(0, begin)
            held = held.slice(begin, len(values))
    if held is not None:
        yield held
