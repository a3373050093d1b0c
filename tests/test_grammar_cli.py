"""`derivlang grammar`: its contract, and bad input."""

from __future__ import annotations

import re
from pathlib import Path

import pytest

import derivlang
from tests.commands import TREES, run, written
from tests.real import SHARED, needs_data

CLAUSE = ("--head", "VERB", "--nodes", "NOUN&nsubj @VERB&@ NOUN&obj")


def fails(*arguments: object, code: int) -> str:
    return run("grammar", *arguments, code=code).err


def test_probs_is_a_stable_contract() -> None:
    found = run("grammar", "probs", "--superstrate", "fr", "--substrate", "en", *CLAUSE, "--json").json
    assert list(found) == ["nodes", "orders", "probs"]
    assert found["nodes"] == ["NOUN&nsubj", "@VERB&@", "NOUN&obj"]
    assert found["orders"] == [[0, 1, 2], [0, 2, 1], [1, 0, 2], [1, 2, 0], [2, 0, 1], [2, 1, 0]]
    assert sum(found["probs"]) == pytest.approx(1)
    alone = run("grammar", "probs", "--superstrate", "fr", *CLAUSE, "--json").json
    assert alone["probs"] != found["probs"]
    unmixed = run("grammar", "probs", "--superstrate", "fr", "--substrate", "en", "--mix", "0", *CLAUSE, "--json")
    assert unmixed.json == alone
    assert derivlang.grammar_probs("fr", head="NOUN", nodes="@NOUN&@")["probs"] == [1.0]
    shown = run("grammar", "probs", "--superstrate", "fr", *CLAUSE).out.splitlines()
    assert len(shown) == 6
    assert shown[0].endswith("NOUN&nsubj @VERB&@ NOUN&obj")


@needs_data
def test_probs_of_one_published_file() -> None:
    path = SHARED / "gd/models/GD_French/fr@V.orm.gz"
    clause = ("--head", "VERB", "--nodes", "NOUN&nsubj @VERB&@ NOUN&dobj")
    found = run("grammar", "probs", "--superstrate", path, *clause, "--labels", "as-is", "--json").json
    assert found["probs"][0] == pytest.approx(0.999924364627, abs=1e-9)
    mapped = run("grammar", "probs", "--superstrate", path, *CLAUSE, "--json").json
    assert mapped["probs"] == found["probs"]
    assert "grammar-class" in fails(
        "probs", "--superstrate", path, "--head", "NOUN", "--nodes", "@NOUN&@ ADJ&amod", code=2
    )


@pytest.mark.parametrize(
    ("arguments", "id"),
    [
        (("--superstrate", "xx", *CLAUSE), "unknown-grammar"),
        (("--superstrate", "fr", "--substrate", "nowhere/en", *CLAUSE), "unknown-grammar"),
        (("--superstrate", "fr", "--head", "VRB", "--nodes", "@VRB&@"), "not-a-upos"),
        (("--superstrate", "fr", "--head", "VERB", "--nodes", "NOUN&nsubj"), "family-head"),
        (("--superstrate", "fr", "--head", "VERB", "--nodes", "@VERB&@ @VERB&@"), "family-head"),
        (("--superstrate", "fr", "--head", "VERB", "--nodes", "@NOUN&@ ADJ&amod"), "family-head"),
        (("--superstrate", "fr", "--head", "VERB", "--nodes", "@VERB&@ THING&obj"), "not-a-upos"),
        (("--superstrate", "fr", "--head", "VERB", "--nodes", "@VERB&@ NOUN&object"), "not-a-relation"),
        (("--superstrate", "fr", "--head", "VERB", "--nodes", "@VERB&@ NOUN"), "not-a-relation"),
        (("--superstrate", "fr", "--head", "VERB", "--nodes", "@VERB&@" + " NOUN&obl" * 9), "family-size"),
    ],
)
def test_bad_input_is_one_clear_message(arguments: tuple[str, ...], id: str) -> None:
    message = fails("probs", *arguments, code=2)
    assert f"[{id}]" in message
    assert "Traceback" not in message


