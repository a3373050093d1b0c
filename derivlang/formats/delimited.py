"""Rows of tab-separated values, one a line: pairs of sentences, labelled sentences.

A row ends at the line end. A quotation mark is a character like others. With `quoting`, a field that is wrapped in
quotation marks and has all the marks inside doubled is unwrapped; other fields stay as they are. Where the user does
not say whether there is quoting, a line that looks so is refused.

    premise<TAB>hypothesis<TAB>label          premise     hypothesis    label
    Il dort.<TAB>Il veille.<TAB>2        ->   "Il dort."  "Il veille."  "2"
"""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Sequence
from itertools import chain, islice
from operator import ne
from pathlib import Path
from typing import Any, BinaryIO

import numpy as np
import pyarrow as pa

from derivlang.core.arrow import string_array
from derivlang.core.errors import DataError, UsageError
from derivlang.formats import csv
from derivlang.formats.base import Format, Look, ReadOptions
from derivlang.formats.header import LOOKED_AT, check_header, look_at_columns, looks_like_header, names_of
from derivlang.formats.lines import NEWLINE, columns_of, count_lines, cut_lines, join_columns, split_columns
from derivlang.formats.opening import WHOLE, Piece, empty_file, open_lines
from derivlang.formats.rows import Rows, as_strings, in_tables


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
    """Yield one row per line, all values strings; a document is a row.

    columns: names of the columns, for a file without header row. header: whether the first line is a header; `columns`
    then replace its names. None: it is a header that keeps its names if it holds two of `KNOWN_NAMES` (one, in a file
    of one column). quoting: None: there is none, and a line that looks quoted is an error. limit: greatest number of
    rows. piece: what to read.
    Raises DataError: tsv-columns (a line with too few or too many), tsv-quoting, tsv-header, empty-file, and as
    `open_lines`; UsageError: no-columns (neither header nor names).
    """
    lines = open_lines(path, encoding, piece=piece)
    first = next(open_lines(path, encoding) if piece.begin else lines, None)
    if first is None:
        raise empty_file(path, "row")
    names, is_header = _names(path, first[1], columns, header, quoting)
    numbered = lines if is_header or piece.begin else chain([first], lines)
    for done, chunk in in_tables(numbered, limit, path, "row below its header", piece):
        numbers, texts = zip(*chunk, strict=True)
        table = _table(path, names, numbers, texts, quoting)
        yield Rows.of_documents(path, table, np.array(numbers, np.int64), done)


def write(
    tables: Iterable[pa.Table],
    out: BinaryIO,
    *,
    columns: Sequence[str] = (),
    header: bool = False,
    quoting: bool = False,
) -> None:
    """Write the named columns, else all, tab-separated and without quotation marks; null is empty.

    Raises DataError tsv-value for a value with a tab or a line end.
    """
    if header:
        out.write(("\t".join(columns) + "\n").encode())
    for table in tables:
        names = columns or table.column_names
        lines = join_columns(names, as_strings(table, names))
        out.write("".join(f"{line}\n" for line in lines).encode())


def cut(path: Path, size: int, target: int, **options: Any) -> list[int]:
    """Return where the pieces of a file begin: at any line."""
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
    """Return the number of rows without the header row, and of lines; header, quoting: as for `read`."""
    rows, lines = count_lines(path, piece, encoding, lambda text: int(np.count_nonzero(text == NEWLINE)))
    if rows and not piece.begin:
        _, first = next(open_lines(path, encoding))
        rows -= looks_like_header(_fields(first, quoting)) if header is None else header
    return rows, lines


def _names(
    path: Path, line: str, columns: Sequence[str] | None, header: bool | None, quoting: bool | None
) -> tuple[list[str], bool]:
    """Return the names of the columns, and whether the first line is the header row."""
    fields = _fields(line, quoting)
    if header and columns is not None:
        return list(columns), True
    if header or (header is None and looks_like_header(fields)):
        check_header(path, fields)
        return fields, True
    if columns is None:
        return names_of(path, [fields], ReadOptions(header=header))
    return list(columns), False


