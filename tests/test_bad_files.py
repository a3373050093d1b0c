"""Each fault of a file is one clear message: the right id, the right line, and what to do."""

from __future__ import annotations

import gzip
import io
import json
import os
from collections.abc import Callable, Iterator
from pathlib import Path
from typing import Any

import numpy as np
import pyarrow as pa
import pyarrow.parquet as pq
import pytest
import zstandard

from derivlang.core.errors import DataError, DerivlangError, LayerError, UsageError
from derivlang.core.layers.nodes import NODE_FIELDS, NODES, Nodes
from derivlang.formats import conllu, delimited, jsonl, opening, parquet, squad, tagged
from derivlang.formats.opening import open_bytes, open_lines
from derivlang.formats.rows import ROWS_PER_TABLE, Rows
from tests.commands import run
from tests.fuzz.forge import forge


def fault(path: Path, content: str | bytes, read: Callable[..., Any], **options: Any) -> DerivlangError:
    """The error of reading such a file; its message is whole."""
    path.write_bytes(content.encode("utf-8", "surrogatepass") if isinstance(content, str) else content)
    with pytest.raises(DerivlangError) as caught:
        list(read(path, **options))
    error = caught.value
    assert error.where is not None
    assert error.where.startswith(str(path))
    assert error.fix
    assert not error.what.endswith(".")
    return error


def line_of(error: DerivlangError) -> int:
    """The line in `file:line` or `file:line (sent_id …)`."""
    assert error.where is not None
    return int(error.where.partition(" (")[0].rpartition(":")[2])


# opening


@pytest.mark.parametrize("block", [1, 5, 1 << 20])
def test_encoding_names_line_offset_and_byte(tmp_path: Path, monkeypatch: pytest.MonkeyPatch, block: int) -> None:
    monkeypatch.setattr(opening, "BLOCK", block)
    error = fault(tmp_path / "x.txt", "né\nça\nx".encode() + b"\xe9t\xe9\n", open_lines)
    assert (error.id, line_of(error)) == ("encoding", 3)
    assert "0xe9 at offset 9 " in error.what
    assert ("mixes encodings" if block > 5 else "--encoding") in str(error.fix)


@pytest.mark.parametrize("block", [1, 1 << 20])
def test_a_character_cut_at_the_end_of_the_file(tmp_path: Path, monkeypatch: pytest.MonkeyPatch, block: int) -> None:
    monkeypatch.setattr(opening, "BLOCK", block)
    error = fault(tmp_path / "x.txt", "a\né".encode()[:-1], open_lines)
    assert (error.id, line_of(error)) == ("encoding", 2)
    assert "0xc3 at offset 2 " in error.what


@pytest.mark.parametrize(("encoding", "content"), [("gb18030", b"a\n\xff\n"), ("shift_jis", b"a\nb\x81\xff\n")])
def test_encodings_of_several_bytes(tmp_path: Path, encoding: str, content: bytes) -> None:
    error = fault(tmp_path / "x.txt", content, open_lines, encoding=encoding)
    assert (error.id, line_of(error)) == ("encoding", 2)


def test_utf16_is_recognised(tmp_path: Path) -> None:
    error = fault(tmp_path / "x.txt", "abc\n".encode("utf-16"), open_lines)
    assert (error.id, line_of(error)) == ("encoding", 1)
    assert "utf-16" in str(error.fix)
    error = fault(tmp_path / "x.txt", "abc\n".encode("utf-16-be"), open_lines, encoding="utf-16")
    assert error.id == "encoding"
    error = fault(tmp_path / "x.txt", "a\nb\n".encode("utf-16-le"), open_lines)
    assert (error.id, line_of(error)) == ("nul-byte", 1)


@pytest.mark.parametrize("encoding", ["utf9", "hex"])
def test_unknown_encoding(tmp_path: Path, encoding: str) -> None:
    (tmp_path / "x.txt").write_text("a")
    with pytest.raises(UsageError, match=encoding) as caught:
        list(open_lines(tmp_path / "x.txt", encoding))
    assert caught.value.id == "unknown-encoding"


