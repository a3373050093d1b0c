"""JSON Lines: an object per line. A key that a row lacks, at any depth, is null in it.

`types` finds the columns and their types in all rows; `read` brings every row to them. Arrow's reader takes usual rows.

    {"tokens":["le","chat"],"label":1}    ->   columns tokens list<string>, label int64
"""

from __future__ import annotations

import json
import math
from bisect import bisect_left
from collections import Counter
from collections.abc import Callable, Iterable, Iterator, Sequence
from pathlib import Path
from typing import Any, BinaryIO, TypeAlias

import numpy as np
import pyarrow as pa
import pyarrow.compute as pc

from derivlang.core.arrays import offsets_of
from derivlang.core.arrow import array_of, is_string, list_array, scalar, string_array, to_numpy, whole
from derivlang.core.columns import fits, place_of, plain, united
from derivlang.core.errors import DataError, parse_errors
from derivlang.core.keys import string_buffers
from derivlang.formats.base import Format
from derivlang.formats.lines import count_lines, cut_lines, full_lines
from derivlang.formats.opening import WHOLE, Piece, open_lines
from derivlang.formats.rows import Rows, in_tables

Row: TypeAlias = dict[str, Any]
_WRITTEN = 1 << 13  # rows that are written at once
_BY_ARROW = {pa.string(), pa.int64(), pa.list_(pa.string()), pa.list_(pa.int64())}  # the types of columns it may read
_dumps = json.JSONEncoder(ensure_ascii=False, separators=(",", ":"), allow_nan=False).encode

_SPANS = (
    '; a list of numbers and texts such as [0, 3, "PER"] has no type: write a tag for each word, which moves with it, '
    'or objects {"start": 0, "end": 3, "label": "PER"}, which stay as they are'
)


def read(
    path: Path,
    *,
    encoding: str = "utf-8",
    limit: int | None = None,
    piece: Piece = WHOLE,
    types: pa.Schema | None = None,
    required: frozenset[str] = frozenset(),
) -> Iterator[Rows]:
    """Yield one row per line, without blank lines. A document is a row.

    limit: greatest number of rows. piece: what to read. types: the columns; None: each table has the keys of its rows,
    with the types that these rows have. required: the keys that no row may lack.
    Raises DataError: json, json-key (a key twice in one object), json-object (a line is not an object), jsonl-keys (a
    key is missing, or is not among the types), jsonl-type, json-surrogate, empty-file, and as `open_lines`.
    """
    known = types
    lines = ((n, line) for n, line in open_lines(path, encoding, piece=piece) if line and not line.isspace())
    for done, chunk in in_tables(lines, limit, path, "row", piece):
        numbers, texts = [n for n, _ in chunk], [line for _, line in chunk]
        table = None if known is None else _by_arrow(texts, known)
        if table is None:
            rows = _objects(path, numbers, texts, required)
            table = _table(rows, types)
            if table is None:
                raise _misfit(path, numbers, rows, types)
        known = table.schema
        yield Rows.of_documents(path, table, np.array(numbers, np.int64), done)


def types(path: Path, *, encoding: str = "utf-8") -> pa.Schema:
    """Return the columns of a file and their types, which keep the values of all rows. Raises as `read`."""
    return pa.schema(united((s.table.schema, s.where(0), "the rows before") for s in read(path, encoding=encoding)))


def write(tables: Iterable[pa.Table], out: BinaryIO, **layout: Any) -> None:
    """Write an object per line, in UTF-8; a uint64 column `key` is written as 16 hex digits.

    layout: of another format, which has no writer, and is ignored.

    Raises DataError json-value for a column that JSON cannot hold (bytes, dates, NaN …).
    """
    for table in tables:
        for begin in range(0, table.num_rows, _WRITTEN):
            try:
                lines = _lines(table.slice(begin, _WRITTEN))
            except (TypeError, ValueError) as error:  # ValueError: NaN or an infinite number
                raise DataError(
                    f"a value cannot be written as JSON: {error}",
                    fix="leave out the column; a set itself is Parquet, and `undo -o FILE.parquet` writes Parquet",
                    id="json-value",
                ) from None
            out.write(string_buffers(lines)[0].tobytes())


def _lines(table: pa.Table) -> pa.Array:
    """Return the rows of a table as lines of JSON, Arrow strings."""
    parts: list[pa.Array | pa.Scalar] = []
    for name, column in zip(table.column_names, map(whole, table.columns), strict=True):
        if name == "key" and pa.types.is_uint64(column.type):
            column = string_array("null" if key is None else f'"{key:016x}"' for key in column.to_pylist())
        else:
            column = _values(column)
        parts += [scalar(f"{',' if parts else '{'}{_dumps(name)}:"), column]
    return pc.binary_join_element_wise(*parts, scalar("}\n"), scalar(""))


