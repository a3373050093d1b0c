"""Files of `undo` and `export`, and cards: a file is what its name says, and labels keep their form."""

from __future__ import annotations

import json
import os
import shlex
from pathlib import Path

import pyarrow as pa
import pyarrow.parquet as pq
import pytest

from derivlang.core.messages import counted
from tests.commands import run, written
from tests.helpers import make

ROWS = '{"tokens":["A","cat"],"ner_tags":["O","B-PER"],"topic":"pets"}\n'


def test_counted() -> None:
    assert [counted(n, "row") for n in (0, 1, 1200)] == ["0 rows", "1 row", "1,200 rows"]
    assert [counted(n, "entry") for n in (1, 2)] == ["1 entry", "2 entries"]


def test_one_row_is_no_rows(tmp_path: Path) -> None:
    out = tmp_path / "out"
    told = run("make", "--t", "inv", written(tmp_path / "a.jsonl", ROWS), "-o", out).out
    assert "train                 1 row            1 sentence            2 tokens\n" in told
    assert "| train | 1 row, 1 sentence, 2 tokens |" in (out / "README.md").read_text("utf-8")
    assert "of 1 entity was split" in told
    assert run("undo", out).err == "1 row as jsonl: standard output\n"
    assert run("verify", out).out == f"{out}: its only row is right\n"


def test_jsonl_has_the_names_of_labels(tmp_path: Path) -> None:
    out = make("inv", written(tmp_path / "a.jsonl", ROWS), tmp_path / "out")
    run("export", out, "-o", tmp_path / "b.jsonl")
    row = json.loads((tmp_path / "b.jsonl").read_text("utf-8"))
    assert row["ner_tags"] == ["B-PER", "O"]
    assert row["topic"] == "pets"
    assert row["source_ner_tags"] is None
    # What was written is a source again.
    again = make("inv", tmp_path / "b.jsonl", tmp_path / "again")
    run("undo", again, "-o", tmp_path / "c.jsonl")
    assert json.loads((tmp_path / "c.jsonl").read_text("utf-8"))["ner_tags"] == ["B-PER", "O"]


@pytest.mark.parametrize("classes", [None, ["bad", "good"]])
def test_parquet_is_undone_to_parquet(classes: list[str] | None, tmp_path: Path) -> None:
    labels = pa.array([1, 0, -1]) if classes else pa.array(["good", "bad", "good"])
    table = pa.table(
        {"text": ["A cat .", "A dog !", "It rains ."], "label": labels, "n": pa.array([1, 2, 3], pa.int8())}
    )
    if classes:
        note = {"info": {"features": {"label": {"names": classes, "_type": "ClassLabel"}}}}
        table = table.replace_schema_metadata({"huggingface": json.dumps(note)})
    pq.write_table(table, tmp_path / "a.parquet")
    out = make("inv", tmp_path / "a.parquet", tmp_path / "out")
    assert "as parquet" in run("undo", out, "-o", tmp_path / "b.parquet").err
    assert pq.read_table(tmp_path / "b.parquet").equals(table, check_metadata=True)
    run("undo", out, "-o", tmp_path / "b.jsonl")
    lines = (tmp_path / "b.jsonl").read_text("utf-8").splitlines()
    assert [json.loads(line)["label"] for line in lines] == (["good", "bad", "-"] if classes else labels.to_pylist())


@pytest.mark.parametrize("name", ["b.parquet", "b.csv", "b.conllu", "b.jsonl.gz"])
def test_undo_writes_no_file_of_another_name(name: str, tmp_path: Path) -> None:
    out = make("inv", written(tmp_path / "a.jsonl", ROWS), tmp_path / "out")
    refused = run("undo", out, "-o", tmp_path / name, code=2).err
    assert "the file would hold JSON Lines file" in refused
    assert not (tmp_path / name).exists()


@pytest.mark.parametrize(
    ("name", "begins"), [("a.txt", b"cat A"), ("a.jsonl", b'{"document"'), ("a.tsv", b"cat\tB-PER")]
)
def test_export_takes_the_format_from_the_suffix(name: str, begins: bytes, tmp_path: Path) -> None:
    out = make("inv", written(tmp_path / "a.jsonl", ROWS), tmp_path / "out")
    run("export", out, "-o", tmp_path / name, "--force")
    assert (tmp_path / name).read_bytes().startswith(begins)


def test_a_table_of_texts_is_exported_as_csv(tmp_path: Path) -> None:
    table = written(tmp_path / "a.csv", 'id,text,label\n1,"Look, a cat.",glad\n2,It rains.,sad\n')
    out = make("inv", table, tmp_path / "out")
    run("export", out, "-o", tmp_path / "b.csv")
    assert (tmp_path / "b.csv").read_text("utf-8") == 'text,id,label\n"cat a , Look .",1,glad\nrains It .,2,sad\n'
    words = make("inv", written(tmp_path / "a.jsonl", ROWS), tmp_path / "words")
    assert "this set does not fit the format csv" in run("export", words, "-o", tmp_path / "c.csv", code=2).err


