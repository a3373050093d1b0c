"""More files of strangers: what stays in the source's order is said, and what cannot be read right is refused."""

from __future__ import annotations

import json
from datetime import UTC, datetime
from pathlib import Path
from typing import Any

import pyarrow as pa
import pyarrow.parquet as pq
import pytest

from tests.commands import run

MARA = ["Mara", "Kim", "met", "."]
BIO = ["B-PER", "I-PER", "O", "O"]
CONLLU = (
    "1\tMara\tMara\tPROPN\t_\t_\t3\tnsubj\t_\t{}\n2\tKim\tKim\tPROPN\t_\t_\t1\tflat\t_\t{}\n"
    "3\tmet\tmeet\tVERB\t_\t_\t0\troot\t_\t_\n4\t.\t.\tPUNCT\t_\t_\t3\tpunct\t_\t_\n\n"
)


def lines(path: Path, *rows: dict[str, Any]) -> Path:
    path.write_text("".join(json.dumps(row) + "\n" for row in rows), "utf-8")
    return path


@pytest.mark.parametrize(
    ("row", "told"),
    [
        ({"text": "Mara Kim met .", "pos": ["N", "N", "V", "."]}, "the lists of 'pos' are as long as the words in 3"),
        ({"text": "Don't go.", "tags": ["V", "P", "V", "."]}, "the lists of 'tags' are as long as the words in 3"),
        ({"text": "Mara met.", "upos": ["N", "V", "."]}, "the lists of 'upos' do not move with the words"),
        ({"text": "Mara met.", "pos": ["N", "V", "."]}, "do not move with them: give the words as a list, too"),
        ({"text": "Mara Kim met .", "topics": ["a", "b", "c", "d", "e"], "z": ["a"]}, ""),
        ({"text": "Mara Kim met .", "tags": " ".join(BIO)}, "'tags' holds tags of entities, which do not move"),
        ({"tokens": MARA, "ann": {"tags": BIO}}, "'ann' holds tags of entities, which do not move"),
        ({"tokens": MARA, "srl": [BIO, ["O", "O", "B-V", "O"]]}, "'srl' holds tags of entities, which do not move"),
        ({"text": "Mara met .", "plausible_answers": {"text": ["Mara"], "answer_start": [0]}}, "'plausible_answers'"),
        ({"text": "Mara met .", "answer": "Mara", "answer_start": 0}, "the answers in 'answer_start' do not move"),
        ({"text": "Mara Kim met .", "grade": "B-A", "cats": ["a", "b"], "note": "I see O"}, ""),
    ],
)
def test_labels_that_stay_are_said(row: dict[str, Any], told: str, tmp_path: Path) -> None:
    said = run("make", "--t", "inv", lines(tmp_path / "a.jsonl", row, row, row), "-o", tmp_path / "out").err
    assert told in said if told else not said


@pytest.mark.parametrize("key", ["tokens", "text"])
@pytest.mark.parametrize(("less", "rows", "told"), [(0, 5, True), (1, 5, False), (0, 4, False)])
def test_labels_in_a_text_are_said(key: str, less: int, rows: int, told: bool, tmp_path: Path) -> None:
    """They have a part for each word; in one row less, or in few rows, that may be by chance."""
    words = [MARA[n % 2 :] for n in range(rows)]
    tags = [" ".join("NNV."[n % 2 + less * (n == rows - 1) :]) for n in range(rows)]
    table = [{key: one if key == "tokens" else " ".join(one), "pos": tag} for one, tag in zip(words, tags, strict=True)]
    said = run("make", "--t", "inv", lines(tmp_path / "a.jsonl", *table), "-o", tmp_path / "out").err
    assert ("'pos' has as many parts as words in each of the first 5 rows" in said) == told


def test_tags_that_come_late_are_refused_and_may_be_named(tmp_path: Path) -> None:
    """The first rows decide what a list holds; entities after thousands of rows of something else are not moved."""
    early, late = {"tokens": ["Bo", "Kim", "ran"], "labels": ["x"]}, {"tokens": ["Bo", "Kim", "ran"], "labels": BIO[:3]}
    source = lines(tmp_path / "a.jsonl", *[early] * 5000, *[late] * 3)
    told = run("make", "--t", "inv", source, "-o", tmp_path / "out", code=1).err
    assert "a.jsonl:5001: 'labels' holds tags of entities here" in told
    assert "--label-column labels=entities" in told
    assert not (tmp_path / "out" / "derivlang.json").exists()
    run("make", "--t", "inv", source, "-o", tmp_path / "out", "--label-column", "labels=value")


