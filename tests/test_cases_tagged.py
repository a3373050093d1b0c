"""Tagged files with more than words and tags, and files that are not what their name says, by command and file."""

from __future__ import annotations

import bz2
import gzip
import lzma
from pathlib import Path

import pyarrow.parquet as pq
import pytest

import derivlang
from derivlang.core.errors import DataError
from tests.commands import ROOT, make, rows, run, shards, written

CASES = ROOT / "tests" / "cases" / "data"
LFS = "version https://git-lfs.github.com/spec/v1\noid sha256:4d7a\nsize 12345\n"

GERMEVAL = 'Das/O Traum-Haus/B-LOCpart in/O FC/B-ORG Bonn/I-ORG "/O ./O | Ida/B-PER ging/O ./O'
ANNOTATED = "Mara/B-PER met/O Bo/B-PER Kim/I-PER in/O Saltmere/B-LOC ./O | Ida/B-PER left/O ./O"
CONLL2003 = (
    "Acme/I-ORG sells/O Dutch/I-MISC soap/O Bo/I-PER Ida/B-PER ./O | Mara/I-PER Kim/I-PER left/O ./O"  # undo: IOB1
)
NUMBERS = "words are read from column 2, and tags from column 3; left out: column"


def read(file: Path, folder: Path, *options: object) -> tuple[str, str]:
    """Return the sentences that `inv` and `undo` give, as "word/tag … | …", and what `make` says."""
    said = run("make", "--t", "inv", file, "-o", folder / "set", *options).err
    run("verify", folder / "set")
    run("undo", folder / "set", "-o", folder / "undone.tsv")
    sentences = (folder / "undone.tsv").read_text("utf-8").strip("\n").split("\n\n")
    return " | ".join(" ".join(line.replace("\t", "/") for line in one.split("\n")) for one in sentences), said


def refused(*arguments: object) -> str:
    ran = run(*arguments, code=None)
    assert ran.code in (1, 2), ran
    return ran.err


@pytest.mark.parametrize(
    ("file", "sentences", "said"),
    [
        ("b2b_germeval_first.tsv", GERMEVAL, f"{NUMBERS}s 1 (word numbers), 4 and comments"),
        ("b2c_germeval_space.tsv", GERMEVAL, f"{NUMBERS}s 1 (word numbers), 4 and comments"),
        ("b2d_germeval_nocomment.tsv", GERMEVAL, f"{NUMBERS}s 1 (word numbers), 4\n"),
        ("b2e_idx_first.conll", "Mara/B-PER left/O | Bo/B-PER stayed/O", f"{NUMBERS} 1 (word numbers)\n"),
        ("b1_uner.iob2", ANNOTATED, f"{NUMBERS}s 1 (word numbers), 4, 5 and comments"),
        ("b1b_uner_dash.iob2", ANNOTATED, f"{NUMBERS}s 1 (word numbers), 4, 5 and comments"),
        ("b4_multiconer.conll", "mara/B-PER kim/I-PER sang/O blue/B-CW moon/I-CW | bo/B-PER left/O", "2, 3 and com"),
        ("b6_conll03.conll", CONLL2003, "column 1, and tags from column 4; left out: columns 2, 3\n"),
        ("b17_trail.conll", "Mara/B-PER Kim/I-PER left/O | Bo/B-PER | Ida/B-PER | ./O", ""),
        ("b17b_trailspace.conll", "Mara/B-PER Kim/I-PER left/O | Bo/B-PER", ""),
        ("b17c_trailtab.conll", "Mara/B-PER Kim/I-PER left/O | Bo/B-PER", ""),
        ("b17d_wsblank.conll", "Mara/B-PER Kim/I-PER | Bo/B-PER | Ida/B-PER ./O", ""),
        ("b17e_double.conll", "Mara/B-PER Kim/I-PER left/O", ""),
        ("b11_blank.conll", "Mara/B-PER \u200b/I-PER Kim/I-PER \u200e/O left/O \u00a0/O ./O", ""),
        ("b18_hash.conll", "#tag/O #/O Mara/B-PER # 1/O | Kim/B-PER", "left out: comments"),
        ("b20_crlfbom.conll", "Mara/B-PER Kim/I-PER | Bo/B-PER", ""),
    ],
)  # fmt: skip
def test_the_words_and_tags_of_a_file(file: str, sentences: str, said: str, tmp_path: Path) -> None:
    found, told = read(CASES / file, tmp_path)
    assert found == sentences
    assert told.count("left out") == bool(said)
    assert said in told