def test_semicolons_between_the_fields_of_a_csv_file(tmp_path: Path) -> None:
    """They are found; in a file of texts, they are not looked for."""
    table = written(tmp_path / "a.csv", 'text;label\n"Look; a cat.";glad\n')
    run("make", "--t", "inv", table, "-o", tmp_path / "table")
    run("undo", tmp_path / "table", "-o", tmp_path / "undone.csv")
    assert (tmp_path / "undone.csv").read_bytes() == table.read_bytes()
    texts = written(tmp_path / "b.csv", "Look; a cat.\nIt rains.\n")
    run("make", "--t", "inv", texts, "-o", tmp_path / "out", "--column-names", "text")


@pytest.mark.parametrize("suffix", [".conll", ".bio", ".iob"])
def test_words_and_tags_in_a_file_of_one_sentence(suffix: str, tmp_path: Path) -> None:
    out = make("inv", written(tmp_path / f"a{suffix}", "Ada B-PER\nslept O\n. O\n"), tmp_path / "out")
    run("undo", out, "-o", tmp_path / f"b{suffix}")
    assert (tmp_path / f"b{suffix}").read_text("utf-8") == "Ada\tB-PER\nslept\tO\n.\tO\n"


def test_export_needs_a_format(tmp_path: Path) -> None:
    out = make("inv", written(tmp_path / "a.jsonl", ROWS), tmp_path / "out")
    assert "standard output needs a format [missing-option]" in run("export", out, code=2).err
    assert "the suffix '.links' names no format" in run("export", out, "-o", tmp_path / "a.links", code=2).err


def test_the_recipe_of_a_card_makes_the_set_again(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.chdir(tmp_path)
    written(tmp_path / "my reviews.csv", 'A fine harbour .,good\nA "dull" evening !,bad\nIt rains .,bad\n')
    options = "--no-header --column-names review,grade --text-column review --words space --limit 2 --entities drop"
    run("make", "--t", "trans,perm", "my reviews.csv", *options.split(), "-o", "out")
    (recipe,) = (
        line for line in Path("out/README.md").read_text("utf-8").splitlines() if line.startswith("    derivlang")
    )
    run(*shlex.split(recipe)[1:], "-o", "again")
    assert (tmp_path / "again/derivlang.json").read_bytes() == (tmp_path / "out/derivlang.json").read_bytes()
    run("make", "--t", "inv", "out", "-o", "both", "--entities", "drop")
    made = Path("both/README.md").read_text("utf-8")
    assert "--text-column=review --no-header" in made


def test_nothing_is_written_of_a_source_that_is_not_there(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.chdir(tmp_path)
    monkeypatch.delenv("DERIVLANG_DATA", raising=False)
    for typed in (["make", "--t", "inv"], ["parse"], ["tokenizer", "train"]):
        refused = run(*typed, "nope.txt", code=1).err
        assert "there is no such file" in refused
        assert "writing to" not in refused
    written(tmp_path / "a.txt", "A cat .\n")
    assert run("make", "--t", "inv", "a.txt").err == f"derivlang: writing to a.txt.inv{os.sep}\n"


STUDY = """\
[study]
source = "demo"
model = "tiny"
steps = 1
[factors]
objective = ["mlm"]
[cell]
t = "inv"
vocab-size = 300
[evaluate]
task = "pos:nowhere/"
"""
REFUSED = {  # what is found to be wrong only when the input is read, and the id of its error
    "make --t inv --lang qq a.txt": "language",
    "tokenizer train --lang qq a.txt": "language",
    "tokenizer twin tok --t trans:overlap=25 --lexicon a.txt": "other-lexicon",
    "grammar fit a.conllu": "conllu-columns",
    "grammar count a.conllu": "conllu-columns",
    "parser train a.conllu": "conllu-columns",
    "report a": "not-a-run",
    "study a.toml": "missing-file",
    "pretrain --source a.txt --t trans,inv --lang qq --vocab-size 100 --steps 1": "language",
}


@pytest.mark.parametrize("typed", REFUSED)
def test_a_refused_command_does_not_say_that_it_writes(
    typed: str, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    if typed.split()[0] in ("parser", "report", "study", "pretrain"):
        pytest.importorskip("torch")
    monkeypatch.chdir(tmp_path)
    written(tmp_path / "a.txt", "A cat .\n")
    written(tmp_path / "a.conllu", "1\tA\n\n")
    written(tmp_path / "a.toml", STUDY)
    (tmp_path / "a").mkdir()
    if "twin" in typed:
        run("tokenizer", "train", "demo", "--vocab-size", 300, "-o", "tok")
    refused = run(*typed.split(), code=None)
    assert refused.code
    assert f"[{REFUSED[typed]}]" in refused.err
    assert "writing to" not in refused.err


def test_report_names_the_folder_of_runs_that_lies_deeper(tmp_path: Path) -> None:
    pytest.importorskip("torch")
    written(tmp_path / "all" / "seeds" / "one" / "run.json", "{}")
    assert f"name the folder of runs: {tmp_path / 'all' / 'seeds'}" in run("report", tmp_path / "all", code=None).err
