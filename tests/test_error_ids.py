"""Messages by their id that a user meets, one command line each."""

from __future__ import annotations

import json
from collections.abc import Callable
from pathlib import Path
from typing import Any

import pytest

import derivlang
from derivlang.core.errors import DerivlangError
from derivlang.core.policies import Policies
from tests.commands import ENTITIES, change, entities, run, shards, trees, wiki, written

STUDY = '[study]\nsource = "demo"\nsteps = 2\n[factors]\nseed = [1]\n[cell]\nt = "inv"\n'
NESTED = json.dumps({"text": "a b", "x": 0}).replace("0", "[" * 33 + "0" + "]" * 33)


def treebank(folder: Path) -> Path:
    """A data folder with two releases of one treebank."""
    for release in ("v2.9", "v2.10"):
        trees(folder / release / "UD_French-GSD", name="fr_gsd-ud-train.conllu")
    return folder


def late(folder: Path) -> Path:
    """A folder whose first file decides that a column holds no entities, and whose second one has some."""
    rows = [{"tokens": ["a"], "tags": [f"w{n}"]} for n in range(2000)]
    written(folder / "in" / "1.jsonl", "".join(json.dumps(row) + "\n" for row in rows))
    written(folder / "in" / "2.jsonl", json.dumps({"tokens": ["a", "b"], "tags": ["B-PER", "I-PER"]}) + "\n")
    return folder / "in"


def saved(folder: Path) -> Path:
    for name in ("state.json", "dataset_info.json", "data-00000-of-00001.arrow"):
        written(folder / "set" / name, "{}")
    return folder / "set"


def derived(folder: Path, source: Path, *options: object) -> Path:
    run("make", "--t", "inv", source, "-o", folder / "made", *options)
    return folder / "made"


def two_splits(folder: Path) -> Path:
    wiki(folder / "in", name="x.train.txt")
    return derived(folder, wiki(folder / "in", name="x.test.txt").parent)


# id -> the command line; {} is what the function writes.
TYPED: dict[str, tuple[Callable[[Path], Path], str]] = {
    "nesting": (lambda f: written(f / "x.jsonl", NESTED + "\n"), "make --t inv {}"),
    "no-words": (lambda f: written(f / "x.jsonl", '{"n": 1}\n'), "make --t inv {}"),
    "null-words": (lambda f: written(f / "x.jsonl", '{"tokens": ["a"]}\n{"tokens": ["a", null]}\n'), "make --t inv {}"),
    "null-text": (lambda f: written(f / "x.jsonl", '{"text": "a b"}\n{"text": null}\n'), "make --t inv {}"),
    "missing-column": (lambda f: written(f / "x.jsonl", '{"text": "a b"}\n'), "make --t inv {} --text-column text.b"),
    "unknown-column": (lambda f: written(f / "x.jsonl", '{"text": "a b"}\n'), "make --t inv {} --text-column b"),
    "word-numbers": (lambda f: written(f / "x.conll", "1 a O\n3 b O\n\n1 c O\n2 d O\n"), "make --t inv {}"),
    "tag-spelling": (lambda f: entities(f, ENTITIES.replace("B-LOC", "b-PER")), "make --t inv {}"),
    "late-tags": (late, "make --t inv {}"),
    "saved-dataset": (saved, "make --t inv {}"),
    "several-folders": (treebank, "make --t inv pos:French-GSD --data-dir {}"),
    "pointer": (lambda f: written(f / "x.txt", "version https://git-lfs.github.com/spec/v1\n"), "make --t inv {}"),
    "contents": (lambda f: written(f / "x.txt", "<!DOCTYPE html>\n<html></html>\n"), "make --t inv {}"),
    "other-policy": (lambda f: derived(f, trees(f), "--mwt", "atomic"), "make --t inv {}"),
    "which-split": (two_splits, "export {} --format text"),
    "no-encoder": (wiki, "align train {} {} --model argmax"),
    "unknown-script": (wiki, "make --t trans:klingon {}"),
    "unknown-study": (wiki, "ls --study nope"),
    "unknown-recipe": (wiki, "study nope --dry-run"),
    "unknown-option": (lambda f: written(f / "s.toml", STUDY + "lerning-rate = 1\n"), "study {} --dry-run"),
    "unknown-published": (lambda f: written(f / "s.toml", STUDY), "study {} --dry-run --grids nope"),
    "unknown-test": (lambda f: written(f / "s.toml", STUDY + '[report]\ntest = "t"\n'), "study {} --dry-run"),
    "missing-text": (
        lambda f: written(f / "s.toml", STUDY.replace('source = "demo"', 'text = ["novels/a"]')), "study {} --data-only"
    ),
}  # fmt: skip


@pytest.mark.parametrize("id", TYPED)
def test_a_command_line(id: str, tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    write, line = TYPED[id]
    place = str(write(tmp_path))
    monkeypatch.chdir(tmp_path)
    ran = run(*(word.replace("{}", place) for word in line.split()), code=None)
    assert f" [{id}]" in ran.err, ran.err
    assert ran.code in (1, 2)


def streamed(folder: Path) -> Any:
    datasets = pytest.importorskip("datasets")
    row = {"context": "a b", "question": "c", "answers": {"text": ["a"], "answer_start": [0]}}
    stream = datasets.Dataset.from_list([row]).to_iterable_dataset()
    return derivlang.map_dataset(stream, "inv", policies=Policies(answers="atomic"))


# id -> the call of Python.
CALLED: dict[str, Callable[[Path], Any]] = {
    "unknown-argument": lambda f: derivlang.make("demo", "inv", f / "out", worker=2),
    "streamed-answers": streamed,
    "no-runs": lambda f: derivlang.report((), f / "out"),
}


@pytest.mark.parametrize("id", CALLED)
def test_a_call(id: str, tmp_path: Path) -> None:
    with pytest.raises(DerivlangError) as caught:
        CALLED[id](tmp_path)
    assert caught.value.id == id


# id -> a column of a set, and what stands in a cell of its second row, which has 14 words.
CHANGED: dict[str, tuple[str, list[Any]]] = {
    "row-lengths": ("tokens", ["a"]),
    "row-order": ("order", [14, *range(13)]),
    "row-sentences": ("sentences", [1]),
}


@pytest.mark.parametrize("id", CHANGED)
def test_a_changed_cell(id: str, tmp_path: Path) -> None:
    """`verify` names the column, which it knows by the id."""
    column, value = CHANGED[id]
    change(shards(derived(tmp_path, wiki(tmp_path)))[0], column, 1, value)
    assert f" row 1, column {column}: " in run("verify", tmp_path / "made", code=1).out
