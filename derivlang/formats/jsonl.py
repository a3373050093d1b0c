"""JSON Lines: an object a line, all of the same keys.

The types of the columns are those of the first `ROWS_PER_TABLE` rows; every later row must fit them.

    {"tokens":["le","chat"],"label":1}    ->   columns tokens list<string>, label int64
"""

from __future__ import annotations

import json
from bisect import bisect_left
from collections.abc import Iterable, Iterator
from pathlib import Path
from typing import Any, BinaryIO, TypeAlias

import numpy as np
import pyarrow as pa

from derivlang.core.errors import DataError
from derivlang.formats.opening import empty_file, open_lines
from derivlang.formats.rows import ROWS_PER_TABLE, Rows

Row: TypeAlias = dict[str, Any]


def read(path: Path | str, *, encoding: str = "utf-8", limit: int | None = None) -> Iterator[Rows]:
    """One row a line, blank lines skipped; the columns are the keys of the first. A document is a row.

    limit: at most that many rows.
    Raises DataError: json, json-object (a line is no object), jsonl-keys (a key is missing or new),
    jsonl-type, json-surrogate, empty-file, and those of `open_lines`.
    """
    path = Path(path)
    schema: pa.Schema | None = None
    done = 0
    for numbers, rows in _chunks(path, encoding, limit):
        table = _table(rows, schema)
        if table is None:
            raise _misfit(path, numbers, rows, schema)
        schema = table.schema
        documents = np.arange(done, done + len(rows), dtype=np.int64)
        yield Rows(path, table, np.array(numbers, np.int64), documents)
        done += len(rows)
    if done == 0 and limit != 0:
        raise empty_file(path, "row")


def write(tables: Iterable[pa.Table], out: BinaryIO) -> None:
    """An object a line, not escaped to ASCII; a uint64 column `key` is written as 16 hex digits.

    Raises DataError json-value: a column has no form in JSON (bytes, dates …).
    """
    for table in tables:
        rows = table.to_pylist()
        if "key" in table.column_names and pa.types.is_uint64(table.schema.field("key").type):
            for row in rows:
                row["key"] = None if row["key"] is None else f"{row['key']:016x}"
        try:
            lines = [json.dumps(row, ensure_ascii=False, separators=(",", ":")) for row in rows]
        except TypeError as error:
            raise DataError(
                f"a value cannot be written as JSON: {error}",
                fix="write Parquet, or leave the column out",
                id="json-value",
            ) from None
        out.write("".join(f"{line}\n" for line in lines).encode())


def count(path: Path | str, encoding: str = "utf-8") -> int:
    """The number of lines that are not blank."""
    return sum(not line.isspace() and line != "" for _, line in open_lines(path, encoding))


def _chunks(path: Path, encoding: str, limit: int | None) -> Iterator[tuple[list[int], list[Row]]]:
    """Line numbers and objects of some lines, their keys checked."""
    numbers: list[int] = []
    rows: list[Row] = []
    keys: set[str] | None = None
    done = 0
    if limit == 0:
        return
    for number, line in open_lines(path, encoding):
        if not line or line.isspace():
            continue
        row = _object(f"{path}:{number}", line)
        keys = set(row) if keys is None else keys
        if row.keys() != keys:
            raise _wrong_keys(f"{path}:{number}", keys, set(row))
        numbers.append(number)
        rows.append(row)
        done += 1
        if len(rows) == ROWS_PER_TABLE or done == limit:
            yield numbers, rows
            if done == limit:
                return
            numbers, rows = [], []
    if rows:
        yield numbers, rows


def _object(where: str, line: str) -> Row:
    try:
        row = json.loads(line)
    except json.JSONDecodeError as error:
        raise DataError(
            f"column {error.colno}: this is no JSON: {error.msg}",
            where=where,
            fix="write one whole JSON object a line",
            id="json",
        ) from None
    except RecursionError:
        fix = "write one flat object a line"
        raise DataError("the JSON is nested too deeply", where=where, fix=fix, id="json") from None
    if not isinstance(row, dict) or not row:
        raise DataError(
            f"the line holds {line[:40]}, which is no object with keys",
            where=where,
            fix='write one object {"key": value, …} a line',
            id="json-object",
        )
    return row


def _wrong_keys(where: str, expected: set[str], found: set[str]) -> DataError:
    missing, new = sorted(expected - found), sorted(found - expected)
    parts = [f"lacks the key {', '.join(map(repr, missing))}"] * bool(missing)
    parts += [f"has the new key {', '.join(map(repr, new))}"] * bool(new)
    return DataError(
        f"the row {' and '.join(parts)}",
        where=where,
        fix="give all rows the keys of the first; null stands for no value",
        id="jsonl-keys",
    )


def _table(rows: list[Row], schema: pa.Schema | None) -> pa.Table | None:
    """The rows, or None if they do not fit the schema or each other."""
    try:
        table = pa.Table.from_pylist(rows)
        if schema is None or table.schema.equals(schema):
            return table
        # Given the schema, Arrow would make 1.5 a 1 and "le" ["l", "e"], and drop unknown keys of objects.
        if all(_fits(table.field(name).type, schema.field(name).type) for name in schema.names):
            return pa.Table.from_pylist(rows, schema)
    except (pa.ArrowInvalid, pa.ArrowTypeError, OverflowError, UnicodeEncodeError):
        pass
    return None


def _fits(found: pa.DataType, expected: pa.DataType) -> bool:
    """Can every value of one type be held by the other as it is."""
    if found.equals(expected) or pa.types.is_null(found):
        return True
    if pa.types.is_list(found) and pa.types.is_list(expected):
        return _fits(found.value_type, expected.value_type)
    if pa.types.is_struct(found) and pa.types.is_struct(expected):
        known = {field.name: field.type for field in expected}
        return all(field.name in known and _fits(field.type, known[field.name]) for field in found)
    return bool(pa.types.is_int64(found) and pa.types.is_float64(expected))


def _misfit(path: Path, numbers: list[int], rows: list[Row], schema: pa.Schema | None) -> DataError:
    """The error for the first row that does not fit (the schema, or the rows before it)."""
    n_rows = 1 + bisect_left(range(1, len(rows)), True, key=lambda n: _table(rows[:n], schema) is None)
    row, where = rows[n_rows - 1], f"{path}:{numbers[n_rows - 1]}"
    for name, value in row.items():
        try:
            json.dumps(value, ensure_ascii=False).encode()
        except UnicodeEncodeError:
            fix = "replace it in the file, e.g. by \\ufffd"
            what = f"the value of {name!r} holds half of a surrogate pair"
            return DataError(what, where=where, fix=fix, id="json-surrogate")
    misfits = (
        (name, value)
        for name, value in row.items()
        if _table([{name: r[name]} for r in rows[:n_rows]], schema and pa.schema([schema.field(name)])) is None
    )
    name, value = next(misfits)  # columns are independent, so one of them alone does not fit either
    return DataError(
        f"the value {json.dumps(value, ensure_ascii=False)[:80]} does not fit the type of column {name!r}",
        where=where,
        fix="give each key values of one type in all rows",
        id="jsonl-type",
    )