def _values(column: pa.Array) -> pa.Array:
    """Return values as JSON, Arrow strings. A string that occurs often is escaped once.

    [a, b], [a]   ->   distinct strings "a" "b", with their quotation marks   ->   ["a","b"], ["a"]
    """
    kind = column.type
    if not column.null_count and pa.types.is_list(kind):
        lists = list_array(offsets_of(to_numpy(pc.list_value_length(column))), _values(column.flatten()))
        return pc.binary_join_element_wise(scalar("["), pc.binary_join(lists, scalar(",")), scalar("]"), scalar(""))
    if not column.null_count and (is_string(kind) or pa.types.is_dictionary(kind)):
        coded = column if pa.types.is_dictionary(kind) else column.dictionary_encode()
        return string_array(map(_dumps, coded.dictionary.to_pylist())).take(coded.indices)
    if not column.null_count and pa.types.is_integer(kind):
        return column.cast(pa.string())
    return string_array(map(_dumps, column.to_pylist()))


def cut(path: Path, size: int, target: int) -> list[int]:
    """Return where the pieces of a file begin: at lines that are not blank."""
    return cut_lines(path, size, target, lambda before, line: bool(full_lines(line, raw=True)))


def count(path: Path, encoding: str = "utf-8", *, piece: Piece = WHOLE) -> tuple[int, int]:
    """Return the number of lines that are not blank, and of lines."""
    return count_lines(path, piece, encoding, lambda block: len(full_lines(block, raw=True)))


def _by_arrow(lines: Sequence[str], schema: pa.Schema) -> pa.Table | None:
    """Return the objects of some lines as a table, by Arrow's reader, or None if they have to be read one by one.

    With the types given, Arrow refuses a key twice, new keys, other types, NaN and integers beyond 64 bits. What it
    lets pass is looked for here: missing keys, which become null, and two objects on a line. No object goes on from a
    line that ends with } to one that begins with {, so as many objects as such lines are one on each.
    """
    if not _BY_ARROW.issuperset(schema.types) or not all(line[0] == "{" and line[-1] == "}" for line in lines):
        return None
    from pyarrow import json  # imported late: few sources are JSON lines

    text = "\n".join(lines).encode()
    try:
        table = json.read_json(
            pa.BufferReader(text),
            read_options=json.ReadOptions(use_threads=False, block_size=len(text) + 1),
            parse_options=json.ParseOptions(
                explicit_schema=schema, newlines_in_values=False, unexpected_field_behavior="error"
            ),
        ).combine_chunks()
    except pa.ArrowInvalid:
        return None
    return table if len(table) == len(lines) and not any(column.null_count for column in table.columns) else None


def _objects(path: Path, numbers: Sequence[int], lines: Sequence[str], required: frozenset[str]) -> list[Row]:
    """Return the object of each line. Raises DataError jsonl-keys for one that lacks a required key."""
    rows = [_object(f"{path}:{number}", line) for number, line in zip(numbers, lines, strict=True)]
    for number, row in zip(numbers, rows, strict=True):
        if not required <= row.keys():
            raise DataError(
                f"the row lacks the key {', '.join(map(repr, sorted(required - row.keys())))}",
                where=f"{path}:{number}",
                fix="give all rows the keys of words, texts and labels; null stands for no value",
                id="jsonl-keys",
            )
    return rows


def _object(where: str, line: str) -> Row:
    row = load_json(line, lambda _: where, fix="write one whole JSON object a line")
    if not isinstance(row, dict) or not row:
        raise DataError(
            f"the line holds {line[:40]}, which is not an object with keys",
            where=where,
            fix='write one object {"key": value, …} per line',
            id="json-object",
        )
    return row


def _table(rows: list[Row], types: pa.Schema | None) -> pa.Table | None:
    """Return the rows as a table, or None if they do not fit the types or each other."""
    names = dict.fromkeys(rows[0] if types is None else types.names)
    for row in rows:
        if row.keys() != names.keys():
            names |= dict.fromkeys(row)
    if types is not None and len(names) > len(types):
        return None
    try:
        columns = [_column([row.get(name) for row in rows], types and types.field(name).type) for name in names]
        return pa.Table.from_arrays(columns, list(names)) if None not in columns else None
    except (pa.ArrowInvalid, pa.ArrowTypeError, OverflowError, UnicodeEncodeError):
        return None


