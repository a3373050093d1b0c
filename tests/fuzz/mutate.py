"""Damaged copies of small real files. Each mutator is `(data, rng) -> bytes`; the kind of a file chooses among them.

A flipped byte seldom gets past the first check of a structured file: in a gz file it fails the checksum, in a grammar's
table the shape. So each kind is damaged inside its structure, too, and packed again.
"""

from __future__ import annotations

import gzip
import io
import json
import random
from collections.abc import Callable
from functools import lru_cache
from typing import Any

import numpy as np
import pyarrow as pa
import pyarrow.parquet as pq

Mutator = Callable[[bytes, random.Random], bytes]

# Values that parsers stumble over, as text. The last ones are long: 5,000 digits, nesting 100,000 deep.
TEXTS = (
    "", " ", "0", "-1", "1", "2", "3.5", "-0", "1e999", "nan", "inf", "true", "null", "_", "-", "\\", '"', "'", "\t",
    ",",
    "999", "2147483648", "9223372036854775807", "9223372036854775808", "18446744073709551616", "0x10", "1_000", "٣",
    "<unk>", "../../x", "/etc/hostname", "http://x", "s3://b/k", "%s%n", "{}", "[]", "\u0000", "\u2028", "\ufeff",
    "\ufffd",
    "\u202e", "e\u0301", "\ue000", "\U0001d54e", "a" * 5_000, "1" * 5_000, "[" * 100_000, "(" * 3_000, "a " * 2_000,
)  # fmt: skip
# The same for JSON, as source text: what `json.dumps` would never write is among them.
VALUES = (
    "null", "true", "0", "-1", "1", "1.5", "1e999", "NaN", "-Infinity", "2147483648", "9223372036854775808",
    "1" * 5_000, '""', '" "', '"x"', '"\\ud800"', '"\\u0000"', '"../../x"', '"/etc/hostname"', '"' + "x" * 5_000 + '"',
    "[]", "{}", "[[]]", "[null]", '["x"]', "[1]", '{"x":1}', "[" * 5_000 + "]" * 5_000, "[" * 100_000,
    '{"x":' * 3_000 + "1" + "}" * 3_000,
)  # fmt: skip
_BYTES = (
    b"\0",
    b"\n",
    b"\r\n",
    b"\r",
    b"\t",
    b"\xff",
    b"\xef\xbb\xbf",
    b"\xed\xa0\x80",
    b"\xc0\x80",
    b"\x1f\x8b",
    b"PAR1",
)


def mutated(kind: str, data: bytes, rng: random.Random) -> bytes:
    """A copy with one to three damages, mostly inside the structure of its kind, as long as that can be read."""
    for _ in range(rng.choice((1, 1, 1, 2, 3))):
        try:
            data = rng.choice(_KINDS[kind])(data, rng)
        except Exception:  # noqa: BLE001 (an earlier damage left no structure to change)
            data = flip(data, rng)
    return data


def flip(data: bytes, rng: random.Random) -> bytes:
    if not data:
        return data
    at = rng.randrange(len(data))
    return data[:at] + bytes([data[at] ^ (1 << rng.randrange(8))]) + data[at + 1 :]


def insert(data: bytes, rng: random.Random) -> bytes:
    at = rng.randint(0, len(data))
    return data[:at] + rng.choice((*_BYTES, rng.randbytes(4), rng.choice(TEXTS).encode("utf-8"))) + data[at:]


def delete(data: bytes, rng: random.Random) -> bytes:
    at = rng.randint(0, len(data))
    return data[:at] + data[at + rng.choice((1, 2, 8, 100, len(data))) :]


def repeat(data: bytes, rng: random.Random) -> bytes:
    at, n = rng.randint(0, len(data)), rng.choice((1, 4, 64, 1024))
    return data[: at + n] + data[at : at + n] * rng.choice((1, 2, 50)) + data[at + n :]


