"""Write the columns of running text as Parquet from whole arrays, at a third of pyarrow's cost.

pyarrow walks lists value by value: levels, dictionary indices and their bit packing take two thirds of its time for
columns of word lists. In Parquet, an index may have any number of bits, and a page may be as long as its column chunk.
So an array in memory can be written as one page:

    repetition levels   one bit for each value (`np.packbits`), 0 where a row begins; columns of one shape share them
    definition levels   one run of ones, or one bit for each value if some rows are empty
    values              indices of 8, 16 or 24 bits into the dictionary page, as one bit-packed run
    order               the same, with the dictionary 0, 1, 2, …: one byte per word if rows are short

The rows [the, cat], [], [the] with the dictionary the, cat, as a data page before compression (in hex):

    02 00 00 00  03 02      length 2; bit-packed run of 1 x 8 values; repetition levels 0 1 0 0, lowest bit first
    02 00 00 00  03 0b      length 2; the same; definition levels 1 1 0 1
    08 03 00 01 00 00 ...   indices of 8 bits; one run of 8 values: 0 1 0, padded with five zeros

A column chunk has one data page, a PLAIN dictionary page, zstd level 1 and no statistics. pyarrow writes columns of
other types (`supports`). Format: https://parquet.apache.org/docs/file-format/
"""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any, BinaryIO, TypeAlias

import numpy as np
import pyarrow as pa

from derivlang.core.arrays import UInt8
from derivlang.core.arrow import to_numpy
from derivlang.core.keys import string_buffers
from derivlang.store.thrift import FALSE, Value, array, binary, i8, i32, i64, struct, varint

MAGIC = b"PAR1"
_VERSION = 2
# Numbers of the format (parquet.thrift).
_INT32, _INT64, _BYTE_ARRAY = 1, 2, 6
_PLAIN, _RLE, _RLE_DICTIONARY = 0, 3, 8
_UNCOMPRESSED, _ZSTD = 0, 6
_REQUIRED, _REPEATED = i32(0), i32(2)
_AS_UTF8, _AS_LIST, _AS_UINT64 = i32(0), i32(3), i32(14)
_DATA_PAGE, _DICTIONARY_PAGE = 0, 2
# The longest dictionary 0, 1, 2, … of a column of positions: a longer one would cost more than it saves.
_MOST_PLACES = 1 << 16

Chunk: TypeAlias = tuple[Value, int]  # the metadata of a column chunk, and its size before compression
Parts: TypeAlias = list[Any]  # the content of a page: bytes and arrays, one after the other


def supports(schema: pa.Schema) -> bool:
    """Return whether `PageWriter` can write the columns.

    It can if all are required int32, int64 or uint64, or required lists of required int32 or of dictionary strings.
    """
    return all(not field.nullable and _supported(field.type) for field in schema)


def _supported(kind: pa.DataType) -> bool:
    if not pa.types.is_list(kind):
        return kind in (pa.int32(), pa.int64(), pa.uint64())
    value = kind.value_type
    is_words = pa.types.is_dictionary(value) and (value.index_type, value.value_type) == (pa.int32(), pa.string())
    return not kind.value_field.nullable and (value == pa.int32() or is_words)