def _column(values: list[Any], wanted: pa.DataType | None) -> pa.Array | None:
    """Return values as an array, of the type that is wanted; None if they do not have it.

    Given the type at once, Arrow would turn 1.5 into 1 and "le" into ["l", "e"], and drop unknown keys.
    """
    column = array_of(values)
    wanted = plain(column.type) if wanted is None else wanted
    if column.type == wanted:
        return column
    if not fits(column.type, wanted):
        return None
    return pa.array([_without_bare(value, wanted) for value in values], wanted)


def _without_bare(value: Any, kind: pa.DataType) -> Any:
    """Return a value with null for an object whose keys no row has."""
    if value is None or pa.types.is_null(kind):
        return None
    if pa.types.is_list(kind):
        return [_without_bare(part, kind.value_type) for part in value]
    if pa.types.is_struct(kind):
        return {name: _without_bare(part, kind.field(name).type) for name, part in value.items()}
    return value


def _misfit(path: Path, numbers: list[int], rows: list[Row], types: pa.Schema | None) -> DataError:
    """Return the error for the first row that does not fit the types or the rows before it."""
    n_rows = 1 + bisect_left(range(1, len(rows)), True, key=lambda n: _table(rows[:n], types) is None)
    row, where = rows[n_rows - 1], f"{path}:{numbers[n_rows - 1]}"
    for name, value in row.items():
        if types is not None and name not in types.names:
            return DataError(
                f"the row has the new key {name!r}, which no row had when the types were found",
                where=where,
                fix=f'say in the first row that the key comes: "{name}": null',
                id="jsonl-keys",
            )
        try:
            json.dumps(value, ensure_ascii=False).encode()
        except UnicodeEncodeError:
            fix = "replace it in the file, for instance by \\ufffd"
            what = f"the value of {name!r} holds half of a surrogate pair"
            return DataError(what, where=where, fix=fix, id="json-surrogate")
    misfits = (
        (name, value)
        for name, value in row.items()
        if _table([{name: r.get(name)} for r in rows[:n_rows]], types and pa.schema([types.field(name)])) is None
    )
    name, value = next(misfits)  # there is one, because columns are independent
    before = _table([{name: r.get(name)} for r in rows[: n_rows - 1]], None) if n_rows > 1 else None
    known = types or (before and before.schema)
    other = f", which is {known.field(name).type} in {place_of(known.field(name))}" if known else ""
    return DataError(
        f"the value {json.dumps(value, ensure_ascii=False)[:80]} does not fit the type of column {name!r}{other}",
        where=where,
        fix="give each key values of one type in all rows"
        + (_SPANS if isinstance(value, list) and any(map(_is_mixed, [value, *value])) else ""),
        id="jsonl-type",
    )


def _is_mixed(value: Any) -> bool:
    """Return whether a value is a list of numbers and texts, as Doccano's spans are."""
    return (
        isinstance(value, list)
        and any(isinstance(one, str) for one in value)
        and not all(isinstance(one, str) for one in value)
    )


FORMAT = Format(
    name="jsonl",
    suffixes=(".jsonl",),
    what="JSON Lines file",
    read=read,
    write=write,
    cut=cut,
    count=count,
    types=types,
)


def load_json(text: str, where: Callable[[int], str], *, fix: str) -> Any:
    """Return the value of a JSON text. where: returns `file:line` of a line, from 1.

    Raises DataError: json, json-key (a key twice in one object).
    """
    with parse_errors(lambda: where(1), "JSON", id="json", fix=fix):
        try:
            return _DECODER.decode(text)
        except json.JSONDecodeError as error:
            what = f"column {error.colno}: this is not valid JSON: {error.msg}"
            raise DataError(what, where=where(error.lineno), fix=fix, id="json") from None
        except DataError as error:  # of the functions below, which do not know the file
            error.where = where(1)
            raise


def _to_dict(pairs: list[tuple[str, Any]]) -> dict[str, Any]:
    fields = dict(pairs)
    if len(fields) < len(pairs):
        names = Counter(name for name, _ in pairs)
        twice = next(name for name in names if names[name] > 1)
        what = f"an object has the key {twice!r} more than once"
        raise DataError(what, fix="give each key one value", id="json-key")
    return fields


def _to_number(text: str) -> float:
    value = float(text)
    if not math.isfinite(value):
        raise DataError(f"{text} is not a number of JSON", fix="write null for no value", id="json")
    return value


# One decoder for all lines: `json.loads` with these arguments would make a new one each time.
_DECODER = json.JSONDecoder(object_pairs_hook=_to_dict, parse_float=_to_number, parse_constant=_to_number)
