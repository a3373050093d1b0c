"""`derivlang evaluate RUN@STEP`, unfinished runs, `--every-checkpoint`, and results of other weights."""

from __future__ import annotations

import json
import shutil
from collections.abc import Callable, Iterator
from dataclasses import replace
from pathlib import Path
from typing import Any

import pyarrow as pa
import pyarrow.compute as pc
import pytest
import torch
from safetensors.torch import load_file, save_file

from derivlang.core.batch import Batch
from derivlang.engine.batches import Source
from derivlang.evaluation.collect import scores
from derivlang.evaluation.evaluate import evaluations
from derivlang.evaluation.finetune_settings import SPLITS
from derivlang.training import checkpoint
from tests.commands import run as cli
from tests.evaluations import evaluate, options, stored, task_data
from tests.tiny_runs import languages, model_of, save_model, seal, write_run

STEPS = (100, 200, 300)
QUICK = ("--device", "cpu", "--pairs", 5, "--sentences", 5)
POS = ("--task", "pos", "--seeds", 1, "--epochs", 1, "--train-examples", 10, "--regime", "sup")


def weights_of(step: int) -> Any:
    """Another model for each step."""
    model = model_of("modernbert", languages("trans,inv").size)
    with torch.no_grad():
        weights = model.get_input_embeddings().weight
        weights.copy_(weights.roll(step, 0))
    return model


def save_checkpoint(run: Path, step: int, model: Any) -> None:
    facts = {"step": step, "subwords": step, "seconds": 1.0, "counts": {}, "fingerprint": "0", "log": []}
    checkpoint.save(run, model, torch.optim.SGD(model.parameters(), lr=1.0), None, facts, keep=3)


