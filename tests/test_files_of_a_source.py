"""Files of one source that differ: in their columns and types, in how text is written, and in how they are read."""

from __future__ import annotations

import gzip
import json
from pathlib import Path

import pytest
import zstandard

from derivlang.formats import text as text_format
from derivlang.formats.opening import BLOCK
from derivlang.sources.find import find
from derivlang.sources.request import SourceRequest
from tests.commands import make, rows, run, written


@pytest.mark.parametrize(
    ("suffix", "tab", "options"), [("csv", ",", []), ("tsv", "\t", []), ("tsv", "\t", ["--quoting"])]
)
def test_each_file_has_its_own_header_row(tmp_path: Path, suffix: str, tab: str, options: list[str]) -> None:
    first, second = tab.join(["text", "label"]), tab.join(["label", "text"])
    written(tmp_path / "in" / f"test.{suffix}", f"{second}\n7{tab}the bird sings .\n")
    written(tmp_path / "in" / f"train.{suffix}", f"{first}\nthe cat sleeps .{tab}1\n")
    make("inv", tmp_path / "in", tmp_path / "out", *options)
    (train,) = rows(tmp_path / "out", "train")
    assert train["label"] == "1"
    assert "cat" in train["text"]
    written(tmp_path / "in" / f"train.{suffix}", f"the cat sleeps .{tab}1\na dog runs .{tab}2\n")
    told = run("make", "--t", "inv", tmp_path / "in", "-o", tmp_path / "other", *options, code=1).err
    assert "no column" in told
    assert f"train.{suffix}" in told


@pytest.mark.parametrize(
    ("names", "language"),
    [
        (("fr_gsd-ud-train.conllu", "fr_gsd-ud-dev.conllu.gz"), "fr"),
        (("fr_gsd-ud-train.conllu", "de_gsd-ud-dev.conllu"), "en"),
        (("my_ud-train.conllu",), "en"),
    ],
)
def test_files_of_a_treebank_have_its_language(names: tuple[str, ...], language: str, tmp_path: Path) -> None:
    line = "1\tdort\tdormir\tVERB\t_\t_\t0\troot\t_\t_\n\n"
    for name in names:
        (tmp_path / name).write_bytes(gzip.compress(line.encode()) if name.endswith(".gz") else line.encode())
    assert find(SourceRequest(str(tmp_path))).language == language
    assert find(SourceRequest(str(tmp_path), lang="tr")).language == "tr"


@pytest.mark.parametrize(("suffix", "tab"), [("csv", ","), ("tsv", "\t")])
@pytest.mark.parametrize("flags", [[], ["--header"]])
@pytest.mark.parametrize("first", ["test", "train"])
def test_all_files_have_a_header_row_or_none(
    tmp_path: Path, suffix: str, tab: str, flags: list[str], first: str
) -> None:
    """The rows of the first file decided for all: a header was a row of the others, or a row was lost."""
    texts = {"test": f"a dog runs .{tab}2\n", "train": f"the cat sleeps .{tab}1\n"}
    for split, text in texts.items():
        written(tmp_path / "in" / f"{split}.{suffix}", ("" if split == first else f"text{tab}label\n") + text)
    asked = ["--column-names", "text,label"]
    told = run("make", "--t", "inv", tmp_path / "in", "-o", tmp_path / "out", *asked, *flags, code=1).err
    assert "[header-differs]" in told
    assert f"{first}.{suffix}:1" in told
    (tmp_path / "in" / f"{first}.{suffix}").write_text(f"satz{tab}label\n{texts[first]}")
    make("inv", tmp_path / "in", tmp_path / "out", *asked, "--header")  # a header with other names
    assert [len(rows(tmp_path / "out", split)) for split in texts] == [1, 1]


def test_other_column_names_are_another_plan(tmp_path: Path) -> None:
    source, out = written(tmp_path / "b.tsv", "the cat\tgood news\nx y\tbad news\n"), tmp_path / "out"
    make("inv", source, out, "--column-names", "text,label", "--no-header")
    for names, header in (("label,text", "--no-header"), ("text,label", "--header")):
        told = run("make", "--t", "inv", source, "-o", out, "--column-names", names, header, code=None).err
        assert "the folder holds another set (" in told
    make("inv", source, out, "--column-names", "label,text", "--no-header", "--force")
    assert rows(out, "train")[0]["label"] == "the cat"


