"""Parquet shards: one file for each task, written by pyarrow, then hashed.

A row group holds one batch, and its dictionary only the types of that batch. The settings of the writer were chosen by
measurement: no statistics, `write_batch_size` 2^16, lists and elements that are not nullable, columns of int32 PLAIN,
zstd level 1.

`datasets` reads class labels from a note in the Parquet schema. The note is written here in the form of `datasets`,
without importing it, so that `load_dataset(folder)` returns `ClassLabel` features.
"""

from __future__ import annotations

import json
import os
import re
from collections.abc import Collection, Iterator
from contextlib import AbstractContextManager, nullcontext, suppress
from pathlib import Path
from typing import IO, Any

import pyarrow as pa

from derivlang.core.arrow import is_string
from derivlang.core.errors import StoreError, parse_errors
from derivlang.core.schema import Field, Schema
from derivlang.formats.places import is_remote
from derivlang.formats.progress import bytes_read
from derivlang.store.disk import disk
from derivlang.store.record import file_hash

_BUFFER = 1 << 20
_LOST = re.compile(r"duration\[|timestamp\[\w+, tz=")  # types that Parquet does not have
_MOST_PACKED = 1 << 15  # highest compression ratio that is accepted; zstd reaches some 2^14 for runs of one byte


class ShardWriter:
    """Write batches of output columns to a new file. Without a batch there is no file.

    where: what errors name, if not the path: a file may have another name until it is complete.
    """

    def __init__(self, path: Path, schema: Schema, where: str | None = None):
        self.path, self._schema, self._where = path, schema, where or str(path)
        self._file: IO[bytes] | None = None
        self._writer: Any = None  # pyarrow's; None until the first batch
        self.rows, self.bytes = 0, 0

    def write(self, columns: dict[str, pa.Array]) -> None:
        """Write a batch as one row group."""
        with disk(self._where):
            if self._writer is None:
                self._arrow = arrow_schema(columns, self._schema)
                self._file = open(self.path, "wb", buffering=_BUFFER)  # noqa: SIM115, PTH123 (one call of C)
                self._writer = _parquet_writer(self._file, self._arrow)
            # The elements of lists are not nullable in the schema, which takes no copy.
            arrays = [columns[field.name].cast(field.type) for field in self._arrow]
            table = pa.Table.from_arrays(arrays, schema=self._arrow)
            self._writer.write_table(table, row_group_size=max(table.num_rows, 1))
            self.rows += table.num_rows

    def finish(self) -> str:
        """Flush the file. Returns its SHA-256, or "" for an empty shard, which writes no file."""
        with disk(self._where):
            if self._file is None:
                return ""
            if not _stores_schema(self._arrow):  # else the writer has the metadata already
                self._writer.add_key_value_metadata(self._arrow.metadata)
            self._writer.close()
            self._file.flush()
            self.bytes = self._file.tell()
            os.fsync(self._file.fileno())
            self._file.close()
            return file_hash(self.path)

    def close(self) -> None:
        """Close the file, also one that is not complete."""
        if self._writer is not None:
            self._writer.is_open = False  # else pyarrow closes it at garbage collection, after its file
        if self._file is not None:
            with suppress(OSError):  # the file is removed anyway
                self._file.close()


def _parquet_writer(file: IO[bytes], schema: pa.Schema) -> Any:
    from pyarrow import parquet

    leaves = {f.name: f.type.value_type if pa.types.is_list(f.type) else f.type for f in schema}
    plain = {name for name, leaf in leaves.items() if leaf == pa.int32() or name in ("document", "key")}
    return parquet.ParquetWriter(
        file,
        schema,
        compression="zstd",
        compression_level=1,
        use_dictionary=[f.name + ".list.element" * pa.types.is_list(f.type) for f in schema if f.name not in plain],
        write_statistics=False,
        write_batch_size=1 << 16,
        store_schema=_stores_schema(schema),
    )


