"""Small tables in Parquet files, read without pandas: `pyarrow.parquet.read_table` would load it, which takes 0.3 s."""

from __future__ import annotations

from pathlib import Path
from typing import TYPE_CHECKING

if TYPE_CHECKING:
    import pyarrow as pa


def read_parquet(path: Path) -> pa.Table:
    """Return the table of a file. Raise OSError or an error of Arrow if it cannot be read."""
    from pyarrow.parquet import ParquetFile

    with ParquetFile(path) as file:
        return file.read()
