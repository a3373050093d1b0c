"""Every format of the registry keeps the same promises, on good files and on bad ones.

A format without a sample here fails: it is a line in `SAMPLES`.
"""

from __future__ import annotations

import gzip
import io
import json
from collections.abc import Callable, Iterator
from pathlib import Path
from typing import Any

import numpy as np
import pyarrow as pa
import pyarrow.parquet as pq
import pytest

from derivlang.core.errors import DataError, DerivlangError, UsageError
from derivlang.formats import base as registry
from derivlang.formats.base import Format, ReadOptions, find_format, format_names, format_of, formats, suffixes
from derivlang.formats.rows import Rows
from derivlang.formats.words import Splitter
from derivlang.sources.find import find
from derivlang.sources.request import SourceRequest
from tests.helpers import conllu, make, read_text, right, undone

QUESTIONS = {
    "version": "1.1",
    "data": [
        {
            "title": "T",
            "paragraphs": [
                {
                    "context": "Zoë lives in Paris .",
                    "qas": [
                        {"id": "a", "question": "Where ?", "answers": [{"text": "Paris", "answer_start": 13}]},
                        {"id": "b", "question": "Who ?", "answers": [{"text": "Zoë", "answer_start": 0}]},
                    ],
                },
                {"context": "No one .", "qas": [{"id": "c", "question": "Who ?", "answers": []}]},
            ],
        }
    ],
}


def parquet(table: pa.Table) -> bytes:
    sink = io.BytesIO()
    pq.write_table(table, sink)
    return sink.getvalue()


SAMPLES: dict[str, bytes] = {
    "text": "Zoë slept .\n\nShe woke .\n".encode(),
    "conllu": conllu([("s1", ["1 Zoë _ X _ _ 0 root _ _", "2 slept _ X _ _ 1 dep _ _"])]).encode(),
    "jsonl": '{"tokens":["Zoë","slept"],"label":3}\n{"tokens":["She","woke"],"label":4}\n'.encode(),
    "tagged": "Zoë\tB-PER\nslept\tO\n\nShe\tO\n".encode(),
    "delimited": "text\tlabel\nZoë slept .\tgood\nShe woke .\tbad\n".encode(),
    "csv": 'text,label\r\n"Zoë, who ""slept"",\nwoke .",good\r\nShe woke .,\r\n'.encode(),
    "parquet": parquet(pa.table({"text": ["Zoë slept .", "She woke ."], "label": ["good", "bad"]})),
    "squad": json.dumps(QUESTIONS, ensure_ascii=False).encode(),
    "bracketed": "(S (NP (NNP Zoë)) (VP slept))\n\n( (S (NP She)\n  (VP woke (-NONE- *)) (. .)) )\n".encode(),
}
ALL = pytest.mark.parametrize("name", SAMPLES)
TEXTUAL = [name for name in SAMPLES if not find_format(name).binary]


def written(folder: Path, name: str, content: bytes, packed: str = "") -> Path:
    path = folder / f"x.test{find_format(name).suffixes[0]}{packed}"
    path.write_bytes(content)
    return path


def contents(format: Format, path: Path) -> list[Any]:
    """The rows of a file, or its lines, where they are running text."""
    if format.running:
        return [text for batch in read_text(path, Splitter("space")) for text in batch.texts().to_pylist()]
    options = format.looked_at([path], ReadOptions()).options
    return [row for rows in format.rows(path, options=options) for row in rows.table.to_pylist()]


def test_every_format_has_a_sample() -> None:
    assert set(SAMPLES) == set(format_names())
    assert {format.name for format in formats()} == set(format_names())


@ALL
def test_a_file_is_found_by_each_of_its_suffixes(name: str, tmp_path: Path) -> None:
    format = find_format(name)
    assert format.suffixes
    for suffix in format.suffixes:
        assert suffix == suffix.lower()
        assert suffix in suffixes()
        for packed in ("", ".gz"):
            path = tmp_path / f"x{suffix}{packed}"
            path.write_bytes(gzip.compress(SAMPLES[name]) if packed else SAMPLES[name])
            assert format_of(path).name == name


@ALL
def test_it_is_read_made_verified_and_undone(name: str, tmp_path: Path) -> None:
    """What `undo` writes is read as the same rows."""
    path = written(tmp_path, name, SAMPLES[name])
    out = make("trans,inv", path, tmp_path / "out", words="space")
    right(out)
    format = find_format(name)
    kind = format if format.write is not None or format.running else find_format("jsonl")
    (tmp_path / "back").mkdir()
    again = written(tmp_path / "back", kind.name, undone(out, suffix=kind.suffixes[0]))
    assert contents(kind, again) == contents(format, path)
    corpus = find(SourceRequest(str(path)))
    assert [part.split for part in corpus.parts] == ["test"]