def test_a_key_that_comes_late_is_a_column_of_all_rows(tmp_path: Path) -> None:
    rows = [*[{"text": "It rained .", "y": {"a": 1}}] * 5000, {"text": "Bo left .", "y": {"b": 1}}]
    run("make", "--t", "inv", lines(tmp_path / "a.jsonl", *rows), "-o", tmp_path / "out")
    run("undo", tmp_path / "out", "-o", tmp_path / "back.jsonl")
    last = json.loads((tmp_path / "back.jsonl").read_text("utf-8").splitlines()[-1])
    assert last == {"text": "Bo left .", "y": {"a": None, "b": 1}}


@pytest.mark.parametrize(
    ("name", "text", "told"),
    [
        ("a.txt", "".join(f"word{n}\tO\n" for n in range(600)), "looks like CoNLL: a word and its tag"),
        ("a.txt", "Mara O\nleft O\n. O\n", "looks like CoNLL: a word and its tag"),
        ("a.conll", CONLLU.format("_", "_"), "looks like CoNLL-U"),
        ("a.txt", "one line\rtwo line\rthree line\r", "text with lines that end in \\r, as on old Macs"),
        ("a.txt", "a\rb\r" * 9 + "one line\ntwo line\n", "text with lines that end in \\r, as on old Macs"),
        ("a.txt", "idx\treview\n1\tA good film .\n2\tA bad one .\n", "looks like a table whose columns are separated"),
        ("a.conll", "Bo\tB-PER\rran\tO\r\rIda\tB-PER\r", "a.conll:1: the line has carriage returns inside"),
        ("a.conll", "Bo\tO\n\n-DOCSTART- O\rIda\tB-PER\r\nran\tO\n", "a.conll:3: the line has carriage returns inside"),
    ],
)
def test_text_of_another_form_is_refused(name: str, text: str, told: str, tmp_path: Path) -> None:
    (tmp_path / name).write_bytes(text.encode())
    assert told in run("make", "--t", "inv", tmp_path / name, "-o", tmp_path / "out", code=1).err
    assert not (tmp_path / "out" / "derivlang.json").exists()


@pytest.mark.parametrize(
    ("first", "second", "moved"),
    [
        ("NE=B-PER", "NE=I-PER", ("_", "_")),
        ("ner=B-PER", "ner=I-PER", ("_", "_")),
        ("Coref=(12", "Coref=12)", ("_", "_")),
        ("MWE=1:NE", "MWE=1", ("MWE=1:NE", "MWE=1")),  # in the order of the derived words
        ("NE=Person", "Gloss=I-FUT", ("Gloss=I-FUT", "NE=Person")),
    ],
)
def test_notes_that_hold_for_an_order(first: str, second: str, moved: tuple[str, str], tmp_path: Path) -> None:
    (tmp_path / "a.conllu").write_text(CONLLU.format(first, second), "utf-8")
    run("make", "--t", "inv", tmp_path / "a.conllu", "-o", tmp_path / "out")
    run("export", tmp_path / "out", "--split", "train", "-o", tmp_path / "out.conllu")
    rows = (line.split("\t") for line in (tmp_path / "out.conllu").read_text("utf-8").splitlines())
    words = {row[1]: row[9] for row in rows if len(row) == 10}
    assert (words["Kim"], words["Mara"]) == moved
    run("undo", tmp_path / "out", "-o", tmp_path / "back.conllu")
    assert (tmp_path / "back.conllu").read_text("utf-8") == CONLLU.format(first, second)


def test_types_that_parquet_itself_does_not_have_are_kept(tmp_path: Path) -> None:
    when = pa.array([datetime(2020, 1, 1, tzinfo=UTC)], pa.timestamp("us", "Europe/Paris"))
    table = pa.table({"text": ["It rained ."], "when": when, "some": pa.array([[5]], pa.list_(pa.duration("s")))})
    pq.write_table(table, tmp_path / "a.parquet")
    run("make", "--t", "inv", tmp_path / "a.parquet", "-o", tmp_path / "out")
    run("undo", tmp_path / "out", "-o", tmp_path / "back.parquet")
    back = pq.read_table(tmp_path / "back.parquet")
    assert back.schema.field("when").type == when.type
    assert back.select(["when", "some"]).equals(table.select(["when", "some"]))