@pytest.mark.parametrize("suffix", ["gz", "GZ", "ZST"])
def test_suffixes_of_compression_may_be_capitals(tmp_path: Path, suffix: str) -> None:
    written(tmp_path / "in" / "train.txt", "a dog runs .\n")
    data = b"the cat sleeps .\n"
    written(tmp_path / "in" / f"test.txt.{suffix}", (zstandard if suffix == "ZST" else gzip).compress(data))
    make("inv", tmp_path / "in", tmp_path / "out", "--shard-tokens", "1")
    assert [row["tokens"] for row in rows(tmp_path / "out", "test")] == [["sleeps", "cat", "the", "."]]


@pytest.mark.parametrize("twin", ["train.txt.gz", "train.TXT", "Train.txt.GZ", "other.txt"])
def test_a_file_that_a_folder_holds_twice(tmp_path: Path, twin: str) -> None:
    first = written(tmp_path / "in" / "train.txt", "a dog runs .\n")
    if twin == "other.txt":
        (tmp_path / "in" / twin).symlink_to(first)
    else:
        written(tmp_path / "in" / twin, "a dog runs .\n")
    told = run("make", "--t", "inv", tmp_path / "in", "-o", tmp_path / "out", code=1).err
    assert "[file-twice]" in told
    assert f"train.txt and {twin} seem" in told or f"{twin} and train.txt seem" in told


def test_a_split_that_is_spelled_in_two_ways(tmp_path: Path, recwarn: pytest.WarningsRecorder) -> None:
    for name in ("dev", "validation", "train"):
        written(tmp_path / "in" / f"{name}.jsonl", '{"text":"a"}\n')
    find(SourceRequest(str(tmp_path / "in")))
    assert [str(warning.message) for warning in recwarn] == [
        "dev.jsonl and validation.jsonl are both read, as validation"
    ]


@pytest.mark.parametrize(
    "names",
    [
        ["data/train-00000-of-00002.txt", "data/train-00001-of-00002.txt", "data/test-00000-of-00001.txt"],
        ["a/train.txt", "b/train.txt", "train.txt"],
        ["straße.txt", "strasse.txt"],
        ["dev/a.txt", "dev/b.txt", "a.txt", "a.test.txt"],
        ["train.txt", "validation.txt -> train.txt"],  # a link in another split is read once in each
    ],
)
def test_usual_folders_hold_no_file_twice(tmp_path: Path, names: list[str], recwarn: pytest.WarningsRecorder) -> None:
    for name in names:
        name, _, target = name.partition(" -> ")
        if target:
            (tmp_path / name).symlink_to(tmp_path / target)
        else:
            written(tmp_path / name, "a\n")
    assert len(find(SourceRequest(str(tmp_path))).parts) == len(names)
    assert not list(recwarn)


def test_byte_order_marks_inside_raw_text_are_told(tmp_path: Path) -> None:
    """`cat a.txt b.txt` leaves the mark of the second file in its first word."""
    written(tmp_path / "in" / "a.txt", "\ufeffa dog runs .\n\ufeffthe cat sleeps .\n\ufeffthe end\n")
    written(tmp_path / "in" / "b.txt", "\ufeffa dog runs .\n")
    for files_a_shard in (1, 2):
        size = [] if files_a_shard == 2 else ["--shard-tokens", "1"]
        done = run("make", "--t", "inv", tmp_path / "in", "-o", tmp_path / f"out{files_a_shard}", *size)
        assert "warning: a.txt: 2 words with U+FEFF" in done.err
    jsonl = written(tmp_path / "c.jsonl", '{"text":"the \\ufeffcat sleeps . \\ufeff"}\n{"text":"a dog"}\n')
    assert "c.jsonl: 2 words with U+FEFF" in run("make", "--t", "inv", jsonl, "-o", tmp_path / "rows").err
    written(tmp_path / "c.tokens", "a dog \ufeff runs\n")  # tokenised text is as it was published
    assert "U+FEFF" not in run("make", "--t", "inv", tmp_path / "c.tokens", "-o", tmp_path / "tokens").err


def test_a_column_that_the_first_file_lacks(tmp_path: Path) -> None:
    written(tmp_path / "in" / "test.jsonl", '{"text":"the cat sleeps ."}\n')
    written(tmp_path / "in" / "train.jsonl", '{"text":"a dog runs .","label":1}\n')
    told = run("make", "--t", "inv", tmp_path / "in", "-o", tmp_path / "out").err
    assert "test.jsonl has no column 'label': its rows have no value (null) there" in told
    lines = run("undo", tmp_path / "out", "--split", "test", "-o", tmp_path / "test.jsonl")
    assert (tmp_path / "test.jsonl").read_text() == '{"text":"the cat sleeps .","label":null}\n', lines


