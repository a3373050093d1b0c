"""unify: one type for a column that several files hold, which keeps every value of each.

int8 and int64   ->   int64              null and list<string>   ->   list<string>
{a} and {b}      ->   {a, b}             int64 and double        ->   double, and `bring` refuses a value that it rounds
bool and int8, a date and a time, two time zones, decimal and double   ->   None: no type keeps both
"""

from __future__ import annotations

from collections.abc import Callable, Collection
from contextlib import suppress

import pyarrow as pa

from derivlang.core.errors import DataError
from derivlang.core.structure import rebuilt

_NO_CAST = (pa.ArrowInvalid, pa.ArrowNotImplementedError)
_ALL_LISTS = (pa.types.is_list, pa.types.is_large_list, pa.types.is_fixed_size_list)
# Kinds of types within which Arrow finds the wider one, and loses nothing. Between two kinds it would: a zone, digits.
_KINDS = (
    pa.types.is_integer,
    pa.types.is_floating,
    pa.types.is_decimal,
    lambda kind: pa.types.is_string(kind) or pa.types.is_large_string(kind),
    lambda kind: pa.types.is_binary(kind) or pa.types.is_large_binary(kind) or pa.types.is_fixed_size_binary(kind),
    pa.types.is_timestamp,
    pa.types.is_date,
    pa.types.is_time,
    pa.types.is_duration,
)


def plain(kind: pa.DataType) -> pa.DataType:
    """Return a type without dictionaries and views. An object without keys, which Parquet cannot hold, is null."""
    if pa.types.is_dictionary(kind):
        return plain(kind.value_type)
    if pa.types.is_string_view(kind):
        return pa.string()
    if pa.types.is_binary_view(kind):
        return pa.binary()
    if not _is_nested(kind):
        return kind
    if pa.types.is_struct(kind) and not kind.num_fields:
        return pa.null()
    inner = [kind.field(i).type for i in range(kind.num_fields)]
    plain_inner = [plain(part) for part in inner]
    views = pa.types.is_list_view(kind) or pa.types.is_large_list_view(kind)
    return _nested(kind, plain_inner) if views or plain_inner != inner else kind


def unified(one: pa.DataType, other: pa.DataType) -> pa.DataType | None:
    """Return the type that keeps the values of two plain types; None if there is none."""
    if one == other or pa.types.is_null(other):
        return one
    if pa.types.is_null(one):
        return other
    if _is(one, _ALL_LISTS) and _is(other, _ALL_LISTS):
        inner = unified(one.value_type, other.value_type)
        large = pa.types.is_large_list(one) or pa.types.is_large_list(other)
        return None if inner is None else pa.large_list(inner) if large else pa.list_(inner)
    if pa.types.is_struct(one) and pa.types.is_struct(other):
        return _unified_objects(one, other)
    if pa.types.is_map(one) and pa.types.is_map(other):
        parts = unified(one.key_type, other.key_type), unified(one.item_type, other.item_type)
        return None if None in parts else pa.map_(*parts)
    numbers = pa.types.is_integer, pa.types.is_floating
    if any(first(one) and second(other) for first, second in (numbers, numbers[::-1])):
        return pa.float64()
    if not any(of_kind(one) and of_kind(other) for of_kind in _KINDS):
        return None
    if pa.uint64() in (one, other) and (pa.types.is_signed_integer(one) or pa.types.is_signed_integer(other)):
        return None
    try:
        schemas = [pa.schema([("", kind)]) for kind in (one, other)]
        return pa.unify_schemas(schemas, promote_options="permissive").field(0).type
    except (pa.ArrowInvalid, pa.ArrowTypeError):  # two zones; decimals of too many digits
        return None


def fits(kind: pa.DataType, wanted: pa.DataType) -> bool:
    """Return whether a type may be brought to another one."""
    return bool(unified(wanted, plain(kind)) == wanted)