def test_what_squad_holds_beyond_its_rows_is_said(tmp_path: Path) -> None:
    question = {"id": "1", "question": "Where ?", "answers": [{"text": "Nizar", "answer_start": 0}]}
    data = [{"title": "T", "paragraphs": [{"context": "Nizar was born .", "qas": [question]}]}]
    (tmp_path / "a.json").write_text(json.dumps({"version": "1.1", "source": "x", "data": data}), "utf-8")
    assert "source (1)" in run("make", "--t", "inv", tmp_path / "a.json", "-o", tmp_path / "out").err


def test_lists_of_answers_that_are_all_empty(tmp_path: Path) -> None:
    row = {"context": "It rained .", "question": "Who ?", "answers": []}
    run("make", "--t", "inv", lines(tmp_path / "a.jsonl", row, row), "-o", tmp_path / "out")
    run("undo", tmp_path / "out", "-o", tmp_path / "back.jsonl")
    assert [json.loads(line) for line in (tmp_path / "back.jsonl").read_text("utf-8").splitlines()] == [row, row]


def test_names_of_the_first_version_of_ud_stay_whole(tmp_path: Path) -> None:
    (tmp_path / "a.conllu").write_text(CONLLU.format("_", "_").replace("flat", "name"), "utf-8")
    run("make", "--t", "syn:ja", tmp_path / "a.conllu", "-o", tmp_path / "out")
    run("export", tmp_path / "out", "--split", "train", "-o", tmp_path / "out.txt")
    assert "Mara Kim" in (tmp_path / "out.txt").read_text("utf-8")


@pytest.mark.parametrize(
    ("content", "encoding", "said"),
    [
        ("Le café ferme.\n".encode(), "latin-1", "the file is UTF-8, but the encoding is latin-1"),
        ("\ufeffFirst words.\n".encode(), "cp1252", "the file is UTF-8, but the encoding is cp1252"),
        (b"A cat sat.\n", "utf-16-le", "the file is UTF-8, but the encoding is utf-16-le"),
        (b"A cat sat.\n", "utf-16", "the file is UTF-8, but the encoding is utf-16"),
        ("ذهب الولد إلى البيت.\n".encode("cp1256"), "latin-1", "not in Latin letters, which latin-1 is for"),
        (b"A line.\nIt\x92s \x93fine\x94.\n", "latin-1", ":2: latin-1 has the control character U+0092 there"),
    ],
)
def test_text_of_another_encoding_is_not_read_as_one_byte_a_letter(
    content: bytes, encoding: str, said: str, tmp_path: Path
) -> None:
    path = tmp_path / "a.txt"
    path.write_bytes(content)
    assert said in run("make", "--t", "inv", path, "--encoding", encoding, "-o", tmp_path / "out", code=1).err
    right = "cp1256" if "Latin" in said else "cp1252"
    path.write_bytes(content.replace(b"caf\xc3\xa9", b"caf\xe9").replace(b"\x92", b"'").removeprefix(b"\xef\xbb\xbf"))
    run("make", "--t", "inv", path, "--encoding", right, "-o", tmp_path / "out")


def test_dashes_and_quotation_marks_are_no_letters_of_another_script(tmp_path: Path) -> None:
    (tmp_path / "a.txt").write_text("He left.\n———\n“——” he said.\n", "cp1252")
    run("make", "--t", "inv", tmp_path / "a.txt", "--encoding", "cp1252", "-o", tmp_path / "out")


def test_lists_of_sentences_are_no_words(tmp_path: Path) -> None:
    source = lines(tmp_path / "a.jsonl", {"text": ["Mara met Bo.", "Kim left."]})
    said = run("make", "--t", "inv", source, "-o", tmp_path / "a", code=2).err
    assert "text looks like lists of sentences: write each sentence as text in a row of its own" in said
    assert "--word-column" not in said
    said = run("make", "--t", "inv", source, "-o", tmp_path / "a", "--word-column", "text").err
    assert "warning: 'text' looks like lists of sentences, but each string is read as one word" in said
    few = lines(tmp_path / "b.jsonl", {"tokens": ["New York", "is", "big"]}, {"tokens": []})
    assert not run("make", "--t", "inv", few, "-o", tmp_path / "b").err


@pytest.mark.parametrize(
    ("text", "refused"),
    [
        ('text\tlabel\n"Mara met Bo."\t1\n', True),
        ('text\tlabel\n"Mara met Bo."\t1\n"Go"\t2\n', True),
        ('text\tlabel\n"Mara met Bo."\t1\nGo on\t2\n', False),  # direct speech
        ('text\tlabel\n"Mara" met "Bo"\t"1"\n', False),
    ],
)
def test_a_column_of_quoted_texts_is_refused(text: str, refused: bool, tmp_path: Path) -> None:
    (source := tmp_path / "a.tsv").write_text(text, "utf-8")
    said = run("make", "--t", "inv", source, "-o", tmp_path / "a", code=1 if refused else 0).err
    assert ('a.tsv:2: the line looks quoted as in CSV: "Mara met Bo." [tsv-quoting]' in said) == refused
    run("make", "--t", "inv", source, "-o", tmp_path / "b", "--no-quoting")