def read_shard(
    path: Path,
    *,
    without: Collection[str] = (),
    codes: bool = False,
    sha256: str | None = None,
) -> Iterator[pa.Table]:
    """Yield the row groups of a shard. codes: read lists of strings as codes into a dictionary, four times as fast.

    without: columns that are not read. sha256: the hash that the file must have, which is checked before the first row.
    StoreError if the file has another, or if it is missing, truncated or not Parquet.
    """
    from pyarrow import parquet

    fix = "run the same `make` command again: it makes a damaged set anew"
    with parse_errors(str(path), "Parquet file", error=StoreError, id="shard", fix=fix):
        size = path.stat().st_size
        if sha256 is not None and file_hash(path) != sha256:
            raise other_shard(path)
        dictionaries = _string_lists(path) if codes else None
        with (
            for_arrow(path) as source,
            parquet.ParquetFile(source, read_dictionary=dictionaries) as file,
        ):
            _check_sizes(file, size)
            columns = [name for name in file.schema_arrow.names if name not in without] if without else None
            for group in range(file.num_row_groups):
                table = file.read_row_group(group, columns=columns)
                table.validate(full=True)
                yield table
                bytes_read(size * table.num_rows // max(1, file.metadata.num_rows))


def other_shard(path: Path) -> StoreError:
    """Return the error for a shard whose hash is not the one in the manifest."""
    return StoreError(
        "the shard is not the one that its manifest lists",
        where=str(path),
        fix="`derivlang verify` names what is wrong; make the set again",
        id="damaged",
    )


def _check_sizes(file: Any, size: int) -> None:
    """Raise ValueError if row groups claim more than a file of `size` bytes can hold.

    The metadata of column chunks is not checked: pyarrow aborts the process when damaged metadata is looked at, but
    raises an error when the chunk is read.
    """
    for group in map(file.metadata.row_group, range(file.num_row_groups)):
        if not (group.num_rows >= 0 and 0 <= group.total_byte_size <= _MOST_PACKED * size):
            raise ValueError("the sizes of its row groups cannot be right")


def _string_lists(path: Path) -> list[str]:
    """Return the columns that are lists of strings, by their Parquet names."""
    from pyarrow import parquet

    with for_arrow(path) as source:
        schema = parquet.read_metadata(source).schema
    leaves = [schema.column(i) for i in range(len(schema))]
    return [
        f"{c.path}"
        for c in leaves
        if c.physical_type == "BYTE_ARRAY" and c.path == f"{c.path.split('.')[0]}.list.element"
    ]


def _stores_schema(schema: pa.Schema) -> bool:
    """Return whether the file holds Arrow's schema, without which Parquet loses time zones and durations.

    Readers then return dictionaries: only if needed.
    """
    return any(_LOST.search(str(field.type)) for field in schema)


def arrow_schema(columns: dict[str, pa.Array], schema: Schema) -> pa.Schema:
    """Return the schema of the shards, with the note. Lists and elements that cannot be null are declared so."""
    labels = {field.column: field for field in schema.fields}
    fields, features = [], {}
    for name, column in columns.items():
        label, kind, is_source = labels.get(name), column.type, name.startswith("source_")
        of_source = labels.get(name.removeprefix("source_")) if is_source else None
        # `datasets` takes a class label from the note only if the column and its elements are nullable.
        nullable = is_source if label is None else label.kind in ("value", "answers") or label.classes is not None
        nullable = nullable or of_source is not None
        fields.append(pa.field(name, kind if nullable else _tight(kind, label), nullable))
        classed = of_source if is_source else label if name != "source" else None
        if "map<" not in str(kind):  # `datasets` has no name for a map, and finds the type by itself without a note
            features[name] = describe(fields[-1].type, None if classed is None else classed.classes)
    return pa.schema(fields, metadata={"huggingface": json.dumps({"info": {"features": features}})})


def _tight(kind: pa.DataType, field: Field | None) -> pa.DataType:
    if not pa.types.is_list(kind) or pa.types.is_nested(kind.value_type):
        return kind
    value = kind.value_type
    if field is not None and field.kind == "tags" and not (is_string(value) or pa.types.is_dictionary(value)):
        return kind  # numbers that a file gives its words; an inserted word has none
    return pa.list_(pa.field("element", kind.value_type, nullable=False))


def describe(kind: pa.DataType, classes: tuple[str, ...] | None = None) -> dict[str, Any]:
    """Return the description of a type in the form of `datasets`."""
    if isinstance(kind, pa.ListType | pa.LargeListType | pa.FixedSizeListType):
        size = {"length": kind.list_size} if pa.types.is_fixed_size_list(kind) else {}
        name = "LargeList" if pa.types.is_large_list(kind) else "List"
        return {"feature": describe(kind.value_type, classes), **size, "_type": name}
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


def read_parquet(path: Path) -> pa.Table:
    """Return the table of a file. Raise OSError or an error of Arrow if it cannot be read."""
    from pyarrow.parquet import ParquetFile

    with for_arrow(path) as source, ParquetFile(source) as file:
        return file.read()


def for_arrow(path: Path) -> AbstractContextManager[Any]:
    """Return what pyarrow opens: the path, or of a store's file a stream, closed at the end of the block.

    The path is absolute, since pyarrow takes a relative one such as run:1/words.parquet for a URL.
    """
    return path.open("rb") if is_remote(path) else nullcontext(path.absolute())