@ALL
def test_it_counts_what_it_reads(name: str, tmp_path: Path) -> None:
    path, format = written(tmp_path, name, SAMPLES[name]), find_format(name)
    options = format.looked_at([path], ReadOptions()).options
    read = list(format.rows(path, options=options))
    documents = np.concatenate([rows.documents for rows in read])
    assert format.documents(path, options=options)[0] == len(set(documents.tolist())) == documents[-1] + 1
    assert sum(len(rows.lines) for rows in read) == sum(rows.table.num_rows for rows in read)
    for limit in range(3):
        few = [rows.documents for rows in format.rows(path, limit=limit, options=options)]
        assert len(set(np.concatenate([[], *few]).tolist())) == min(limit, documents[-1] + 1)


def fault(name: str, path: Path) -> DerivlangError:
    for call in (lambda: make("inv", path, path.parent / "out"), lambda: contents(find_format(name), path)):
        with pytest.raises(DerivlangError) as caught:
            call()
    assert str(path) in str(caught.value)
    assert not (path.parent / "out" / "derivlang.json").exists()
    return caught.value


@ALL
def test_an_empty_file(name: str, tmp_path: Path) -> None:
    path = written(tmp_path, name, b"")
    if not find_format(name).running:
        assert fault(name, path).id == "empty-file"
    with pytest.raises(DataError, match=r"\[empty-file\]|no row|no words"):
        make("inv", path, tmp_path / "out")


@pytest.mark.parametrize("name", TEXTUAL)
@pytest.mark.parametrize("left", [0.9, 0.5, 0.1])
def test_a_gz_file_that_is_cut(name: str, left: float, tmp_path: Path) -> None:
    packed = gzip.compress(SAMPLES[name])
    path = written(tmp_path, name, packed[: int(left * len(packed))], ".gz")
    assert fault(name, path).id == "truncated"


@pytest.mark.parametrize("name", TEXTUAL)
@pytest.mark.parametrize(("byte", "id"), [(b"\xeb", "encoding"), (b"\0", "nul-byte")])
def test_bytes_that_are_no_text(name: str, byte: bytes, id: str, tmp_path: Path) -> None:
    content = SAMPLES[name].replace("ë".encode(), byte)
    assert fault(name, written(tmp_path, name, content)).id == id


def test_parquet_with_strings_that_are_not_utf8(tmp_path: Path) -> None:
    """pyarrow itself raises only when such a value is converted, far from its file."""
    bad = pa.array([b"fine", b"caf\xe9"])
    text = pa.Array.from_buffers(pa.string(), 2, bad.buffers())
    lists = pa.ListArray.from_arrays(pa.array([0, 1, 2], pa.int32()), text)
    for table in ({"text": text}, {"tokens": lists}, {"text": ["a", "b"], "other": text}):
        path = written(tmp_path, "parquet", parquet(pa.table(table)))
        assert "UTF8" in fault("parquet", path).what


RAISED = [
    RecursionError(),
    KeyError("x"),
    pa.ArrowInvalid("no"),
    MemoryError(),
    OverflowError("big"),
    UnicodeError("u"),
]


@pytest.mark.parametrize("error", RAISED, ids=lambda error: type(error).__name__)
@pytest.mark.parametrize("after", [0, 1])
def test_whatever_a_reader_raises_is_one_error(
    error: Exception, after: int, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    def read(path: Path, *, encoding: str, limit: int | None) -> Iterator[Rows]:
        for at in range(after):
            yield Rows(path, pa.table({"tokens": [["a"]]}), np.array([7]), np.array([at]))
        raise error

    monkeypatch.setattr(registry.FORMATS, "added", {})
    registry.register(Format(name="mine", suffixes=(".mine",), read=read))
    path = tmp_path / "x.mine"
    path.write_text("x")
    with pytest.raises(DataError) as caught:
        list(find_format("mine").rows(path))
    assert caught.value.where == (f"{path} (after line 7)" if after else str(path))
    assert "mine file" in caught.value.what
    for call in (lambda: find_format("mine").documents(path), lambda: make("inv", path, tmp_path / "out")):
        with pytest.raises(DataError, match=r"x\.mine"):
            call()


def test_an_unknown_format_is_an_error_with_near_names() -> None:
    with pytest.raises(UsageError, match=r"there is no format 'conllx'; did you mean conllu"):
        find_format("conllx")


@pytest.mark.parametrize("call", [format_of, lambda path: find(SourceRequest(str(path)))])
def test_a_suffix_that_no_format_has(call: Callable[[Path], Any], tmp_path: Path) -> None:
    path = tmp_path / "x.docx"
    path.write_text("x")
    with pytest.raises(UsageError, match=r"no format has the suffix '\.docx'.*\n.*\.conllu, \.jsonl"):
        call(path)