def _table(
    path: Path, names: list[str], numbers: Sequence[int], lines: Sequence[str], quoting: bool | None
) -> pa.Table:
    fields = split_columns("\n".join(lines), len(names))
    if isinstance(fields, int):
        expected = f"{len(names)} ({', '.join(names)})"
        actual = columns_of(lines[fields])
        raise DataError(
            f"the line has {actual}, expected {expected}",
            where=f"{path}:{numbers[fields]}",
            fix="write one row per line with single tabs between columns, or name the columns that the file has"
            + ("; --quoting reads fields that are quoted as in CSV" if '"' in lines[fields] else ""),
            id="tsv-columns",
        )
    if quoting is None:
        _check_not_quoted(path, zip(numbers, lines, strict=True))
    if quoting:
        fields = [string_array(_unquoted(column.to_pylist())) for column in fields]
    return pa.Table.from_arrays(fields, names)


def _check_not_quoted(path: Path, lines: Iterable[tuple[int, str]], *, fewest: int = 3) -> None:
    """Raise DataError tsv-quoting for a line that looks quoted as in CSV.

    A field in quotation marks has doubled ones inside, or all fields of the line, at least `fewest`, are in such marks.
    """
    for number, line in lines:
        if line.count('"') < 4:
            continue
        fields = line.split("\t")
        quoted = [field for field in fields if _unquoted([field]) != [field]]
        if any('""' in field[1:-1] for field in quoted) or len(quoted) == len(fields) >= fewest:
            raise _looks_quoted(path, number, quoted[0])


def _check_columns_not_quoted(path: Path, lines: Sequence[tuple[int, str]]) -> None:
    """Raise DataError tsv-quoting for a column of texts that are all in quotation marks, but for a header.

    lines: the first ones. A few fields in such marks may be direct speech.
    """
    below = lines[1:] or lines
    for column in zip(*(line.split("\t") for _, line in below), strict=False):
        if any(" " in field for field in column) and all(map(ne, column, _unquoted(list(column)))):
            raise _looks_quoted(path, below[0][0], column[0])


def _looks_quoted(path: Path, number: int, field: str) -> DataError:
    return DataError(
        f"the line looks quoted as in CSV: {field[:80]}",
        where=f"{path}:{number}",
        fix="add --quoting if it is, or --no-quoting if its quotation marks are part of the text",
        id="tsv-quoting",
    )


def _fields(line: str, quoting: bool | None) -> list[str]:
    return _unquoted(line.split("\t")) if quoting else line.split("\t")


def _unquoted(fields: list[str]) -> list[str]:
    return [_unwrap(field) if field[:1] == '"' else field for field in fields]


def _unwrap(field: str) -> str:
    """Return `a "b" c` for `"a ""b"" c"`; a field that is not quoted as a whole stays as it is."""
    inner = field[1:-1]
    if len(field) < 2 or field[-1] != '"' or '"' in inner.replace('""', ""):
        return field
    return inner.replace('""', '"')


def _look(paths: Sequence[Path], asked: ReadOptions) -> Look:
    if asked.delimiter is not None:
        raise UsageError(
            "the fields of a .tsv file are separated by tabs",
            where="--delimiter",
            fix="leave --delimiter out, or call the file .csv",
            id="unused-option",
        )
    if asked.quoting:
        return csv.look(paths, asked, "\t")

    if asked.quoting is None:
        first = list(islice(open_lines(paths[0], asked.encoding), LOOKED_AT))
        _check_not_quoted(paths[0], first[:1], fewest=2)  # two fields below may be direct speech
        _check_columns_not_quoted(paths[0], first)

    def lines(path: Path) -> Iterator[list[str]]:
        return (line.split("\t") for _, line in open_lines(path, asked.encoding))

    return look_at_columns(paths, lines, asked, read, **({} if asked.quoting is None else {"quoting": False}))


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