@pytest.mark.parametrize("content", [b"a\nb\0\n", b"a\n\0", b"a\r\n\0\r\nb"])
def test_nul_bytes(tmp_path: Path, content: bytes) -> None:
    error = fault(tmp_path / "x.txt", content, open_lines)
    assert (error.id, line_of(error)) == ("nul-byte", 2)


CONTENT = os.urandom(200_000).hex().encode() + b"\n"
GZIPPED, ZSTANDARD = gzip.compress(CONTENT), zstandard.ZstdCompressor(write_checksum=True).compress(CONTENT)


@pytest.mark.parametrize("name", ["x.gz", "x.zst"])
@pytest.mark.parametrize("damage", ["cut late", "cut early", "cut by one", "changed", "another format"])
def test_damaged_compressed_files(tmp_path: Path, name: str, damage: str) -> None:
    whole = GZIPPED if name == "x.gz" else ZSTANDARD
    content = {
        "cut late": whole[:150_000],
        "cut early": whole[:5],
        "cut by one": whole[:-1],
        "changed": whole[:90_000] + bytes(20) + whole[90_020:],
        "another format": b"not compressed at all\n",
    }[damage]
    assert fault(tmp_path / name, content, open_lines).id == "truncated"


@pytest.mark.parametrize("name", ["x.txt.gz", "x.jsonl.gz", "x.conllu.gz", "x.tsv.gz", "x.csv.zst", "x.json.gz"])
def test_a_line_that_a_small_file_expands_to(tmp_path: Path, name: str, monkeypatch: pytest.MonkeyPatch) -> None:
    """4 MiB in 4 KiB, against a limit of 1 MiB for a line, and of 2 MiB for JSON, which is often one line."""
    monkeypatch.setattr(opening, "LIMIT", 2 << 20)
    monkeypatch.setattr(opening, "LONGEST_LINE", 1 << 20)
    line = b'{"text":"a"}\n' + b"a" * (4 << 20)
    (tmp_path / name).write_bytes(zstandard.compress(line) if name.endswith(".zst") else gzip.compress(line))
    told = run("make", "--t", "inv", tmp_path / name, "-o", tmp_path / "out", code=1).err
    most = 2 if name == "x.json.gz" else 1
    assert f"{name}:2: the line of a compressed file has more than {most} MiB" in told
    assert "[too-large]" in told
    assert not (tmp_path / "out").exists()


def test_paths_that_are_no_files(tmp_path: Path) -> None:
    (tmp_path / "fr.conllu").touch()
    for path, id, hint in [
        (tmp_path / "ft.conllu", "missing-file", "did you mean fr.conllu?"),
        (tmp_path / "no" / "x", "missing-file", "does not exist either"),
        (tmp_path, "directory", "name a file"),
    ]:
        for opened in (open_bytes, lambda p: list(open_lines(p)), parquet.count):
            with pytest.raises(DataError) as caught:
                opened(path)
            assert (caught.value.id, caught.value.where) == (id, str(path))
            assert hint in str(caught.value.fix)


@pytest.mark.skipif(os.geteuid() == 0, reason="root may read every file")
def test_unreadable_file(tmp_path: Path) -> None:
    path = tmp_path / "x"
    path.touch(0o000)
    with pytest.raises(DataError) as caught:
        open_bytes(path)
    assert caught.value.id == "unreadable-file"


@pytest.mark.parametrize("content", ["", "\n", "\n\n\n"])
@pytest.mark.parametrize("module", [conllu, tagged, squad, jsonl], ids=lambda m: m.__name__.rpartition(".")[2])
def test_empty_files(tmp_path: Path, module: Any, content: str) -> None:
    assert fault(tmp_path / "x", content, module.read).id == "empty-file"


