"""Parquet shards: one task, one file, written under a temporary name and renamed when whole.

A row group holds one batch, its dictionary only the types used there. Measured choices: no statistics,
`write_batch_size` 2^16, non-null lists and elements, orders PLAIN, zstd level 1 (`docs/architecture.md`).
"""

from __future__ import annotations

import hashlib
import os
from collections.abc import Iterator
from contextlib import suppress
from pathlib import Path

import pyarrow as pa
import pyarrow.parquet as pq

from derivlang.core.errors import StoreError
from derivlang.core.schema import Schema
from derivlang.store.disk import disk
from derivlang.store.features import arrow_schema

_DICTIONARY = ("source", "tokens", "gaps", "deprel", "lemmas", "xpos", "feats", "deps", "misc")


class ShardWriter:
    """Writes batches of output columns to `path`; nothing is at `path` until `close`."""

    def __init__(self, path: Path, schema: Schema):
        self.path, self._schema = path, schema
        self._temporary = path.with_name(f".{path.name}.{os.getpid()}.tmp")
        self._writer: pq.ParquetWriter | None = None
        self.rows = 0

    def write(self, columns: dict[str, pa.Array]) -> None:
        """One batch, as one row group."""
        with disk(self.path):
            if self._writer is None:
                self._open(columns)
            assert self._writer is not None
            table = pa.Table.from_arrays([_fit(columns[f.name], f.type) for f in self._arrow], schema=self._arrow)
            self._writer.write_table(table, row_group_size=max(table.num_rows, 1))
            self.rows += table.num_rows

    def close(self) -> str:
        """Flush, rename, and give the file's SHA-256; an empty shard writes nothing and gives ""."""
        with disk(self.path):
            if self._writer is None:
                return ""
            self._writer.add_key_value_metadata(self._arrow.metadata)  # store_schema=False leaves it out
            self._writer.close()
            with self._temporary.open("rb+") as file:
                digest = hashlib.file_digest(file, "sha256").hexdigest()
                os.fsync(file.fileno())
            self._temporary.replace(self.path)
            return digest

    def discard(self) -> None:
        """Leave nothing behind."""
        if self._writer is not None and self._writer.is_open:
            with suppress(OSError, pa.ArrowException):  # the file is thrown away
                self._writer.close()
        self._temporary.unlink(missing_ok=True)

    def _open(self, columns: dict[str, pa.Array]) -> None:
        self._arrow = arrow_schema(columns, self._schema)
        plain = {f.name for f in self._arrow if _leaf(f.type) == pa.int32() or f.name in ("document", "key")}
        self._writer = pq.ParquetWriter(
            str(self._temporary),
            self._arrow,
            compression="zstd",
            compression_level=1,
            use_dictionary=[_leaf_path(f) for f in self._arrow if f.name not in plain],
            write_statistics=False,
            write_batch_size=1 << 16,
            store_schema=False,
        )


def read_shard(path: Path, columns: list[str] | None = None) -> Iterator[pa.Table]:
    """The row groups of a shard. StoreError if the file is missing, truncated or no Parquet."""
    try:
        with pq.ParquetFile(path) as file:
            for group in range(file.num_row_groups):
                yield file.read_row_group(group, columns=columns)
    except (OSError, pa.ArrowException) as error:
        raise StoreError(
            f"cannot be read: {str(error).splitlines()[0]}",
            where=str(path),
            fix="run the same `make` command again: it makes a damaged set anew",
            id="shard",
        ) from None


def _fit(column: pa.Array, kind: pa.DataType) -> pa.Array:
    """The column under the shard's type: the same buffers, non-null where the schema says so."""
    if column.type == kind:
        return column
    if pa.types.is_list(kind) and isinstance(column, pa.ListArray) and column.null_count == 0:
        if column.offset:
            column = pa.concat_arrays([column])
        values = column.values
        if values.type != kind.value_type:
            values = values.cast(kind.value_type)
        buffers = [None, column.buffers()[1]]
        return pa.ListArray.from_buffers(kind, len(column), buffers, children=[values])
    return column.cast(kind)


def _leaf(kind: pa.DataType) -> pa.DataType:
    return kind.value_type if pa.types.is_list(kind) else kind


def _leaf_path(field: pa.Field) -> str:
    kind = field.type
    return f"{field.name}.list.element" if pa.types.is_list(kind) else field.name
