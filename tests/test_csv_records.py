"""Records of CSV: the lines at which they begin, and the first fault, which is named with its line."""

from __future__ import annotations

import gzip
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest

from derivlang.core.errors import DataError
from derivlang.formats import delimited


def outcome(function: Any, *arguments: Any) -> Any:
    try:
        return function(*arguments)
    except DataError as error:
        return error.where, error.id


def fault_of(text: bytes, path: Path, **asked: Any) -> Any:
    path.write_bytes(text)
    return outcome(lambda: [part.table.num_rows for part in delimited.read_csv(path, **asked)])


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


def test_fields_that_are_too_long_are_refused_wherever_they_stand(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(delimited, "LONGEST", 1 << 21)
    path = tmp_path / "x.csv"
    field = b"x" * (delimited.LONGEST + 1)
    for before in (b"", b"a,1\n" * 5000):
        for after in (b"", b"a,1\n" * 5000):
            text = b"text,n\n" + before + field + b",1\n" + after
            assert fault_of(text, path) == (f"{path}:{2 + before.count(b'a')}", "csv")
    assert fault_of(b"text,n\n" + b"\n" * (delimited.LONGEST + 1), path) == (str(path), "empty-file")


def test_records_begin_where_their_first_field_does(tmp_path: Path) -> None:
    path = tmp_path / "x.csv"
    rows = [("a" * (i % 700) + '\n"quoted", too', str(i)) for i in range(9000)]
    path.write_text("text,n\n" + "".join('"{}",{}\n'.format(a.replace('"', '""'), n) for a, n in rows), "utf-8")
    parts = list(delimited.read_csv(path))
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
        for part in delimited.read_csv(path):
            yield from part.lines.tolist()

    last = len(lines) if record == '"a' else at + 1
    assert outcome(lambda: list(rows())) == (f"{path}:{last}", id)