def test_files_without_rows(tmp_path: Path) -> None:
    assert fault(tmp_path / "x", "", delimited.read, columns=["a"]).id == "empty-file"
    assert fault(tmp_path / "x", "text\tlabel\n", delimited.read).id == "empty-file"
    assert fault(tmp_path / "x", "# a comment\n", conllu.read).id == "empty-file"
    assert fault(tmp_path / "x", '{"data":[]}', squad.read).id == "empty-file"
    assert fault(tmp_path / "x", "-DOCSTART- -X- O O\n\n", tagged.read).id == "empty-file"
    assert fault(tmp_path / "x", b"", parquet.read).id == "empty-file"
    out = io.BytesIO()
    pq.write_table(pa.table({"a": pa.array([], pa.int8())}), out)
    assert fault(tmp_path / "x", out.getvalue(), parquet.read).id == "empty-file"


# CoNLL-U


def words(*rows: str) -> str:
    """A sentence from `id head` pairs, after a good one of four lines: its first word is on line 7."""
    good = "# sent_id = a\n1\tx\t_\t_\t_\t_\t0\troot\t_\t_\n2\ty\t_\t_\t_\t_\t1\tdep\t_\t_\n\n"
    lines = ["{}\tf\t_\t_\t_\t_\t{}\tdep\t_\t_".format(*row.split()) for row in rows]
    return good + "# sent_id = b\n# text = f\n" + "\n".join(lines) + "\n"


@pytest.mark.parametrize(
    ("content", "id", "line", "what"),
    [
        (words("1 0", "2 1").replace("\tdep\t_\t_\n\n", "\tdep\t_\n\n"), "conllu-columns", 3, "9 columns"),
        (words("1 0", "2 1") + "3 f\n", "conllu-columns", 9, "1 column, expected 10"),
        (words("1 0") + "2" + "\tf" * 10 + "\n", "conllu-columns", 8, "11 columns"),
        (words("1 0") + " \n", "conllu-columns", 8, "1 column, expected 10"),
        (words("1 0") + "2\t\t_\t_\t_\t_\t1\t_\t_\t_\n", "conllu-columns", 8, "empty FORM"),
        (words("1 0") + "# late\n", "conllu-comment", 8, "between the words"),
        (words("1 0", "3 1"), "conllu-ids", 8, "id 3, expected 2"),
        (words("2 0"), "conllu-ids", 7, "id 2, expected 1"),
        (words("1 0", "1 1"), "conllu-ids", 8, "id 1, expected 2"),
        (words("1 0", "02 1"), "conllu-ids", 8, "id 02, expected 2"),
        (words("1 0", "two 1"), "conllu-ids", 8, "two is not an id"),
        (words("1 0", "-2 1"), "conllu-ids", 8, "-2 is not an id"),
        (words("1 0", "2-3 _", "2 1"), "conllu-ids", 8, "2-3 is not a range within the 2 words"),
        (words("2-1 _", "1 0", "2 1"), "conllu-ids", 7, "2-1 is not a range"),
        (words("0-1 _", "1 0"), "conllu-ids", 7, "0-1 is not a range"),
        (words("1-2 _", "1 0", "2-3 _", "2 1", "3 1"), "conllu-ids", 9, "2-3 overlaps"),
        (words("1-2 _", "1-2 _", "1 0", "2 1"), "conllu-ids", 8, "1-2 overlaps"),
        (words("1 0", "1-2 _", "2 1"), "conllu-ids", 8, "1-2 is out of its place"),
        (words("1 0", "1.2 _"), "conllu-ids", 8, "expected 1.1 right after word 1"),
        (words("1 0", "2 1", "1.1 _"), "conllu-ids", 9, "expected 2.1"),
        (words("1-1 _", "0.1 _", "1 0"), "conllu-ids", 8, "0.1 is out of its place"),
        (words("0.1 _"), "conllu-ids", 7, "without words"),
        (words("1 0", "2 3"), "head-range", 8, "word 2 has head 3, but the sentence has 2 words"),
        (words("1 0", "2 -1"), "head-range", 8, "head '-1'"),
        (words("1 0", "2 _"), "head-range", 8, "word 2 has no head"),
        (words("1 0", "2 {n}"), "head-range", 8, "head '{n}'"),
        (words("1 0", "2 01"), "head-range", 8, "head '01'"),
        (words("1 0", "2 99999999999"), "head-range", 8, "head '99999999999'"),
        (words("1 0", "2 2"), "head-cycle", 8, "word 2 has itself as head"),
        (words("1 0", "2 3", "3 4", "4 2"), "head-cycle", 8, "word 2 has head 3"),
        (words("1 2", "2 1"), "head-root", 7, "no word of its sentence has head 0"),
        (words("1 0", "2 1", "3 0"), "head-root", 9, "word 3 has head 0, but a word before it is the root"),
    ],
)
def test_conllu(tmp_path: Path, content: str, id: str, line: int, what: str) -> None:
    error = fault(tmp_path / "x.conllu", content, conllu.read)
    assert (error.id, line_of(error)) == (id, line)
    assert what in error.what
    assert isinstance(error, LayerError) == id.startswith("head")
    if id.startswith("head"):
        assert str(error.where).endswith("(sent_id b)")


