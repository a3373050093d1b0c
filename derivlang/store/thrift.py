"""The part of Thrift's compact protocol that the metadata of a Parquet file needs.

A value is (its type, its bytes). A struct is {field number: value}; fields with the value None are left out.
Format: https://github.com/apache/thrift/blob/master/doc/specs/thrift-compact-protocol.md
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import TypeAlias

Value: TypeAlias = tuple[int, bytes]

_FALSE, _BYTE, _I32, _I64, _BINARY, _LIST, _STRUCT = 2, 3, 5, 6, 8, 9, 12
FALSE: Value = (_FALSE, b"")


def varint(number: int) -> bytes:
    """Encode a non-negative number, seven bits in a byte, the lowest first: 300 -> b"\xac\x02"."""
    out = bytearray()
    while number >= 128:
        out.append(number & 127 | 128)
        number >>= 7
    out.append(number)
    return bytes(out)


def i8(number: int) -> Value:
    """Encode a byte."""
    return _BYTE, bytes([number])


def i32(number: int) -> Value:
    """Encode a non-negative 32-bit integer."""
    return _I32, varint(number << 1)


def i64(number: int) -> Value:
    """Encode a non-negative 64-bit integer."""
    return _I64, varint(number << 1)


def binary(data: bytes) -> Value:
    """Encode a string of bytes."""
    return _BINARY, varint(len(data)) + data


def array(items: Sequence[Value]) -> Value:
    """Encode a list of values of one type."""
    kind = items[0][0] if items else _STRUCT
    head = bytes([len(items) << 4 | kind]) if len(items) < 15 else bytes([0xF0 | kind]) + varint(len(items))
    return _LIST, head + b"".join(value for _, value in items)


def struct(fields: Mapping[int, Value | None]) -> Value:
    """Encode a struct. Field numbers are less than 16 apart, so one byte holds the type and the step to the number."""
    out, last = bytearray(), 0
    for number in sorted(fields):
        field = fields[number]
        if field is not None:
            out.append(number - last << 4 | field[0])
            out += field[1]
            last = number
    return _STRUCT, bytes(out) + b"\0"
