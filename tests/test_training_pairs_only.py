"""`pretrain` without --source and --t: an objective that reads nothing but the pairs of a file needs neither."""

from __future__ import annotations

import json
from collections.abc import Collection
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import pytest

pytest.importorskip("torch")

import derivlang
from derivlang.training.objectives import registry
from derivlang.training.objectives.base import Loss, Objective, masked_part
from derivlang.training.objectives.registry import objective_names, read_objective
from derivlang.training.streams.base import Stream
from derivlang.training.streams.packed import Packed
from derivlang.training.streams.pairs import SentencePairs
from tests.checkpoints import checkpoint
from tests.commands import run, snapshot, written

EN = (
    "the old dog saw the small cat under the table of the town\nthe student reads books about the dog and the cat\n" * 9
)
RU = "кот спит на столе а собака ждёт и кот ждёт и спит\nсобака ждёт на столе а кот спит и ждёт и спит\n" * 9
STEPS: dict[str, Any] = {"steps": 2, "batch_size": 4, "pair_length": 32, "seq_len": 32, "threads": 1}
FILES = {"dictionary", "pairs"}


@pytest.fixture
def pairs(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    """Pairs of two languages, with links."""
    monkeypatch.chdir(tmp_path)
    written(tmp_path / "en-ru.source", EN)
    written(tmp_path / "en-ru.derived", RU)
    written(tmp_path / "en-ru.pharaoh", "0-0 1-1\n" * 18)
    written(tmp_path / "words.txt", "cat кот\ndog собака\n")
    return tmp_path / "en-ru"


def options(**changes: Any) -> list[object]:
    asked = {**STEPS, "init": checkpoint(), "pairs": "en-ru", **changes}
    return [word for name, value in asked.items() for word in (f"--{name.replace('_', '-')}", value)]


def test_which_objectives_read_text_follows_from_their_streams() -> None:
    alone = {name for name in objective_names() if not read_objective(name).reads_text(FILES)}
    assert {"dict-tlm", "ppa", "tlm", "weam"} <= alone
    assert not {"mlm", "clm", "xlm", "xlm-align", "align-mlm", "dict-mlm"} & alone
    assert read_objective("dict-tlm").reads_text({"pairs"})  # the dictionary would be made of the source
    assert all(read_objective(name).reads_text() for name in objective_names())


@pytest.mark.parametrize("objective", ["tlm", "ppa", "weam", "weam:links=hmm", "dict-tlm"])
def test_a_foreign_file_of_pairs_is_enough(objective: str, pairs: Path) -> None:
    more = {"dictionary": "words.txt"} if objective == "dict-tlm" else {}
    line = ("pretrain", "--objective", objective, *options(**more), "-o", "run")
    assert "2 steps" in run(*line).out
    record = json.loads(Path("run/run.json").read_text("utf-8"))
    assert (record["source"], record["spec"], record["data"], record["heldout_files"]) == ("", "identity", "", None)
    assert record["streams"]
    assert "nothing is wrong" in run("verify", "run").out
    before = snapshot(Path("run"))
    assert "already complete" in run(*line, "--resume").err
    assert snapshot(Path("run")) == before
    written(pairs.with_name("en-ru.source"), EN.replace("town", "dog"))
    assert "its sentence pairs are others" in run(*line, "--resume", code=1).err


def test_the_run_of_python_is_the_same_and_its_folder_has_a_name(pairs: Path) -> None:
    run("pretrain", "--objective", "tlm", *options())
    (folder,) = (path for path in Path().iterdir() if path.is_dir())
    assert folder.name.startswith("en-ru.identity.")
    made = derivlang.pretrain(None, None, "python", objective="tlm", init=checkpoint(), pairs="en-ru", **STEPS)
    weights = [place / "model" / "model.safetensors" for place in (folder, made.path)]
    assert weights[0].read_bytes() == weights[1].read_bytes()
    assert made.record["fingerprint"] == json.loads((folder / "run.json").read_text("utf-8"))["fingerprint"]


def test_such_a_run_is_evaluated_on_tasks_and_has_no_held_out_text(pairs: Path) -> None:
    run("pretrain", "--objective", "tlm", *options(), "-o", "run")
    asked = ("--task", "pos:demo", "--seeds", 1, "--regime", "sup", "--epochs", 1, "--threads", 1, "--device", "cpu")
    assert "pos:demo" in run("evaluate", "run", *asked, "--measure", "none").out
    message = run("evaluate", "run", "--measure", "perplexity", code=2).err
    assert "trained only on sentence pairs, so there is no held-out text [no-text]" in message


@dataclass(frozen=True, kw_only=True)
class Pairwise(Objective):
    """Masked words of pairs, of a plug-in that declares no more than its streams."""

    name = "pairwise"

    def streams(self) -> tuple[Stream, ...]:
        return (SentencePairs(share=1.0),)

    def loss(self, model: Any, micro: Any, state: Any) -> Loss:
        return {"pairs": masked_part(model, micro["pairs"])}


class OldStream(SentencePairs):
    """A stream that says nothing of text."""

    def reads_text(self, files: Collection[str]) -> bool:
        return Stream.reads_text(self, files)


def test_the_streams_of_a_plug_in_say_whether_it_reads_text(pairs: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setitem(registry.OBJECTIVES.built_in, "pairwise", Pairwise)
    assert "2 steps" in run("pretrain", "--objective", "pairwise", *options(), "-o", "run").out
    for streams in ((OldStream(),), (SentencePairs(), Packed())):
        monkeypatch.setattr(Pairwise, "streams", lambda self, streams=streams: streams)
        assert "[missing-option]" in run("pretrain", "--objective", "pairwise", *options(), "-o", "other", code=2).err


@pytest.mark.parametrize(
    ("words", "told"),
    [
        (["--objective", "tlm"], "--source: is missing: tlm reads the text of a source and of its derived language"),
        (["--objective", "tlm", "--source", "demo"], "--t: is missing: tlm reads"),
        (["--objective", "mlm", "--pairs", "en-ru"], "--source: is missing: mlm reads"),
        (["--objective", "xlm", "--pairs", "en-ru"], "--source: is missing: xlm reads"),
        (["--objective", "tlm", "--pairs", "en-ru"], "--tokenizer: without a source, the pairs need the tokenizer of"),
        (["--objective", "tlm", "--pairs", "en-ru", "--lang", "fr"], "--lang: has no effect without --source"),
        (["--objective", "tlm", "--pairs", "en-ru", "--data-only"], "--data-only: there is no text to encode"),
        (["--objective", "tlm", "--pairs", "en-ru", "--init", "CHECKPOINT", "--t", "trans:overlap=30"],
         "--t: trans:overlap=30 keeps words that are chosen from a source"),
    ],
)  # fmt: skip
def test_what_is_missing_is_named(words: list[str], told: str, pairs: Path) -> None:
    before = snapshot(Path())
    line = [str(checkpoint()) if word == "CHECKPOINT" else word for word in words]
    assert told in run("pretrain", *line, "--threads", 1, "-o", "run", code=2).err
    assert snapshot(Path()) == before


def test_python_names_the_missing_arguments(pairs: Path) -> None:
    with pytest.raises(derivlang.DerivlangError) as error:
        derivlang.pretrain(None, None, "run", objective="tlm", **STEPS)
    assert str(error.value).startswith("source: is missing: tlm reads")