def test_conllu_faults_behind_the_limit_are_not_met(tmp_path: Path) -> None:
    (tmp_path / "x.conllu").write_text(words("1 5"))
    assert len(list(conllu.read(tmp_path / "x.conllu", limit=1))) == 1


@pytest.mark.parametrize(
    ("columns", "id"),
    [
        ({"tokens": [["a\tb"]]}, "conllu-value"),
        ({"tokens": [["a\nb"]]}, "conllu-value"),
        ({"tokens": [["a", ""]]}, "conllu-value"),
        ({"tokens": [["a"]], "misc": [["_\r"]]}, "conllu-value"),
        ({"tokens": [["a"]], "text": ["a\nb"]}, "conllu-value"),
        ({"tokens": [["a", "b"]], "head": [[0]]}, "layer-length"),
    ],
)
def test_conllu_write(columns: dict[str, list[Any]], id: str) -> None:
    with pytest.raises(DataError) as caught:
        conllu.write([pa.table(columns)], io.BytesIO())
    assert caught.value.id == id


def test_conllu_write_refuses_nodes_outside_the_sentence() -> None:
    node = dict.fromkeys(conllu.NODE_FIELDS, "_") | {"id": "3-4"}
    table = pa.table({"tokens": [["a"]], "mwt": pa.array([[node]], conllu.NODES)})
    with pytest.raises(LayerError) as caught:
        conllu.write([table], io.BytesIO())
    assert caught.value.id == "conllu-ids"


# tagged


@pytest.mark.parametrize(
    ("content", "id", "line", "what"),
    [
        ("a\tO\nb\n", "tsv-columns", 2, "1 column, expected 2"),
        ("\na\nb\n", "tsv-columns", 2, "1 column, expected 2"),
        ("a\tO\nb\tX\tO\n", "tsv-columns", 2, "3 columns, expected 2"),
        ("a X O\n\nb O\n", "tsv-columns", 3, "2 columns, expected 3"),
        ("a\tO\n\tO\n", "empty-token", 2, "token"),
        ("en:a\tO\nen:\tO\n", "empty-token", 2, "token"),
        ("a\tX\tO\nb\tX\t\n", "tsv-columns", 2, "2 columns, expected 3"),
        ("a O\nb\t\n", "tsv-columns", 2, "1 column, expected 2"),
        ("a\tO\n\nb\tB-LOC\u00a0\n", "tag-space", 3, "white space"),
        ("1\ta\tB-LOC\tO\n2\tb\tO\tO\n\n" * 120 + "1\tb\t\tO\n", "empty-tag", 361, "the tag is empty"),
        ("a\tO\nb\t\u00a0B-LOC\n", "tag-space", 2, "white space"),
    ],
)
def test_tagged(tmp_path: Path, content: str, id: str, line: int, what: str) -> None:
    error = fault(tmp_path / "x.tsv", content, tagged.read)
    assert (error.id, line_of(error)) == (id, line)
    assert what in error.what


