"""Parquet as `PageWriter` writes it is what pyarrow reads, value for value and type for type."""

from __future__ import annotations

import io

import numpy as np
import pyarrow as pa
import pytest
from hypothesis import given
from hypothesis import strategies as st
from pyarrow import parquet

from derivlang.core.arrow import list_array, string_array, to_arrow, to_numpy
from derivlang.store.pages import PageWriter, supports
from derivlang.store.thrift import array, i32, struct, varint

WORDS = pa.list_(pa.field("element", pa.dictionary(pa.int32(), pa.string()), nullable=False))
PLACES = pa.list_(pa.field("element", pa.int32(), nullable=False))
SCHEMA = pa.schema(
    [
        pa.field("document", pa.int64(), nullable=False),
        pa.field("key", pa.uint64(), nullable=False),
        pa.field("tokens", WORDS, nullable=False),
        pa.field("order", PLACES, nullable=False),
        pa.field("one", pa.int32(), nullable=False),
    ],
    metadata={"huggingface": "{}", "note": "ä" * 200},
)
TYPES = st.lists(st.text(st.characters(exclude_categories=["Cs"]), max_size=9), min_size=1, max_size=12, unique=True)


def group(rows: list[list[int]], types: list[str], places: list[int] | None = None) -> list[pa.Array]:
    """The columns of a row group whose words are codes into types."""
    offsets = np.cumsum([0, *map(len, rows)])
    codes = np.array([code for row in rows for code in row], np.int32)
    index = np.concatenate([np.zeros(0), *(np.arange(len(row)) for row in rows)]).astype(np.int32)
    order = index if places is None else np.array(places, np.int32)
    words = pa.DictionaryArray.from_arrays(to_arrow(codes), string_array(types))
    n = len(rows)
    keys = np.arange(n, dtype=np.uint64) * np.uint64(0x9E3779B97F4A7C15)
    lists = [fitted(list_array(offsets, words), WORDS), fitted(list_array(offsets, to_arrow(order)), PLACES)]
    return [to_arrow(np.arange(n)), to_arrow(keys), *lists, to_arrow(-np.arange(n, dtype=np.int32))]


def fitted(column: pa.Array, kind: pa.DataType) -> pa.Array:
    return pa.ListArray.from_buffers(kind, len(column), [None, column.buffers()[1]], children=[column.values])


def written(groups: list[list[pa.Array]], schema: pa.Schema = SCHEMA) -> bytes:
    out = io.BytesIO()
    writer = PageWriter(out, schema, "derivlang version 0")
    for columns in groups:
        writer.write(columns)
    writer.close()
    return out.getvalue()


def values(groups: list[list[pa.Array]]) -> dict[str, list[object]]:
    """The values that were written, from the arrays themselves."""
    return {
        name: [value for columns in groups for value in columns[i].to_pylist()] for i, name in enumerate(SCHEMA.names)
    }


@st.composite
def row_groups(draw: st.DrawFn) -> list[list[pa.Array]]:
    groups = []
    for _ in range(draw(st.integers(0, 3))):
        types = draw(TYPES)
        codes = st.integers(0, len(types) - 1)
        groups.append(group(draw(st.lists(st.lists(codes, max_size=20), min_size=1, max_size=30)), types))
    return groups


@given(row_groups())
def test_what_is_written_is_read(groups: list[list[pa.Array]]) -> None:
    with parquet.ParquetFile(io.BytesIO(written(groups))) as file:
        assert file.num_row_groups == len(groups)
        assert file.read().to_pydict() == values(groups)


