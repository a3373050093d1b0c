"""Comma-separated values (RFC 4180): quoted fields may hold commas, quotation marks and line ends.

    text,label
    "He said ""no"".",2        ->    text 'He said "no".', label '2'

All values are strings. Blank lines are skipped. Another delimiter than the comma is found where it is clear
(`delimiter.py`). With a tab, this is TSV with quoting.
"""

from __future__ import annotations

import csv
import io
from collections.abc import Iterable, Iterator, Mapping, Sequence
from dataclasses import replace
from itertools import islice
from pathlib import Path
from typing import Any, BinaryIO

import numpy as np
import pyarrow as pa

from derivlang.core.arrays import Int64
from derivlang.core.arrow import string_array
from derivlang.core.errors import DataError, UsageError
from derivlang.core.schema import Schema
from derivlang.formats.base import Format, Look, ReadOptions
from derivlang.formats.csv_arrow import table_of
from derivlang.formats.csv_lines import RecordStarts, cut_records
from derivlang.formats.delimiter import NAMES, find_delimiter
from derivlang.formats.file_piece import WHOLE, Piece
from derivlang.formats.header import check_header, look_at_columns
from derivlang.formats.line_cuts import count_lines
from derivlang.formats.opening import empty_file, open_lines, whole_lines
from derivlang.formats.places import located
from derivlang.formats.rows import ROWS_PER_TABLE, Rows, as_strings
from derivlang.formats.stretches import Stretch, stretches

LONGEST = 1 << 24  # characters of a field, so that an unclosed quotation mark does not load the whole file into memory


def read(
    path: Path | str,
    *,
    columns: Sequence[str] | None = None,
    header: bool = True,
    delimiter: str = ",",
    encoding: str = "utf-8",
    limit: int | None = None,
    piece: Piece = WHOLE,
) -> Iterator[Rows]:
    """Yield one row per record, all values strings; a document is a row.

    columns: the names, in place of a header row; None: as in the header row. limit: rows at most. piece: what to read.
    Raises DataError: csv (bad quoting), csv-columns (a record with too few or too many fields), tsv-header, empty-file,
    and as `open_lines`.
    """
    path = located(path)
    head = WHOLE if piece.begin else piece  # nothing behind a piece is read, not even for its header
    first_row = next(_records(path, encoding, delimiter, head), None) if header else None
    if header and first_row is None:
        raise empty_file(path, "row")
    if columns is None:
        assert first_row is not None, "columns without a header row have names"
        columns = first_row[1]
        check_header(path, columns)
    done = 0
    for stretch in stretches(
        whole_lines(path, encoding, piece),
        piece.line + 1,
        RecordStarts(delimiter),
        header=header and not piece.begin,
        rows=ROWS_PER_TABLE,
        limit=limit,
    ):
        for lines, table in _tables(stretch, path, columns, delimiter, None if limit is None else limit - done):
            yield Rows.of_documents(path, table, lines, done)
            done += table.num_rows
    if not done and limit != 0 and piece == WHOLE:
        raise empty_file(path, "row below its header" if header else "row")


def _tables(
    stretch: Stretch, path: Path, columns: Sequence[str], delimiter: str, limit: int | None
) -> Iterator[tuple[Int64, pa.Table]]:
    """Yield (lines, table) of the records of a stretch. limit: of them at most. Raises DataError csv, csv-columns."""
    table = table_of(stretch, columns, delimiter)
    if table is not None:
        yield stretch.lines, table
        return
    records = _of_width(
        islice(_fields(stretch.texts(), path, stretch.line, delimiter), limit), path, columns, delimiter
    )
    while chunk := list(islice(records, ROWS_PER_TABLE)):
        values = zip(*(fields for _, fields in chunk), strict=True)
        table = pa.Table.from_arrays([string_array(column) for column in values], list(columns))
        yield np.array([line for line, _ in chunk], np.int64), table


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


def cut(path: Path, size: int, target: int, *, delimiter: str = ",", **options: Any) -> list[int]:
    """Return where the pieces of a file begin: at records."""
    return cut_records(path, size, target, delimiter)


def count(
    path: Path | str,
    encoding: str = "utf-8",
    *,
    columns: Sequence[str] = (),
    header: bool = True,
    delimiter: str = ",",
    piece: Piece = WHOLE,
) -> tuple[int, int]:
    """Return the number of records without the header row, and of lines."""
    starts = RecordStarts(delimiter).starts
    records, lines = count_lines(located(path), piece, encoding, lambda text: len(starts(text)))
    return max(0, records - (header and not piece.begin)), lines


def look(paths: Sequence[Path], asked: ReadOptions, delimiter: str | None = None) -> Look:
    """Return the names of the columns and the first rows. delimiter: None for the one that the first file shows."""
    if delimiter is None and asked.quoting:
        raise UsageError(
            "fields of a CSV file may be quoted anyway",
            where="--quoting",
            fix="leave --quoting out",
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


def _records(path: Path, encoding: str, delimiter: str, piece: Piece = WHOLE) -> Iterator[tuple[int, list[str]]]:
    """Yield (line at which it begins, fields) for each record of a file."""
    return _fields((line for _, line in open_lines(path, encoding, ends=True, piece=piece)), path, 1, delimiter)


def _fields(lines: Iterator[str], path: Path, line: int, delimiter: str) -> Iterator[tuple[int, list[str]]]:
    """Yield (line at which it begins, fields) for each record. line: the number of the first one."""
    csv.field_size_limit(LONGEST)  # a setting of the whole process; the module has no other
    reader, before = csv.reader(lines, delimiter=delimiter, strict=True), line - 1
    while True:
        try:
            fields = next(reader)
        except StopIteration:
            return
        except csv.Error as error:
            last = before + reader.line_num
            at = f" that begins in line {line}" if last > line else ""
            raise DataError(
                f"the record{at} is not valid CSV: {error}",
                where=f"{path}:{max(last, line)}",
                fix='quote a field as "…", and write a quotation mark in it twice',
                id="csv",
            ) from None
        if fields:
            yield line, fields
        line = before + reader.line_num + 1


def _write(tables: Iterable[pa.Table], out: BinaryIO, schema: Schema, layout: Mapping[str, Any]) -> None:
    write(tables, out, **layout)


FORMAT = Format(
    name="csv",
    suffixes=(".csv",),
    what="CSV file",
    read=read,
    write=_write,
    cut=cut,
    count=count,
    look=look,
    tabular=True,
)
