r"""Rows of separated values: TSV, whose rows are lines, and CSV (RFC 4180), whose quoted fields may hold line ends.

    premise<TAB>hypothesis<TAB>label          premise     hypothesis    label
    Il dort.<TAB>Il veille.<TAB>2        ->   "Il dort."  "Il veille."  "2"

    text,label
    "He said ""no"".",2                  ->   text 'He said "no".', label '2'

All values are strings. In TSV, a quotation mark is a character like others. With `quoting`, a field that is wrapped in
quotation marks and has all the marks inside doubled is unwrapped; other fields stay as they are. Where the user does
not say whether there is quoting, a line that looks so is refused. In CSV, blank lines are skipped, and another
delimiter than the comma is found where it is clear (`header.py`). With a tab, it is TSV with quoting. A CSV file is one
task, as a line may stand within a field.
"""

from __future__ import annotations

import csv
import io
from collections.abc import Callable, Iterable, Iterator, Sequence
from dataclasses import replace
from functools import partial
from itertools import chain, islice
from pathlib import Path
from typing import Any, BinaryIO, TextIO, TypeAlias

import numpy as np
import pyarrow as pa

from derivlang.core.arrow import string_array
from derivlang.core.errors import DataError, UsageError
from derivlang.formats.base import Format, Look, ReadOptions
from derivlang.formats.header import LOOKED_AT, NAMES, find_delimiter, look_at_columns, looks_like_header, names_of
from derivlang.formats.lines import columns_of, count_lines, cut_lines, join_columns, n_lines_of
from derivlang.formats.opening import WHOLE, Piece, empty_file, open_lines
from derivlang.formats.rows import Rows, as_strings, in_tables

LONGEST = 1 << 24  # characters of a field, so that an unclosed quotation mark does not load the whole file into memory
Record: TypeAlias = tuple[int, list[str]]  # the line at which a row begins, and its fields


def read(
    path: Path,
    *,
    columns: Sequence[str] | None = None,
    header: bool | None = None,
    quoting: bool | None = None,
    encoding: str = "utf-8",
    limit: int | None = None,
    piece: Piece = WHOLE,
) -> Iterator[Rows]:
    """Yield one row per line of a TSV file, all values strings; a document is a row.

    columns: names of the columns, for a file without header row. header: whether the first line is a header; `columns`
    then replace its names. None: it is a header that keeps its names if it holds two of `KNOWN_NAMES` (one, in a file
    of one column). quoting: None: there is none, and a line that looks quoted is an error. limit: greatest number of
    rows. piece: what to read.
    Raises DataError: tsv-columns (a line with too few or too many), tsv-quoting, tsv-header, empty-file, and as
    `open_lines`; UsageError: no-columns (neither header nor names).
    """
    return _rows(path, partial(_lines, path, encoding, quoting), columns, header, limit, piece)


def read_csv(
    path: Path,
    *,
    columns: Sequence[str] | None = None,
    header: bool = True,
    delimiter: str = ",",
    encoding: str = "utf-8",
    limit: int | None = None,
) -> Iterator[Rows]:
    """Yield one row per record of a CSV file, all values strings; a document is a row.

    columns: the names, in place of a header row; None: as in the header row. limit: greatest number of rows.
    Raises DataError: csv (bad quoting), csv-columns (a record with too few or too many fields), tsv-header, empty-file,
    and as `open_lines`.
    """
    return _rows(path, lambda piece: _records(path, encoding, delimiter), columns, header, limit, delimiter=delimiter)


