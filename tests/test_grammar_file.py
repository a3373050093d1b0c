"""A grammar file as an artifact: the same command finds it, another one is refused with the first difference."""

from __future__ import annotations

import subprocess
import sys
from pathlib import Path

import pytest

import derivlang
from tests.commands import TREES, run, snapshot, written

NO_RECIPE = "exists already, and no own.grammar.tsv.recipe.json says how it was made"


@pytest.fixture
def here(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    """A folder with a treebank, another one for --dev, and a grammar."""
    written(tmp_path / "a.conllu", TREES * 25)
    written(tmp_path / "b.conllu", TREES * 26)
    monkeypatch.chdir(tmp_path)
    run("grammar", "fit", "a.conllu", "-o", "own.grammar.tsv", "--l2", "1.5")
    return tmp_path


def fit(*words: object, code: int = 0, treebank: str = "a.conllu") -> str:
    return run("grammar", "fit", treebank, "-o", "own.grammar.tsv", *words, code=code).err


def test_the_same_command_keeps_its_grammar(here: Path) -> None:
    before = snapshot(here)
    first = run("grammar", "fit", "a.conllu", "-o", "own.grammar.tsv", "--l2", "1.5", "--json")
    assert "own.grammar.tsv is already complete: nothing to do" in first.err
    assert first.json["l2"] == {"N": 1.5, "V": 1.5}
    assert derivlang.fit_grammar("a.conllu", "own.grammar.tsv", l2=1.5) == first.json
    fit("--l2", "1.5", "--classes", "NOUN,VERB", "--thin", "0", "--labels", "v2")  # defaults, typed
    assert snapshot(here) == before


@pytest.mark.parametrize(
    ("words", "told"),
    [
        (("--l2", "2"), "l2 is 1.5, not 2.0"),
        ((), "l2 is 1.5, not 2.0"),
        (("--l2", "1.5", "--thin", "0.5"), "thin is 0.0, not 0.5"),
        (("--l2", "1.5", "--punct"), "punct is false, not true"),
        (("--l2", "1.5", "--classes", "V"), "classes is N, V, not V"),
        (("--l2", "1.5", "--labels", "v1"), "labels is v2, not v1"),
        (("--l2", "1.5", "--licence", "CC0"), 'licence is "", not CC0'),
        (("--dev", "b.conllu"), "dev is none, not b.conllu"),
    ],
)
def test_other_settings_are_refused_by_name(here: Path, words: tuple[str, ...], told: str) -> None:
    before = snapshot(here)
    message = fit(*words, code=1)
    assert f"own.grammar.tsv: is another grammar: {told} [out-exists]\n  name another file, or --force" in message
    assert snapshot(here) == before
    fit(*words, "--force")
    assert snapshot(here) != before
    assert "already complete" in fit(*words)


def test_other_treebanks_are_refused_by_name(here: Path) -> None:
    assert "treebanks is a.conllu, not b.conllu" in fit("--l2", "1.5", code=1, treebank="b.conllu")
    written(here / "a.conllu", TREES * 27)
    assert "a.conllu has changed since" in fit("--l2", "1.5", code=1)
    with pytest.raises(derivlang.DerivlangError, match="name another file, or force=True"):
        derivlang.fit_grammar("a.conllu", "own.grammar.tsv", l2=1.5)
    derivlang.fit_grammar("a.conllu", "own.grammar.tsv", l2=1.5, force=True)


def test_a_lost_or_changed_file_is_named(here: Path) -> None:
    recipe, out = here / "own.grammar.tsv.recipe.json", here / "own.grammar.tsv"
    told, text = recipe.read_bytes(), out.read_bytes()
    out.unlink()
    assert "own.grammar.tsv is missing; the grammar is made again" in fit("--l2", "1.5")
    assert (out.read_bytes(), recipe.read_bytes()) == (text, told)
    out.write_bytes(text.replace(b"0.", b"1.", 1))
    assert "own.grammar.tsv: was changed since it was made [damaged]" in fit("--l2", "1.5", code=1)
    out.write_bytes(text)
    for wrong in (told.replace(b'"V": 1.5', b'"V": 2.5'), told[:-9], b"[]"):
        recipe.write_bytes(wrong)
        message = fit("--l2", "1.5", code=1)
        assert "own.grammar.tsv.recipe.json: this is not a valid recipe" in message
        assert "remove it and own.grammar.tsv, and run again" in message
        assert out.read_bytes() == text


def test_the_second_of_two_processes_finds_what_the_first_wrote(here: Path) -> None:
    command = [sys.executable, "-m", "derivlang", "grammar", "fit", "a.conllu"]
    both = [subprocess.Popen(command, stderr=subprocess.PIPE, stdout=subprocess.PIPE, text=True) for _ in range(2)]
    told = [process.communicate()[1] for process in both]
    assert [process.returncode for process in both] == [0, 0], told
    assert sum("a.conllu.grammar.tsv is already complete" in text for text in told) == 1
    assert {path.name for path in here.iterdir() if path.name.startswith(("a.conllu", "."))} == {
        "a.conllu", "a.conllu.grammar.tsv", "a.conllu.grammar.tsv.recipe.json",
    }  # fmt: skip