@pytest.mark.parametrize(
    ("value", "refused"), [('"x"', True), ("2", False), ("1.5", False), ("null", False), ("true", True)]
)
def test_a_column_of_another_type(tmp_path: Path, value: str, refused: bool) -> None:
    written(tmp_path / "in" / "test.jsonl", f'{{"text":"the cat sleeps .","label":{value}}}\n')
    written(tmp_path / "in" / "train.jsonl", '{"text":"a dog runs .","label":1}\n')
    told = run("make", "--t", "inv", tmp_path / "in", "-o", tmp_path / "out", code=int(refused)).err
    assert ("train.jsonl: 'label' holds int64" in told) == refused


def test_tokenised_and_raw_text_are_not_mixed(tmp_path: Path) -> None:
    written(tmp_path / "in" / "test.tokens", "do n't stop , now .\n")
    written(tmp_path / "in" / "train.txt", "Don't stop, now.\n")
    told = run("make", "--t", "inv", tmp_path / "in", "-o", tmp_path / "out", code=2).err
    assert "[format]" in told
    assert "--words" in told
    make("inv", tmp_path / "in", tmp_path / "out", "--words", "unicode")


def test_a_column_whose_new_name_is_taken(tmp_path: Path) -> None:
    text = '{"text":"a dog runs .","key":"K","key_given":"G"}\n'
    make("inv", written(tmp_path / "a.jsonl", text), tmp_path / "out")
    (row,) = rows(tmp_path / "out", "train")
    assert (row["key_given"], row["key_given_given"]) == ("G", "K")
    run("undo", tmp_path / "out", "-o", tmp_path / "back.jsonl")
    assert json.loads((tmp_path / "back.jsonl").read_text()) == json.loads(text)


def test_paragraphs_with_the_same_context_stay_apart(tmp_path: Path) -> None:
    paragraphs = [
        {"context": "Bo is 5 .", "qas": [{"id": id, "question": "How old ?", "answers": []}]} for id in ("a", "b")
    ]
    text = json.dumps({"data": [{"title": "T", "paragraphs": paragraphs}]})
    make("inv", written(tmp_path / "qa.json", text), tmp_path / "out")
    run("undo", tmp_path / "out", "-o", tmp_path / "back.json")
    (article,) = json.loads((tmp_path / "back.json").read_text())["data"]
    assert [[qa["id"] for qa in paragraph["qas"]] for paragraph in article["paragraphs"]] == [["a"], ["b"]]


def test_documents_of_long_lines_are_counted(tmp_path: Path) -> None:
    lines = ["a " * BLOCK, "", " " * BLOCK, "b", "c" * 3 * BLOCK]
    path = written(tmp_path / "a.txt", "\n".join(lines))
    assert text_format.count(path) == (3, 5)


def test_files_that_accompany_data_are_left_out_and_named(tmp_path: Path) -> None:
    """A folder of Universal Dependencies as it is published; other text beside it is never left out unasked."""
    beside = ("LICENSE.txt", "README.md", "CHANGES", "stats.xml")
    for name in ("en_x-ud-train.conllu", "en_x-ud-test.conllu", *beside):
        written(tmp_path / name, "1\tGo\tgo\tVERB\t_\t_\t0\troot\t_\t_\n\n" if "-ud-" in name else "Some words .\n")
    show = ("make", "--t", "inv", tmp_path, "--limit", 1, "-o")
    assert "left out, beside the conllu files: LICENSE.txt; to read one" in run(*show, tmp_path / "o1").err
    told = run(*show, tmp_path / "o2", "--format", "conllu").err
    assert f"conllu files: {', '.join(sorted(beside))}; to read one" in told
    written(tmp_path / "notes.txt", "Some words .\n")
    assert "files of several formats: .conllu, .txt" in run(*show, tmp_path / "o3", code=2).err
    assert "LICENSE.txt, README.md, notes.txt" in run(*show, tmp_path / "o4", "--format", "conllu").err
    texts = written(tmp_path / "texts" / "a.txt", "Some words .\n").parent
    written(texts / "README.txt", "Some words .\n")
    assert [part.name for part in find(SourceRequest(str(texts))).parts] == ["README.txt", "a.txt"]