@pytest.mark.parametrize(
    ("text", "sentences"),
    [
        ("1 Acme NNP I-NP B-ORG\n2 sells VBZ I-VP O\n\n1 Bo NNP I-NP B-PER\n", "Acme/B-ORG sells/O | Bo/B-PER"),
        ("1 Acme I-NP B-ORG\n2 sells I-VP O\n", "Acme/B-ORG sells/O"),  # chunks are no outer tags
        ("0\tBo\tB-PER\n1\tleft\tO\n\n0\tIda\tB-PER\n", "Bo/B-PER left/O | Ida/B-PER"),
        ("# a\tb\n1\t#\tO\n2\tBo\tB-PER\n\n# c\n1\t7\tO\n", "#/O Bo/B-PER | 7/O"),
        # Words that are numbers, in some sentences or in a file without a column for numbers.
        ("1 CD O\n2 CD O\n3 CD O\n\nBo NNP B-PER\nleft VBD O\n", "1/O 2/O 3/O | Bo/B-PER left/O"),
        ("1\tO\n2\tO\n\n1\tO\n2\tO\n\n1\tB-PER\n", "1/O 2/O | 1/O 2/O | 1/B-PER"),
        ("Mara   NNP  B-PER\nleft   VBD  O\n \t\r\nBo NNP B-PER\t\n", "Mara/B-PER left/O | Bo/B-PER"),
    ],
)
def test_numbers_of_words_and_words_that_are_numbers(text: str, sentences: str, tmp_path: Path) -> None:
    assert read(written(tmp_path / "x.conll", text), tmp_path)[0] == sentences


@pytest.mark.parametrize(
    ("text", "what"),
    [
        ("1 Bo B-PER\n2 left O\n\n" * 200 + "1 Bo B-PER\n3 left O\n", ":602: the first column counts"),
        ("1 Bo B-PER\n2 left O\n\n3 Ida B-PER\n4 sat O\n", ":1: the first column holds only numbers"),
        ("1-2 am O\n1 a O\n2 m O\n\n1 Bo B-PER\n", ":1: the first column holds only numbers"),
        ("7\tCD\tO\n", ":1: the first column holds only numbers"),
        ("1\tCD\tO\n\n1\tCD\tB-PER\n", ":1: the first column holds only numbers"),  # of words, or words?
        ("1 Bo B-PER\n2 left \n", ":2: the line has 2 columns, expected 3"),
        ((CASES / "b15b_onto.conll").read_text(), ":2: these are the columns of CoNLL 2012"),
        ((CASES / "b3_germeval_empty.tsv").read_text(), ":3: the token is empty"),
        ((CASES / "b19_notag.conll").read_text(), ":3: the line has 1 column, expected 2"),
        ((CASES / "b11b_blank_tok.conll").read_text(), ":2: the token is empty"),
        ((CASES / "b24_sentid_last.conll").read_text(), "[tags-without-prefix]"),
    ],
)
def test_refused_where_the_words_are_open(text: str, what: str, tmp_path: Path) -> None:
    assert what in refused("make", "--t", "inv", written(tmp_path / "x.conll", text), "-o", tmp_path / "set")


def test_tags_that_are_not_of_entities_move_with_their_words(tmp_path: Path) -> None:
    words = written(tmp_path / "words.tsv", "The\tDET\ncat\tNOUN\nsleeps\tVERB\n\n")
    told = refused("make", "--t", "inv", words, "-o", tmp_path / "no")
    assert "such as its part of speech, pass --label-column ner_tags=tags" in " ".join(told.split())
    text, _ = read(words, tmp_path, "--label-column", "ner_tags=tags")
    assert text == "The/DET cat/NOUN sleeps/VERB"
    (row,) = rows(tmp_path / "set", "train")
    assert (row["tokens"], row["ner_tags"]) == (["sleeps", "cat", "The"], ["VERB", "NOUN", "DET"])
    for option, what in (("ner_tags=heads", "cannot be heads"), ("tag=tags", "no column 'tag'; there are: ner_tags")):
        assert what in refused("make", "--t", "inv", words, "--label-column", option, "-o", tmp_path / "no")
    told = refused("make", "--t", "inv", words, "--format", "tagged", "--word-column", "a", "-o", tmp_path / "no")
    assert "has no columns to choose" in told