def _rows(
    path: Path,
    records_of: Callable[[Piece], Iterator[Record]],
    columns: Sequence[str] | None,
    header: bool | None,
    limit: int | None,
    piece: Piece = WHOLE,
    delimiter: str | None = None,
) -> Iterator[Rows]:
    """Yield the rows of a piece. records_of: returns its records. delimiter: of a CSV file; None: a TSV file."""
    records = records_of(piece)
    first = next(records_of(WHOLE) if piece.begin else records, None)
    if first is None:
        raise empty_file(path, "row")
    if columns is None or (header is None and looks_like_header(first[1])):
        columns, header = names_of(path, [first[1]], ReadOptions(header=header))
    kind = "row below its header" if header else "row"
    rest = _of_width(path, records if header or piece.begin else chain([first], records), columns, delimiter)
    for done, chunk in in_tables(rest, limit, path, kind, piece):
        lines, rows = zip(*chunk, strict=True)
        table = pa.Table.from_arrays([string_array(column) for column in zip(*rows, strict=True)], list(columns))
        yield Rows.of_documents(path, table, np.array(lines, np.int64), done)


def _of_width(path: Path, records: Iterable[Record], columns: Sequence[str], delimiter: str | None) -> Iterator[Record]:
    """Yield the records. Raises DataError tsv-columns or csv-columns for one with too few or too many fields."""
    for line, fields in records:
        if len(fields) == len(columns):
            yield line, fields
            continue
        expected, where = f"expected {len(columns)} ({', '.join(columns)})", f"{path}:{line}"
        if delimiter is None:
            text = "\t".join(fields)
            raise DataError(
                f"the line has {columns_of(text)}, {expected}",
                where=where,
                fix="write one row per line with single tabs between columns, or name the columns that the file has"
                + ("; --quoting reads fields that are quoted as in CSV" if '"' in text else ""),
                id="tsv-columns",
            )
        raise DataError(
            f"the record has {len(fields)} fields, {expected}",
            where=where,
            fix=f"quote fields that hold a {NAMES.get(delimiter, delimiter)}, a quotation mark or a line end; "
            "--delimiter names another separator of the fields",
            id="csv-columns",
        )


def _lines(path: Path, encoding: str, quoting: bool | None, piece: Piece = WHOLE) -> Iterator[Record]:
    """Yield the lines of a TSV file. Raises DataError tsv-quoting if it is open whether one is quoted."""
    for number, line in open_lines(path, encoding, piece=piece):
        fields = line.split("\t")
        if '"' in line and quoting is None:
            _check_not_quoted(path, number, fields)
        yield number, [*map(_unquoted, fields)] if quoting and '"' in line else fields


def _records(path: Path, encoding: str, delimiter: str) -> Iterator[Record]:
    """Yield the records of a CSV file. Raises DataError csv."""
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


def _unquoted(field: str) -> str:
    """Return `a "b" c` for `"a ""b"" c"`; a field that is not quoted as a whole stays as it is."""
    inner = field[1:-1]
    if len(field) < 2 or field[0] != '"' or field[-1] != '"' or '"' in inner.replace('""', ""):
        return field
    return inner.replace('""', '"')


def _check_not_quoted(path: Path, line: int, fields: Sequence[str], *, fewest: int = 3) -> None:
    """Raise DataError tsv-quoting for a line that looks quoted as in CSV.

    A field in quotation marks has doubled ones inside, or all fields of the line, at least `fewest`, are in such marks.
    """
    quoted = [field for field in fields if _unquoted(field) != field]
    if any('""' in field[1:-1] for field in quoted) or len(quoted) == len(fields) >= fewest:
        raise _looks_quoted(path, line, quoted[0])


def _looks_quoted(path: Path, line: int, field: str) -> DataError:
    return DataError(
        f"the line looks quoted as in CSV: {field[:80]}",
        where=f"{path}:{line}",
        fix="add --quoting if it is, or --no-quoting if its quotation marks are part of the text",
        id="tsv-quoting",
    )


def write(
    tables: Iterable[pa.Table], out: BinaryIO, *, columns: Sequence[str] = (), header: bool = False, **layout: Any
) -> None:
    """Write the named columns, else all, tab-separated and without quotation marks; null is empty.

    layout: how the file was read. Raises DataError tsv-value for a value with a tab or a line end.
    """
    if header:
        out.write(("\t".join(columns) + "\n").encode())
    for table in tables:
        names = columns or table.column_names
        lines = join_columns(names, as_strings(table, names))
        out.write("".join(f"{line}\n" for line in lines).encode())


