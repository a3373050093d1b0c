"""JSON Lines: an object per line, all with the same keys.

The first `ROWS_PER_TABLE` rows fix the types of the columns; every later row must fit them.

    {"tokens":["le","chat"],"label":1}    ->   columns tokens list<string>, label int64
"""

from __future__ import annotations

import json
from bisect import bisect_left
from collections.abc import Iterable, Iterator, Mapping, Sequence
from functools import partial
from pathlib import Path
from typing import Any, BinaryIO, TypeAlias

import numpy as np
import pyarrow as pa

from derivlang.core.arrays import Int64
from derivlang.core.arrow import array_of
from derivlang.core.errors import DataError
from derivlang.core.schema import Schema
from derivlang.formats.base import Format
from derivlang.formats.file_piece import WHOLE, Piece
from derivlang.formats.json_arrow import LineStarts, is_blank, table_of
from derivlang.formats.json_text import load_json
from derivlang.formats.line_cuts import count_full, count_lines, cut_lines, has_words
from derivlang.formats.opening import empty_file, whole_lines
from derivlang.formats.places import located
from derivlang.formats.rows import ROWS_PER_TABLE, Rows, in_tables
from derivlang.formats.stretches import Stretch, stretches

Row: TypeAlias = dict[str, Any]


def read(
    path: Path | str, *, encoding: str = "utf-8", limit: int | None = None, piece: Piece = WHOLE
) -> Iterator[Rows]:
    """Yield one row per line, without blank lines; the columns are the keys of the first row. A document is a row.

    limit: greatest number of rows. piece: what to read; the first rows of the file fix its types, too.
    Raises DataError: json, json-key (a key twice in one object), json-object (a line is not an object), jsonl-keys (a
    key is missing or new), jsonl-type, json-surrogate, empty-file, and as `open_lines`.
    """
    path = located(path)
    schema, done = None if piece == WHOLE else next(read(path, encoding=encoding)).table.schema, 0
    for stretch in stretches(
        whole_lines(path, encoding, piece), piece.line + 1, LineStarts(), rows=ROWS_PER_TABLE, limit=limit
    ):
        for numbers, table in _tables(stretch, path, schema, None if limit is None else limit - done):
            schema = table.schema
            yield Rows.of_documents(path, table, numbers, done)
            done += table.num_rows
    if not done and limit != 0 and piece == WHOLE:
        raise empty_file(path, "row")


def write(tables: Iterable[pa.Table], out: BinaryIO) -> None:
    """Write an object per line, in UTF-8; a uint64 column `key` is written as 16 hex digits.

    Raises DataError json-value for a column that JSON cannot hold (bytes, dates, NaN …).
    """
    for table in tables:
        rows = table.to_pylist()
        if "key" in table.column_names and pa.types.is_uint64(table.schema.field("key").type):
            for row in rows:
                row["key"] = None if row["key"] is None else f"{row['key']:016x}"
        try:
            lines = [json.dumps(row, ensure_ascii=False, separators=(",", ":"), allow_nan=False) for row in rows]
        except (TypeError, ValueError) as error:  # ValueError: NaN or an infinite number
            raise DataError(
                f"a value cannot be written as JSON: {error}",
                fix="leave out the column; a set itself is Parquet, and `undo -o FILE.parquet` writes Parquet",
                id="json-value",
            ) from None
        out.write("".join(f"{line}\n" for line in lines).encode())


def cut(path: Path, size: int, target: int) -> list[int]:
    """Return where the pieces of a file begin: at lines that are not blank."""
    return cut_lines(path, size, target, lambda before, line: has_words(line, raw=True))


def count(path: Path | str, encoding: str = "utf-8", *, piece: Piece = WHOLE) -> tuple[int, int]:
    """Return the number of lines that are not blank, and of lines."""
    return count_lines(located(path), piece, encoding, partial(count_full, raw=True))


def _tables(
    stretch: Stretch, path: Path, schema: pa.Schema | None, limit: int | None
) -> Iterator[tuple[Int64, pa.Table]]:
    """Yield (lines, table) of the rows of a stretch, of which there are at most `limit`. Raises as `read`.

    schema: of the file; None if these are its first rows.
    """
    if stretch.for_arrow:
        known = schema
        if known is None:  # if Arrow takes all rows with the types of the first, all have them
            first = next(_chunks(stretch, 1, path))
            one = _table(_objects(path, *first, None), None)
            known = None if one is None else one.schema
        table = None if known is None else table_of(stretch, known)
        if table is not None:
            yield stretch.lines, table
            return
    for numbers, lines in _chunks(stretch, limit, path):
        rows = _objects(path, numbers, lines, schema)
        table = _table(rows, schema)
        if table is None:
            raise _misfit(path, numbers, rows, schema)
        schema = table.schema
        yield np.array(numbers, np.int64), table