@pytest.mark.parametrize(
    ("file", "what"),
    [
        ("b14_train.txt", "looks like CoNLL"),
        ("b14b_train_tab.txt", "looks like CoNLL"),
        ("l2_html.txt", "looks like a web page"),
        ("l2_html.csv", "looks like a web page"),
        ("l2_html.jsonl", "looks like a web page"),
        *((path.name, "git lfs pull") for path in sorted(CASES.glob("l1_lfs.*"))),
        ("b16_eng.testa", "--format text, conllu, jsonl, tagged"),
        ("b15_onto.v4_gold_conll", "--format text, conllu, jsonl, tagged"),
        *((name, "datasets.load_from_disk") for name in ("p18_saved", "p18b_saveddict", "p18c_indices")),
    ],
)
def test_files_that_are_not_what_their_name_says(file: str, what: str, tmp_path: Path) -> None:
    for command in ("make", "plan"):
        assert what in refused(command, "--t", "inv", CASES / file, "-o", tmp_path / "set")


@pytest.mark.parametrize(
    ("text", "what"),
    [
        ((CASES / "b6_conll03.conll").read_text(), "CoNLL: a word"),
        ((CASES / "b1_uner.iob2").read_text(), "CoNLL: a word"),
        ((CASES / "b2b_germeval_first.tsv").read_text(), "CoNLL: a word"),
        ((CASES / "b7b_untyped.conll").read_text(), "CoNLL: a word"),
        ((CASES / "b7d_underscore.conll").read_text(), "CoNLL: a word"),
        ((CASES / "n1_udpos.tsv").read_text(), "CoNLL: a word"),
        ("Bo\tB-PER\nsat\tO\n" * 20 + "a faulty line\n" + "Ida\tB-PER\n" * 5000, "CoNLL: a word"),
        ((CASES / "a4_roots.conllu").read_text(), "CoNLL-U"),
        ('{"text": "It rains."}\n{"text": "It pours."}\n', "JSON Lines"),
        ("\n <html lang=en>\n<BODY>It rains.", "web page"),
        ('<?xml version="1.0" encoding="utf-8"?>\n<Error><Code>NoSuchKey</Code></Error>\n', "web page"),
        ('<doc id="12" url="a" title="Rain">\nRain\n\nIt rains.\n</doc>\n', "tags of XML or SGML"),
        ("<corpus>\n<s> It rains . </s>\n</corpus>\n", "tags of XML or SGML"),
        (LFS, "git lfs pull"),
        ("/annex/objects/SHA256E-s12--ab.txt\n", "git annex get"),
    ],
)
@pytest.mark.parametrize("name", ["x.txt", "x.tokens", "x.txt.gz"])
def test_text_that_is_none(name: str, text: str, what: str, tmp_path: Path) -> None:
    content = gzip.compress(text.encode()) if name.endswith("gz") and "git" not in what else text
    assert what in refused("make", "--t", "inv", written(tmp_path / name, content), "-o", tmp_path / "set")


@pytest.mark.parametrize("name", ["x.txt", "x.jsonl", "x.csv", "x.conllu", "x.dict"])
def test_compressed_files_under_another_name(name: str, tmp_path: Path) -> None:
    file = tmp_path / name
    spec, source = (f"lex:{file}", "demo") if name == "x.dict" else ("inv", file)
    packed = {"gzip": gzip.compress(b"a b\n"), "xz": lzma.compress(b"a b\n"), "bzip2": bz2.compress(b"a b\n")}
    for what, content in packed.items():
        file.write_bytes(content)
        assert f"the file is compressed by {what}" in refused("make", "--t", spec, source, "-o", tmp_path / "set")


