"""Rows of list columns, and strings as codes: the values, dictionaries and bytes that pyarrow makes of them."""

from __future__ import annotations

import io
from pathlib import Path

import numpy as np
import pyarrow as pa
import pyarrow.compute as pc
import pytest
from hypothesis import given
from hypothesis import strategies as st
from pyarrow import parquet

from derivlang.core.arrow import coded, decoded, list_array, string_array, to_arrow, to_numpy
from derivlang.core.list_rows import first_known, only_rows, take_rows
from derivlang.core.schema import Field, Schema, Side
from derivlang.store.shards import ShardWriter

WORDS = st.sampled_from(["", "a", "b", "été", "_", "ab"])
LISTS = st.lists(st.lists(WORDS, max_size=4), max_size=8)


def rows_of(values: list[list[str]], kind: str) -> pa.Array:
    plain = pa.array(values, pa.list_(pa.string()))
    if kind == "plain":
        return plain
    if kind == "struct":
        return pa.array(
            [[{"id": w, "form": None} for w in row] for row in values],
            pa.list_(pa.struct([("id", pa.string()), ("form", pa.string())])),
        )
    names = ["unused", "b", "ab", "a", "_", "été", ""]
    codes = pa.array([names.index(word) for row in values for word in row], pa.int32())
    return pa.ListArray.from_arrays(plain.offsets, pa.DictionaryArray.from_arrays(codes, pa.array(names)))


@pytest.mark.parametrize("kind", ["plain", "coded", "struct"])
@given(data=st.data(), values=LISTS)
def test_only_rows_is_if_else(kind: str, values: list[list[str]], data: st.DataObject) -> None:
    column = rows_of(values, kind)
    rows = np.array(data.draw(st.lists(st.booleans(), min_size=len(values), max_size=len(values))), bool)
    expected = pc.if_else(to_arrow(rows), column, pa.nulls(len(column), column.type))
    found = only_rows(column, rows)
    found.validate(full=True)
    assert found.to_pylist() == expected.to_pylist()
    if kind == "coded":  # the codes that are written, too
        assert found.flatten().equals(expected.flatten())
        assert found.flatten().dictionary.equals(expected.flatten().dictionary)


@pytest.mark.parametrize("kind", ["plain", "coded"])
@given(data=st.data(), values=LISTS, other=LISTS)
def test_take_rows_is_take(kind: str, values: list[list[str]], other: list[list[str]], data: st.DataObject) -> None:
    n = min(len(values), len(other))
    rows = np.array(data.draw(st.lists(st.integers(0, n - 1), max_size=9)) if n else [], np.int32)
    columns = {"a": rows_of(values[:n], kind), "same": rows_of(values[:n], "plain"), "b": rows_of(other[:n], kind)}
    for name, found in take_rows(columns, rows).items():
        expected = columns[name].take(to_arrow(rows))
        found.validate(full=True)
        assert found.equals(expected)
        if name != "same" and kind == "coded":
            assert found.values.dictionary.equals(columns[name].values.dictionary)


@pytest.mark.parametrize("kind", ["plain", "coded", "struct"])
@given(data=st.data(), values=LISTS)
def test_first_known_is_coalesce(kind: str, values: list[list[str]], data: st.DataObject) -> None:
    n = len(values)
    first, second = (
        only_rows(
            rows_of(data.draw(st.lists(st.lists(WORDS, max_size=4), min_size=n, max_size=n)), kind),
            np.array(data.draw(st.lists(st.booleans(), min_size=n, max_size=n)), bool),
        )
        for _ in range(2)
    )
    found = first_known(first, second)
    found.validate(full=True)
    expected = pc.coalesce(decoded(first), decoded(second).cast(decoded(first).type))
    assert decoded(found).to_pylist() == expected.to_pylist()


@given(st.lists(WORDS, min_size=1, max_size=12), st.data())
def test_coded_is_what_pyarrow_makes_of_the_strings(values: list[str], data: st.DataObject) -> None:
    codes = np.array(data.draw(st.lists(st.integers(0, len(values) - 1), max_size=30)), np.int32)
    strings = pa.array(values, pa.string())
    expected = strings.take(pa.array(codes)).dictionary_encode()
    found = coded(codes, strings)
    assert found.equals(expected)
    assert found.dictionary.equals(expected.dictionary)


def test_a_shard_has_the_same_bytes_from_codes_as_from_strings(tmp_path: Path) -> None:
    schema = Schema((Side("", words="tokens"),), (Field("xpos", "tags"),))
    random = np.random.default_rng(1)
    values = pa.array([f"tag {n}" for n in range(900)])
    batches = [random.integers(0, 900, 5000).astype(np.int32) for _ in range(3)]
    offsets = pa.array(np.arange(0, 5001, 20, dtype=np.int32))
    written = []
    for name in ("codes", "strings"):
        writer = ShardWriter(tmp_path / name, schema)
        for codes in batches:
            flat = coded(codes, values) if name == "codes" else values.take(pa.array(codes))
            writer.write({"xpos": pa.ListArray.from_arrays(offsets, flat)})
        writer.close()
        written.append((tmp_path / name).read_bytes())
    assert written[0] == written[1]
    assert parquet.read_table(io.BytesIO(written[0])).num_rows == 750


def test_files_of_one_source_may_differ_in_the_width_of_strings(tmp_path: Path) -> None:
    schema = Schema((Side("", words="tokens"),), (Field("xpos", "tags"),))
    narrow = pa.ListArray.from_arrays([0, 2, 3], coded(np.array([1, 0, 1], np.int32), pa.array(["a", "b"])))
    wide = pa.array([["c"], ["a", "b"]], pa.list_(pa.large_string()))
    for number, batches in enumerate(((narrow, wide), (wide, narrow))):
        writer = ShardWriter(tmp_path / f"{number}", schema)
        for column in batches:
            writer.write({"xpos": column})
        writer.close()
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
