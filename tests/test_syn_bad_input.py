"""What `syn` and `parse` refuse: one clear message each, an exit code, and nothing half-written."""

from __future__ import annotations

from pathlib import Path

import pytest

from tests.commands import ROOT, run, spawn, written

pytestmark = pytest.mark.usefixtures("plugins")

FRENCH = ROOT / "grammars" / "fr.grammar.tsv"
TREE = """\
# sent_id = a
1\tHe\the\tPRON\t_\t_\t2\tnsubj\t_\t_
2\tleft\tleave\tVERB\t_\t_\t0\troot\t_\t_
3\t.\t.\tPUNCT\t_\t_\t2\tpunct\t_\t_

"""


@pytest.fixture(autouse=True)
def _here(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.chdir(tmp_path)
    monkeypatch.setenv("DERIVLANG_PARSES", str(tmp_path / "parses"))
    written(tmp_path / "a.conllu", TREE)
    written(tmp_path / "a.tokens", "He left .\n")
    written(tmp_path / "a.txt", "He left.\n")


def refused(*arguments: object, code: int) -> str:
    """The message, in one line; there is no folder afterwards."""
    ran = run(*arguments, "-o", "out", code=code)
    assert ran.out == ""
    assert ran.err.startswith("derivlang: ")
    assert not Path("out").exists()
    assert not list(Path("parses").rglob("*.parquet"))
    return " ".join(ran.err.split())


@pytest.mark.parametrize(
    ("spec", "code", "said"),
    [
        ("syn:frr", 2, ["no grammar 'frr'", "did you mean fr?"]),
        ("syn:klingon", 2, ["no grammar 'klingon'", "there are:", "fr", "grammar ls"]),
        ("syn:none.tsv", 2, ["there is no grammar file none.tsv", "--t syn"]),
        ("syn:fr@ADP", 2, ["the grammar fr has no model of ADP heads", "its classes: N, V"]),
        ("syn:fr@XYZ", 2, ["no model of XYZ heads"]),
        ("syn:fr@N~en@N", 2, ["two grammars for N heads", "fr@N~hi@V"]),
        ("syn:fr~en", 2, ["two grammars for N heads"]),
        ("syn:fr@N~", 2, ["names no grammar in ''"]),
        ("syn:@N", 2, ["names no grammar in '@N'"]),
        ("syn:fr@", 2, ["names no grammar in 'fr@'"]),
        ("syn:temperature=0", 2, ["temperature=0.0 must be at least 1e-06"]),
        ("syn:temperature=-1", 2, ["temperature=-1.0 must be at least 1e-06"]),
        ("syn:temperature=nan", 2, ["must be a finite number"]),
        ("syn:mix=2", 2, ["syn:mix: must be at most 1, got 2.0"]),
        ("syn:mix=-0.1", 2, ["must be at least 0"]),
        ("syn:mode=best", 2, ["mode: must be sample or argmax, got 'best'"]),
        ("syn:punct=keep", 2, ["must be reader or permute"]),
        ("syn:freeze=all", 2, ["must be parts or none"]),
        ("syn:nonprojective=drop", 2, ["must be block or keep-order"]),
        ("syn:substrate=xx", 2, ["no grammar 'xx'"]),
        ("syn:seed=-1", 2, ["seed: must be at least 0, got -1"]),
        ("syn:fr:freez=none", 2, ["no parameter of syn 'freez'", "did you mean freeze?"]),
        ("syn:fr:ja", 2, ["'ja') is one too many"]),
    ],
)
def test_a_bad_spec(spec: str, code: int, said: list[str]) -> None:
    message = refused("make", "--t", spec, "a.conllu", code=code)
    for part in said:
        assert part in message


@pytest.mark.parametrize(
    ("line", "said"),
    [
        ("PRE\tNOUN&obj\t@VERB&@=many", "'many' is not a number"),
        ("ODD\tNOUN&obj\t@VERB&@=0.5", "ODD"),
        ("PRE\tNOUN&obj\t@VERB&@", ""),
    ],
)
def test_a_broken_line_of_a_grammar_is_named(line: str, said: str) -> None:
    lines = FRENCH.read_text("utf-8").splitlines()
    lines[199] = line
    written(Path("mine.grammar.tsv"), "\n".join(lines) + "\n")
    message = refused("make", "--t", "syn:mine.grammar.tsv", "a.conllu", code=1)
    assert "mine.grammar.tsv:200" in message
    assert said in message


def test_a_file_that_is_no_grammar() -> None:
    message = refused("make", "--t", "syn:a.conllu", "a.conllu", code=1)
    assert "a.conllu:1" in message
    assert "this is not a grammar" in message


def test_a_grammar_file_that_changes_is_read_again() -> None:
    """In one process, as in a notebook."""
    from derivlang.transforms.syn import Syn

    written(Path("mine.grammar.tsv"), FRENCH.read_bytes())
    before = Syn(grammar="mine.grammar.tsv").resources
    assert before == Syn(grammar="fr").resources
    written(Path("mine.grammar.tsv"), FRENCH.with_name("en.grammar.tsv").read_bytes())
    assert Syn(grammar="mine.grammar.tsv").resources != before


@pytest.mark.parametrize(
    ("changes", "said"),
    [
        ({"2\tnsubj": "3\tnsubj", "2\tpunct": "1\tpunct"}, ["a.conllu:2", "word 1 has head 3", "a cycle"]),
        ({"2\tnsubj": "1\tnsubj"}, ["a.conllu:2", "word 1 has itself as head"]),
        ({"2\tnsubj": "0\tnsubj"}, ["a.conllu:3", "head 0, but a word before it is the root"]),
        ({"0\troot": "1\troot"}, ["a.conllu:2", "no word of its sentence has head 0"]),
        ({"2\tpunct": "9\tpunct"}, ["a.conllu:4", "word 3 has head 9, but the sentence has 3 words"]),
        ({"2\tpunct": "_\tpunct"}, ["a.conllu:4", "the word has no head, but a whole tree is needed"]),
        ({"2\tpunct": "x\tpunct"}, ["a.conllu:4", "'x', which is not the number of a word"]),
    ],
)
def test_a_broken_tree(changes: dict[str, str], said: list[str]) -> None:
    text = TREE
    for old, new in changes.items():
        text = text.replace(old, new)
    written(Path("a.conllu"), text)
    message = refused("make", "--t", "syn:fr", "a.conllu", code=1)
    for part in [*said, "sent_id a"]:
        assert part in message


def test_a_word_without_a_tag() -> None:
    written(Path("a.conllu"), TREE.replace("VERB", "_"))
    message = refused("make", "--t", "syn:fr", "a.conllu", code=1)
    assert "word 2 ('left') of 'He left .' has no UPOS" in message


@pytest.mark.parametrize("command", [("make", "--t", "syn:fr"), ("parse",)])
@pytest.mark.parametrize(
    ("options", "code", "said"),
    [
        (("a.tokens", "--parser", "stanzza"), 2, ["no parser 'stanzza'", "did you mean stanza?", "parser ls"]),
        (("a.tokens", "--parser", "chian"), 2, ["did you mean chain"]),
        (("a.tokens", "--parser", "chain-fr"), 2, ["'chain-fr' is for the language 'fr', but the source is in 'en'"]),
        (("a.txt", "--lang", "de", "--parser", "chain"), 2, ["is for the language 'en', but the source is in 'de'"]),
        (("a.txt", "--lang", "fr"), 2, ["no parser for the language 'fr'", "--parser stanza", "CoNLL-U"]),
        (("a.tokens", "--parser", "./none"), 1, ["the folder has no parser model", "derivlang parser train"]),
        (("a.tokens", "--parser", "spacy:"), 2, ["needs the name of a pipeline"]),
        (("none.tokens", "--parser", "chain"), 1, ["there is no such file"]),
        (("a.tokens", "--parser", "chain", "--splits", "nope"), 1, ["has no split 'nope'", "found: train"]),
    ],
)
def test_a_parser_that_cannot_be_used(
    command: tuple[str, ...], options: tuple[str, ...], code: int, said: list[str]
) -> None:
    message = refused(*command, *options, code=code)
    for part in said:
        assert part in message


def test_the_language_option_that_a_message_names_is_there() -> None:
    message = refused("make", "--t", "syn:fr", "a.tokens", "--parser", "chain-fr", code=2)
    named = {word.strip("().,:`") for word in message.split() if word.startswith(("--", "(--"))}
    options = run("make", "--help").out
    assert named
    assert all(option in options.split() for option in named)


def test_a_derived_set_without_trees() -> None:
    run("make", "--t", "inv", "a.tokens", "-o", "inverted")
    message = refused("make", "--t", "syn:fr", "inverted", "--parser", "chain", code=2)
    assert "derived without trees" in message
    assert "--t inv,syn" in message
    assert "is derived (inv)" in refused("parse", "inverted", "--parser", "chain", code=2)


def test_what_has_trees_is_not_parsed() -> None:
    assert "has trees already" in refused("parse", "a.conllu", "--parser", "chain", code=2)


def test_in_a_process_of_its_own_there_is_no_traceback() -> None:
    for arguments in (("--t", "syn:frr", "a.conllu"), ("--t", "syn:fr", "a.tokens", "--parser", "nope")):
        ran = spawn("make", *arguments, "-o", "out", code=2)
        assert "Traceback" not in ran.err
        assert not Path("out").exists()


def test_relations_that_universal_dependencies_does_not_have_are_named() -> None:
    """All of them are refused, some are counted, and subtypes and relations of UD v1 are known."""
    relations = dict(zip(("nsubj", "root", "punct"), ("NSUBJ", "ROOT", "PUNCT"), strict=True))
    for name in ("nsubj", "nsubj:outer", "nsubjpass", "NSUBJ"):
        written(Path(f"{name}.conllu"), TREE.replace("nsubj", name))
    said = [run("show", "--t", "syn:fr", f"{name}.conllu").err for name in ("nsubj:outer", "nsubjpass", "NSUBJ")]
    assert said[:2] == ["", ""]
    assert "NSUBJ.conllu: 1 word with a relation that Universal Dependencies does not have" in said[2]
    ran = run("make", "--t", "trans,swap", "NSUBJ.conllu", "-o", "set")
    assert "NSUBJ.conllu: 1 word with a relation" in ran.err
    assert "1 word has a relation that Universal Dependencies does not have" in ran.out
    assert "NSUBJ.conllu: 1 word with a relation" in run("stats", "--t", "swap", "NSUBJ.conllu").err
    for old, new in relations.items():
        written(Path("a.conllu"), Path("a.conllu").read_text("utf-8").replace(old, new))
    said = [refused("make", "--t", spec, "a.conllu", code=1) for spec in ("syn:fr", "case")]
    assert all("a.conllu:2 (sent_id a): 'NSUBJ' is not a relation of Universal Dependencies" in one for one in said)