class PageWriter:
    """Write a Parquet file to `file`, one row group for each batch. schema: one that `supports` accepts."""

    def __init__(self, file: BinaryIO, schema: pa.Schema, created_by: str):
        self._file, self._schema, self._created_by = file, schema, created_by
        self._codec = pa.Codec("zstd", 1)
        self._rows = self._position = 0
        self._groups: list[Value] = []
        self._put(MAGIC)

    def write(self, columns: Sequence[pa.Array]) -> None:
        """Write a row group. columns: of the schema's types, in its order."""
        levels, rows = _Levels(), len(columns[0])
        chunks = [self._column(name, column, levels) for name, column in zip(self._schema.names, columns, strict=True)]
        size = sum(size for _, size in chunks)
        self._groups.append(struct({1: array([chunk for chunk, _ in chunks]), 2: i64(size), 3: i64(rows)}))
        self._rows += rows

    def close(self) -> None:
        """Write the footer. The file stays open."""
        notes = [struct({1: binary(key), 2: binary(value)}) for key, value in (self._schema.metadata or {}).items()]
        _, footer = struct(
            {
                1: i32(_VERSION),
                2: array(_schema_elements(self._schema)),
                3: i64(self._rows),
                4: array(self._groups),
                5: array(notes) if notes else None,
                6: binary(self._created_by.encode()),
            }
        )
        self._put(footer)
        self._put(len(footer).to_bytes(4, "little") + MAGIC)

    def discard(self) -> None:
        """Do nothing: the owner of the file removes it."""

    def _put(self, data: bytes | pa.Buffer) -> None:
        self._file.write(data)
        self._position += len(data)

    def _column(self, name: str, column: pa.Array, levels: _Levels) -> Chunk:
        if not pa.types.is_list(column.type):
            values = to_numpy(column)
            kind = _INT64 if values.itemsize == 8 else _INT32
            codec = _UNCOMPRESSED if column.type == pa.uint64() else _ZSTD  # keys are hashes, which zstd cannot shorten
            return self._chunk([name], kind, len(values), [values], codec=codec)
        offsets = to_numpy(column.offsets)
        count, parts = levels.of(offsets)
        path, flat = [name, "list", "element"], column.values.slice(offsets[0], offsets[-1] - offsets[0])
        if isinstance(flat, pa.DictionaryArray):
            words, size = _plain_strings(flat.dictionary), len(flat.dictionary)
            return self._chunk(path, _BYTE_ARRAY, count, [*parts, *_indices(to_numpy(flat.indices), size)], words, size)
        values = to_numpy(flat)
        size = int(values.max(initial=0)) + 1
        if values.min(initial=0) < 0 or size > _MOST_PLACES:
            return self._chunk(path, _INT32, count, [*parts, values])
        return self._chunk(path, _INT32, count, [*parts, *_indices(values, size)], np.arange(size, dtype="<i4"), size)

    def _chunk(
        self,
        path: list[str],
        kind: int,
        count: int,
        parts: Parts,
        dictionary: Any = None,
        size: int = 0,
        codec: int = _ZSTD,
    ) -> Chunk:
        """Write a column chunk of `count` values: its dictionary page, if it has one, and its data page."""
        begin, total = self._position, 0
        indexed = dictionary is not None
        if indexed:
            header = {7: struct({1: i32(size), 2: i32(_PLAIN)})}
            total += self._page(_DICTIONARY_PAGE, header, [dictionary], codec)
        first_data = self._position
        encoding = i32(_RLE_DICTIONARY if indexed else _PLAIN)
        header = {5: struct({1: i32(count), 2: encoding, 3: i32(_RLE), 4: i32(_RLE)})}
        total += self._page(_DATA_PAGE, header, parts, codec)
        metadata = {
            1: i32(kind),
            2: array([i32(_PLAIN), i32(_RLE), *([encoding] if indexed else [])]),
            3: array([binary(part.encode()) for part in path]),
            4: i32(codec),
            5: i64(count),
            6: i64(total),
            7: i64(self._position - begin),
            9: i64(first_data),
            11: i64(begin) if indexed else None,
        }
        return struct({2: i64(0), 3: struct(metadata)}), total

    def _page(self, kind: int, header: dict[int, Value], parts: Parts, codec: int) -> int:
        """Write a page. Returns its size before compression, with the header."""
        raw = b"".join(parts)
        data = self._codec.compress(raw) if codec == _ZSTD else raw
        _, head = struct({1: i32(kind), 2: i32(len(raw)), 3: i32(len(data)), **header})
        self._put(head)
        self._put(data)
        return len(head) + len(raw)


class _Levels:
    """The levels of the lists of a row group. Columns of one shape (source, tokens, order) share them.

    Lists of the lengths 2, 0, 1 have four values, as an empty list counts as one. The repetition level is 1 if a value
    continues its list, 0 if it begins one: 0 1 0 0. The definition level is 1 if there is a value, 0 for an empty list:
    1 1 0 1. If no list is empty, all levels are 1, which is one RLE run: the number of values times two, then 1.
    """

    def __init__(self) -> None:
        self._known: list[tuple[Any, int, Parts]] = []

    def of(self, offsets: Any) -> tuple[int, Parts]:
        """Return (number of values, both runs of levels with their lengths). offsets: int32[R + 1].

        Offsets [0, 2, 2, 3]: lengths [2, 0, 1], ends [2, 3, 4], starts [0, 2, 3], 4 values.
        """
        for known, count, parts in self._known:
            if np.array_equal(known, offsets):
                return count, parts
        lengths = np.diff(offsets)
        empty = lengths == 0
        ends = np.cumsum(lengths + empty)
        starts = ends - lengths - empty
        count = int(ends[-1]) if len(ends) else 0
        continues = np.ones(count, bool)
        continues[starts] = False
        repetition = _packed_run(count) + _bits(continues)
        if empty.any():
            holds = np.ones(count, bool)
            holds[starts[empty]] = False
            definition = _packed_run(count) + _bits(holds)
        else:
            definition = varint(count << 1) + b"\x01"
        parts = [part for run in (repetition, definition) for part in (len(run).to_bytes(4, "little"), run)]
        self._known.append((offsets, count, parts))
        return count, parts


