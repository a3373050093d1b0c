"""Arrow's reader of JSON lines gives what the reader of single lines gives, or nothing."""

from __future__ import annotations

import json
import tracemalloc
from pathlib import Path
from typing import Any

import pyarrow as pa
import pytest
from hypothesis import given
from hypothesis import strategies as st

from derivlang.core.errors import DataError
from derivlang.formats.jsonl import _by_arrow, _objects, _table, read, types
from derivlang.formats.rows import ROWS_PER_TABLE

SCHEMA = pa.schema([("text", pa.string()), ("n", pa.int64()), ("words", pa.list_(pa.string()))])


def one_by_one(lines: list[str]) -> pa.Table | None:
    """The table by the other reader; None where it refuses the lines."""
    try:
        return _table(_objects(Path("x"), range(1, len(lines) + 1), lines, frozenset(SCHEMA.names)), SCHEMA)
    except DataError:
        return None


def by_arrow(lines: list[str]) -> pa.Table | None:
    """The table by Arrow's reader; None where it does not take the lines."""
    return _by_arrow([line for line in lines if line and not line.isspace()], SCHEMA)


texts = st.text(st.sampled_from('ab "\\/{}[]:,\u00e9\u2028\U0001f600\ufeff\x7f'), max_size=6)
lists = st.lists(st.one_of(texts, texts, st.none(), st.integers(0, 3)), max_size=3)
numbers = st.one_of(st.integers(-9, 9), st.integers(-(2**65), 2**65), st.floats())
values = st.one_of(texts, lists, numbers, st.none(), st.booleans(), st.just({"text": "a"}), st.just("2020-01-01"))
usual = st.fixed_dictionaries({"text": texts, "n": st.integers(-9, 9), "words": st.lists(texts, max_size=3)})
odd = st.dictionaries(st.sampled_from(["text", "n", "words", "more"]), values, max_size=4)
row = '{"text":"a","n":1,"words":[]}'
spoilt = st.sampled_from(["", "{}", "}", "{", ",", "NaN", " ", row, '"n":2,', "\t", "0", "."])


@st.composite
def some_lines(draw: st.DrawFn) -> list[str]:
    rows = draw(st.lists(st.one_of(usual, usual, usual, odd), min_size=1, max_size=4))
    lines = [json.dumps(row, ensure_ascii=draw(st.booleans())) for row in rows]
    if draw(st.booleans()):
        which = draw(st.integers(0, len(lines) - 1))
        at = draw(st.integers(0, len(lines[which])))
        lines[which] = lines[which][:at] + draw(spoilt) + lines[which][at + draw(st.integers(0, 2)) :]
    blank = draw(st.sampled_from([[], [], [""], [" \u3000"]]))
    where = draw(st.integers(0, len(lines)))
    lines[where:where] = blank
    return lines if any(line and not line.isspace() for line in lines) else ["{}"]


@given(some_lines())
def test_it_gives_the_same_table_or_none(lines: list[str]) -> None:
    found = by_arrow(lines)
    assert found is None or found.equals(one_by_one([line for line in lines if line and not line.isspace()]))


@given(st.lists(usual, min_size=1, max_size=4), st.booleans())
def test_it_takes_usual_rows(rows: list[dict[str, Any]], ascii: bool) -> None:
    lines = [json.dumps(row, ensure_ascii=ascii) for row in rows]
    expected = one_by_one(lines)
    assert expected is not None
    found = by_arrow(lines)
    assert found is not None
    assert found.equals(expected)
    assert found.schema.equals(expected.schema)


@pytest.mark.parametrize(
    ("line", "id"),
    [
        ('{"text":"a","n":NaN}', "json"),
        ('{"text":"a","n":1}{"text":"b","n":2}', "json"),
        ('{"text":"a","n":1,"more":2}', "jsonl-keys"),
        ('{"text":"a"}', "jsonl-keys"),
        ("{}", "json-object"),
        ('{"text":"a","n":1,"n":2}', "json-key"),
        ('{"text":"a","n":18446744073709551616}', "jsonl-type"),
        ('{"text":5,"n":1}', "jsonl-type"),
        ('{"text":"\\ud800","n":1}', "json-surrogate"),
        ('\ufeff{"text":"a","n":1}', "json"),
    ],
)
@pytest.mark.parametrize("at", [1, ROWS_PER_TABLE + 1, ROWS_PER_TABLE + 2])
def test_bad_rows_are_named_wherever_they_stand(line: str, id: str, at: int, tmp_path: Path) -> None:
    path = tmp_path / "x.jsonl"
    rows = ['{"text":"a","n":1}'] * (ROWS_PER_TABLE + 2)
    rows.insert(at, line)
    path.write_text("".join(f"{row}\n" for row in rows), "utf-8")
    types = next(read(path, limit=1)).table.schema
    with pytest.raises(DataError) as error:
        list(read(path, types=types, required=frozenset(types.names)))
    assert (error.value.id, error.value.where) == (id, f"{path}:{at + 1}")


def test_dates_stay_text_and_null_stays_null(tmp_path: Path) -> None:
    path = tmp_path / "x.jsonl"
    rows = [{"text": "2020-01-01", "n": None if i % 5000 == 4999 else i} for i in range(2 * ROWS_PER_TABLE)]
    path.write_text("".join(f"{json.dumps(row)}\n" for row in rows), "utf-8")
    tables = [part.table for part in read(path)]
    assert pa.concat_tables(tables).to_pylist() == rows


def test_of_two_faults_the_first_is_named(tmp_path: Path) -> None:
    path = tmp_path / "x.jsonl"
    for at in (1, 4097):
        rows = [b'{"text":"%s","n":1}' % (b"a" * 700)] * 9000
        rows[at], rows[at + 3000] = b"{", b"\xff"  # in another block of text
        path.write_bytes(b"\n".join(rows))
        with pytest.raises(DataError) as error:
            list(read(path))
        assert (error.value.id, error.value.where) == ("json", f"{path}:{at + 1}")


def test_the_types_are_of_all_rows(tmp_path: Path) -> None:
    path = tmp_path / "x.jsonl"
    rows = [{"n": n} for n in range(2 * ROWS_PER_TABLE)] + [{"n": 0.5, "more": "a"}]
    path.write_text("".join(f"{json.dumps(row)}\n\n\r\n" for row in rows), "utf-8")
    found = types(path)
    assert found == pa.schema([("n", pa.float64()), ("more", pa.string())])
    assert sum(part.table.num_rows for part in read(path, types=found)) == len(rows)


@pytest.mark.parametrize("order", ["utf-16-le", "utf-16-be"])
def test_a_byte_that_is_not_utf16_is_named_by_its_line(order: str, tmp_path: Path) -> None:
    mark = "\ufeff".encode(order)
    rows = '{"text":"abc def","label":1}\n'.encode(order) * 4000  # more than a block of the decoder
    path = tmp_path / "a.jsonl"
    path.write_bytes(mark + rows + b"\xdc\x00\xdc\x00" + "\n".encode(order))
    with pytest.raises(DataError) as error:
        list(read(path, encoding="utf-16"))
    assert error.value.where == f"{path}:4001"


def test_bytes_without_a_line_end_are_refused_at_once(tmp_path: Path) -> None:
    path = tmp_path / "a.jsonl"
    path.write_bytes(b'{"text":"a"}\n' + b"\xff" * 50_000_000)
    tracemalloc.start()
    try:
        with pytest.raises(DataError, match="is not utf-8"):
            list(read(path))
        assert tracemalloc.get_traced_memory()[1] < 20e6
    finally:
        tracemalloc.stop()
