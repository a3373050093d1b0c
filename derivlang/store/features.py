"""Types of the output columns: the Arrow schema, and its description for Hugging Face `datasets`.

`datasets` reads class labels from a note in the Parquet schema. The note is written here in the form of `datasets`,
without importing it, so that `load_dataset(folder)` returns `ClassLabel` features.
"""

from __future__ import annotations

import json
from typing import Any

import pyarrow as pa

from derivlang.core.arrow import is_string
from derivlang.core.schema import Field, Schema


def arrow_schema(columns: dict[str, pa.Array], schema: Schema) -> pa.Schema:
    """Return the schema of the shards, with the note. Lists and elements that cannot be null are declared so."""
    fields = []
    for name, column in columns.items():
        source_label = name.startswith("source_") and schema.field(name.removeprefix("source_")) is not None
        nullable = source_label or _may_be_null(name, schema)
        fields.append(pa.field(name, column.type if nullable else _tight(column.type, schema.field(name)), nullable))
    # `datasets` has no name for a map, and finds the type of a column without a note by itself.
    named = {f.name: _feature(f.name, f.type, schema) for f in fields if "map<" not in str(f.type)}
    note = {"info": {"features": named}}
    return pa.schema(fields, metadata={"huggingface": json.dumps(note)})


def _may_be_null(name: str, schema: Schema) -> bool:
    field = schema.field(name)
    if field is None:
        return name.startswith("source_")
    # `datasets` takes a class label from the note only if the column and its elements are nullable.
    return field.kind in ("value", "answers") or field.classes is not None


def _tight(kind: pa.DataType, field: Field | None) -> pa.DataType:
    if not pa.types.is_list(kind) or pa.types.is_nested(kind.value_type):
        return kind
    value = kind.value_type
    if field is not None and field.kind == "tags" and not (is_string(value) or pa.types.is_dictionary(value)):
        return kind  # numbers that a file gives its words; an inserted word has none
    return pa.list_(pa.field("element", kind.value_type, nullable=False))


def _feature(name: str, kind: pa.DataType, schema: Schema) -> dict[str, Any]:
    field = schema.field(name.removeprefix("source_")) if name != "source" else None
    classes = field.classes if field is not None else None
    return describe(kind, classes)


def describe(kind: pa.DataType, classes: tuple[str, ...] | None = None) -> dict[str, Any]:
    """Return the description of a type in the form of `datasets`."""
    if pa.types.is_list(kind):
        return {"feature": describe(kind.value_type, classes), "_type": "List"}
    if pa.types.is_large_list(kind):
        return {"feature": describe(kind.value_type, classes), "_type": "LargeList"}
    if pa.types.is_fixed_size_list(kind):
        return {"feature": describe(kind.value_type, classes), "length": kind.list_size, "_type": "List"}
    if pa.types.is_struct(kind):
        return {kind.field(i).name: describe(kind.field(i).type) for i in range(kind.num_fields)}
    if classes is not None and pa.types.is_integer(kind):
        return {"names": list(classes), "_type": "ClassLabel"}
    if pa.types.is_dictionary(kind):
        kind = kind.value_type
    return {"dtype": _NAMES.get(str(kind), str(kind)), "_type": "Value"}


# The names of `datasets` for types that Arrow names otherwise.
_NAMES = {
    "float": "float32",
    "double": "float64",
    "halffloat": "float16",
    "date32[day]": "date32",
    "date64[ms]": "date64",
}