@pytest.mark.parametrize(
    ("tokens", "tags", "id"),
    [
        (["a\tb"], ["O"], "tsv-value"),
        (["a"], ["O\n"], "tsv-value"),
        (["a"], ["O\r"], "tsv-value"),
        (["a", ""], ["O", "O"], "empty-token"),
        (["a", "b"], ["O"], "layer-length"),
    ],
)
def test_tagged_write(tokens: list[str], tags: list[str], id: str) -> None:
    with pytest.raises(DataError) as caught:
        tagged.write([pa.table({"tokens": [tokens], "ner_tags": [tags]})], io.BytesIO())
    assert caught.value.id == id


# tab-separated values


@pytest.mark.parametrize(
    ("content", "id", "line", "what"),
    [
        ("text\tlabel\na\tb\nc\n", "tsv-columns", 3, "1 column, expected 2 (text, label)"),
        ("text\tlabel\na\tb\tc\n", "tsv-columns", 2, "3 columns, expected 2"),
        ("text\tlabel\na\tb\n\n", "tsv-columns", 3, "1 column, expected 2"),
        ("text\tlabel\ttext\na\tb\tc\n", "tsv-header", 1, "twice"),
        ("text\tlabel\t\na\tb\tc\n", "tsv-header", 1, "empty name"),
    ],
)
def test_delimited(tmp_path: Path, content: str, id: str, line: int, what: str) -> None:
    error = fault(tmp_path / "x.tsv", content, delimited.read)
    assert (error.id, line_of(error)) == (id, line)
    assert what in error.what


def test_delimited_needs_names(tmp_path: Path) -> None:
    error = fault(tmp_path / "x.tsv", "a\tb\n", delimited.read)
    assert (error.id, type(error)) == ("no-columns", UsageError)


@pytest.mark.parametrize("value", ["a\tb", "a\nb", "a\r"])
def test_delimited_write(value: str) -> None:
    with pytest.raises(DataError, match="column y") as caught:
        delimited.write([pa.table({"x": ["a"], "y": [value]})], io.BytesIO(), columns=["x", "y"])
    assert caught.value.id == "tsv-value"


# SQuAD


def question(context: str = "le chat", text: Any = "chat", start: Any = 3) -> dict[str, Any]:
    qa = {"id": "q1", "question": "qui ?", "answers": [{"text": text, "answer_start": start}]}
    return {"data": [{"title": "t", "paragraphs": [{"context": context, "qas": [qa]}]}]}


@pytest.mark.parametrize(
    ("content", "id", "what"),
    [
        (
            question(start="3"),
            "squad-form",
            "data[0].paragraphs[0].qas[0].answers[0] has no whole number",
        ),
        (question(start=True), "squad-form", "whole number 'answer_start'"),
        (question(text=None), "squad-form", "string 'text'"),
        ([], "squad-form", "the file has no list 'data'"),
        ({"data": [1]}, "squad-form", "data[0] has no list 'paragraphs'"),
        ({"data": [{"title": 3, "paragraphs": []}]}, "squad-form", "data[0] has no string 'title'"),
        (question(context="chat \ud800", start=0), "json-surrogate", "\\ud800"),
    ],
)
def test_squad(tmp_path: Path, content: Any, id: str, what: str) -> None:
    path = tmp_path / "x.json"
    error = fault(path, json.dumps(content), squad.read)
    assert (error.id, error.where) == (id, str(path))
    assert what in error.what


def test_rows_in_a_json_array_are_to_be_json_lines(tmp_path: Path) -> None:
    error = fault(tmp_path / "x.json", '[{"text": "a b"}]', squad.read)
    assert str(error.fix).startswith("if it holds rows, write JSON Lines: a file .jsonl")