@pytest.fixture(scope="module")
def template(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """A run with three checkpoints; its model is that of the last."""
    run = write_run(tmp_path_factory.mktemp("run") / "run", "trans,inv", steps=300, step=300)
    for step in STEPS:
        save_checkpoint(run, step, weights_of(step))
    save_model(run, weights_of(300))
    return run


@pytest.fixture
def run(template: Path, tmp_path: Path) -> Path:
    """A run of its own for each test."""
    shutil.copytree(template, tmp_path / "run")
    return tmp_path / "run"


def at(run: Path, step: object) -> Path:
    return run.with_name(f"{run.name}@{step}")


def change(model: Path) -> None:
    """One more in every weight of a saved model."""
    tensors = load_file(model / "model.safetensors")
    save_file({name: tensor + 1 for name, tensor in tensors.items()}, model / "model.safetensors", {"format": "pt"})


def test_results_of_a_checkpoint_have_their_own_place(run: Path) -> None:
    asked = (*POS, *QUICK, "--data-dir", task_data(), "--json")
    whole = cli("evaluate", run, *asked, "--measure", "alignment,perplexity").json
    before = {path: path.read_bytes() for path in run.rglob("*") if path.is_file()}
    early, last = (cli("evaluate", at(run, step), *asked, "--measure", "alignment").json for step in (100, 300))
    new = {str(path.relative_to(run)) for path in run.rglob("*") if path.is_file() and path not in before}
    folder = "evaluation/step-00000"
    files = (".json", "/pos.sup.1.parquet", "/pos.chance.parquet", "/alignment.parquet")
    expected = {f"{folder}{step}{name}" for step in (100, 300) for name in files}
    assert new == expected
    assert all(path.read_bytes() == content for path, content in before.items())
    for label in ("alignment", "pos"):
        assert last[label]["scores"] == whole[label]["scores"]  # of the same weights
    assert early["alignment"]["scores"] != last["alignment"]["scores"]
    signatures = [stored(run, name)["signature"] for name in (f"{folder}100.json", f"{folder}300.json")]
    assert [signature["steps"] for signature in signatures] == [100, 300]
    assert signatures[1] == stored(run)["signature"]
    # what is there stays
    cli("evaluate", at(run, 100), "--measure", "perplexity", *QUICK)
    both = stored(run, f"{folder}100.json")
    assert (list(both["tasks"]), list(both["measures"])) == (["pos"], ["alignment", "perplexity"])


@pytest.mark.parametrize("status", ["training", "stopped"])
def test_an_unfinished_run(status: str, run: Path) -> None:
    shutil.rmtree(run / "model")
    (run / "run.json").write_text(json.dumps(stored(run, "run.json") | {"status": status, "step": 0}), "utf-8")
    seal(run)
    told = cli("evaluate", run, code=1).err
    assert f"the run is not finished: its status is '{status}'" in told
    assert "or evaluate a checkpoint: RUN@STEP, of 100, 200, 300" in told
    assert cli("evaluate", at(run, 200), "--measure", "alignment", *QUICK, "--json").json["alignment"]["scores"]
    shutil.rmtree(run / "checkpoints")
    assert "RUN@STEP" not in cli("evaluate", run, code=1).err


def test_every_checkpoint_is_a_line(run: Path) -> None:
    asked = (*POS, "--measure", "contextual,perplexity", *QUICK, "--data-dir", task_data())
    lines = cli("evaluate", run, "--every-checkpoint", *asked).out.splitlines()
    frame = scores(run)
    frame = frame[(frame.metric == "accuracy") & (frame.regime == "sup") & (frame.split == "test")]
    for step, line in zip(STEPS, lines, strict=True):
        accuracy = frame[frame.step == step].value.item()
        assert line.startswith(f"step {step}: pos accuracy SUP {accuracy:.1f} %; contextual words ")
        assert "; perplexity perplexity source " in line
    found = [json.loads(line) for line in cli("evaluate", run, "--every-checkpoint", *asked, "--json").out.splitlines()]
    assert [list(one) for one in found] == [["step", "pos", "contextual", "perplexity"]] * 3
    assert [one["step"] for one in found] == list(STEPS)
    assert found[1] == {"step": 200} | cli("evaluate", at(run, 200), *asked, "--json").json
    assert not (run / "evaluation.json").exists()


def test_held_out_sentences_have_a_length_of_ones_own(run: Path) -> None:
    def sentences(*words: object) -> int:
        cli("evaluate", run, "--measure", "retrieval", "--device", "cpu", *words)
        return len(scores(run)["counts"].iloc[0])

    short = sentences("--heldout-length", 14)
    told = stored(run)["measures"]["retrieval"]["settings"]
    assert told == {"pairs": 500, "length": 14, "split": "validation"}
    assert short < sentences()  # fewer sentences are as short


# What a user may get wrong


@pytest.mark.parametrize(
    ("step", "code", "told"),
    [
        (150, 1, "there is no checkpoint of step 150"),
        ("last", 2, "'last' is not a step"),
        ("", 2, "'' is not a step"),
        ("9" * 12, 2, "is not a step"),
    ],
)
def test_a_step_that_is_not_there(step: object, code: int, told: str, run: Path) -> None:
    found = cli("evaluate", at(run, step), code=code).err
    assert told in found
    assert found.count("\n") <= 3
    assert step != 150 or "there are: 100, 200, 300" in found


def test_a_folder_with_an_at_sign(run: Path, tmp_path: Path) -> None:
    shutil.copytree(run, tmp_path / "a@100")
    assert "alignment" in cli("evaluate", tmp_path / "a@100", "--measure", "alignment", *QUICK).out
    assert (tmp_path / "a@100" / "evaluation.json").exists()
    cli("evaluate", tmp_path / "a@100@200", "--measure", "alignment", *QUICK)
    assert (tmp_path / "a@100" / "evaluation" / "step-00000200.json").exists()


def test_a_set_is_read_once_for_all_checkpoints(run: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    asked = options("pos", "dep", "xnli", measures=("perplexity",), regimes=("zs",), sentences=9)
    alone = [evaluate(run, replace(asked, tasks=(task,), measures=()), step=200).scores for task in asked.tasks]
    shutil.rmtree(run / "evaluation")
    read: list[tuple[str, str]] = []
    batches = Source.batches

    def spied(self: Source, split: str, limit: int | None = None) -> Iterator[Batch]:
        read.append((self.corpus.name, split))
        return batches(self, split, limit)

    monkeypatch.setattr(Source, "batches", spied)
    found = [one.scores for _, one in evaluations(run, {"": asked}, STEPS)]
    of_tasks = [(name, split) for name in ("pos:English-EWT",) * 2 + ("xnli:en",) for split in SPLITS.values()]
    assert sorted(read[1:]) == sorted(of_tasks)  # the first reading is of held-out text
    assert found[1].filter(pc.field("task") != "perplexity") == pa.concat_tables(alone)


def test_every_checkpoint_of_none_or_of_one(run: Path) -> None:
    assert "leave out --every-checkpoint" in cli("evaluate", at(run, 100), "--every-checkpoint", code=2).err
    shutil.rmtree(run / "checkpoints")
    assert "there are no checkpoints" in cli("evaluate", run, "--every-checkpoint", code=2).err
    assert "is not a run" in cli("evaluate", run / "none", "--every-checkpoint", code=1).err
    init = ("--init", run / "model", "--t", "inv", "--source", "demo", "-o", run / "out")
    assert "leave --init or --every-checkpoint out" in cli("evaluate", *init, "--every-checkpoint", code=2).err
    assert not (run / "out").exists()
    told = cli("evaluate", at(run, 100), code=1).err
    assert "there is no checkpoint of step 100" in told
    assert "there are: none; --keep of `pretrain` keeps more" in told


DAMAGES: dict[str, Callable[[Path], object]] = {
    "model/model.safetensors was cut off": lambda folder: cut(folder / "model" / "model.safetensors"),
    "model/model.safetensors was changed": lambda folder: change(folder / "model"),
    "model/config.json is missing": lambda folder: (folder / "model" / "config.json").unlink(),
    "state.json is missing or damaged": lambda folder: (folder / "state.json").write_text("{", "utf-8"),
}


def cut(weights: Path) -> None:
    weights.write_bytes(weights.read_bytes()[:-9])


@pytest.mark.parametrize("told", DAMAGES)
def test_a_damaged_checkpoint(told: str, run: Path) -> None:
    DAMAGES[told](run / "checkpoints" / "step-00000200")
    found = cli("evaluate", at(run, 200), code=1).err
    assert f"the checkpoint is damaged: {told}" in found
    assert "there are: 100, 300" in found
    assert found.count("\n") <= 3
    several = cli("evaluate", run, "--every-checkpoint", "--measure", "alignment", *QUICK, code=1)
    assert several.out.startswith("step 100: ")
    assert told in several.err


@pytest.mark.parametrize("step", [None, 200])
def test_weights_that_changed_after_the_evaluation(step: int | None, run: Path) -> None:
    words = ("evaluate", run if step is None else at(run, step), "--measure", "alignment", "--device", "cpu")
    cli(*words)
    name = "evaluation.json" if step is None else "evaluation/step-00000200.json"
    old = (run / name).read_bytes()
    if step is None:
        save_model(run, weights_of(7))
    else:
        save_checkpoint(run, step, weights_of(7))
    told = cli(*words, code=1).err
    assert f"{name}: is of another state of the run: its weights are others" in told
    assert "--force" in told
    assert told.count("\n") <= 3
    assert (run / name).read_bytes() == old
    cli(*words, "--force")
    assert stored(run, name)["signature"]["weights"] != json.loads(old)["signature"]["weights"]
