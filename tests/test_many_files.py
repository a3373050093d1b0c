"""Small files share shards and batches: the rows are those of each file by itself, and messages name the right file."""

from __future__ import annotations

import json
from pathlib import Path
from typing import Any

import pyarrow as pa
import pyarrow.parquet as pq
import pytest

from derivlang.engine import plan
from tests.commands import make, rows, run, shards, trees, written

# What is special at the ends of a text file.
TEXTS = {
    "plain": "a dog runs . it sleeps .\nthe cat\n",
    "no line end": "the end",
    "mark": "\ufeffa mark .\n",
    "blank head": "\n \nb c\n",
    "blank tail": "b c\n\n \n",
    "spaces": "  two  spaces \n",
    "tab": "\tx\n",
    "wide space": "\u3000y z\n",
    "empty": "",
    "blank": "\n\n",
    "windows": "a b\r\nc\r\n",
    "control": "a\x0bb\x1fc\n",
}
TREE = "1\t{}\t_\tNOUN\t_\t_\t0\troot\t_\t_\n2\t.\t_\tPUNCT\t_\t_\t1\tpunct\t_\t_\n\n"
# Of each labelled format, the files of a folder.
FILES: dict[str, list[str]] = {
    "jsonl": ['{"text":"a dog runs .","n":1}\n{"text":"a dog runs .","n":2}\n', '{"text":"a dog runs .","n":3}\n'],
    "csv": ["text,label\na dog runs .,x\n", 'text,label\n"the cat, no",y\nthe end,z\n'],
    "tsv": ["text\tlabel\na dog runs .\tx\n", "label\ttext\ny\tthe cat\n", "text\tlabel\nthe end\tz\n"],
    "conllu": [TREE.format("dogs") + TREE.format("cats"), TREE.format("birds")],
}


def unshared(monkeypatch: pytest.MonkeyPatch) -> None:
    """Plan a task for each file."""
    monkeypatch.setattr(plan, "_shared", lambda job, pieces, size: list(range(len(pieces))))


def folder(where: Path, files: list[str] | dict[str, str], suffix: str) -> Path:
    named = files if isinstance(files, dict) else dict(enumerate(files))
    for i, text in enumerate(named.values()):
        written(where / f"{i:02d}.{suffix}", text)
    return where


def table(out: Path) -> Any:
    return pa.concat_tables([pq.read_table(path) for path in shards(out)]).combine_chunks()


@pytest.mark.parametrize("suffix", ["tokens", "txt"])
@pytest.mark.parametrize("spec", ["inv", "trans,perm"])
def test_text_files_that_share_a_shard(tmp_path: Path, monkeypatch: pytest.MonkeyPatch, suffix: str, spec: str) -> None:
    source = folder(tmp_path / "in", TEXTS, suffix)
    make(spec, source, tmp_path / "out")
    assert len(shards(tmp_path / "out")) == 1
    run("undo", tmp_path / "out", "-o", tmp_path / "back")
    with_words = [text for text in TEXTS.values() if text.split()]  # a file without words has no rows
    assert (tmp_path / "back").read_bytes() == "".join(with_words).encode()
    with monkeypatch.context() as patch:
        unshared(patch)
        make(spec, source, tmp_path / "each")
    assert len(shards(tmp_path / "each")) == len(TEXTS) - 2
    assert table(tmp_path / "out").equals(table(tmp_path / "each"))


@pytest.mark.parametrize("suffix", FILES)
def test_labelled_files_that_share_a_shard(tmp_path: Path, monkeypatch: pytest.MonkeyPatch, suffix: str) -> None:
    source = folder(tmp_path / "in", FILES[suffix], suffix)
    make("trans,inv", source, tmp_path / "out")
    assert len(shards(tmp_path / "out")) == 1
    with monkeypatch.context() as patch:
        unshared(patch)
        make("trans,inv", source, tmp_path / "each")
    assert len(shards(tmp_path / "each")) == len(FILES[suffix])
    assert table(tmp_path / "out").equals(table(tmp_path / "each"))
    assert run("verify", tmp_path / "out").code == 0


def test_shards_have_the_size_that_is_asked_for(tmp_path: Path) -> None:
    source = folder(tmp_path / "in", ["a b c d e f\n"] * 9, "tokens")  # 12 bytes each; 7 words are planned as 37
    make("inv", source, tmp_path / "out", "--shard-tokens", "7")
    assert [pq.read_metadata(path).num_rows for path in shards(tmp_path / "out")] == [3, 3, 3]
    assert [row["document"] for row in rows(tmp_path / "out", "train")] == list(range(9))


@pytest.mark.parametrize("workers", [1, 2])
def test_workers_and_limits(tmp_path: Path, workers: int) -> None:
    source = folder(tmp_path / "in", ["a b c d e f\ng\n"] * 9, "tokens")
    make("inv", source, tmp_path / "out", "--shard-tokens", "7", "--workers", workers, "--limit", "5")
    assert [row["document"] for row in rows(tmp_path / "out", "train")] == list(range(5))


BROKEN: list[tuple[str, Any, Any, str]] = [
    ("tokens", "a b\n", b"c d\n\xff e\n", "03.tokens:2: byte 0xff at offset 4 is not utf-8"),
    ("tokens", "a b\n", b"c d\nx\0y e\n", "03.tokens:2: the line holds a NUL character"),
    ("jsonl", '{"text":"a b"}\n', b'{"text":"a b"}\n{"text":null}\n', "03.jsonl:2: no text in text"),
    ("csv", "text,label\na,b\n", b'text,label\n"a",b\n"c"d,e\n', "03.csv:3"),
    ("conllu", TREE.format("dogs"), (TREE.format("cats") + TREE.replace("\t0\t", "\t7\t")).encode(), "03.conllu:4"),
]  # fmt: skip


@pytest.mark.parametrize(("suffix", "good", "bad", "told"), BROKEN)
def test_an_error_names_the_file_and_its_line(tmp_path: Path, suffix: str, good: str, bad: bytes, told: str) -> None:
    source = folder(tmp_path / "in", [good] * 5, suffix)
    written(source / f"03.{suffix}", bad)
    assert told in run("make", "--t", "inv", source, "-o", tmp_path / "out", code=1).err
    assert not (tmp_path / "out" / "data").exists()


def test_words_of_a_language_without_spaces_are_missed_where_they_are(tmp_path: Path) -> None:
    rows_ = [json.dumps({"text": text, "n": 1}) + "\n" for text in ("a b c", "ฉันชอบแมวและหมาที่น่ารักมากที่สุดในโลกนี้" * 3)]
    source = folder(tmp_path / "in", [rows_[0], rows_[0] * 2 + rows_[1]], "jsonl")
    told = run("make", "--t", "inv", source, "-o", tmp_path / "out", "--words", "unicode", code=1).err
    assert "[undivided-text]" in told
    assert "01.jsonl:3" in told


def test_files_of_trees_are_a_source_of_few_shards(tmp_path: Path) -> None:
    for number in range(20):
        trees(tmp_path / "in", name=f"{number:02d}.conllu")
    make("trans,syn:fr", tmp_path / "in", tmp_path / "out")
    assert len(shards(tmp_path / "out")) == 1
    assert run("verify", tmp_path / "out").code == 0