@pytest.mark.parametrize(
    ("content", "what"),
    [
        (question(start=2), "'chat' is not at offset 2"),
        (question(start=-4), "offset -4"),
        (question(start=300), "offset 300"),
        (question(context="🐈🐈 chat", start=5), "offset 5"),
    ],
)
def test_an_answer_is_the_text_at_its_offset_in_every_format(tmp_path: Path, content: Any, what: str) -> None:
    (tmp_path / "x.json").write_text(json.dumps(content))
    (paragraph,) = content["data"][0]["paragraphs"]
    (answer,) = paragraph["qas"][0]["answers"]
    row = {"id": "q1", "question": "qui ?", "context": paragraph["context"]}
    row["answers"] = {name: [answer[name]] for name in ("text", "answer_start")}
    (tmp_path / "x.jsonl").write_text(json.dumps(row) + "\n")
    for name, place in (("x.json", "question q1"), ("x.jsonl", "x.jsonl:1")):
        ran = run("make", "--t", "inv", "--words", "space", tmp_path / name, "-o", tmp_path / "out", code=1)
        assert "[answer-offset]" in ran.err
        assert what in ran.err
        assert place in ran.err


@pytest.mark.parametrize(
    ("content", "line", "column"), [('{"data": [\n  {,\n', 2, 4), ('{"data": []', 1, 12), ("x", 1, 1)]
)
def test_squad_json(tmp_path: Path, content: str, line: int, column: int) -> None:
    error = fault(tmp_path / "x.json", content, squad.read)
    assert (error.id, line_of(error)) == ("json", line)
    assert f"column {column}:" in error.what


def test_squad_key_twice(tmp_path: Path) -> None:
    assert fault(tmp_path / "x.json", '{"data": [], "data": []}', squad.read).id == "json-key"


# JSON Lines


def read_as_the_first_row(path: Path) -> Iterator[Rows]:
    """The rows, which must have the types and keys of the first one."""
    types = next(jsonl.read(path, limit=1)).table.schema
    yield from jsonl.read(path, types=types, required=frozenset(types.names))


@pytest.mark.parametrize(
    ("lines", "id", "line", "what"),
    [
        (['{"a":1}', "", '{"a":'], "json", 3, "column 6"),
        (["[1]"], "json-object", 1, "[1]"),
        (["{}"], "json-object", 1, "{}"),
        (['{"a":1,"b":2}', '{"a":1}'], "jsonl-keys", 2, "lacks the key 'b'"),
        (['{"a":1}', '{"a":1,"b":2}'], "jsonl-keys", 2, "has the new key 'b'"),
        (['{"a":1}', '{"A":1}'], "jsonl-keys", 2, "lacks the key 'a'"),
        (
            ['{"a":1,"b":1}', '{"a":1,"b":2}', '{"a":1,"b":"x"}', '{"a":1,"b":2}'],
            "jsonl-type",
            3,
            '"x" does not',
        ),
        (['{"a":99999999999999999999}'], "jsonl-type", 1, "99999999999999999999"),
        (['{"a":"x"}', '{"a":"\\ud800"}'], "json-surrogate", 2, "'a'"),
        (["[" * 100_000], "json", 1, "nested"),
        (['{"a":"x","b":1}', '{"a":"y","b":1,"a":"z"}'], "json-key", 2, "'a' more than once"),
        (['{"a":{"b":1,"b":1}}'], "json-key", 1, "'b' more than once"),
        (['{"a":1.5}', '{"a":NaN}'], "json", 2, "NaN is not"),
        (['{"a":[-Infinity]}'], "json", 1, "-Infinity is not"),
        (['{"a":1e999}'], "json", 1, "1e999 is not"),
    ],
)
def test_jsonl(tmp_path: Path, lines: list[str], id: str, line: int, what: str) -> None:
    error = fault(tmp_path / "x.jsonl", "\n".join(lines), read_as_the_first_row)
    assert (error.id, line_of(error)) == (id, line)
    assert what in error.what


@pytest.mark.parametrize("late", ['1.5,"b":["x"]', '1,"b":"xy"', 'true,"b":[]', '1,"b":[1]', '1,"b":{"c":1}'])
def test_jsonl_later_rows_fit_the_first_table(tmp_path: Path, late: str) -> None:
    first = ['{"a":1,"b":["x"]}'] * (ROWS_PER_TABLE + 5)
    content = "\n".join([*first, f'{{"a":{late}}}', *first])
    error = fault(tmp_path / "x.jsonl", content, read_as_the_first_row)
    assert (error.id, line_of(error)) == ("jsonl-type", ROWS_PER_TABLE + 6)