@pytest.mark.parametrize(
    "text",
    [
        "<p>It rains , and <b> it pours .\n",
        "<html> is the first tag of a page .\nThe last one is </html> , then .\n",
        "<!DOCTYPE html> names the type of a page .\n",
        "roses red\nviolets blue\n\nsugar sweet\nhoney true\n",
        "am I\ndo I\n\ncan I\nwill I\n",
        "the\ncat\nsat\n",
        "Bo O\nIda O\n",
        "1 Berlin 3.6 Germany\n2 Paris 2.1 France\n",
        "we went\nby the S-bahn\nto her B-side , to an e-mail\nand home\n",
        " \n = Bo Lee = \n \n The 10 @,@ 000 well @-@ known <unk> left .\n",
        "{ a } and { b }\n",
        "version https : 3\noid\n",
        "oh , oh\noh , no\nla la\n",
        "<unk>\n<unk> came .\n",
    ],
)
def test_text_stays_text(text: str, tmp_path: Path) -> None:
    file = written(tmp_path / "x.tokens", text)
    run("make", "--t", "inv", file, "-o", tmp_path / "set")
    run("undo", tmp_path / "set", "-o", tmp_path / "undone.tokens")
    assert (tmp_path / "undone.tokens").read_text("utf-8") == text


def test_a_file_may_begin_with_many_blocks_of_comments(tmp_path: Path) -> None:
    file = written(tmp_path / "x.conll", "".join(f"# licence {n}\n\n" for n in range(120)) + "Bo B-PER\nsat O\n")
    assert read(file, tmp_path)[0] == "Bo/B-PER sat/O"


def test_the_format_of_a_source_may_be_named(tmp_path: Path) -> None:
    assert read(CASES / "b16_eng.testa", tmp_path / "a", "--format", "tagged")[0] == CONLL2003
    assert read(CASES / "b14_train.txt", tmp_path / "b", "--format", "tagged")[0].endswith("Bo/B-PER stayed/O ./O")
    for name, text in (("l2_html.txt", "web page"), ("b14_train.txt", "CoNLL")):
        out = tmp_path / text
        run("make", "--t", "inv", CASES / name, "-o", out, "--format", "text", "--words", "space")
        run("undo", out, "-o", tmp_path / name)
        assert (tmp_path / name).read_bytes() == (CASES / name).read_bytes()
    for command in (("make", "-o", tmp_path / "c"), ("plan", "-o", tmp_path / "d"), ("stats",), ("show",)):
        run(*command, "--t", "inv", CASES / "b16_eng.testa", "--format", "tagged")
    onto = CASES / "b15_onto.v4_gold_conll"
    assert "CoNLL 2012" in refused("make", "--t", "inv", onto, "-o", tmp_path / "e", "--format", "tagged")
    assert "did you mean tagged" in refused("make", "--t", "inv", onto, "-o", tmp_path / "e", "--format", "tagd")
    assert "leave --format out" in refused("make", "--t", "inv", "demo", "-o", tmp_path / "e", "--format", "tagged")


def test_the_format_of_a_folder_and_in_python(tmp_path: Path) -> None:
    for split in ("train", "testa", "testb"):
        written(tmp_path / "in" / f"eng.{split}", (CASES / "b16_eng.testa").read_text())
    assert "or name the format of its files: --format" in refused(
        "make", "--t", "inv", tmp_path / "in", "-o", tmp_path / "x"
    )
    with pytest.warns(derivlang.DerivlangWarning):
        derivlang.make(tmp_path / "in", "inv", tmp_path / "set", format="tagged")
    assert sum(pq.read_table(shard).num_rows for shard in shards(tmp_path / "set")) == 6
    with pytest.raises(DataError, match=r"git lfs pull"):
        derivlang.make(CASES / "l1_lfs.csv", "inv", tmp_path / "y")


@pytest.mark.parametrize(
    ("text", "words"),
    [
        ((CASES / "f4_rawparen.mrg").read_text(), "Bo ( R. ) ran"),
        ("(S (A a) (( ()\n (B b) () )))\n", "a ( b )"),
        ("(S (X x) (-LRB- () (Y y) (-RRB- )))\n", "x ( y )"),
        ("(S (X x) (: ;) () )))\n", "x ; )"),
    ],
)
def test_bare_brackets_are_words(text: str, words: str, tmp_path: Path) -> None:
    file = written(tmp_path / "x.mrg", text)
    make("inv", file, tmp_path / "set")
    run("verify", tmp_path / "set")
    assert " ".join(reversed(rows(tmp_path / "set", "train")[0]["tokens"])) == words
    run("undo", tmp_path / "set", "-o", tmp_path / "undone.mrg")
    assert (tmp_path / "undone.mrg").read_text() == text