def test_a_quoted_header_is_refused(tmp_path: Path) -> None:
    (source := tmp_path / "a.tsv").write_text('"text"\t"label"\nMara met Bo.\t1\n', "utf-8")
    told = run("make", "--t", "inv", source, "-o", tmp_path / "a", code=1).err
    assert 'a.tsv:1: the line looks quoted as in CSV: "text" [tsv-quoting]' in told
    run("make", "--t", "inv", source, "-o", tmp_path / "a", "--quoting")
    assert not run("verify", tmp_path / "a").err


def test_half_of_a_pair_is_not_left_without_a_word(tmp_path: Path) -> None:
    pair = {"premise": "Mara met Bo.", "hypothesis": "Kim left.", "text": "Both left."}
    source = lines(tmp_path / "a.jsonl", pair)
    said = run("make", "--t", "inv", source, "-o", tmp_path / "a", "--text-column", "hypothesis").err
    assert "'premise' stays in the source language; for a pair of texts: --text-column premise" in said
    assert not run("make", "--t", "inv", source, "-o", tmp_path / "b", "--text-column", "text").err


@pytest.mark.parametrize(
    ("name", "text", "told"),
    [
        ("a.tsv", "Mara\tB-PER\nmet\tO\nBo\tB-PER\n.\tO\n", "if each line is a word and its tag: --format tagged; "),
        ("a.tsv", "Mara\tN\nmet\tV\nBo\tN\n.\tN\n", "if each line is a word and its tag: --format tagged; "),
        ("a.tsv", "Mara met Bo .\tA\nKim left .\tA\n", "\n  if it is a header: --header"),
        ("a.conll", "word tag\nMara B-PER\nmet O\n", "a.conll:1: this looks like a header line: its tag is 'tag'"),
        ("a.tsv", "word\tner_tags\nMara\tB\nmet\tO\n\nBo\tB\n", "a.tsv:1: this looks like a header line"),
    ],
)
def test_words_and_tags_have_advice(name: str, text: str, told: str, tmp_path: Path) -> None:
    (source := tmp_path / name).write_text(text, "utf-8")
    assert told in run("make", "--t", "inv", source, "-o", tmp_path / "a", code=None).err
    if "--format tagged" in told and "B-" in text:
        run("make", "--t", "inv", source, "-o", tmp_path / "a", "--format", "tagged")


@pytest.mark.parametrize("end", ["\n", "\r\n"])
@pytest.mark.parametrize("encoding", ["utf-16", "utf-16-le", "utf-16-be", "utf-32"])
def test_the_encoding_of_a_text_is_named_whatever_ends_its_lines(encoding: str, end: str, tmp_path: Path) -> None:
    (tmp_path / "a.txt").write_bytes(end.join(["The cat sat .", "A dog ran .", ""] * 9).encode(encoding))
    make = ("make", "--t", "inv", tmp_path / "a.txt", "-o", tmp_path / "out")
    assert "encoding, such as utf-16\n" in (told := run(*make, code=1).err) or f"pass --encoding {encoding}," in told
    run(*make, "--encoding", encoding)
    assert pq.read_table(next((tmp_path / "out").rglob("*.parquet"))).num_rows == 18


def test_a_text_inside_objects_has_the_name_that_the_user_gave(tmp_path: Path) -> None:
    rows = [{"doc": {"body": {"text": text}}} for text in ("Mara met .", None)]
    make = ("make", "--t", "inv", lines(tmp_path / "a.jsonl", *rows), "-o", tmp_path / "out")
    assert "a.jsonl:2: no text in doc.body.text [null-text]" in run(*make, "--text-column", "doc.body.text", code=1).err


def test_lists_of_word_and_tag_are_told_apart_from_text(tmp_path: Path) -> None:
    row = {"id": "a-1", "tokens": [[word, tag] for word, tag in zip(MARA, BIO, strict=True)]}
    told = run("make", "--t", "inv", lines(tmp_path / "a.jsonl", row, row), "-o", tmp_path / "out", code=2).err
    assert "tokens holds lists of lists, such as [word, tag]: write the words and the tags" in told
    assert "--text-column" not in told
