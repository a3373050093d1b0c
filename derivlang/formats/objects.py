"""Texts and answers inside objects, read as columns of their own. The layout of a corpus says which.

    --text-column review.body      {"review": {"body": "One .", "stars": 5}}                      review_body "One ."
    --text-column hypothesis.fr    {"hypothesis": {"language": ["en", "fr"],
                                                   "translation": ["It rained .", "Il a plu ."]}}  hypothesis_fr
    answers                        [{"text": "Ann", "answer_start": 0}]     {"text": ["Ann"], "answer_start": [0]}

The object that holds a text stays beside it as it is. `undo` leaves the column of the text out, and gives answers the
form of the source.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator, Mapping, Sequence
from contextlib import contextmanager
from typing import Any

import numpy as np
import pyarrow as pa
import pyarrow.compute as pc

from derivlang.core.arrays import offsets_of
from derivlang.core.arrow import filled, is_string, list_array, scalar, to_arrow, to_numpy, whole
from derivlang.core.errors import DataError
from derivlang.core.messages import first_names

_TRANSLATIONS = {"language", "translation"}  # of `datasets.TranslationVariableLanguages`


def layout_of(columns: pa.Schema, texts: Sequence[str]) -> dict[str, Any]:
    """Return the layout of a table: the texts inside objects that the user names, and the answers that are objects.

    {"objects": {"texts": {column: its path}, "answers": whether they are lists of objects}}, or {} without either.
    """
    names = set(columns.names)
    paths = {}
    for path in texts:
        if path not in names and path.partition(".")[0] in names:
            name = path.replace(".", "_")
            while name in names:
                name += "_"
            paths[name] = path
    at = columns.get_field_index("answers")
    kind = columns.field(at).type if at >= 0 else pa.null()
    objects = _is_list(kind) and (pa.types.is_struct(kind.value_type) or pa.types.is_null(kind.value_type))
    return {"objects": {"texts": paths, "answers": objects}} if paths or objects else {}


def opened(table: pa.Table, layout: Mapping[str, Any], where: Callable[[int], str]) -> pa.Table:
    """Return the table with the columns that its layout makes of objects. where: returns the place of a row.

    DataError for a path that the objects lack.
    """
    objects = layout.get("objects")
    if objects is None:
        return table
    for name, path in objects["texts"].items():
        table = table.append_column(name, _texts(table, path, where))
    if objects["answers"] and "answers" in table.column_names:
        at, lists = table.column_names.index("answers"), whole(table["answers"])
        table = table.set_column(at, "answers", _as_lists(lists))
    return table


@contextmanager
def as_given(layout: Mapping[str, Any]) -> Iterator[None]:
    """Name the texts inside objects by their paths in errors of the block, as the user does."""
    try:
        yield
    except DataError as error:
        for name, path in layout.get("objects", {"texts": {}})["texts"].items():
            error.what = error.what.replace(name, path)
        raise


def closed(table: pa.Table, layout: Mapping[str, Any]) -> pa.Table:
    """Return the table in the form of its source: the reverse of `opened`."""
    objects = layout.get("objects")
    if objects is None:
        return table
    table = table.drop_columns(list(objects["texts"]))
    if objects["answers"]:
        at, lists = table.column_names.index("answers"), whole(table["answers"])
        table = table.set_column(at, "answers", _as_objects(lists))
    return table


def inner_texts(columns: pa.Schema, sample: pa.Table | None) -> dict[str, list[str]]:
    """Return the keys of texts in each column of objects: {premise: [en, fr], doc: [body.text]}.

    The languages come from the first row.
    """
    keys: dict[str, list[str]] = {}
    for field in columns:
        if not pa.types.is_struct(field.type):
            continue
        if not has_translations(field.type):
            keys[field.name] = list(_keys(field.type))
        elif sample is not None and sample.num_rows:
            keys[field.name] = (sample[field.name][0].as_py() or {}).get("language") or []
    return {name: inner for name, inner in keys.items() if inner}


def _keys(objects: pa.StructType) -> Iterator[str]:
    """Yield the paths of texts in objects: of {"title": …, "body": {"text": …}} title and body.text."""
    for inner in objects:
        if is_string(inner.type):
            yield inner.name
        elif pa.types.is_struct(inner.type) and not has_translations(inner.type):
            yield from (f"{inner.name}.{key}" for key in _keys(inner.type))


def longest_text(table: pa.Table, path: str) -> str:
    """Return the longest of the texts at the end of a path."""
    return max(filter(None, _texts(table, path, str).to_pylist()), key=len, default="")


def _texts(table: pa.Table, path: str, where: Callable[[int], str]) -> pa.Array:
    """Return the texts at the end of a path, null where an object has none."""
    first, *keys = path.split(".")
    column = whole(table[first])
    for key in keys:
        if pa.types.is_struct(column.type) and has_translations(column.type):
            languages = pc.unique(whole(pc.list_flatten(column.field("language")))).to_pylist()
            column = _translations(column, key)
            if key not in languages and len(column):
                raise DataError(
                    f"no text {path!r}: the languages are {first_names(languages)}", where=where(0),
                    fix="name one of these", id="missing-column",
                )  # fmt: skip
        elif pa.types.is_struct(column.type) and column.type.get_field_index(key) >= 0:
            column = column.flatten()[column.type.get_field_index(key)]  # below a null object is a null
        else:
            raise DataError(
                f"no text {path!r}: {column.type} has no {key!r}", where=where(0),
                fix="name the keys of objects from the outside to the text, with dots", id="missing-column",
            )  # fmt: skip
    return column


def has_translations(kind: pa.StructType) -> bool:
    """Return whether objects have lists of languages and of translations."""
    lists = {field.name for field in kind if _is_list(field.type) and is_string(field.type.value_type)}
    return lists == _TRANSLATIONS


def _translations(column: pa.StructArray, language: str) -> pa.Array:
    """Return the translation of each row into a language, the first if there are several; null without one."""
    languages, texts = (column.flatten()[column.type.get_field_index(name)] for name in ("language", "translation"))
    out = np.full(len(column), len(pc.list_flatten(texts)), np.int64)
    if pc.any(pc.not_equal(pc.list_value_length(languages), pc.list_value_length(texts))).as_py():
        return pa.nulls(len(column), pa.string())
    found = to_numpy(filled(pc.equal(pc.list_flatten(languages), scalar(language)), False))
    row = to_numpy(pc.list_parent_indices(languages))[found][::-1]
    out[row] = np.flatnonzero(found)[::-1]
    return pa.concat_arrays([pc.list_flatten(texts), pa.nulls(1, texts.type.value_type)]).take(to_arrow(out))


def _as_lists(column: pa.ListArray) -> pa.StructArray:
    """Return lists of objects as objects of lists."""
    offsets = offsets_of(to_numpy(filled(pc.list_value_length(column), 0)))
    flat = column.flatten()
    if pa.types.is_null(flat.type):  # no row has an answer
        flat = flat.cast(pa.struct([("text", pa.string()), ("answer_start", pa.int64())]))
    parts = [list_array(offsets, values) for values in flat.flatten()]
    return pa.StructArray.from_arrays(parts, [field.name for field in flat.type], mask=column.is_null())


def _as_objects(column: pa.StructArray) -> pa.ListArray:
    """Return objects of lists as lists of objects."""
    lists = column.flatten()
    offsets = offsets_of(to_numpy(filled(pc.list_value_length(lists[0]), 0)))
    flat = pa.StructArray.from_arrays([values.flatten() for values in lists], [field.name for field in column.type])
    objects = list_array(offsets, flat)
    return pa.ListArray.from_arrays(objects.offsets, flat, mask=column.is_null()) if column.null_count else objects


def _is_list(kind: pa.DataType) -> bool:
    return bool(pa.types.is_list(kind) or pa.types.is_large_list(kind))