def test_it_has_the_schema_that_the_library_writes() -> None:
    groups = [group([[0, 1], [], [1]], ["a", "b"])]
    other = io.BytesIO()
    with parquet.ParquetWriter(other, SCHEMA, store_schema=False) as writer:
        writer.write_table(pa.Table.from_arrays(groups[0], schema=SCHEMA))
        writer.add_key_value_metadata(SCHEMA.metadata)
    ours, theirs = (parquet.ParquetFile(io.BytesIO(data)) for data in (written(groups), other.getvalue()))
    assert str(ours.schema).splitlines()[1:] == str(theirs.schema).splitlines()[1:]  # the first names an address
    assert ours.schema_arrow.equals(theirs.schema_arrow)
    assert ours.metadata.metadata == theirs.metadata.metadata == SCHEMA.metadata


@pytest.mark.parametrize("n_types", [1, 2, 255, 256, 257, 65_535, 65_536, 65_537, 70_000])
def test_indices_of_each_width(n_types: int) -> None:
    rng = np.random.default_rng(n_types)
    codes = np.concatenate([np.arange(n_types), rng.integers(0, n_types, 1003)])
    groups = [group([codes.tolist(), [], [0]], [f"type {i}" for i in range(n_types)])]
    assert parquet.read_table(io.BytesIO(written(groups))).to_pydict() == values(groups)


@pytest.mark.parametrize("places", [[0, 255, 256], [0, 65_535, 2], [65_536, 0, 1], [-1, 0, 1], [2**31 - 1, 0, 0]])
def test_places_of_each_size(places: list[int]) -> None:
    groups = [group([[0, 0], [0]], ["a"], places)]
    assert parquet.read_table(io.BytesIO(written(groups))).to_pydict() == values(groups)


def test_a_slice_of_a_column() -> None:
    columns = group([[0], [1, 0], [], [1, 1, 1], [0]], ["a", "b"])
    for first, last in [(1, 4), (2, 3), (3, 5), (0, 0)]:
        part = [column[first:last] for column in columns]
        assert parquet.read_table(io.BytesIO(written([part]))).to_pydict() == values([part])


def test_the_metadata_says_what_was_written() -> None:
    groups = [group([[0, 1], [1]], ["a", "b"]), group([[0]], ["c"])]
    data = written(groups)
    metadata = parquet.ParquetFile(io.BytesIO(data)).metadata
    assert (metadata.num_rows, metadata.num_row_groups, metadata.created_by) == (3, 2, "derivlang version 0")
    chunks = [metadata.row_group(g).column(c) for g in range(2) for c in range(len(SCHEMA))]
    at = 4  # after the magic number; the chunks lie one after the other
    for chunk in chunks:
        assert (chunk.dictionary_page_offset or chunk.data_page_offset) == at
        at += chunk.total_compressed_size
    assert at == len(data) - 8 - metadata.serialized_size
    assert [chunk.num_values for chunk in chunks[:5]] == [2, 2, 3, 3, 2]
    assert {chunk.compression for chunk in chunks} == {"ZSTD", "UNCOMPRESSED"}


@pytest.mark.parametrize(
    ("field", "yes"),
    [
        (pa.field("a", pa.int64(), nullable=False), True),
        (pa.field("a", WORDS, nullable=False), True),
        (pa.field("a", pa.int64()), False),
        (pa.field("a", pa.list_(pa.int32()), nullable=False), False),
        (pa.field("a", pa.list_(pa.field("element", pa.string(), nullable=False)), nullable=False), False),
        (pa.field("a", pa.string(), nullable=False), False),
        (pa.field("a", pa.list_(pa.field("element", PLACES, nullable=False)), nullable=False), False),
    ],
)
def test_what_it_supports(field: pa.Field, yes: bool) -> None:
    assert supports(pa.schema([field])) is yes


def test_thrift() -> None:
    assert (varint(0), varint(127), varint(128), varint(300)) == (b"\0", b"\x7f", b"\x80\x01", b"\xac\x02")
    assert struct({1: i32(1), 3: None, 4: i32(64)}) == (12, b"\x15\x02\x35\x80\x01\0")
    assert array([i32(1)] * 15)[1][:2] == b"\xf5\x0f"  # 15 and more: the length stands apart
    assert array([i32(1)] * 14)[1][:1] == b"\xe5"


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