def bring(
    table: pa.Table, types: pa.Schema, where: Callable[[int], str], *, optional: Collection[str] = ()
) -> pa.Table:
    """Return the columns of a table in the order and with the types of a schema.

    where: returns the place of a row. optional: columns that are null where the table lacks them; others stay missing.
    Raise DataError types-differ for a value that does not have the type.
    """
    if table.schema.equals(types):
        return table
    fields, columns = [], []
    for field in types:
        if field.name in table.column_names:
            columns.append(_cast(table[field.name], field, where))
        elif field.name in optional:
            columns.append(pa.nulls(table.num_rows, field.type))
        else:
            continue
        fields.append(field)
    return pa.table(columns, pa.schema([(field.name, field.type) for field in fields], table.schema.metadata))


def field_of(name: str, kind: pa.DataType, place: str) -> pa.Field:
    """Return a column, with the file that has its type, for messages."""
    return pa.field(name, kind, metadata={"place": place})


def place_of(field: pa.Field) -> str:
    """Return the file that has the type of a column."""
    return str((field.metadata or {}).get(b"place", b"other rows"), "utf-8")


def types_differ(name: str, kind: pa.DataType, other: pa.DataType, where: str, other_place: str) -> DataError:
    """Return the error for a column that has types in two places which no type unites."""
    return DataError(
        f"{name!r} holds {kind}, but {other} in {other_place}, and no type keeps the values of both",
        where=where,
        fix="give the column one type in all files, or make the files one by one",
        id="types-differ",
    )


def _cast(column: pa.ChunkedArray, field: pa.Field, where: Callable[[int], str]) -> pa.ChunkedArray:
    if column.type == field.type:
        return column
    if fits(column.type, field.type):
        with suppress(*_NO_CAST):
            return pa.chunked_array([_as(chunk, field.type) for chunk in column.chunks], field.type)
    rows = (column[row : row + 1].combine_chunks() for row in range(len(column)))
    row = next((row for row, value in enumerate(rows) if not _casts(value, field.type)), 0)
    raise types_differ(field.name, column.type, field.type, where(row), place_of(field))


def _casts(column: pa.Array, kind: pa.DataType) -> bool:
    try:
        _as(column, kind)
    except _NO_CAST:
        return False
    return True


def _as(column: pa.Array, kind: pa.DataType) -> pa.Array:
    """Return a column with another type. Lists are made anew from views: pyarrow 26 casts them to damaged ones."""
    return _without_views(column).cast(kind) if "list_view" in str(column.type) else column.cast(kind)


def _without_views(column: pa.Array) -> pa.Array:
    if pa.types.is_struct(column.type):
        parts, mask = [_without_views(part) for part in column.flatten()], column.is_null()
        return pa.StructArray.from_arrays(parts, names=[field.name for field in column.type], mask=mask)
    return rebuilt(column, _without_views(column.flatten())) if _is_nested(column.type) else column


def _unified_objects(one: pa.StructType, other: pa.StructType) -> pa.DataType | None:
    """Return the type of objects with the keys of both; None if a key has types that no type unites."""
    kinds: dict[str, pa.DataType | None] = {field.name: field.type for field in one}
    if len(kinds) < one.num_fields or len({field.name for field in other}) < other.num_fields:
        return None  # a key twice
    for field in other:
        kinds[field.name] = unified(kinds[field.name], field.type) if field.name in kinds else field.type
    return None if None in kinds.values() else pa.struct(list(kinds.items()))


def _nested(kind: pa.DataType, inner: list[pa.DataType]) -> pa.DataType:
    """Return a nested type with other types inside; a list for a view of lists."""
    if pa.types.is_struct(kind):
        return pa.struct([(kind.field(i).name, part) for i, part in enumerate(inner)])
    if pa.types.is_map(kind):
        return pa.map_(*(inner[0].field(i).type for i in range(2)))
    if pa.types.is_fixed_size_list(kind):
        return pa.list_(inner[0], kind.list_size)
    large = pa.types.is_large_list(kind) or pa.types.is_large_list_view(kind)
    return pa.large_list(inner[0]) if large else pa.list_(inner[0])


def _is_nested(kind: pa.DataType) -> bool:
    """Return whether a type has other types inside. pyarrow counts dictionaries and extension types otherwise."""
    return pa.types.is_nested(kind) and not isinstance(kind, pa.BaseExtensionType)


def _is(kind: pa.DataType, tests: Collection[Callable[[pa.DataType], bool]]) -> bool:
    return any(test(kind) for test in tests)
