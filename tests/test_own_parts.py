"""Positions and special ids that each language has of its own, and text that is held out by --limit."""

from __future__ import annotations

import json
from pathlib import Path
from typing import Any

import pytest
import torch

from derivlang.evaluation.trained import PretrainedRun
from derivlang.training.encoder import Encoder, positions_of
from derivlang.training.languages import DERIVED, SOURCE
from derivlang.training.own_parts import ids_by_language
from tests.commands import run
from tests.training import ENCODERS, model_file, special_ids

LENGTH = 32
SMALL = ("--source", "demo", "--t", "trans,inv", "--vocab-size", 300, "--seq-len", LENGTH, "--threads", 1)
PARTS = ("positions", "special-ids", "positions,special-ids")


def trained(out: Path, kind: str, *options: Any, steps: int = 2) -> Encoder:
    """A run, read as an evaluation reads it."""
    run("pretrain", *SMALL, "--steps", steps, "--model", model_file(kind), "-o", out, *options)
    encoder = PretrainedRun.load(out).language_model(torch.device("cpu"))
    encoder.module.eval()
    return encoder


def states(encoder: Encoder, ids: torch.Tensor, language: Any) -> torch.Tensor:
    with torch.no_grad():
        return encoder(ids, torch.ones_like(ids, dtype=torch.bool), language)  # type: ignore[no-any-return]


def test_special_ids_by_language() -> None:
    own = special_ids()
    ids = torch.tensor([[own.begin, 57, own.end, own.begin, 57, own.mask, own.pad]])
    language = torch.tensor([[0, 0, 0, 1, 1, 1, 1]])
    assert ids_by_language(ids, language, own, 103).tolist() == [[own.begin, 57, own.end, 100, 57, 102, own.pad]]
    assert ids_by_language(ids, SOURCE, own, 103).equal(ids)


@pytest.mark.parametrize("kind", [kind for kind in ENCODERS if kind != "modernbert"])
@pytest.mark.parametrize("parts", PARTS)
def test_each_language_reads_its_own_rows(kind: str, parts: str, tmp_path: Path) -> None:
    """The states of a language change with its own rows, and not with those that only the other language has."""
    encoder = trained(tmp_path / "run", kind, "--own", parts)
    own = encoder.special_ids
    assert positions_of(encoder.module).longest == LENGTH
    ids = torch.tensor([[own.begin, 40, own.mask, 41, own.end]])
    tables: dict[str, tuple[torch.Tensor, list[Any]]] = {}  # with the rows of each language
    if "positions" in parts:
        positions = encoder.module.base_model.embeddings.position_embeddings.weight
        first = len(positions) - 2 * LENGTH
        tables["positions"] = positions, [range(first, first + 5), range(first + LENGTH, first + LENGTH + 5)]
    if "special-ids" in parts:
        size = len(encoder.embeddings)
        tables["special ids"] = encoder.embeddings, [(own.begin, own.end, own.mask), range(size - 3, size)]
    before = [states(encoder, ids, language) for language in (SOURCE, DERIVED)]
    for table, rows in tables.values():
        for changed in (SOURCE, DERIVED):
            kept = table.detach().clone()
            with torch.no_grad():
                table[list(rows[changed])] += torch.randn(len(rows[changed]), table.shape[1])
            after = [states(encoder, ids, language) for language in (SOURCE, DERIVED)]
            assert not torch.equal(after[changed], before[changed])
            assert torch.equal(after[1 - changed], before[1 - changed])
            with torch.no_grad():
                table.copy_(kept)


def test_both_languages_train_their_own_rows(tmp_path: Path) -> None:
    own, shared = (trained(tmp_path / name, "bert", *some).embeddings for name, some in
                   (("own", ("--own", "special-ids")), ("shared", ())))  # fmt: skip
    assert len(own) == len(shared) + 3
    new = trained(tmp_path / "new", "bert", "--own", "special-ids", steps=0).embeddings
    assert (own[-3:] != new[-3:]).any(dim=1).all()
    settings = json.loads((tmp_path / "own" / "run.json").read_text("utf-8"))["settings"]
    assert settings["own"] == "special-ids"


def test_measures_and_tasks_read_a_model_with_own_parts(tmp_path: Path) -> None:
    trained(tmp_path / "run", "bert", "--own", "positions,special-ids", "--language-ids")
    words = ("--measure", "contextual,retrieval,perplexity", "--pairs", 9, "--sentences", 9)
    told = run("evaluate", tmp_path / "run", *words, "--task", "pos:demo", "--epochs", 1, "--seeds", 1)
    assert "perplexity" in told.out
    export = ("export", tmp_path / "run", "--format", "transformers", "-o")
    run(*export, tmp_path / "source", "--source")
    failed = run(*export, tmp_path / "derived", code=2).err
    assert "each language has its own positions and special ids" in failed
    assert not (tmp_path / "derived").exists()


@pytest.mark.parametrize(
    ("words", "told"),
    [
        (("--own", "position"), "did you mean positions"),
        (("--own", "positions"), "rotary positions, which no language can have of its own"),
        (("--own", "special-ids", "--init", "RUN"), "--own: cannot be given with --init"),
        (("--init", "RUN", "--model", model_file("bert")), "each language has its own special ids"),
    ],
)
def test_what_is_refused(words: tuple[str, ...], told: str, tmp_path: Path) -> None:
    if "RUN" in words:
        trained(tmp_path / "own", "bert", "--own", "special-ids")
    given = [str(tmp_path / "own") if word == "RUN" else word for word in words]
    assert told in run("pretrain", *SMALL, *given, "-o", tmp_path / "run", code=2).err
    assert not (tmp_path / "run" / "model").exists()


def test_rows_beyond_the_limit_are_held_out(tmp_path: Path) -> None:
    words = ["one", "two", "three", "four", "five", "six", "seven", "eight"]
    lines = [" ".join(words[(i + k * k) % 8] for k in range(5)) + f" {words[i % 8]}{i} ." for i in range(60)]
    (tmp_path / "text.txt").write_text("\n".join(lines), "utf-8")
    small = ("--source", tmp_path / "text.txt", "--t", "trans", "--vocab-size", 60, "--seq-len", 64, "--steps", 1)
    measure = ("--measure", "perplexity", "--sentences", 100)
    for limit, told, units in ((50, "after the first 50 rows, which the run was trained on", 10),
                               (60, "come from train, which the run was trained on", 60)):  # fmt: skip
        out = tmp_path / str(limit)
        run("pretrain", *small, "--limit", limit, "-o", out)
        done = run("evaluate", out, *measure)
        assert told in done.err
        assert f"units:{units} sentences" in done.out
