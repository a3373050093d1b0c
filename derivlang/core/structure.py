"""conform: a column in the Arrow type that its meaning declares, whatever spelling of the type a file has.

    large_list<large_string>, list<dictionary<string>>, fixed_size_list<string, 2>, null    ->   list<string>
    struct<text: list<string>> where text and answer_start are declared                     ->   an error with its row

A format fixes the types of its columns, but JSON Lines, Parquet, the hub and rows in memory hold what their authors
wrote. A layer names the type that it reads, and nothing behind this module sees another one.
"""

from __future__ import annotations

from collections.abc import Callable

import pyarrow as pa
import pyarrow.compute as pc

from derivlang.core.arrays import offsets_of
from derivlang.core.arrow import list_array, scalar, to_numpy
from derivlang.core.errors import LayerError

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
        return _as(column, declared, name)
    except _Misfit as misfit:
        at = where(_first_misfit(column, declared, name)) if where else None
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


def _as(column: pa.Array, declared: pa.DataType, name: str) -> pa.Array:
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
        return rebuilt(column, _as(column.flatten(), declared.value_type, name))
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
    parts = [_as(values[field_names.index(field.name)], field.type, f"{name}.{field.name}") for field in declared]
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


def _first_misfit(column: pa.Array, declared: pa.DataType, name: str) -> int:
    """Return the first row with a value that does not have the declared type."""
    for row in range(_first_value(column), len(column)):
        try:
            _as(column[row : row + 1], declared, name)
        except _Misfit:
            if column[row].is_valid:
                return row
    return 0


def _is(kind: pa.DataType, tests: tuple[Callable[[pa.DataType], bool], ...]) -> bool:
    return any(test(kind) for test in tests)
