"""Arrow's reader of CSV gives what `csv.reader` gives for the whole file, with the same messages."""

from __future__ import annotations

import gzip
from collections.abc import Iterator
from itertools import islice
from pathlib import Path
from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st

from derivlang.core.errors import DataError
from derivlang.formats import csv, stretches

bits = st.sampled_from(
    ['"', '"', '""', ",", ",", "a", "b c", "\n", "\n", "\r\n", "\r", " ", "é", ";", "\ufeff", "\u2028"]
)
fields = st.sampled_from(["a", "", "b c", '"a,b"', '"a\nb"', '"a ""b"""', '""', 'a"b', "é", '"a\r\nb"'])
usual = st.lists(st.tuples(fields, fields).map(",".join), min_size=1, max_size=9).map("\n".join)
files = st.one_of(st.lists(bits, max_size=24).map("".join), usual, st.tuples(usual, bits, usual).map("".join))


@pytest.fixture(autouse=True, scope="module")
def _any_length() -> Iterator[None]:
    """Let Arrow try texts of any length, not only those that take Python's reader longer."""
    with pytest.MonkeyPatch.context() as patch:
        patch.setattr(stretches, "SHORT", 0)
        yield


def whole(path: Path, columns: list[str], delimiter: str, limit: int | None) -> list[tuple[int, list[str]]]:
    """The records by `csv.reader` alone."""
    rows: list[tuple[int, list[str]]] = []
    for line, record in islice(csv._records(path, "utf-8", delimiter), limit):
        if len(record) != len(columns):
            raise DataError("", where=f"{path}:{line}", id="csv-columns")
        rows.append((line, record))
    if not rows and limit != 0:
        raise DataError("", where=str(path), id="empty-file")
    return rows


def read(path: Path, columns: list[str], delimiter: str, limit: int | None) -> list[tuple[int, list[str]]]:
    parts = csv.read(path, columns=columns, header=False, delimiter=delimiter, limit=limit)
    return [
        (line, list(row.values()))
        for part in parts
        for line, row in zip(part.lines.tolist(), part.table.to_pylist(), strict=True)
    ]


def outcome(function: Any, *arguments: Any) -> Any:
    try:
        return function(*arguments)
    except DataError as error:
        return error.where, error.id


@pytest.fixture(scope="module")
def place(tmp_path_factory: pytest.TempPathFactory) -> Path:
    return tmp_path_factory.mktemp("csv") / "x.csv"


@given(
    files, st.sampled_from(["a", "ab", "ab", "abc"]), st.sampled_from([",", ",", ";"]), st.sampled_from([None, 0, 2, 3])
)
def test_it_gives_the_records_of_the_whole_file(
    place: Path, text: str, columns: str, delimiter: str, limit: int | None
) -> None:
    with pytest.MonkeyPatch.context() as patch:
        patch.setattr(csv, "ROWS_PER_TABLE", 2)
        place.write_bytes(text.encode())
        asked = (place, list(columns), delimiter, limit)
        assert outcome(read, *asked) == outcome(whole, *asked)


def fault_of(text: bytes, path: Path, **asked: Any) -> Any:
    path.write_bytes(text)
    return outcome(lambda: [part.table.num_rows for part in csv.read(path, **asked)])


def test_the_first_fault_is_named_and_none_behind_the_limit(tmp_path: Path) -> None:
    path = tmp_path / "x.csv"
    rows = [b"text,n", *[b"some words,1"] * 100_000]  # a block of text has 80,000
    rows[2] = b"a,b,c"
    rows[95_000] = b"\xff,1"
    text = b"\n".join(rows)
    assert fault_of(text, path) == (f"{path}:3", "csv-columns")
    assert fault_of(text, path, limit=1) == [1]
    rows[2] = b"a\rb,1"
    assert fault_of(b"\n".join(rows), path) == (f"{path}:3", "csv")
    rows[2] = b"a,1"
    text = b"\n".join(rows)
    assert fault_of(text, path) == (f"{path}:95001", "encoding")
    assert fault_of(text, path, limit=5000) == [4096, 904]
    packed = path.with_suffix(".csv.gz")
    assert fault_of(gzip.compress(text[: 1 << 20])[:-9], packed)[1] == "truncated"
    rows[2] = b"a,b,c"
    assert fault_of(gzip.compress(b"\n".join(rows[:90_000]))[:-9], packed) == (f"{packed}:3", "csv-columns")


def test_fields_that_are_too_long_are_refused_wherever_they_stand(tmp_path: Path) -> None:
    path = tmp_path / "x.csv"
    field = b"x" * (csv.LONGEST + 1)
    for before in (b"", b"a,1\n" * 5000):
        for after in (b"", b"a,1\n" * 5000):
            text = b"text,n\n" + before + field + b",1\n" + after
            assert fault_of(text, path) == (f"{path}:{2 + before.count(b'a')}", "csv")
    assert fault_of(b"text,n\n" + b"\n" * (csv.LONGEST + 1), path) == (str(path), "empty-file")


def test_arrow_takes_usual_files(tmp_path: Path) -> None:
    """Also records that go on in the next block of text, under a header."""
    taken: list[int] = []
    real = csv.table_of

    def table(*arguments: Any) -> Any:
        found = real(*arguments)
        taken.append(-1 if found is None else found.num_rows)
        return found

    path = tmp_path / "x.csv"
    rows = [("a" * (i % 700) + '\n"quoted", too', str(i)) for i in range(9000)]
    path.write_text("text,n\n" + "".join('"{}",{}\n'.format(a.replace('"', '""'), n) for a, n in rows), "utf-8")
    with pytest.MonkeyPatch.context() as patch:
        patch.setattr(csv, "table_of", table)
        parts = list(csv.read(path))
    assert taken == [4096, 4096, 808]
    assert [tuple(row.values()) for part in parts for row in part.table.to_pylist()] == rows
    assert [line for part in parts for line in part.lines.tolist()] == list(range(2, 18002, 2))


@pytest.mark.parametrize("at", [1, 5000])
@pytest.mark.parametrize(
    ("record", "id"), [('"a"b,1', "csv"), ("a,b,c", "csv-columns"), ("a", "csv-columns"), ('"a', "csv")]
)
def test_bad_records_are_named_wherever_they_stand(record: str, id: str, at: int, tmp_path: Path) -> None:
    path = tmp_path / "x.csv"
    lines = ["text,n", *["a,1"] * 6000]
    lines.insert(at, record)
    path.write_text("\n".join(lines), "utf-8")

    def rows() -> Iterator[int]:
        for part in csv.read(path):
            yield from part.lines.tolist()

    last = len(lines) if record == '"a' else at + 1
    assert outcome(lambda: list(rows())) == (f"{path}:{last}", id)
