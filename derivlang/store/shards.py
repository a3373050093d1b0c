"""Parquet shards: one task, one file, written under a temporary name and renamed when whole.

A row group holds one batch, its dictionary only the types used there. `store/pages.py` writes running text; columns of
other types go through pyarrow (measured choices: no statistics, `write_batch_size` 2^16, non-null lists and elements,
heads PLAIN, zstd level 1).
"""

from __future__ import annotations

import hashlib
import io
import os
from collections.abc import Iterator, Sequence
from contextlib import suppress
from pathlib import Path
from typing import Any, Protocol

import pyarrow as pa

import derivlang
from derivlang.core.errors import StoreError
from derivlang.core.schema import Schema
from derivlang.store.disk import disk
from derivlang.store.features import arrow_schema
from derivlang.store.pages import PageWriter, supports

_BUFFER = 1 << 20


class ShardWriter:
    """Writes batches of output columns to `path`; nothing is at `path` until `close`."""

    def __init__(self, path: Path, schema: Schema):
        self.path, self._schema = path, schema
        self._temporary = path.with_name(f".{path.name}.{os.getpid()}.tmp")
        self._file: _HashedFile | None = None
        self.rows = 0

    def write(self, columns: dict[str, pa.Array]) -> None:
        """One batch, as one row group."""
        with disk(self.path):
            if self._file is None:
                self._open(columns)
            self._writer.write([_fit(columns[f.name], f.type) for f in self._arrow])
            self.rows += len(next(iter(columns.values())))

    def close(self) -> str:
        """Flush, rename, and give the file's SHA-256; an empty shard writes nothing and gives ""."""
        with disk(self.path):
            if self._file is None:
                return ""
            self._writer.close()
            self._file.flush()
            os.fsync(self._file.fileno())
            self._file.close()
            self._temporary.replace(self.path)
            return self._file.digest

    def discard(self) -> None:
        """Leave nothing behind."""
        if self._file is not None:
            with suppress(OSError):  # the file is thrown away
                self._file.close()
        self._temporary.unlink(missing_ok=True)

    def _open(self, columns: dict[str, pa.Array]) -> None:
        self._arrow = arrow_schema(columns, self._schema)
        self._file = _HashedFile(self._temporary)
        self._writer: _Writer
        if supports(self._arrow):
            self._writer = PageWriter(self._file, self._arrow, f"derivlang version {derivlang.__version__}")
        else:
            self._writer = _LibraryWriter(self._file, self._arrow)


class _Writer(Protocol):
    def write(self, columns: Sequence[pa.Array]) -> None: ...

    def close(self) -> None: ...


class _LibraryWriter:
    """pyarrow's writer, for columns that `PageWriter` does not take."""

    def __init__(self, file: io.BufferedWriter, schema: pa.Schema):
        from pyarrow import parquet

        plain = {f.name for f in schema if _leaf(f.type) == pa.int32() or f.name in ("document", "key")}
        self._schema = schema
        self._writer = parquet.ParquetWriter(
            file,
            schema,
            compression="zstd",
            compression_level=1,
            use_dictionary=[_leaf_path(f) for f in schema if f.name not in plain],
            write_statistics=False,
            write_batch_size=1 << 16,
            store_schema=False,
        )

    def write(self, columns: Sequence[pa.Array]) -> None:
        table = pa.Table.from_arrays(columns, schema=self._schema)
        self._writer.write_table(table, row_group_size=max(table.num_rows, 1))

    def close(self) -> None:
        self._writer.add_key_value_metadata(self._schema.metadata)  # store_schema=False leaves it out
        self._writer.close()


class _HashedFile(io.BufferedWriter):
    """A new file that knows the SHA-256 of what was written: nothing is read back for it."""

    def __init__(self, path: Path):
        super().__init__(io.FileIO(path, "wb"), _BUFFER)
        self._sha256 = hashlib.sha256()

    def write(self, data: Any) -> int:
        self._sha256.update(data)
        return super().write(data)

    @property
    def digest(self) -> str:
        return self._sha256.hexdigest()


def read_shard(path: Path, columns: list[str] | None = None, *, codes: bool = False) -> Iterator[pa.Table]:
    """The row groups of a shard. codes: lists of strings as codes into a dictionary, four times as fast.

    StoreError if the file is missing, truncated or no Parquet.
    """
    from pyarrow import parquet

    try:
        with parquet.ParquetFile(path, read_dictionary=_string_lists(path) if codes else None) as file:
            for group in range(file.num_row_groups):
                yield file.read_row_group(group, columns=columns)
    except (OSError, pa.ArrowException) as error:
        raise StoreError(
            f"cannot be read: {str(error).splitlines()[0]}",
            where=str(path),
            fix="run the same `make` command again: it makes a damaged set anew",
            id="shard",
        ) from None


def _string_lists(path: Path) -> list[str]:
    """The columns that are lists of strings, as Parquet names them."""
    from pyarrow import parquet

    schema = parquet.read_metadata(path).schema
    leaves = [schema.column(i) for i in range(len(schema))]
    return [
        f"{c.path}"
        for c in leaves
        if c.physical_type == "BYTE_ARRAY" and c.path == f"{c.path.split('.')[0]}.list.element"
    ]


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