def test_errors_of_python_name_its_arguments(tmp_path: Path) -> None:
    bank, heads = written(tmp_path / "a.conllu", TREES), {"head": "VERB", "nodes": "@VERB&@"}
    calls = [
        (lambda: derivlang.score_grammar("no.tsv", bank), "grammar: there is no grammar file no.tsv"),
        (lambda: derivlang.score_grammar("fr", bank, substrate="no.tsv"), "substrate: there is no grammar file no.tsv"),
        (lambda: derivlang.grammar_probs("no.tsv", **heads), "superstrate: there is no grammar file no.tsv"),
        (lambda: derivlang.grammar_probs("fr", "VERB", "VERB"), "nodes: there must be one head"),
        (lambda: derivlang.fit_grammar(bank, tmp_path / "no" / "g.tsv"), "out: there is no folder"),
        (lambda: derivlang.fit_grammar(bank, "g.tsv", classes="Q"), "classes: 'Q' is not a head class"),
    ]
    for call, told in calls:
        with pytest.raises(derivlang.DerivlangError) as error:
            call()
        assert str(error.value).startswith(told)
    assert "GRAMMAR: there is no grammar file" in fails("score", "no.tsv", bank, code=2)


def test_ls_and_show() -> None:
    found = run("grammar", "ls", "--json").json
    assert {"fr", "en", "ja"} <= {grammar["name"] for grammar in found}
    listed = run("grammar", "ls").out
    for grammar in found:
        assert "CC-BY-SA" in grammar["about"]["licence"]
        assert f"{grammar['name']} " in listed
    shown = run("grammar", "show", "fr", "--json").json
    assert shown["labels"] == "v2"
    assert len(shown["strongest"]["V"]) == 10
    assert "UD_French-GSD" in run("grammar", "show", "fr").out


@needs_data
def test_score() -> None:
    path = SHARED / "ud/UD_French-GSD/fr_gsd-ud-test.conllu"
    found = run("grammar", "score", "fr", path, "--json").json
    assert found["classes"]["V"]["heads"] == 782
    assert found["classes"]["V"]["bits"] < 1.6 < 5 < found["classes"]["V"]["uniform"]
    assert "782" in run("grammar", "score", "fr", path).out


def test_fit_and_its_errors(tmp_path: Path) -> None:
    bank = written(tmp_path / "a.conllu", TREES * 25)
    out = tmp_path / "own.grammar.tsv"
    result = run("grammar", "fit", bank, "-o", out, "--language", "Own", "--classes", "N,V", "--json").json
    assert result["classes"]["V"] > 10
    assert result["about"]["sentences"] == "50"
    again = tmp_path / "again.grammar.tsv"
    run("grammar", "fit", bank, "-o", again, "--language", "Own", "--classes", "N,V")
    assert again.read_bytes() == out.read_bytes()
    assert result["thin"] == {"N": 0, "V": 0}
    thin = tmp_path / "thin.grammar.tsv"
    result = run("grammar", "fit", bank, "-o", thin, "--language", "Own", "--thin", "0.5", "--json").json
    assert result["thin"] == {"N": 0.5, "V": 0}
    assert "thinned N 0.5" in result["about"]["settings"]
    assert thin.read_bytes() != out.read_bytes()
    assert "--thin" in fails("fit", bank, "-o", out, "--thin", "1", code=2)
    probabilities = run("grammar", "probs", "--superstrate", out, "--head", "VERB",
                        "--nodes", "PRON&nsubj @VERB&@ NOUN&obl", "--json").json  # fmt: skip
    assert probabilities["probs"][0] > 0.5
    out = tmp_path / "other.grammar.tsv"
    assert "few-heads" in fails("fit", bank, "-o", out, "--classes", "ADJ", code=1)
    assert "grammar-class" in fails("fit", bank, "-o", out, "--classes", "Q", code=2)
    assert "missing-folder" in fails("fit", bank, "-o", tmp_path / "no" / "x.tsv", code=2)
    assert "missing-file" in fails("fit", tmp_path / "b.conllu", "-o", out, code=1)
    nouns = run("grammar", "fit", bank, "-o", again, "--classes", "NOUN,VERB,ADJ", "--json", "--force")
    assert list(nouns.json["classes"]) == ["N", "V"]
    assert "no model of ADJ heads" in nouns.err
    assert "must be a finite number" in run("grammar", "fit", bank, "-o", out, "--l2", "nan", code=2).err
    before = bank.read_bytes()
    assert "over its treebank" in fails("fit", bank, "-o", bank, code=2)
    assert "not as .gz" in fails("fit", bank, "-o", tmp_path / "x.grammar.tsv.gz", code=2)
    assert bank.read_bytes() == before
    bare = written(tmp_path / "bare.conllu", re.sub(r"\tobl\t", "\t_\t", TREES) * 25)
    assert "NOUN&_ [no-labels]" in fails("fit", bare, "-o", out, code=1)


