"""Words in annotations: under trans lemmas and the forms of multiword tokens follow the words; under lex they stay."""

from __future__ import annotations

from dataclasses import replace
from pathlib import Path

import pytest

from derivlang.sources.corpus import Corpus
from derivlang.sources.find import find
from derivlang.sources.request import SourceRequest
from tests.commands import written
from tests.helpers import cli, conllu, file_bytes, make, right, rows, same_rows, undone
from tests.real import SHARED, needs_data

TREEBANK = conllu(
    [
        (
            "s1",
            [
                "1-2 Au _ _ _ _ _ _ _ _",
                "1 à à ADP P _ 3 case 3:case _",
                "2 le le DET D _ 3 det 3:det _",
                "3 bois _ NOUN N _ 4 obl 4:obl _",
                "4 va aller VERB V _ 0 root 0:root|4.1:conj Gloss=goes",
                "4.1 va aller VERB V _ _ _ 4:conj _",
                "5 . . PUNCT . _ 4 punct 4:punct _",
            ],
        )
    ]
)


@pytest.fixture
def source(tmp_path: Path) -> Path:
    return written(tmp_path / "a.conllu", TREEBANK)


def old_fields(monkeypatch: pytest.MonkeyPatch) -> None:
    """Treebanks are read as by versions whose lemmas stayed in the source's script."""

    def found(request: SourceRequest) -> Corpus:
        corpus = find(request)
        fields = tuple(replace(field, lexical=False) for field in corpus.schema.fields)
        return replace(corpus, schema=replace(corpus.schema, fields=fields))

    monkeypatch.setattr("derivlang.engine.make.find", found)


def test_lemmas_and_forms_follow_the_words(source: Path, tmp_path: Path) -> None:
    out = make("trans", source, tmp_path / "out")
    (row,) = rows(out).to_pylist()
    assert row["tokens"] == ["ჺ", "ლე", "ბოის", "ვა", "．"]
    assert row["lemmas"] == ["ჺ", "ლე", "_", "ალლერ", "．"]
    assert [(node["form"], node["lemma"]) for node in row["mwt"]] == [("Აუ", "_")]
    assert [(node["form"], node["lemma"]) for node in row["empty_nodes"]] == [("ვა", "ალლერ")]
    assert row["misc"][3] == "Gloss=goes"
    right(out)
    assert undone(out).decode() == TREEBANK


@pytest.mark.parametrize("spec", ["trans,inv", "inv,trans:greek", "trans:overlap=50,perm", "trans,trans:copy,inv"])
def test_the_way_back_is_exact(spec: str, source: Path, tmp_path: Path) -> None:
    out = make(spec, source, tmp_path / "out")
    right(out)
    assert undone(out).decode() == TREEBANK
    assert rows(out)["source_lemmas"].null_count == 1
    again = make("inv", out, tmp_path / "again")
    right(again)
    assert undone(again).decode() == TREEBANK
    same_rows(rows(again), rows(make(f"{spec},inv", source, tmp_path / "both")))


def test_an_export_has_one_script(source: Path, tmp_path: Path) -> None:
    out = make("trans", source, tmp_path / "out")
    assert cli("export", out, "--format", "conllu", "-o", tmp_path / "b.conllu").returncode == 0
    text = (tmp_path / "b.conllu").read_text("utf-8")
    assert "1-2\tᲐუ\t_" in text
    assert "4\tვა\tალლერ\tVERB" in text


def test_lemmas_that_the_overlap_keeps_stay(source: Path, tmp_path: Path) -> None:
    """A lemma is kept by the same rule as a word that is spelled like it."""
    out = make("trans:overlap=50", source, tmp_path / "out")
    (row,) = rows(out).to_pylist()
    image = dict(zip(row["source"], row["tokens"], strict=True))
    assert {row["lemmas"][1], row["lemmas"][4]} == {image["le"], image["."]}
    assert row["empty_nodes"][0]["form"] == image["va"]


def test_under_lex_they_stay(source: Path, tmp_path: Path) -> None:
    (tmp_path / "d.txt").write_text("le the\nva goes\naller go\n", "utf-8")
    out = make(f"lex:{tmp_path / 'd.txt'}", source, tmp_path / "out")
    (row,) = rows(out).to_pylist()
    assert row["tokens"] == ["à", "the", "bois", "goes", "."]
    assert row["lemmas"] == ["à", "le", "_", "aller", "."]
    assert row["empty_nodes"][0]["form"] == "va"
    right(out)
    both = make(f"trans,lex:{tmp_path / 'd.txt'},inv", source, tmp_path / "both")
    assert "ალლერ" in rows(both)["lemmas"][0].as_py()
    right(both)
    assert undone(both).decode() == TREEBANK


@pytest.mark.parametrize("spec", ["trans:table=1", "trans,inv"])
def test_a_set_whose_lemmas_stayed_is_right_still(
    spec: str, source: Path, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    with monkeypatch.context() as patched:
        old_fields(patched)
        out = make(spec, source, tmp_path / "out")
    assert "aller" in rows(out)["lemmas"][0].as_py()
    right(out)
    assert undone(out).decode() == TREEBANK
    again = make("trans:greek,inv", out, tmp_path / "again")
    assert "aller" in rows(again)["lemmas"][0].as_py()
    right(again)
    assert undone(again).decode() == TREEBANK


@needs_data
@pytest.mark.parametrize(
    ("treebank", "spec"),
    [
        ("UD_French-GSD/fr_gsd-ud-test.conllu", "trans:overlap=25,inv"),
        ("UD_Hebrew-HTB/he_htb-ud-test.conllu", "trans,perm:window=3"),
        ("UD_German-GSD/de_gsd-ud-test.conllu", "trans:cyrillic,inv:final=move"),
    ],
)
def test_real_treebanks_come_back(treebank: str, spec: str, tmp_path: Path) -> None:
    path = next((SHARED / "ud").glob(f"{treebank}*"))
    out = make(spec, path, tmp_path / "out")
    right(out)
    assert undone(out) == file_bytes(path)
