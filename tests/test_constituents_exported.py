"""Derived trees are exported in brackets, and read back."""

from __future__ import annotations

from pathlib import Path

from tests.commands import run, written
from tests.helpers import make, right, undone
from tests.test_constituent_orders import ENGLISH


def test_exported_trees_with_inserted_words_are_read_back(tmp_path: Path) -> None:
    path = written(tmp_path / "a.mrg", "(S (NP (PRP He)) (VP (VBZ sings)))\n(VP (VBZ goes))\n")
    out = make("hop:edge=VP:by=tags", path, tmp_path / "out")
    right(out)
    assert undone(out, suffix=".mrg") == path.read_bytes()
    exported = tmp_path / "derived.ptb"
    run("export", out, "-o", exported)
    assert exported.read_text() == "(S (NP (PRP He)) (VP (VBZ sings)) 🅂)\n(VP (VBZ goes) 🅂)\n"
    run("export", make("switch:000000", exported, tmp_path / "again"), "-o", tmp_path / "back.tree")
    assert (tmp_path / "back.tree").read_bytes() == exported.read_bytes()


def test_exported_rows_that_are_no_trees_are_counted(tmp_path: Path) -> None:
    row = '{"tokens":["a","b"],"parse":"(S a) b"}\n'
    out = make("inv", written(tmp_path / "a.jsonl", row), tmp_path / "out")
    assert "1 row cannot be read back" in run("export", out, "-o", tmp_path / "x.mrg").err


def test_trees_are_exported_in_brackets(tmp_path: Path) -> None:
    path = written(tmp_path / "a.mrg", "\n".join(ENGLISH) + "\n")
    out = make("switch:010000", path, tmp_path / "out")
    run("export", out, "-o", tmp_path / "derived.mrg")
    run("export", out, "--source", "--format", "bracketed", "-o", tmp_path / "source.mrg")
    assert (tmp_path / "source.mrg").read_text() == path.read_text()
    lines = (tmp_path / "derived.mrg").read_text().splitlines()
    assert lines[1] == "(S (NP (DT the) (CD two) (JJ big) (NN city) (NNS halls)) (VP (ADJP (JJ old)) (VBZ is)))"
    again = make("switch:010000", tmp_path / "derived.mrg", tmp_path / "again")
    run("export", again, "-o", tmp_path / "back.mrg")
    assert (tmp_path / "back.mrg").read_text() == path.read_text()
    text = make("inv", written(tmp_path / "a.tokens", "a b .\n"), tmp_path / "text")
    assert "does not fit the format bracketed" in run("export", text, "-o", tmp_path / "x.mrg", code=2).err