@pytest.mark.parametrize(
    ("options", "name"),
    [
        ((), "a.conllu.grammar.tsv"),
        (("--classes", "N,V", "--labels", "v2", "--language", ""), "a.conllu.grammar.tsv"),
        (("--classes", "V"), "a.conllu.classes-V.f6d790c1.grammar.tsv"),
        (("--l2", "2", "--punct"), "a.conllu.l2-2.0-punct-True.e860f220.grammar.tsv"),
        (("--dev", "a.conllu", "--classes", "V"), "a.conllu.classes-V-dev-a.conllu.fcbb9e1f.grammar.tsv"),
    ],
)
def test_a_default_that_is_typed_names_the_same_file(
    options: tuple[str, ...], name: str, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.chdir(tmp_path)
    written(tmp_path / "a.conllu", TREES)
    written(tmp_path / name, "")
    assert f"{name}: exists already, and no {name}.recipe.json" in fails("fit", "a.conllu", *options, code=1)


@pytest.mark.parametrize(
    ("arguments", "told"),
    [
        (("show", "fr", "--count", "-1"), "--count: must be at least 0, got -1"),
        (("score", "fr", "a.conllu", "--mix", "0.1"), "--mix: has no effect without --substrate"),
        (("score", "fr", "a.conllu", "--substrate", "en", "--mix", "2"), "--mix: must be at most 1, got 2"),
        (("fit", "a.conllu", "--classes", "V", "--thin", "0"), "--thin: only noun heads are thinned"),
        (("fit", "a.conllu", "--dev", "b.conllu", "--l2", "2", "--thin", "0"), "--dev: it has nothing to decide"),
    ],
)
def test_options_are_checked_before_anything_is_read(arguments: tuple[str, ...], told: str) -> None:
    assert told in fails(*arguments, code=2)


def test_an_empty_name_of_a_substrate_is_none(tmp_path: Path) -> None:
    words = ("grammar", "probs", "--superstrate", "fr", "--substrate", "", "--head", "VERB", "--nodes", "@VERB&@")
    assert "unknown-grammar" in run(*words, code=2).err


def test_old_labels_are_detected_and_named(tmp_path: Path) -> None:
    bank = written(tmp_path / "old.conllu", TREES.replace("\tobl\t", "\tdobj\t") * 25)
    message = fails("fit", bank, "-o", tmp_path / "x.grammar.tsv", code=1)
    assert "[labels-version]" in message
    assert "dobj" in message
    run("grammar", "fit", bank, "-o", tmp_path / "x.grammar.tsv", "--labels", "v1")
    assert run("grammar", "show", tmp_path / "x.grammar.tsv", "--json").json["labels"] == "v1"