def lines(data: bytes, rng: random.Random) -> bytes:
    """A line lost, twice, moved, or joined with its neighbour."""
    parts = data.split(b"\n")
    at = rng.randrange(len(parts))
    how = rng.randrange(5)
    if how == 0:
        del parts[at]
    elif how == 1:
        parts.insert(rng.randint(0, len(parts)), parts[at])
    elif how == 2:
        rng.shuffle(parts)
    elif how == 3:
        parts[at : at + 2] = [b"".join(parts[at : at + 2])]
    else:
        parts[at] = rng.choice(TEXTS).encode("utf-8")
    return b"\n".join(parts)


def fields(data: bytes, rng: random.Random) -> bytes:
    """One field of one line replaced, lost or twice; fields end at tabs, else at other marks."""
    parts = data.split(b"\n")
    at = rng.randrange(len(parts))
    mark = rng.choice([m for m in (b"\t", b" ", b"-", b"=", b"|", b":", b",", b"=") if m in parts[at]] or [b"\t"])
    cells = parts[at].split(mark)
    i = rng.randrange(len(cells))
    how = rng.randrange(4)
    if how == 0:
        del cells[i]
    elif how == 1:
        cells.insert(i, cells[i])
    else:
        cells[i] = rng.choice(TEXTS).encode("utf-8")
    parts[at] = mark.join(cells)
    return b"\n".join(parts)


def node(data: bytes, rng: random.Random) -> bytes:
    """One value of a JSON text replaced, lost, renamed, or there twice."""
    tree = json.loads(data)
    places: list[tuple[Any, Any]] = []
    todo = [tree]
    while todo and len(places) < 5_000:
        at = todo.pop()
        for key, value in at.items() if isinstance(at, dict) else enumerate(at) if isinstance(at, list) else ():
            places.append((at, key))
            todo.append(value)
    if not places:
        return rng.choice(VALUES).encode()
    holder, key = rng.choice(places)
    how, value = rng.randrange(6), rng.choice(VALUES)
    if how == 0:
        del holder[key]
    elif how == 1 and isinstance(holder, dict):
        holder[rng.choice(TEXTS)] = holder.pop(key)
    elif how == 2:
        other, place = rng.choice(places)
        if isinstance(other, dict) or place < len(other):
            other[place] = None if other is holder else holder[key]
    elif how == 3 and isinstance(holder, list):
        holder.append(holder[key])
    else:
        holder[key] = "@value@"
    text = json.dumps(tree, ensure_ascii=rng.random() < 0.5)
    return text.replace('"@value@"', value).encode("utf-8", "surrogatepass")


def json_lines(data: bytes, rng: random.Random) -> bytes:
    parts = data.split(b"\n")
    at = rng.randrange(len(parts))
    parts[at] = node(parts[at], rng)
    return b"\n".join(parts)


def unpacked(*inner: Mutator) -> Mutator:
    """The content of a gz file damaged, and packed again."""

    def mutator(data: bytes, rng: random.Random) -> bytes:
        return gzip.compress(rng.choice(inner)(gzip.decompress(data), rng), 1, mtime=0)

    return mutator


def column(data: bytes, rng: random.Random) -> bytes:
    """One column of a Parquet file lost, renamed, of another type, shuffled, or with other values."""
    table = whole = _table(data)
    at = rng.randrange(table.num_columns)
    name, how = table.column_names[at], rng.randrange(8)
    if how == 0:
        table = table.drop_columns([name])
    elif how == 1:
        table = table.rename_columns([rng.choice(TEXTS) if i == at else n for i, n in enumerate(table.column_names)])
    elif how == 2:
        table = table.set_column(at, name, pa.array([rng.choice(TEXTS) for _ in range(table.num_rows)], pa.string()))
    elif how == 3:
        table = table.set_column(at, name, pa.nulls(table.num_rows, table.schema.field(at).type))
    elif how == 4 and table.num_rows:
        table = table.take([rng.randrange(table.num_rows) for _ in range(rng.choice((0, 1, table.num_rows)))])
    elif how == 5:
        other = rng.choice((pa.int8(), pa.float32(), pa.large_string(), pa.binary(), pa.list_(pa.int64())))
        table = table.set_column(at, name, pa.nulls(table.num_rows, other))
    else:
        table = table.set_column(at, name, _changed(table.column(at), rng))
    schema = table.schema.with_metadata(whole.schema.metadata)
    out = io.BytesIO()
    pq.write_table(table.cast(schema, safe=False) if how not in (0, 1, 2, 5) else table, out)
    return out.getvalue()