class _Lines:
    """Writes rows of `csv`, with other line ends than \\r\\n: with these it quotes all fields that hold a line end."""

    def __init__(self, out: TextIO, newline: str):
        self.out, self.newline = out, newline

    def write(self, row: str) -> int:
        """Write a row."""
        return self.out.write(row.removesuffix("\r\n") + self.newline)


def write_csv(
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
    writer = csv.writer(_Lines(text, newline), delimiter=delimiter)
    if header:
        writer.writerow(columns)
    for table in tables:
        writer.writerows(zip(*as_strings(table, columns), strict=True))
    text.detach()


def cut(path: Path, size: int, target: int, **options: Any) -> list[int]:
    """Return where the pieces of a TSV file begin: at any line."""
    return cut_lines(path, size, target, lambda before, line: True)


def count(
    path: Path,
    encoding: str = "utf-8",
    *,
    columns: Sequence[str] | None = None,
    header: bool | None = None,
    quoting: bool | None = None,
    piece: Piece = WHOLE,
) -> tuple[int, int]:
    """Return the number of rows of a TSV file without the header row, and of lines; header, quoting: as for `read`."""
    rows, lines = count_lines(path, piece, encoding, n_lines_of)
    if rows and not piece.begin:
        rows -= looks_like_header(next(_lines(path, encoding, quoting))[1]) if header is None else header
    return rows, lines


def _look(paths: Sequence[Path], asked: ReadOptions) -> Look:
    if asked.delimiter is not None:
        raise UsageError(
            "the fields of a .tsv file are separated by tabs",
            where="--delimiter",
            fix="leave --delimiter out, or call the file .csv",
            id="unused-option",
        )
    if asked.quoting:
        return _look_at_csv(paths, replace(asked, delimiter="\t"))
    if asked.quoting is None:
        first = list(islice(_lines(paths[0], asked.encoding, None), LOOKED_AT))
        for line, row in first[:1]:
            _check_not_quoted(paths[0], line, row, fewest=2)  # two fields below may be direct speech
        below = first[1:] or first
        for column in zip(*(row for _, row in below), strict=False):
            # a few fields in such marks may be direct speech
            if any(" " in field for field in column) and all(_unquoted(field) != field for field in column):
                raise _looks_quoted(paths[0], below[0][0], column[0])

    def fields(path: Path) -> Iterator[list[str]]:
        return (fields for _, fields in _lines(path, asked.encoding, asked.quoting))

    return look_at_columns(paths, fields, asked, read, **({} if asked.quoting is None else {"quoting": False}))


def _look_at_csv(paths: Sequence[Path], asked: ReadOptions) -> Look:
    def fields(delimiter: str, path: Path) -> Iterator[list[str]]:
        return (fields for _, fields in _records(path, asked.encoding, delimiter))

    delimiter = find_delimiter(paths[0], fields, asked)
    look = look_at_columns(paths, partial(fields, delimiter), asked, read_csv, delimiter=delimiter)
    # The first line end holds for the file; one inside a quoted field is most likely of the same kind.
    _, line = next(open_lines(paths[0], asked.encoding, ends=True))
    newline = {} if line.endswith("\r\n") else {"newline": "\n"}
    return replace(look, format="csv", layout={**look.layout, **newline})


def _look_of_csv(paths: Sequence[Path], asked: ReadOptions) -> Look:
    if asked.quoting is not None:
        raise UsageError(
            "fields of a CSV file may be quoted anyway",
            where=(option := "--quoting" if asked.quoting else "--no-quoting"),
            fix=f"leave {option} out",
            id="unused-option",
        )
    return _look_at_csv(paths, asked)


FORMAT = Format(
    name="delimited",
    suffixes=(".tsv",),
    what="file of tab-separated values",
    read=read,
    write=write,
    cut=cut,
    count=count,
    look=_look,
    tabular=True,
)
CSV = Format(
    name="csv",
    suffixes=(".csv",),
    what="CSV file",
    read=read_csv,
    write=write_csv,
    look=_look_of_csv,
    tabular=True,
)
