"""Targets of a run that have a text of their own, with labelled sets in their language: --task pos:fr=SET."""

from __future__ import annotations

import shutil
from itertools import pairwise
from pathlib import Path
from typing import Any

import pytest

import derivlang
from derivlang.core.messages import DerivlangWarning
from derivlang.evaluation import cell as cells
from derivlang.evaluation.tasks.registry import task_of
from tests.commands import run
from tests.tiny_runs import DEMO
from tests.training import batches

TUNE: dict[str, Any] = {"epochs": 2, "seeds": 1, "train_examples": 12, "batch_size": 8, "lr": 5e-3, "threads": 1}
QUICK = [word for name, value in TUNE.items() for word in (f"--{name.replace('_', '-')}", str(value))]


@pytest.fixture(scope="module")
def made(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """A run of a source, a language in another script, and another text, with one tokenizer."""
    folder = tmp_path_factory.mktemp("targets")
    lines = []
    for batch in batches("identity"):
        words, ends = batch.strings().to_pylist(), batch.sentences.tolist()
        lines += [" ".join(words[i:j]) for i, j in pairwise(ends)]
    for name, some in (("en", lines[::2]), ("fr", lines[1::2])):
        (folder / f"{name}.txt").write_text("".join(f"{line}\n" for line in some), "utf-8")
    joint = "--words", "space", "--vocab-size", 200, "-o", folder / "joint"
    run("tokenizer", "train", folder / "en.txt", "--text", folder / "fr.txt", *joint)
    options: dict[str, Any] = {"tokenizer": folder / "joint", "steps": 4, "seq_len": 32, "batch_size": 8, "threads": 1}
    languages = {"en": {"text": str(folder / "en.txt")}, "la": {"t": "trans"}, "fr": {"text": str(folder / "fr.txt")}}
    asked: dict[str, Any] = {"language": languages, "words": "space", "data": folder / "data", **options}
    derivlang.pretrain(None, None, folder / "run", learning_rate=1e-3, **asked)
    return folder / "run"


@pytest.fixture
def several(made: Path, tmp_path: Path) -> Path:
    return Path(shutil.copytree(made, tmp_path / "run"))


def values(found: Any, **equal: str) -> dict[tuple[str, str], float]:
    """The test scores by metric and regime."""
    rows = found[found["split"] == "test"]
    for name, value in equal.items():
        rows = rows[rows[name] == value]
    return {(row["metric"], row["regime"]): row["value"] for _, row in rows.iterrows()}


def test_a_set_of_a_target_is_read_in_its_language(several: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """With the source's tokenizer, the source's set gives the source's scores."""
    tuned: list[int] = []
    once = cells.fine_tune
    monkeypatch.setattr(cells, "fine_tune", lambda *given: (tuned.append(given[2]), once(*given))[1])
    made = derivlang.Run(several).evaluate(task="pos:demo+fr=demo", measure="none", predictions=True, **TUNE)
    assert sorted(tuned) == [0, 1, 1]  # one fine-tuning on the source
    assert set(made["factor.target"]) == {"la", "fr"}
    found = made[made["factor.target"] == "fr"]
    assert set(found["task"]) == {"pos:demo+fr=demo"}
    assert set(found["set.ft_source"]) == {"demo+demo"}
    scores = values(found)
    assert {regime for _, regime in scores} == {"zs", "sup", "source", "oracle", "chance"}
    assert all(scores[name, "zs"] == scores[name, "source"] for name in ("accuracy", "macro_f1"))
    assert set(found["set.ft_own_train"]) == {"12"}
    assert run("verify", several, "--json").json["ok"]
    assert (derivlang.report(several, out=several / "report")).exists()


def test_a_target_whose_set_has_no_train(several: Path) -> None:
    test = several.parent / "fr.conllu"
    shutil.copy(DEMO / "demo-ud-test.conllu", test)
    with pytest.warns(DerivlangWarning, match="the target's own set has no train and dev for sup, which is left out"):
        made = derivlang.Run(several).evaluate(task=f"pos:demo+fr={test}", target="fr", measure="none", **TUNE)
    found = values(made)
    assert {regime for _, regime in found} == {"zs", "source", "chance"}
    assert set(made["set.ft_own_train"]) == {"0"}
    (label,) = set(made["task"])
    assert label.startswith("pos:demo+fr=fr.conllu-")
    told = run("evaluate", several, "--target", "fr", "--task", f"pos:demo+fr={test}", "--measure", "none", *QUICK).out
    assert "ZS, on the source  accuracy" in told


@pytest.mark.parametrize(
    ("asked", "message"),
    [
        (["--task", "pos:demo", "--target", "fr"], "fr has a text of its own, so no set can be derived for it"),
        (["--task", "pos:demo+de=demo"], "there is no target 'de'"),
        (["--task", "pos:demo+fr=demo+fr=demo"], "gives a target two sets"),
        (["--task", "pos:demo+fr="], "names no set"),
        (["--task", "pos:demo+demo+demo+fr=demo"], "names more than two sets"),
        (["--task", "pos:demo+fr={folder}/none.conllu"], "there is no such file"),
        (["--task", "xnli:demo:nli+fr=demo:nli", "--target", "fr", "--regime", "cs"], "cs mixes sides of sets"),
        (["--task", "pos:demo+fr={test}", "--target", "fr", "--regime", "sup"], "has no train and dev for sup"),
        (["--task", "pos:demo+fr={words}", "--target", "fr"], "has no labels of the task pos"),
    ],
)
def test_sets_that_do_not_suit(asked: list[str], message: str, several: Path) -> None:
    words = several.parent / "words.txt"
    words.write_text("a b c\n", "utf-8")
    places = {"folder": several.parent, "test": DEMO / "demo-ud-test.conllu", "words": words}
    typed = [word.format(**places) for word in asked]
    found = run("evaluate", several, *typed, "--measure", "none", *QUICK, code=None)
    assert message in found.err


def test_targets_without_a_set_are_left_out(several: Path) -> None:
    told = run("evaluate", several, "--task", "pos:demo", "--measure", "alignment", *QUICK)
    assert "fr: not evaluated, as a text of its own has no derived sets: name one, e.g. pos:fr=SET" in told.err
    assert [line for line in told.out.splitlines() if line.endswith(":") and "  " not in line][:1] == ["la:"]
    assert not (several / "evaluation" / "fr.json").exists()
    told = run("evaluate", several, "--task", "pos:demo+fr=demo,ner:demo", "--target", "fr", *QUICK)
    assert "fr: left out, as a text of its own is not parallel to the source's: ner:demo, alignment" in told.err


def test_names_of_sets() -> None:
    task: Any = task_of("pos:A+B+fr=C+de=./x=y.conllu")
    assert task.sources == ("pos:A", "pos:B")
    assert {target: own.sources for target, own in task.own.items()} == {"fr": ("pos:C",), "de": ("./x=y.conllu",)}
    alone: Any = task_of("pos:fr=C")
    assert alone.sources == ("pos:English-EWT",)
    assert task_of("pos:./a=b.conllu").sources == ("./a=b.conllu",)  # type: ignore[attr-defined]