@lru_cache(maxsize=1)
def _table(data: bytes) -> pa.Table:
    return pq.read_table(io.BytesIO(data), use_threads=False)


def _changed(values: pa.ChunkedArray, rng: random.Random) -> pa.Array:
    """The values with one of them wrong, as Python objects: a number out of range, a word too many, invalid UTF-8."""
    found = values.to_pylist()
    kind = values.type
    if not found:
        return values.combine_chunks() if values.num_chunks != 1 else values.chunk(0)
    row = rng.randrange(len(found))
    if pa.types.is_list(kind):
        items = list(found[row] or [])
        how = rng.randrange(4)
        if how == 0 and items:
            items.pop(rng.randrange(len(items)))
        elif how == 1 and items:
            items.append(items[0])
        elif items:
            items[rng.randrange(len(items))] = _value(kind.value_type, rng)
        else:
            items = [_value(kind.value_type, rng)]
        found[row] = items
    else:
        found[row] = _value(kind, rng)
    try:
        return pa.array(found, kind)
    except (pa.ArrowException, OverflowError, TypeError, ValueError):
        return pa.nulls(len(found), kind)


def _value(kind: pa.DataType, rng: random.Random) -> Any:
    if pa.types.is_integer(kind):
        signed = pa.types.is_signed_integer(kind)
        top = 2 ** (kind.bit_width - signed) - 1
        return rng.choice((0, 1, top, top // 2, -1 if signed else 0, None))
    if pa.types.is_string(kind):
        return rng.choice((*TEXTS[:40], None))
    return None


def shape(data: bytes, rng: random.Random) -> bytes:
    """One column of a Parquet file in another structure: its values or damaged ones as other lists, structs, nulls."""
    table = _table(data)
    if table.num_rows and rng.random() < 0.5:  # a column of one value may have any type
        table = table.slice(rng.randrange(table.num_rows), 1)
    nested = [i for i, field in enumerate(table.schema) if pa.types.is_nested(field.type)]
    at = rng.choice(nested or range(table.num_columns))
    rows = table.column(at).to_pylist()
    if rng.random() < 0.7:  # as the author of a JSON file may write them; Arrow finds a type for what comes out
        rows = json.loads(node(json.dumps(rows).encode(), rng))
    values = pa.array(rows)
    changed = _spelt(values, rng) if rng.random() < 0.5 else values
    out = io.BytesIO()
    pq.write_table(table.set_column(at, table.column_names[at], changed), out)
    return out.getvalue()


def _spelt(values: pa.Array, rng: random.Random) -> pa.Array:
    """The same values in another Arrow type: large, of fixed size, codes into a dictionary, of other integers."""
    kind = values.type
    if pa.types.is_list(kind):
        inner = _spelt(values.flatten(), rng)
        offsets = pa.array(np.cumsum([0, *(len(found or ()) for found in values.to_pylist())]))
        if rng.random() < 0.5:
            return pa.LargeListArray.from_arrays(offsets, inner, mask=values.is_null())
        return pa.ListArray.from_arrays(offsets.cast(pa.int32()), inner, mask=values.is_null())
    if pa.types.is_struct(kind):
        parts = [_spelt(part, rng) for part in values.flatten()]
        return pa.StructArray.from_arrays(parts, [field.name for field in kind], mask=values.is_null())
    if pa.types.is_integer(kind):
        return values.cast(rng.choice((pa.int8(), pa.uint64(), pa.int16(), pa.float64(), pa.string())))
    if pa.types.is_string(kind):
        return rng.choice((values.cast(pa.large_string()), values.dictionary_encode(), values.cast(pa.binary())))
    return values


def utf8(data: bytes, rng: random.Random) -> bytes:
    """A Parquet file whose first string column holds bytes that are no UTF-8."""
    table = _table(data)
    text = [i for i, field in enumerate(table.schema) if pa.types.is_string(field.type)]
    at = rng.choice(text)
    values = [(v or "").encode("utf-8") for v in table.column(at).to_pylist()]
    values[rng.randrange(len(values))] = rng.choice((b"\xff", b"a\xc3", b"\xed\xa0\x80"))
    lying = pa.StringArray.from_buffers(len(values), *pa.array(values, pa.binary()).buffers()[1:])
    out = io.BytesIO()
    pq.write_table(table.set_column(at, table.schema.field(at), lying), out)
    return out.getvalue()


def ipc_column(data: bytes, rng: random.Random) -> bytes:
    """The same damages to a table in Arrow's file format."""
    table = pa.ipc.open_file(io.BytesIO(data)).read_all()
    table.validate(full=True)  # an earlier damage may have left offsets on which Arrow's writer dies
    packed = io.BytesIO()
    pq.write_table(table, packed)
    found = pq.read_table(io.BytesIO(column(packed.getvalue(), rng)))
    out = io.BytesIO()
    with pa.ipc.new_file(out, found.schema) as writer:
        writer.write_table(found)
    return out.getvalue()


def member(data: bytes, rng: random.Random) -> bytes:
    """One array of an npz file lost, of another shape or type, or with other values."""
    arrays = dict(_arrays(data))
    name = rng.choice(sorted(arrays))
    array, how = arrays[name], rng.randrange(6)
    if how == 0:
        del arrays[name]
    elif how == 1:
        arrays[name] = array.reshape(-1)[: rng.choice((0, 1, max(0, array.size - 1)))]
    elif how == 2:
        arrays[name] = array.astype(rng.choice((np.float16, np.complex64, "U3", np.bool_)), copy=True)
    elif how == 3:
        arrays[name] = np.expand_dims(array, 0)
    elif how == 4 and array.size and array.dtype.kind in "iuf":
        flat = array.reshape(-1).copy()
        top = np.nan if array.dtype.kind == "f" else np.iinfo(array.dtype).max
        flat[rng.randrange(flat.size)] = rng.choice((0, top))
        arrays[name] = flat.reshape(array.shape)
    else:
        arrays[rng.choice(("x", "../x"))] = array
    out = io.BytesIO()
    np.savez(out, **arrays)
    return out.getvalue()


@lru_cache(maxsize=1)
def _arrays(data: bytes) -> dict[str, np.ndarray]:
    with np.load(io.BytesIO(data), allow_pickle=False) as file:
        return dict(file)


def header(data: bytes, rng: random.Random) -> bytes:
    """The JSON header of a safetensors file."""
    size = int.from_bytes(data[:8], "little")
    changed = node(data[8 : 8 + size], rng)
    told = rng.choice((len(changed), len(changed), size, 2**63 - 1, 0))
    return told.to_bytes(8, "little") + changed + data[8 + size :]


_ANY = (flip, insert, delete, repeat)
_TEXT = (lines, lines, fields, fields, fields, insert, flip)
_KINDS: dict[str, tuple[Mutator, ...]] = {
    "bytes": _ANY,
    "text": _TEXT,
    "json": (node, node, node, node, insert, flip, delete),
    "jsonl": (json_lines, json_lines, json_lines, lines, insert, flip),
    "gz": (unpacked(*_TEXT), unpacked(*_TEXT), unpacked(*_TEXT), flip, delete),
    "parquet": (column, column, column, column, shape, shape, shape, shape, utf8, flip, flip, delete),
    "ipc": (ipc_column, ipc_column, flip, delete),
    "npz": (member, member, flip, delete),
    "safetensors": (header, header, flip, delete),
    "numbers": (fields, lines, insert, flip, delete),
}
