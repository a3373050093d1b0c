"""Programs that know nothing of derivlang read its shards, which are ordinary Parquet."""

from __future__ import annotations

from collections.abc import Callable
from pathlib import Path
from typing import Any

import numpy as np
import pyarrow as pa
import pyarrow.parquet as pq
import pytest

from tests.helpers import make


def _duckdb(path: Path) -> dict[str, list[Any]]:
    import duckdb

    found = duckdb.sql(f"select * from read_parquet('{path}')")
    return dict(zip(found.columns, map(list, zip(*found.fetchall(), strict=True)), strict=True))


def _polars(path: Path) -> dict[str, list[Any]]:
    import polars

    return polars.read_parquet(path).to_dict(as_series=False)


def _fastparquet(path: Path) -> dict[str, list[Any]]:
    import fastparquet

    table = fastparquet.ParquetFile(str(path)).to_pandas()
    return {name: [_plain(value) for value in table[name]] for name in table.columns}


def _plain(value: Any) -> Any:
    """A value of pandas as Python has it: lists for arrays, None for NaN and NaT."""
    if isinstance(value, np.ndarray):
        return [_plain(one) for one in value]
    if isinstance(value, np.generic):
        value = value.item()
    if isinstance(value, float) and np.isnan(value):
        return None
    return value


SETS = [("demo", "trans,perm"), ("demo:nli", "inv"), ("demo:qa", "trans,inv")]


@pytest.mark.filterwarnings("ignore:Exception ignored in")  # fastparquet leaves files open
@pytest.mark.parametrize("read", [_duckdb, _polars, _fastparquet], ids=lambda read: read.__name__.strip("_"))
@pytest.mark.parametrize(("source", "spec"), SETS)
def test_other_programs_read_the_shards(
    source: str, spec: str, read: Callable[[Path], dict[str, list[Any]]], tmp_path: Path
) -> None:
    out = make(spec, source, tmp_path / "set")
    for path in sorted((out / "data").iterdir()):
        table = pq.read_table(path)
        if read is _fastparquet:  # it gives None for lists of structs, whoever wrote them
            table = table.select([f.name for f in table.schema if not pa.types.is_nested(_element(f.type))])
        found = read(path)
        for name, values in table.to_pydict().items():
            assert found[name] == values, name


def _element(kind: pa.DataType) -> pa.DataType:
    return kind.value_type if pa.types.is_list(kind) else kind
