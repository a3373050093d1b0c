"""Comma-separated values (RFC 4180): quoted fields may hold commas, quotation marks and line ends.

    text,label
    "He said ""no"".",2        ->    text 'He said "no".', label '2'

All values are strings. Blank lines are skipped. Another delimiter than the comma is found where it is clear
(`header.py`). With a tab, this is TSV with quoting. A file is one task, as a line may stand within a field.
"""

from __future__ import annotations

import csv
import io
from collections.abc import Iterable, Iterator, Sequence
from dataclasses import replace
from pathlib import Path
from typing import BinaryIO

import numpy as np
import pyarrow as pa

from derivlang.core.arrow import string_array
from derivlang.core.errors import DataError, UsageError
from derivlang.formats.base import Format, Look, ReadOptions
from derivlang.formats.header import NAMES, check_header, find_delimiter, look_at_columns
from derivlang.formats.opening import empty_file, open_lines
from derivlang.formats.rows import Rows, as_strings, in_tables

LONGEST = 1 << 24  # characters of a field, so that an unclosed quotation mark does not load the whole file into memory


def read(
    path: Path,
    *,
    columns: Sequence[str] | None = None,
    header: bool = True,
    delimiter: str = ",",
    encoding: str = "utf-8",
    limit: int | None = None,
) -> Iterator[Rows]:
    """Yield one row per record, all values strings; a document is a row.

    columns: the names, in place of a header row; None: as in the header row. limit: rows at most.
    Raises DataError: csv (bad quoting), csv-columns (a record with too few or too many fields), tsv-header, empty-file,
    and as `open_lines`.
    """
    records = _records(path, encoding, delimiter)
    if header:
        first_row = next(records, None)
        if first_row is None:
            raise empty_file(path, "row")
        columns = columns or first_row[1]
        check_header(path, columns)
    assert columns is not None, "columns without a header row have names"
    some = _of_width(records, path, columns, delimiter)
    for done, chunk in in_tables(some, limit, path, "row below its header" if header else "row"):
        lines, fields = zip(*chunk, strict=True)
        table = pa.Table.from_arrays([string_array(column) for column in zip(*fields, strict=True)], list(columns))
        yield Rows.of_documents(path, table, np.array(lines, np.int64), done)


def _of_width(
    records: Iterable[tuple[int, list[str]]], path: Path, columns: Sequence[str], delimiter: str
) -> Iterator[tuple[int, list[str]]]:
    """Yield the records. Raises DataError csv-columns for one with too few or too many fields."""
    for line, fields in records:
        if len(fields) != len(columns):
            raise DataError(
                f"the record has {len(fields)} fields, expected {len(columns)} ({', '.join(columns)})",
                where=f"{path}:{line}",
                fix=f"quote fields that hold a {NAMES.get(delimiter, delimiter)}, a quotation mark or a line end; "
                "--delimiter names another separator of the fields",
                id="csv-columns",
            )
        yield line, fields


def write(
    tables: Iterable[pa.Table],
    out: BinaryIO,
    *,
    columns: Sequence[str],
    header: bool = True,
    delimiter: str = ",",
    newline: str = "\r\n",
) -> None:
    """Write the named columns. Fields are quoted if necessary, null is empty, lines end as in RFC 4180 by default."""
    text = io.TextIOWrapper(out, "utf-8", newline="")
    writer = csv.writer(text, delimiter=delimiter, lineterminator=newline)
    if header:
        writer.writerow(columns)
    for table in tables:
        writer.writerows(zip(*as_strings(table, columns), strict=True))
    text.flush()
    text.detach()


def look(paths: Sequence[Path], asked: ReadOptions, delimiter: str | None = None) -> Look:
    """Return the names of the columns and the first rows. delimiter: None for the one that the first file shows."""
    if delimiter is None and asked.quoting is not None:
        raise UsageError(
            "fields of a CSV file may be quoted anyway",
            where=(option := "--quoting" if asked.quoting else "--no-quoting"),
            fix=f"leave {option} out",
            id="unused-option",
        )

    def rows(path: Path, delimiter: str) -> Iterator[list[str]]:
        return (fields for _, fields in _records(path, asked.encoding, delimiter))

    delimiter_used = delimiter or find_delimiter(paths[0], rows, asked)
    preview = look_at_columns(paths, lambda path: rows(path, delimiter_used), asked, read, delimiter=delimiter_used)
    # The first line end holds for the file; one inside a quoted field is most likely of the same kind.
    _, line = next(iter(open_lines(paths[0], asked.encoding, ends=True)))
    newline = {} if line.endswith("\r\n") else {"newline": "\n"}
    return replace(preview, format="csv", layout={**preview.layout, **newline})


def _records(path: Path, encoding: str, delimiter: str) -> Iterator[tuple[int, list[str]]]:
    """Yield (line at which it begins, fields) for each record of a file."""
    csv.field_size_limit(LONGEST)  # a setting of the whole process; the module has no other
    lines = (line for _, line in open_lines(path, encoding, ends=True))
    reader, line = csv.reader(lines, delimiter=delimiter, strict=True), 1
    while True:
        try:
            fields = next(reader)
        except StopIteration:
            return
        except csv.Error as error:
            at = f" that begins in line {line}" if reader.line_num > line else ""
            raise DataError(
                f"the record{at} is not valid CSV: {error}",
                where=f"{path}:{max(reader.line_num, line)}",
                fix='quote a field as "…", and write a quotation mark in it twice',
                id="csv",
            ) from None
        if fields:
            yield line, fields
        line = reader.line_num + 1


FORMAT = Format(
    name="csv",
    suffixes=(".csv",),
    what="CSV file",
    read=read,
    write=write,
    look=look,
    tabular=True,
)