def _bits(flags: Any) -> bytes:
    """Return one bit for each flag, the first one lowest: [F, T, F, F] -> 0x02."""
    return np.packbits(flags, bitorder="little").tobytes()


def _packed_run(count: int) -> bytes:
    """Return the header of a bit-packed run: the number of groups of eight values times two, plus 1; 4 -> 0x03."""
    return varint((count + 7) // 8 << 1 | 1)


def _indices(codes: Any, size: int) -> Parts:
    """Return the bit width, then one bit-packed run of whole bytes, padded to a multiple of eight values.

    codes: int32[n]. size: the number of entries of the dictionary. Up to 256 entries take 8 bits, up to 65,536 take 16,
    others 24: the three lower bytes of a little-endian int32.
    """
    if size <= 1 << 8:
        width, packed = 1, codes.astype(np.uint8)
    elif size <= 1 << 16:
        width, packed = 2, codes.astype("<u2")
    else:
        width, packed = 3, np.ascontiguousarray(codes.astype("<i4").view(np.uint8).reshape(-1, 4)[:, :3])
    return [bytes([8 * width]) + _packed_run(len(codes)), packed, bytes(-len(codes) % 8 * width)]


def _plain_strings(types: pa.Array) -> UInt8:
    """Return strings as PLAIN byte arrays: four bytes of length before each string.

    "a", "bc"  ->  01 00 00 00 61  02 00 00 00 62 63. String i begins after the strings before it and i lengths: the
    lengths are at 0 and 1 + 4 = 5.
    """
    data, offsets = string_buffers(types)
    at = offsets[:-1] + 4 * np.arange(len(types))
    out = np.empty(len(data) + 4 * len(types), np.uint8)
    is_text = np.ones(len(out), bool)
    # Views of all unaligned four bytes, to write the four of a length at once.
    lengths, marks = (np.ndarray(max(len(out) - 3, 0), "<u4", each.data, strides=(1,)) for each in (out, is_text))
    lengths[at], marks[at] = np.diff(offsets), 0
    out[is_text] = data
    return out


def _schema_elements(schema: pa.Schema) -> list[Value]:
    """Return the schema as a flat list in which each node is followed by its children.

    A list column is three nodes: tokens (required, LIST), list (repeated), element (required).
    """
    out = [struct({4: binary(b"schema"), 5: i32(len(schema))})]
    for field in schema:
        name = field.name.encode()
        if pa.types.is_list(field.type):
            as_list = {6: _AS_LIST, 10: struct({3: struct({})})}
            out.append(struct({3: _REQUIRED, 4: binary(name), 5: i32(1), **as_list}))
            out.append(struct({3: _REPEATED, 4: binary(b"list"), 5: i32(1)}))
            out.append(_leaf(b"element", field.type.value_type))
        else:
            out.append(_leaf(name, field.type))
    return out


def _leaf(name: bytes, kind: pa.DataType) -> Value:
    """Return the node of a required column of values; strings are UTF-8 byte arrays."""
    if pa.types.is_dictionary(kind):
        physical, logical = _BYTE_ARRAY, {6: _AS_UTF8, 10: struct({1: struct({})})}
    elif kind == pa.uint64():
        physical, logical = _INT64, {6: _AS_UINT64, 10: struct({10: struct({1: i8(64), 2: FALSE})})}
    else:
        physical, logical = _INT32 if kind == pa.int32() else _INT64, {}
    return struct({1: i32(physical), 3: _REQUIRED, 4: binary(name), **logical})
