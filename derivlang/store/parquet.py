"""Small tables in Parquet files, read without pandas: `pyarrow.parquet.read_table` would load it, which takes 0.3 s."""

from __future__ import annotations

from contextlib import AbstractContextManager, nullcontext
from pathlib import Path
from typing import TYPE_CHECKING, Any

from derivlang.formats.places import is_remote

if TYPE_CHECKING:
    import pyarrow as pa


def read_parquet(path: Path) -> pa.Table:
    """Return the table of a file. Raise OSError or an error of Arrow if it cannot be read."""
    from pyarrow.parquet import ParquetFile

    with for_arrow(path) as source, ParquetFile(source) as file:
        return file.read()


def for_arrow(path: Path) -> AbstractContextManager[Any]:
    """Return what pyarrow opens: the path, or of a store's file a stream, closed at the end of the block."""
    return path.open("rb") if is_remote(path) else nullcontext(path)
