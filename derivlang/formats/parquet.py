"""Parquet files: the columns as they are.

for rows in read("train.parquet"): rows.table.column("text")
"""

from __future__ import annotations

from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path

import numpy as np
import pyarrow as pa
import pyarrow.parquet as pq

from derivlang.core.errors import DataError
from derivlang.formats.opening import empty_file, open_file
from derivlang.formats.rows import ROWS_PER_TABLE, Rows


def read(path: Path | str, *, limit: int | None = None) -> Iterator[Rows]:
    """The rows with all columns; lines are 0. A document is a row. limit: at most that many rows.

    Raises DataError: parquet (cut short, damaged, or another format), empty-file, missing-file, directory,
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
            lines = np.zeros(n_rows, np.int64)
            yield Rows(path, table, lines, np.arange(done, done + n_rows, dtype=np.int64))
            done += n_rows
    if done == 0 and limit != 0:
        raise empty_file(path, "row")


def count(path: Path | str) -> int:
    """The number of rows, from the file's metadata."""
    with _file(Path(path)) as file:
        return int(file.metadata.num_rows)


def schema(path: Path | str) -> pa.Schema:
    """The names and types of the columns."""
    with _file(Path(path)) as file:
        return file.schema_arrow


@contextmanager
def _file(path: Path) -> Iterator[pq.ParquetFile]:
    with open_file(path) as stream:
        if not stream.read(1):
            raise empty_file(path, "byte")
        try:
            yield pq.ParquetFile(stream)
        except (pa.ArrowInvalid, pa.ArrowNotImplementedError, OSError) as error:
            reason = str(error).partition("\n")[0].rstrip(".")
            raise DataError(
                f"this is no whole Parquet file: {reason}",
                where=str(path),
                fix="write or download it again",
                id="parquet",
            ) from None