def test_jsonl_unknown_keys_within_objects(tmp_path: Path) -> None:
    content = '{"a":{"b":1}}\n' * ROWS_PER_TABLE + '{"a":{"b":1,"c":1}}\n'
    error = fault(tmp_path / "x.jsonl", content, read_as_the_first_row)
    assert (error.id, line_of(error)) == ("jsonl-type", ROWS_PER_TABLE + 1)


@pytest.mark.parametrize("value", [b"x", float("nan"), float("-inf")])
def test_jsonl_write(value: object) -> None:
    with pytest.raises(DataError) as caught:
        jsonl.write([pa.table({"a": [value]})], io.BytesIO())
    assert caught.value.id == "json-value"


# Parquet


def test_parquet(tmp_path: Path) -> None:
    out = io.BytesIO()
    pq.write_table(pa.table({"a": [f"{i} {i * i}" for i in range(20_000)]}), out)
    whole = out.getvalue()
    for content in (
        whole[:-1],
        whole[:1000],
        b"PAR1",
        b"hello",
        whole[:50_000] + bytes(3000) + whole[53_000:],
    ):
        assert fault(tmp_path / "x.parquet", content, parquet.read).id == "parquet"
    assert fault(tmp_path / "x.parquet", whole[:-1], parquet.count).id == "parquet"


def test_a_null_among_the_values_of_words(tmp_path: Path) -> None:
    """A shard declares that every word has a value, so writing it failed with a foreign exception."""
    source = tmp_path / "a.train.jsonl"
    source.write_text('{"tokens": ["a", "b"], "note": ["x", "y"]}\n{"tokens": ["c", "d"], "note": ["x", null]}\n')
    ran = run("make", "--t", "inv", source, "-o", tmp_path / "out", code=1)
    assert f"{source}:2: note has no value (null) for a word [null-value]" in ran.err
    assert not (tmp_path / "out").exists()
    source.write_text('{"tokens": ["a", "b"], "note": [null, null]}\n')
    assert "note has no value (null) for a word [null-value]" in run("make", "--t", "inv", source, code=1).err


def test_a_null_among_the_values_of_a_shard(tmp_path: Path) -> None:
    run("make", "--t", "inv", "demo", "--splits", "test", "-o", tmp_path / "set")
    shard = next((tmp_path / "set" / "data").iterdir())
    table = pq.read_table(shard)
    notes = table["source_misc"].to_pylist()
    row = next(row for row, values in enumerate(notes) if values)
    notes[row][0] = None
    at = table.column_names.index("source_misc")
    pq.write_table(table.set_column(at, "source_misc", pa.array(notes, pa.list_(pa.string()))), shard)
    forge(tmp_path / "set")
    ran = run("make", "--t", "inv", tmp_path / "set", "-o", tmp_path / "out", code=1)
    assert f"{shard}: misc has no value (null) for a word [null-value]" in ran.err


def test_a_number_may_be_missing(tmp_path: Path) -> None:
    """Numbers of words move with them, also where one is null; shards once refused that."""
    source = tmp_path / "a.train.jsonl"
    source.write_text('{"tokens": ["a", "b", "c"], "weight": [0.5, null, 2], "known": [null, true, false]}\n')
    run("make", "--t", "inv", source, "-o", tmp_path / "out")
    table = pq.read_table(next((tmp_path / "out" / "data").iterdir()))
    assert table["weight"].to_pylist() == [[2, None, 0.5]]
    assert table["known"].to_pylist() == [[False, True, None]]
    run("verify", tmp_path / "out")


def test_a_node_without_a_field() -> None:
    node = dict.fromkeys(NODE_FIELDS, "_") | {"id": "1.1", "lemma": None}
    with pytest.raises(LayerError, match="an empty node has no lemma"):
        Nodes.read(pa.array([[node]], NODES), np.array([0, 2]), ".")
