"""Parquet files: the columns as they are.

for rows in read("train.parquet"): rows.table.column("text")
"""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from contextlib import contextmanager
from pathlib import Path

import numpy as np
import pyarrow as pa
import pyarrow.parquet as pq

from derivlang.core.parse_errors import parse_errors
from derivlang.formats.base import Asked, Format, Look
from derivlang.formats.opening import empty_file, open_file
from derivlang.formats.rows import ROWS_PER_TABLE, Rows


def read(path: Path | str, *, limit: int | None = None) -> Iterator[Rows]:
    """Yield the rows with all columns; lines are 0. A document is a row. limit: greatest number of rows.

    Raises DataError: parquet (truncated, damaged, or another format), empty-file, missing-file, directory,
    unreadable-file.
    """
    path = Path(path)
    done = 0
    with _file(path) as file:
        for batch in file.iter_batches(batch_size=ROWS_PER_TABLE):
            table = pa.Table.from_batches([batch])
            if limit is not None:
                table = table.slice(0, limit - done)
            n_rows = table.num_rows
            if n_rows == 0:
                break
            yield Rows.of_documents(path, table, np.zeros(n_rows, np.int64), done)
            done += n_rows
    if done == 0 and limit != 0:
        raise empty_file(path, "row")


def count(path: Path | str) -> int:
    """Return the number of rows, from the file's metadata."""
    with _file(Path(path)) as file:
        return int(file.metadata.num_rows)


def schema(path: Path | str) -> pa.Schema:
    """Return the names and types of the columns."""
    with _file(Path(path)) as file:
        return file.schema_arrow


@contextmanager
def _file(path: Path) -> Iterator[pq.ParquetFile]:
    with open_file(path) as stream:
        if not stream.read(1):
            raise empty_file(path, "byte")
        with parse_errors(str(path), "Parquet file", id="parquet", fix="write or download the file again"):
            yield pq.ParquetFile(stream)


def _look(paths: Sequence[Path], asked: Asked) -> Look:
    sample = next((rows.table for rows in FORMAT.rows(paths[0], limit=100)), None)
    return Look(columns=schema(paths[0]), sample=sample)


FORMAT = Format(
    name="parquet", suffixes=(".parquet",), what="Parquet file", read=read, count=count, look=_look, binary=True
)
