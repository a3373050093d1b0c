"""Arrow arrays over the memory of numpy arrays, and columns of strings of several kinds in one shard."""

from __future__ import annotations

from pathlib import Path

import numpy as np
import pyarrow as pa
import pytest
from pyarrow import parquet

from derivlang.core.arrow import list_array, string_array, to_arrow, to_numpy
from derivlang.core.schema import Field, Schema, Side
from derivlang.store.shards import ShardWriter


def test_files_of_one_source_may_differ_in_the_width_of_strings(tmp_path: Path) -> None:
    schema = Schema((Side("", words="tokens"),), (Field("xpos", "tags"),))
    narrow = pa.ListArray.from_arrays([0, 2, 3], pa.array(["b", "a", "b"]).dictionary_encode())
    wide = pa.array([["c"], ["a", "b"]], pa.list_(pa.large_string()))
    for number, batches in enumerate(((narrow, wide), (wide, narrow))):
        writer = ShardWriter(tmp_path / f"{number}", schema)
        for column in batches:
            writer.write({"xpos": column})
        writer.finish()
        expected = [row for column in batches for row in column.to_pylist()]
        assert parquet.read_table(tmp_path / f"{number}")["xpos"].to_pylist() == expected


def test_arrow_and_numpy_hold_the_same() -> None:
    for values in ([], [1, 2, 3]):
        for dtype in (np.int8, np.int32, np.int64, np.uint32, np.uint64):
            column = to_arrow(np.array(values, dtype))
            assert column.to_pylist() == values
            assert to_numpy(column[1:]).tolist() == values[1:]
            assert to_numpy(column).dtype == dtype
    flags = np.array([True, False, True] * 7)
    assert to_arrow(flags).to_pylist() == flags.tolist()
    assert to_numpy(to_arrow(flags)[2:]).tolist() == flags[2:].tolist()
    assert to_numpy(pa.chunked_array([[1], [2]])).tolist() == [1, 2]
    with pytest.raises(ValueError, match="1 nulls"):
        to_numpy(pa.array([1, None]))
    assert string_array(["", "ä", "b"]).to_pylist() == ["", "ä", "b"]
    with pytest.raises(ValueError, match="2147483648 values"):
        list_array(np.array([0, 2**31]), to_arrow(np.zeros(1)))
