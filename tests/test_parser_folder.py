"""Training into the folder of a parser again: the same command keeps it; another one is told what differs."""

from __future__ import annotations

import json
from collections.abc import Callable
from pathlib import Path
from typing import Any

import pytest

import derivlang
from derivlang.core.seal import HASH, sealed
from derivlang.parsing.model import CARD, WEIGHTS
from tests.commands import TREES, run, snapshot, written

pytest.importorskip("torch", reason="training needs torch: pip install 'derivlang[train]'")


@pytest.fixture
def folder(tmp_path: Path) -> Path:
    """A treebank with dev, a further treebank, and a parser of the first with scores on the second."""
    for split in ("train", "dev"):
        written(tmp_path / "ud" / f"a-ud-{split}.conllu", TREES)
    written(tmp_path / "more.conllu", TREES)
    run(*line(tmp_path))
    return tmp_path


def line(folder: Path, **changes: Any) -> list[Any]:
    """The command that makes the parser, with some options changed; None leaves an option out."""
    given = {"epochs": 1, "score": folder / "more.conllu", "licence": "CC0-1.0"} | changes
    flags = [word for name, value in given.items() if value is not None for word in (f"--{name}", value)]
    return ["parser", "train", folder / "ud", "-o", folder / "out", *flags]


def test_the_same_command_keeps_the_parser_and_prints_its_scores(folder: Path) -> None:
    before = snapshot(folder / "out")
    again = run(*line(folder))
    assert "out/ is already complete: nothing to do" in again.err
    assert "writing to" not in again.err
    assert "more.conllu: UPOS" in again.out
    assert snapshot(folder / "out") == before
    card = run(*line(folder), "--json").json
    assert {name: json.loads((folder / "out" / CARD).read_text("utf-8"))[name] for name in card} == card
    called = derivlang.train_parser(
        folder / "ud", folder / "out", epochs=1, score=folder / "more.conllu", licence="CC0-1.0"
    )
    assert called == card


@pytest.mark.parametrize(
    ("changes", "told"),
    [
        ({"epochs": 2}, "epochs is 1, not 2"),
        ({"seed": 2}, "seed is 1, not 2"),
        ({"threads": 2}, "threads is 1, not 2"),
        ({"licence": "MIT"}, "licence is CC0-1.0, not MIT"),
        ({"score": None}, "score is a-ud-dev.conllu, more.conllu, not a-ud-dev.conllu"),
    ],
)
def test_another_parser_is_refused(changes: dict[str, Any], told: str, folder: Path) -> None:
    before = snapshot(folder / "out")
    refused = run(*line(folder, **changes), code=1).err
    assert f"holds another parser: {told} [output]" in refused
    assert "--force" in refused
    assert snapshot(folder / "out") == before


@pytest.mark.parametrize("name", ["ud/a-ud-train.conllu", "ud/a-ud-dev.conllu", "more.conllu"])
def test_a_changed_file_is_another_one(name: str, folder: Path) -> None:
    with (folder / name).open("a") as file:
        file.write("\n")
    refused = run(*line(folder), code=1).err
    assert f"holds another parser: {Path(name).name} has changed since" in refused
    written(folder / "out" / "thesis.txt", "mine")
    assert "kept what is not part of the parser: thesis.txt" in run(*line(folder), "--force").err
    assert "already complete" in run(*line(folder)).err
    assert (folder / "out" / "thesis.txt").read_text() == "mine"


def _edit(change: Callable[[dict[str, Any]], Any]) -> Callable[[Path], None]:
    def edit(out: Path) -> None:
        card = json.loads((out / CARD).read_text("utf-8"))
        change(card)
        (out / CARD).write_text(json.dumps(sealed(card) if HASH in card else card), "utf-8")

    return edit


@pytest.mark.parametrize(
    ("damage", "told"),
    [
        (_edit(lambda card: card.pop("threads")), "a parser whose card does not say how it was trained"),
        (_edit(lambda card: card.pop("trained_on")), "a parser whose card does not say how it was trained"),
        (_edit(lambda card: card.update(settings=[])), "this is not a valid model card of a parser"),
        (_edit(lambda card: card.update(scored_on=3)), "this is not a valid model card of a parser"),
        (lambda out: (out / CARD).write_text("{"), "this is not a valid model card of a parser"),
        (lambda out: (out / CARD).write_text("[]"), "this is not a valid model card of a parser"),
        (lambda out: (out / WEIGHTS).write_bytes(b"x"), "is not the one that model.json was written for"),
    ],
)
def test_what_cannot_be_compared_is_refused_and_force_replaces_it(
    damage: Callable[[Path], Any], told: str, folder: Path
) -> None:
    whole = snapshot(folder / "out")
    damage(folder / "out")
    refused = run(*line(folder), code=1).err
    assert told in refused
    assert "give another folder, or --force" in refused
    run(*line(folder), "--force")
    assert snapshot(folder / "out") == whole


def test_a_missing_file_makes_it_again(folder: Path) -> None:
    whole = snapshot(folder / "out")
    (folder / "out" / WEIGHTS).unlink()
    assert f"{WEIGHTS} is missing; the parser is made again" in run(*line(folder)).err
    assert snapshot(folder / "out") == whole
    (folder / "out" / CARD).unlink()
    refused = run(*line(folder), "--force", code=1).err
    assert "holds something else, and no parser" in refused
    assert [path.name for path in (folder / "out").iterdir()] == [WEIGHTS]
