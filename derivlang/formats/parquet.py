"""Parquet files: the columns as they are.

for rows in read(Path("train.parquet")): rows.table.column("text")
"""

from __future__ import annotations

import json
import sys
from bisect import bisect_left
from collections.abc import Iterable, Iterator, Sequence
from contextlib import contextmanager
from pathlib import Path
from typing import BinaryIO

import numpy as np
import pyarrow as pa
import pyarrow.compute as pc
import pyarrow.parquet as pq

from derivlang.core.errors import parse_errors
from derivlang.formats.base import Format, Look, ReadOptions
from derivlang.formats.opening import WHOLE, Piece, empty_file, open_file
from derivlang.formats.rows import ROWS_PER_TABLE, Rows

_NOTE = "huggingface"  # the key of the note in a Parquet schema in which `datasets` describes its columns


def read(path: Path, *, limit: int | None = None, piece: Piece = WHOLE) -> Iterator[Rows]:
    """Yield the rows with all columns; lines are 0. A document is a row.

    limit: greatest number of rows. piece: what to read, row groups that begin there.
    Raises DataError: parquet (truncated, damaged, or another format), empty-file, missing-file, directory,
    unreadable-file.
    """
    done = 0
    with _file(path) as file:
        groups = _row_groups(file, piece)
        before = sum(file.metadata.row_group(group).num_rows for group in range(groups.start))
        for batch in file.iter_batches(batch_size=ROWS_PER_TABLE, row_groups=groups):
            table = pa.Table.from_batches([batch])
            if limit is not None:
                table = table.slice(0, limit - done)
            n_rows = table.num_rows
            if n_rows == 0:
                break
            numbers = np.arange(done, done + n_rows, dtype=np.int64)
            yield Rows(path, table, np.zeros(n_rows, np.int64), numbers, first_row=before + done)
            done += n_rows
    if done == 0 and limit != 0 and piece == WHOLE:
        raise empty_file(path, "row")


def cut(path: Path, size: int, target: int) -> list[int]:
    """Return where the pieces of a file begin: at row groups."""
    begins, at = [0], target
    with _file(path) as file:
        for begin in _begins(file):
            if begin > at:
                begins.append(begin)
                at = begin + target
    return begins


def count(path: Path, *, piece: Piece = WHOLE) -> tuple[int, int]:
    """Return the number of rows, from the file's metadata; there are no lines."""
    with _file(path) as file:
        return sum(file.metadata.row_group(group).num_rows for group in _row_groups(file, piece)), 0


def _row_groups(file: pq.ParquetFile, piece: Piece) -> range:
    """Return the row groups that begin in a piece; all of a whole file, wherever they begin."""
    if piece == WHOLE:
        return range(file.metadata.num_row_groups)
    begins = _begins(file)
    return range(bisect_left(begins, piece.begin) if piece.begin else 0, bisect_left(begins, piece.end or sys.maxsize))


def _begins(file: pq.ParquetFile) -> list[int]:
    """Return the first byte of each row group; nothing if they do not stand in the file one after the other."""
    begins = []
    for group in range(file.metadata.num_row_groups):
        column = file.metadata.row_group(group).column(0)
        pages = column.dictionary_page_offset, column.data_page_offset
        begins.append(min(page for page in pages if page is not None))
    return begins if begins == sorted(begins) else []


@contextmanager
def _file(path: Path) -> Iterator[pq.ParquetFile]:
    with open_file(path) as stream:
        if not stream.read(1):
            raise empty_file(path, "byte")
        with parse_errors(str(path), "Parquet file", id="parquet", fix="write or download the file again"):
            yield pq.ParquetFile(stream)


def class_names(schema: pa.Schema) -> dict[str, tuple[str, ...]]:
    """Return the class labels in a table's note for `datasets`, by column."""
    note = (schema.metadata or {}).get(_NOTE.encode())
    if not note:
        return {}
    names = {}
    for name, feature in json.loads(note)["info"]["features"].items():
        inner = feature.get("feature", feature) if isinstance(feature, dict) else {}
        if isinstance(inner, dict) and inner.get("_type") == "ClassLabel":
            names[name] = tuple(inner["names"])
    return names


def write(tables: Iterable[pa.Table], out: BinaryIO, *, note: str = "") -> None:
    """Write the tables, which have the same columns, as a file.

    note: for `datasets`, of the file that is restored; class labels in it are numbers again.
    """
    metadata = {_NOTE: note} if note else None
    classes = class_names(pa.schema([], metadata))
    writer = None
    try:
        for table in tables:
            for number, name in enumerate(table.column_names):
                if name in classes:
                    table = table.set_column(number, name, _numbers(table[name].combine_chunks(), classes[name]))
            writer = writer or pq.ParquetWriter(out, table.schema.with_metadata(metadata))
            writer.write_table(table.replace_schema_metadata(metadata))
    finally:
        if writer is not None:
            writer.close()


def _numbers(column: pa.Array, classes: Sequence[str]) -> pa.Array:
    """Return names of classes as their numbers, -1 for other names. Several classes of a row are numbers already."""
    if pa.types.is_integer(column.type):
        return column
    if pa.types.is_list(column.type):
        return pa.ListArray.from_arrays(column.offsets, _numbers(column.values, classes), mask=column.is_null())
    return pc.index_in(column, pa.array(classes)).fill_null(-1).cast(pa.int64())


def _look(paths: Sequence[Path], asked: ReadOptions) -> Look:
    sample = next(FORMAT.rows(paths[0], limit=100)).table
    layout = {"note": sample.schema.metadata[_NOTE.encode()].decode()} if class_names(sample.schema) else {}
    return Look(sample=sample, layout=layout)


FORMAT = Format(
    name="parquet",
    suffixes=(".parquet",),
    what="Parquet file",
    read=read,
    write=write,
    cut=cut,
    count=count,
    look=_look,
    binary=True,
)
