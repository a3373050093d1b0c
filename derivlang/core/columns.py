"""The types of columns: the one that a layer declares, and the one that keeps the values of several files.

`conform` gives a column the Arrow type that its meaning declares, whatever spelling of the type a file has:

    large_list<large_string>, list<dictionary<string>>, fixed_size_list<string, 2>, null    ->   list<string>
    struct<text: list<string>> where text and answer_start are declared                     ->   an error with its row

A format fixes the types of its columns, but JSON Lines, Parquet, the hub and rows in memory hold what their authors
wrote. A layer names the type that it reads, and nothing behind `conform` sees another one. `unified` is the type that
keeps every value of two others, and `bring` gives it to the columns of a table:

    int8 and int64   ->   int64              null and list<string>   ->   list<string>
    {a} and {b}      ->   {a, b}             int64 and double        ->   double; `bring` refuses a value that it rounds
    bool and int8, a date and a time, two time zones, decimal and double   ->   None: no type keeps both
"""

from __future__ import annotations

from collections.abc import Callable, Collection, Iterable
from contextlib import suppress

import pyarrow as pa
import pyarrow.compute as pc

from derivlang.core.arrays import offsets_of
from derivlang.core.arrow import list_array, scalar, to_numpy, whole
from derivlang.core.errors import DataError, LayerError

_STRINGS = (pa.types.is_string, pa.types.is_large_string, pa.types.is_string_view)
_LISTS = (
    pa.types.is_list,
    pa.types.is_large_list,
    pa.types.is_fixed_size_list,
    pa.types.is_list_view,
    pa.types.is_large_list_view,
)


class _Misfit(Exception):
    """A column does not have the declared type."""


def conform(
    column: pa.Array,
    declared: pa.DataType,
    name: str,
    where: Callable[[int], str | None] | None,
    *,
    fix: str | None = None,
    id: str = "column-type",
) -> pa.Array:
    """Return the column with the declared type, made of lists, structs, strings and int32. Nulls of any depth stay.

    Fields that a struct holds beyond the declared ones are left out. name: of the column, for messages. where: returns
    the place of a row. Raise LayerError, with the place of the first row that does not fit.
    """
    try:
        return _conformed(column, declared, name)
    except _Misfit as misfit:
        at = where(_first_wrong(column, lambda one: _conformed(one, declared, name))) if where else None
        raise LayerError(str(misfit), where=at, fix=fix, id=id) from None


def value_lists(column: pa.Array, name: str, where: Callable[[int], str | None] | None) -> pa.Array:
    """Return a column of lists of plain values (strings, numbers …), which may have any type. Raise as `conform`."""
    kind = column.type
    if pa.types.is_null(kind):
        return pa.nulls(len(column), pa.list_(pa.null()))
    inner = kind.value_type if _is(kind, _LISTS) else None
    if inner is None or pa.types.is_nested(inner):
        at = where(_first_value(column)) if where else None
        raise LayerError(f"the column {name!r} holds {kind}, not lists of values", where=at, id="column-type")
    if pa.types.is_list(kind) or pa.types.is_large_list(kind):
        return column
    return rebuilt(column, column.flatten())


def _conformed(column: pa.Array, declared: pa.DataType, name: str) -> pa.Array:
    """Return the column with the declared type. name: its path, such as answers.text."""
    if column.type == declared:
        return column
    if isinstance(column, pa.ExtensionArray):
        column = column.storage
    if pa.types.is_dictionary(column.type):
        column = column.dictionary_decode()
    kind = column.type
    if pa.types.is_null(kind):
        return pa.nulls(len(column), declared)
    if pa.types.is_list(declared) and _is(kind, _LISTS):
        return rebuilt(column, _conformed(column.flatten(), declared.value_type, name))
    if pa.types.is_struct(declared) and pa.types.is_struct(kind):
        return _struct(column, declared, name)
    strings = pa.types.is_string(declared) and _is(kind, _STRINGS)
    if strings or (pa.types.is_integer(declared) and pa.types.is_integer(kind)):
        try:
            return column.cast(declared)
        except pa.ArrowInvalid:
            raise _Misfit(f"{name} holds a number that is too large") from None
    raise _Misfit(f"{name} holds {kind}, not {_told(declared)}")


def _told(kind: pa.DataType) -> str:
    """Return a declared type for people: a list of strings."""
    if pa.types.is_struct(kind):
        return f"an object of {', '.join(field.name for field in kind)}"
    if pa.types.is_list(kind):
        return f"a list: {_told(kind.value_type)} each"
    return "a string" if pa.types.is_string(kind) else "a whole number"


def _struct(column: pa.StructArray, declared: pa.StructType, name: str) -> pa.Array:
    """Return the declared fields of a column of structs."""
    field_names = [field.name for field in column.type]
    for field in declared:
        if field_names.count(field.name) != 1:
            raise _Misfit(f"{name} has {'no' if field.name not in field_names else 'two'} {field.name}")
    values = column.flatten()  # unlike `field`, a value below a null is a null
    parts = [
        _conformed(values[field_names.index(field.name)], field.type, f"{name}.{field.name}") for field in declared
    ]
    mask = column.is_null() if column.null_count else None
    return pa.StructArray.from_arrays(parts, fields=list(declared), mask=mask)


def rebuilt(column: pa.Array, values: pa.Array) -> pa.Array:
    """Return lists as long as a column's lists, nulls included, as list<…>. values: of all of them."""
    lengths = pc.list_value_length(column)
    offsets = offsets_of(to_numpy(pc.if_else(column.is_null(), scalar(0), lengths)))
    lists = list_array(offsets, values)
    if not column.null_count:
        return lists
    return pa.ListArray.from_arrays(lists.offsets, values, mask=column.is_null())


def _first_value(column: pa.Array) -> int:
    """Return the first row that has a value; 0 if none has."""
    return max(0, int(pc.index(column.is_valid(), True).as_py()))


def _first_wrong(column: pa.Array | pa.ChunkedArray, convert: Callable[[pa.Array], object]) -> int:
    """Return the first row whose value does not have the type to which a function converts arrays; 0 if all have."""
    for row in range(len(column)):
        try:
            convert(whole(column[row : row + 1]))
        except (_Misfit, *_NO_CAST):
            if column[row].is_valid:
                return row
    return 0


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


def united(schemas: Iterable[tuple[pa.Schema, str, str]]) -> list[pa.Field]:
    """Return the columns of all schemas, in the order in which they are met, each with the type that keeps its values.

    schemas: with the place and the name of each, for messages. Raises DataError types-differ.
    """
    known: dict[str, pa.Field] = {}  # each with the name of the schema that made it so wide
    for schema, where, place in schemas:
        for name, kind in zip(schema.names, map(plain, schema.types), strict=True):
            before = known.get(name, field_of(name, pa.null(), place))
            wider = unified(before.type, kind)
            if wider is None:
                raise types_differ(name, kind, before.type, where, place_of(before))
            known[name] = before if wider == before.type else field_of(name, wider, place)
    return list(known.values())


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
    row = _first_wrong(column, lambda one: _as(one, field.type))
    raise types_differ(field.name, column.type, field.type, where(row), place_of(field))


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