def _chunks(stretch: Stretch, limit: int | None, path: Path) -> Iterator[tuple[list[int], list[str]]]:
    """Yield (line numbers, lines) of at most a table, without line ends and blank lines."""
    lines = ((n, line.removesuffix("\n").removesuffix("\r")) for n, line in enumerate(stretch.texts(), stretch.line))
    for _, chunk in in_tables(((n, line) for n, line in lines if not is_blank(line)), limit, path, "row"):
        yield [n for n, _ in chunk], [line for _, line in chunk]


def _objects(path: Path, numbers: Sequence[int], lines: Sequence[str], schema: pa.Schema | None) -> list[Row]:
    """Return the object of each line. Raises DataError jsonl-keys.

    schema: of the file; None if the first row gives the keys.
    """
    keys = None if schema is None else set(schema.names)
    rows = []
    for number, line in zip(numbers, lines, strict=True):
        row = _object(f"{path}:{number}", line)
        keys = set(row) if keys is None else keys
        if row.keys() != keys:
            raise _wrong_keys(f"{path}:{number}", keys, set(row))
        rows.append(row)
    return rows


def _object(where: str, line: str) -> Row:
    row = load_json(line, lambda _: where, fix="write one whole, flat JSON object a line")
    if not isinstance(row, dict) or not row:
        raise DataError(
            f"the line holds {line[:40]}, which is not an object with keys",
            where=where,
            fix='write one object {"key": value, …} per line',
            id="json-object",
        )
    return row


def _wrong_keys(where: str, expected: set[str], actual: set[str]) -> DataError:
    missing, new = sorted(expected - actual), sorted(actual - expected)
    parts = [f"lacks the key {', '.join(map(repr, missing))}"] * bool(missing)
    parts += [f"has the new key {', '.join(map(repr, new))}"] * bool(new)
    return DataError(
        f"the row {' and '.join(parts)}",
        where=where,
        fix="give all rows the keys of the first; null stands for no value",
        id="jsonl-keys",
    )


def _table(rows: list[Row], schema: pa.Schema | None) -> pa.Table | None:
    """Return the rows as a table, or None if they do not fit the schema or each other."""
    try:
        names = list(rows[0])
        table = pa.Table.from_arrays([array_of([row[name] for row in rows]) for name in names], names)
        if schema is None or table.schema.equals(schema):
            return table
        # Given the schema at once, Arrow would turn 1.5 into 1 and "le" into ["l", "e"], and drop unknown keys.
        if all(_fits(table.field(name).type, schema.field(name).type) for name in schema.names):
            return pa.Table.from_pylist(rows, schema)
    except (pa.ArrowInvalid, pa.ArrowTypeError, OverflowError, UnicodeEncodeError):
        pass
    return None


def _fits(actual: pa.DataType, expected: pa.DataType) -> bool:
    """Return whether the expected type holds every value of the actual type unchanged."""
    if actual.equals(expected) or pa.types.is_null(actual):
        return True
    if pa.types.is_list(actual) and pa.types.is_list(expected):
        return _fits(actual.value_type, expected.value_type)
    if pa.types.is_struct(actual) and pa.types.is_struct(expected):
        known = {field.name: field.type for field in expected}
        return all(field.name in known and _fits(field.type, known[field.name]) for field in actual)
    return bool(pa.types.is_int64(actual) and pa.types.is_float64(expected))


def _misfit(path: Path, numbers: list[int], rows: list[Row], schema: pa.Schema | None) -> DataError:
    """Return the error for the first row that does not fit the schema or the rows before it."""
    n_rows = 1 + bisect_left(range(1, len(rows)), True, key=lambda n: _table(rows[:n], schema) is None)
    row, where = rows[n_rows - 1], f"{path}:{numbers[n_rows - 1]}"
    for name, value in row.items():
        try:
            json.dumps(value, ensure_ascii=False).encode()
        except UnicodeEncodeError:
            fix = "replace it in the file, for instance by \\ufffd"
            what = f"the value of {name!r} holds half of a surrogate pair"
            return DataError(what, where=where, fix=fix, id="json-surrogate")
    misfits = (
        (name, value)
        for name, value in row.items()
        if _table([{name: r[name]} for r in rows[:n_rows]], schema and pa.schema([schema.field(name)])) is None
    )
    name, value = next(misfits)  # there is one, because columns are independent
    return DataError(
        f"the value {json.dumps(value, ensure_ascii=False)[:80]} does not fit the type of column {name!r}",
        where=where,
        fix="give each key values of one type in all rows",
        id="jsonl-type",
    )


def _write(tables: Iterable[pa.Table], out: BinaryIO, schema: Schema, layout: Mapping[str, Any]) -> None:
    write(tables, out)


FORMAT = Format(
    name="jsonl", suffixes=(".jsonl",), what="JSON Lines file", read=read, write=_write, cut=cut, count=count
)
