"""The loop: runs that go on bit for bit, checkpoints that are whole, a log, and what stops a run."""

from __future__ import annotations

import errno
import json
import os
import resource
import shutil
import signal
import subprocess
import threading
import time
from collections import Counter
from collections.abc import Callable
from dataclasses import dataclass, replace
from pathlib import Path
from typing import Any

import numpy as np
import pytest
import torch

from derivlang.core.errors import DataError, DerivlangError, StoreError
from derivlang.core.seal import sealed
from derivlang.pipeline import Pipeline
from derivlang.training import checkpoint, trainer
from derivlang.training import run_folder as runs
from derivlang.training.batch import Step
from derivlang.training.checkpoint import hash_of_weights, load_model, newest
from derivlang.training.config import ModelConfig
from derivlang.training.doses import doses_of, tokens_of
from derivlang.training.encoder import Encoder
from derivlang.training.model import build_model
from derivlang.training.objectives import registry
from derivlang.training.objectives.base import Loss, LossPart, Objective, masked_part
from derivlang.training.objectives.registry import objective_names, read_objective
from derivlang.training.plan import RunPlan
from derivlang.training.prepare import Prepared, prepare_data
from derivlang.training.record import RunInputs, record_of
from derivlang.training.settings import RECORDED, RunPaths, TrainingSettings
from derivlang.training.trainer import optimizer_of
from tests.commands import Copy, command_line, cut_off, environment, forked, run, written
from tests.tiny_runs import seal
from tests.training import (
    data_folder,
    every_step,
    loader,
    log,
    model_file,
    network,
    pair,
    rows_batch,
    settings,
    stream_rows,
    trained,
    weights,
)

TIMES = ("seconds", "tokens_per_second")


class Stop(Exception):
    """Raised where a run is to end."""


def stopping(at: int) -> Callable[[int, dict[str, Any]], None]:
    def logged(step: int, entry: dict[str, Any]) -> None:
        if step >= at:
            raise Stop

    return logged


def state(run_: Path, step: int) -> dict[str, Any]:
    found: dict[str, Any] = torch.load(run_ / "checkpoints" / f"step-{step:08d}" / "training.pt", weights_only=True)
    return found


def same(one: Any, two: Any) -> bool:
    """Equal to the last bit, tensors inside too."""
    if isinstance(one, torch.Tensor):
        return one.dtype == two.dtype and torch.equal(one, two)
    if isinstance(one, dict):
        return one.keys() == two.keys() and all(same(one[k], two[k]) for k in one)
    if isinstance(one, (list, tuple)):
        return len(one) == len(two) and all(same(a, b) for a, b in zip(one, two, strict=True))
    return bool(one == two)


def same_runs(one: Path, two: Path, step: int) -> None:
    """The same weights, optimiser, log, doses and result, to the last bit."""
    assert same(weights(one / "model"), weights(two / "model"))
    assert same(state(one, step), state(two, step))
    left, right = ([{k: v for k, v in e.items() if k not in TIMES} for e in log(folder)] for folder in (one, two))
    assert left == right
    records = [runs.read(folder) for folder in (one, two)]
    assert records[0]["doses"] == records[1]["doses"]
    results = [record["result"] for record in records]
    for result in results:
        for name in (*TIMES, "out"):
            del result[name]
    assert results[0] == results[1]


# going on

RUNS: list[tuple[str, dict[str, Any]]] = [
    ("mlm", {}),
    ("clm", {"dropout": 0.1, "accumulate": 2}),
    ("clm", {"kind": "llama", "tie": False, "packing": "stream"}),
    ("mlm", {"kind": "bert", "tie": False, "weight_decay": 0.1}),
    ("xlm:pairs=0.5", {"kind": "roberta", "dropout": 0.1}),
    ("dict-mlm:condition=yes", {"kind": "roberta", "dropout": 0.1, "accumulate": 2}),
    ("dict-mlm:variant=input:among=all", {"coverage": "50"}),
    ("align-mlm", {"kind": "roberta", "tie": False}),
    ("tlm", {"kind": "roberta", "dropout": 0.1, "tie": False}),
    ("dict-tlm:switch=100", {"kind": "roberta", "dropout": 0.1, "accumulate": 2}),
    ("weam:links=hmm", {"dropout": 0.1, "accumulate": 2, "tie": False}),
    ("ppa:queue=20:momentum=0.5", {"kind": "roberta", "dropout": 0.1, "accumulate": 2}),
    ("xlm-align:start=3:query=all-aligned", {"kind": "roberta", "dropout": 0.1, "accumulate": 2}),
]


def test_every_objective_is_among_them() -> None:
    assert {read_objective(objective).name for objective, _ in RUNS} == set(objective_names())


@pytest.mark.parametrize(("number", "objective"), list(enumerate(objective for objective, _ in RUNS)))
def test_a_run_that_went_on_is_the_run_that_never_stopped(number: int, objective: str, tmp_path: Path) -> None:
    """Stopped between two checkpoints, and the first one before all of them and before the last is written, too."""
    options: dict[str, Any] = {**RUNS[number][1], "steps": 10 if number == 0 else 7}
    steps = options["steps"]
    trained(tmp_path / "whole", objective, **options)
    for at in (2, 5, 10) if number == 0 else (5,):
        with pytest.raises(Stop):
            trained(tmp_path / f"{at}", objective, logged=stopping(at), **options)
        assert runs.read(tmp_path / f"{at}")["status"] == "stopped"
        torch.rand(5)
        trained(tmp_path / f"{at}", objective, resume=True, **options)
        same_runs(tmp_path / "whole", tmp_path / f"{at}", steps)
        assert runs.read(tmp_path / f"{at}")["status"] == "done"


def test_a_run_that_stops_again_and_again(tmp_path: Path) -> None:
    trained(tmp_path / "whole", steps=12)
    for at in (3, 4, 8, 9):
        with pytest.raises(Stop):
            trained(tmp_path / "run", steps=12, resume=True, logged=stopping(at))
    trained(tmp_path / "run", steps=12, resume=True)
    same_runs(tmp_path / "whole", tmp_path / "run", 12)


def test_stopped_between_the_last_checkpoint_and_the_end(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """Nothing is left to train, and the result is that of the whole run."""
    trained(tmp_path / "whole")
    with monkeypatch.context() as patch:
        patch.setattr("derivlang.training.run_folder.finish", stopped)
        with pytest.raises(Stop):
            trained(tmp_path / "run")
    assert not (tmp_path / "run" / "model").exists()
    trained(tmp_path / "run", resume=True)
    same_runs(tmp_path / "whole", tmp_path / "run", 6)


def stopped(*_: object, **__: object) -> None:
    raise Stop


def test_a_run_that_is_done_gives_its_result_again(tmp_path: Path) -> None:
    first = trained(tmp_path / "run")
    before = {path: path.stat().st_mtime_ns for path in (tmp_path / "run").rglob("*") if path.is_file()}
    assert trained(tmp_path / "run", resume=True) == first
    assert before == {path: path.stat().st_mtime_ns for path in (tmp_path / "run").rglob("*") if path.is_file()}


def test_resume_of_what_never_began_begins(tmp_path: Path) -> None:
    trained(tmp_path / "run", resume=True)
    assert runs.read(tmp_path / "run")["status"] == "done"


@pytest.mark.parametrize(
    ("objective", "changes", "named"),
    [
        ("align-mlm", {}, "objective is mlm, not align-mlm"),
        ("mlm", {"seed": 2}, "seed is 1, not 2"),
        ("mlm", {"steps": 7}, "steps is 6, not 7"),
        ("mlm", {"tie": False}, "tie is true, not false"),
        ("mlm", {"coverage": "50"}, "coverage is 25, not 50"),
        ("mlm", {"seq_len": 16}, "seq_len is 32, not 16"),
        ("mlm", {"pair_length": 64}, "pair_length is 32, not 64"),
        ("mlm", {"epochs": 2.0}, "steps is 6, not 38"),
        ("mlm", {"kind": "bert"}, "model is"),
    ],
)
def test_another_recipe_is_refused(objective: str, changes: dict[str, Any], named: str, tmp_path: Path) -> None:
    with pytest.raises(Stop):
        trained(tmp_path / "run", logged=stopping(4))
    before = (tmp_path / "run" / "run.json").read_bytes()
    with pytest.raises(StoreError) as error:
        trained(tmp_path / "run", objective, resume=True, **changes)
    assert named in str(error.value)
    assert (tmp_path / "run" / "run.json").read_bytes() == before
    trained(tmp_path / "run", resume=True)


def test_another_dictionary_or_data_or_description_is_refused(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    description = tmp_path / "mine.toml"
    shutil.copyfile(model_file(), description)
    model = {"model": str(description)}
    with pytest.raises(Stop):
        trained(tmp_path / "run", logged=stopping(4), **model)
    other = pair(coverage="50").files["dictionary.tsv"]
    with pytest.raises(StoreError, match="its dictionary is not") as error:
        trained(tmp_path / "run", resume=True, dictionary=other, **model)
    assert str(other) in str(error.value)
    monkeypatch.setattr("derivlang.training.encode.FORMAT", 99)
    with pytest.raises(StoreError, match="its encoded text is another one"):
        trained(tmp_path / "run", resume=True, **model)
    monkeypatch.undo()
    description.write_text(description.read_text().replace("num_attention_heads = 2", "num_attention_heads = 1"))
    with pytest.raises(StoreError, match="the config of the model"):
        trained(tmp_path / "run", resume=True, **model)
    shutil.copyfile(model_file(), description)
    trained(tmp_path / "run", resume=True, **model)


def test_a_killed_process_goes_on(tmp_path: Path) -> None:
    """And is interrupted after it went on."""
    pair()
    options = [
        "pretrain", "--source", "demo", "--t", "trans,inv", "--model", model_file(), "--data", data_folder(),
        "--steps", 200, "--save-every", 20, "--log-every", 10, "--threads", 1,
    ]  # fmt: skip
    out = tmp_path / "run"
    for number, status, step in ((signal.SIGKILL, "training", 40), (signal.SIGTERM, "stopped", 120)):
        process = Copy(*options, "-o", out, *(["--resume"] if out.exists() else []))
        end = time.monotonic() + 100
        while not (out / "checkpoints" / f"step-{step:08}").exists():
            assert process.is_running(), process.wait()
            assert time.monotonic() < end
            time.sleep(0.005)
        os.kill(process.pid, number)
        said = process.wait().err
        assert number == signal.SIGKILL or "interrupted; the same command with --resume continues from here" in said
        assert runs.read(out)["status"] == status
    run(*options, "-o", out, "--resume")
    run(*options, "-o", tmp_path / "whole")
    same_runs(tmp_path / "whole", out, 200)


# checkpoints


def test_what_a_checkpoint_holds(tmp_path: Path) -> None:
    trained(tmp_path / "run", "align-mlm", steps=9)
    folders = sorted(path.name for path in (tmp_path / "run" / "checkpoints").iterdir())
    assert folders == ["step-00000006", "step-00000009"]
    folder = tmp_path / "run" / "checkpoints" / "step-00000009"
    recipe = json.loads((folder / "state.json").read_text())
    assert set(recipe) == {"step", "subwords", "seconds", "counts", "fingerprint", "files", "log", "sha256"}
    assert recipe["log"] == log(tmp_path / "run")
    assert recipe["fingerprint"] == runs.read(tmp_path / "run")["fingerprint"]
    assert set(recipe["files"]) == {"model/config.json", "model/model.safetensors", "training.pt"}
    found = state(tmp_path / "run", 9)
    assert set(found) == {"optimizer", "objective"}
    sides = (found["objective"][side].tolist() for side in ("left", "right"))
    assert [*map(list, zip(*sides, strict=True))] == pair().dictionary.pairs.tolist()
    assert same(weights(folder / "model"), weights(tmp_path / "run" / "model"))
    assert not [path for path in (tmp_path / "run").rglob(".*")]


@pytest.mark.parametrize("keep", [1, 3])
def test_the_last_checkpoints_are_kept(keep: int, tmp_path: Path) -> None:
    trained(tmp_path / "run", steps=8, save_every=1, keep=keep)
    folders = sorted(path.name for path in (tmp_path / "run" / "checkpoints").iterdir())
    assert folders == [f"step-{step:08d}" for step in range(9 - keep, 9)]


def test_checkpoints_are_ten_minutes_apart(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    options: dict[str, Any] = {"steps": 9, "save_every": None, "keep": 9}
    trained(tmp_path / "short", **options)
    assert checkpoint.steps(tmp_path / "short") == [9]
    ticks = iter(range(100))
    monkeypatch.setattr(trainer, "monotonic", lambda: 240.0 * next(ticks))  # asked at each log entry, every 2 steps
    trained(tmp_path / "long", **options)
    assert checkpoint.steps(tmp_path / "long") == [6, 9]
    with pytest.raises(Stop):
        trained(tmp_path / "stopped", logged=stopping(8), **options)
    assert checkpoint.steps(tmp_path / "stopped") == [6]
    trained(tmp_path / "stopped", resume=True, **options)
    for name in ("long", "stopped"):  # neither weights nor log depend on the time
        same_runs(tmp_path / "short", tmp_path / name, 9)


@dataclass
class Damage:
    file: str
    change: Callable[[Path], None]
    said: str


def change_a_byte(path: Path) -> None:
    data = bytearray(path.read_bytes())
    data[len(data) // 2] ^= 1
    path.write_bytes(data)


DAMAGES = [
    Damage("model/model.safetensors", cut_off, "model/model.safetensors was cut off"),
    Damage("model/model.safetensors", change_a_byte, "model/model.safetensors was changed"),
    Damage("training.pt", cut_off, "training.pt was cut off"),
    Damage("training.pt", Path.unlink, "training.pt is missing"),
    Damage("state.json", cut_off, "state.json is missing or damaged"),
    Damage("state.json", Path.unlink, "state.json is missing or damaged"),
    Damage("state.json", lambda path: path.write_text("[]") and None, "state.json is missing or damaged"),
    Damage("state.json", lambda path: path.write_bytes(b"\xff") and None, "state.json is missing or damaged"),
    Damage("state.json", lambda path: path.write_text(
        path.read_text().replace('"step": 6', '"step": "six"')) and None, "state.json is missing or damaged"),
]  # fmt: skip


@pytest.fixture(scope="module")
def unfinished(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """A run of nine steps that stopped after eight, and beside it the whole one."""
    folder = tmp_path_factory.mktemp("runs")
    trained(folder / "whole", steps=9)
    with pytest.raises(Stop):
        trained(folder / "run", steps=9, logged=stopping(8))
    return folder


@pytest.mark.parametrize("damage", DAMAGES, ids=lambda d: d.said)
def test_a_damaged_checkpoint_is_passed_over(damage: Damage, unfinished: Path, tmp_path: Path) -> None:
    shutil.copytree(unfinished / "run", tmp_path / "run")
    damage.change(tmp_path / "run" / "checkpoints" / "step-00000006" / damage.file)
    said: list[str] = []
    trained(tmp_path / "run", steps=9, resume=True, warn=said.append)
    assert len(said) == 1
    assert said[0].startswith(f"skipping step-00000006: {damage.said}")
    same_runs(unfinished / "whole", tmp_path / "run", 9)


def test_force_keeps_the_run_until_the_new_one_can_begin(unfinished: Path, tmp_path: Path) -> None:
    shutil.copytree(unfinished / "run", tmp_path / "run")
    (tmp_path / "bad.tsv").write_text("no\twords\n")
    with pytest.raises(DataError):
        trained(tmp_path / "run", steps=9, force=True, dictionary=tmp_path / "bad.tsv")
    trained(tmp_path / "run", steps=9, resume=True)
    same_runs(unfinished / "whole", tmp_path / "run", 9)


def test_no_checkpoint_is_whole(unfinished: Path, tmp_path: Path) -> None:
    shutil.copytree(unfinished / "run", tmp_path / "run")
    for folder in (tmp_path / "run" / "checkpoints").iterdir():
        cut_off(folder / "training.pt")
    with pytest.raises(StoreError, match="all checkpoints are damaged") as error:
        trained(tmp_path / "run", steps=9, resume=True)
    assert "start again" in str(error.value)
    assert runs.read(tmp_path / "run")["status"] == "stopped"
    trained(tmp_path / "run", steps=9, force=True)
    same_runs(unfinished / "whole", tmp_path / "run", 9)


def test_a_checkpoint_of_another_run_is_refused(unfinished: Path, tmp_path: Path) -> None:
    shutil.copytree(unfinished / "run", tmp_path / "run")
    trained(tmp_path / "other", steps=9, seed=3)
    shutil.copytree(tmp_path / "other" / "checkpoints", tmp_path / "run" / "checkpoints", dirs_exist_ok=True)
    with pytest.raises(StoreError, match="belongs to another run"):
        trained(tmp_path / "run", steps=9, resume=True)


def test_checkpoints_without_a_run_are_no_free_place(unfinished: Path, tmp_path: Path) -> None:
    """Or those of a later step, of another run, would be kept instead of this one's."""
    shutil.copytree(unfinished / "run", tmp_path / "run")
    (tmp_path / "run" / "run.json").unlink()
    with pytest.raises(StoreError, match="holds a run already"):
        trained(tmp_path / "run", steps=9)
    with pytest.raises(StoreError, match=r"there is no run\.json"):
        trained(tmp_path / "run", steps=9, resume=True)
    trained(tmp_path / "run", steps=9, force=True)
    same_runs(unfinished / "whole", tmp_path / "run", 9)


@pytest.mark.parametrize("text", ["", "{", "[]", '{"format": 2}', '{"format": 1}', "\x00", "[" * 100_000])
def test_a_run_record_that_is_damaged(text: str, unfinished: Path, tmp_path: Path) -> None:
    shutil.copytree(unfinished / "run", tmp_path / "run")
    (tmp_path / "run" / "run.json").write_text(text)
    with pytest.raises(StoreError, match=r"run\.json"):
        trained(tmp_path / "run", steps=9, resume=True)


@pytest.mark.parametrize("value", [None, 10**400, "text", [], {"x": 1}, {"rows": [1]}, {"run": "a"}], ids=ascii)
@pytest.mark.parametrize("field", ["streams", "init"])
def test_a_field_of_another_kind_in_the_record_of_another_run(
    field: str, value: object, unfinished: Path, tmp_path: Path
) -> None:
    shutil.copytree(unfinished / "run", tmp_path / "run")
    path = tmp_path / "run" / "run.json"
    path.write_text(json.dumps(sealed({**json.loads(path.read_text()), "fingerprint": "0", field: value})))
    with pytest.raises(DerivlangError):
        trained(tmp_path / "run", steps=9, resume=True)


@pytest.mark.parametrize("value", [None, 10**400, "text", [], {"x": 1}], ids=ascii)
@pytest.mark.parametrize("field", ["status", "settings", "fingerprint", "data", "dictionary", "environments", "result"])
def test_a_field_of_another_kind_in_the_record_of_a_run(
    field: str, value: object, unfinished: Path, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """The run goes on (here: to where it would train), or there is one error of derivlang."""
    shutil.copytree(unfinished / "run", tmp_path / "run")
    path = tmp_path / "run" / "run.json"
    path.write_text(json.dumps(sealed({**json.loads(path.read_text()), field: value})))
    monkeypatch.setattr("derivlang.training.run.train", stopped)
    with pytest.raises((Stop, DerivlangError)):
        trained(tmp_path / "run", steps=9, resume=True)


@pytest.mark.parametrize(
    "value", [None, True, 10**400, -1, float("nan"), "text", [], {"../x": [1, "2"]}, {"\0": [1, "2"]}]
)
@pytest.mark.parametrize("field", ["step", "subwords", "seconds", "counts", "fingerprint", "files", "log"])
def test_a_field_of_another_kind_in_the_state_of_a_checkpoint(
    field: str, value: object, unfinished: Path, tmp_path: Path
) -> None:
    shutil.copytree(unfinished / "run" / "checkpoints", tmp_path / "checkpoints")
    path = tmp_path / "checkpoints" / "step-00000006" / "state.json"
    path.write_text(json.dumps(sealed({**json.loads(path.read_text()), field: value})))
    found = newest(tmp_path, lambda message: None)
    assert found is not None
    assert type(found.step) is type(found.subwords) is int


def test_a_training_state_that_was_forged(unfinished: Path, tmp_path: Path) -> None:
    """Its hash is right, and it is no optimizer's."""
    folder = tmp_path / "checkpoints" / "step-00000006"
    shutil.copytree(unfinished / "run" / "checkpoints" / "step-00000006", folder)
    found = newest(tmp_path, lambda message: None)
    assert found is not None
    optimizer = optimizer_of(network("mlm")[0], settings())
    for content in (b"", b"PK\x03\x04", b"nonsense" * 100):
        (folder / "training.pt").write_bytes(content)
        with pytest.raises(StoreError, match="this is not a valid checkpoint"):
            found.restore(optimizer, None)
    for states in ({"optimizer": [1]}, {}, [1]):
        torch.save(states, folder / "training.pt")
        with pytest.raises(StoreError, match="this is not a valid checkpoint"):
            found.restore(optimizer, None)


# the log, the rate and the update


ENTRY = {
    "step", "tokens", "seconds", "lr", "loss", "parts", "grad_norm", "tokens_per_second", "tokens_per_step",
    "masked_percent",
}  # fmt: skip


@pytest.mark.parametrize(
    ("objective", "weights"),
    [
        ("xlm:pairs=0.5", {"mlm-source": 1, "mlm-derived": 1, "tlm": 1}),
        ("xlm:pairs=0.5:source=0.5:tlm=3", {"mlm-source": 0.5, "mlm-derived": 1, "tlm": 3}),
        ("tlm", {"tlm": 1}),
        ("weam:weight=0.5", {"tlm": 1, "cross": 0.5}),
    ],
)
def test_the_log(objective: str, weights: dict[str, float], tmp_path: Path) -> None:
    """Tokens are those of all streams."""
    result = trained(tmp_path / "run", objective, kind="roberta", steps=7, parallel="50")
    entries = log(tmp_path / "run")
    assert [entry["step"] for entry in entries] == [2, 3, 4, 6, 7]
    assert all(set(entry) == ENTRY for entry in entries)
    made = loader(objective)
    counts = [micros[0].counts for micros in made.steps(0, 7)]
    at = np.cumsum([sum(tokens_of(found).values()) for found in counts])
    assert [entry["tokens"] for entry in entries] == [at[entry["step"] - 1] for entry in entries]
    wanted = settings(steps=7)
    assert [entry["lr"] for entry in entries] == [wanted.learning_rate_at(entry["step"] - 1) for entry in entries]
    for begin, entry in zip([0, 2, 3, 4, 6], entries, strict=True):
        since = counts[begin : entry["step"]]
        assert entry["tokens_per_step"] == {
            one.stream.name: round(sum(found[f"{one.stream.name}_tokens"] for found in since) / len(since), 1)
            for one in made.streams
        }
        seen = sum(sum(tokens_of(found).values()) for found in since)
        assert entry["masked_percent"] == round(100 * sum(found["masked"] for found in since) / seen, 2)
        assert entry["parts"].keys() == weights.keys()
        whole = sum(weight * entry["parts"][part] for part, weight in weights.items())
        assert entry["loss"] == pytest.approx(whole, rel=1e-5)
        assert entry["grad_norm"] > 0
    assert (result["loss"], result["parts"]) == (entries[-1]["loss"], entries[-1]["parts"])
    assert result["tokens"] == at[-1]


@pytest.mark.parametrize(
    ("objective", "streams"), [("mlm", ["rows"]), ("xlm:pairs=0.5", ["rows", "pairs"]), ("tlm", ["pairs"])]
)
def test_the_record_tells_of_streams(objective: str, streams: list[str], tmp_path: Path) -> None:
    trained(tmp_path / "run", objective, kind="roberta", steps=2, parallel="50")
    record = runs.read(tmp_path / "run")["streams"]
    made = loader(objective)
    assert list(record) == streams
    for one in made.streams:
        facts = record[one.stream.name]
        assert (facts.pop("rows_per_step"), facts.pop("length")) == (one.size, one.source.length)
        assert facts == {key: value for key, value in one.source.facts().items() if key != "length"}
        if one.stream.name == "pairs":
            assert set(facts) == {"sentences", "cut_sentences", "short_pairs", "percent", "pairs", "rows"}
            assert facts["sentences"] == 40


@pytest.mark.parametrize(
    "objective", ["mlm", "clm", "xlm:pairs=0.5", "align-mlm", "dict-mlm", "dict-tlm:switch=100", "xlm-align"]
)
def test_doses_are_those_of_the_whole_run(objective: str, tmp_path: Path) -> None:
    """Not of the steps since the last entry of the log."""
    kind = "gpt2" if objective == "clm" else "roberta"
    result = trained(tmp_path / "run", objective, kind=kind, steps=7, log_every=2, parallel="50")
    record = runs.read(tmp_path / "run")
    found = record["doses"]
    assert result["doses"] == found
    made = loader(objective)
    steps = [micros[0] for micros in made.steps(0, 7)]
    wanted: dict[str, float] = {"tokens": record["tokens"]}
    for one in made.streams:
        name, facts = one.stream.name, one.source.facts()
        batches = [micro[name] for micro in steps]
        wanted[f"{name}_tokens"] = sum(int(batch.attention.sum()) for batch in batches)
        sentences = [len(set(row.tolist()) - {-1}) for batch in batches for row in batch.sentence_ids]
        wanted[f"{name}_sentences"] = sum(sentences)
        wanted[f"{name}_epochs"] = round(7 * one.size / one.source.n, 4)
        wanted |= {field: facts[field] for field in ("pairs", "short_pairs") if field in facts}
        wanted |= {f"{name}_percent": facts["percent"] for _ in range("percent" in facts)}
    if objective.startswith(("align", "dict")):
        wanted["dictionary_entries"] = len(pair().dictionary.pairs)
    labelled = found.pop("labelled_percent", None), found.pop("precision_percent", None)
    assert all((percent is not None) == (objective == "xlm-align") for percent in labelled)
    assert {name: found[name] for name in wanted} == wanted
    assert set(found) - set(wanted) <= set(DOSES)


DOSES = (
    "subwords_per_step", "predicted_per_step", "pair_share", "pairs_per_step", "translated_share",
    "dictionary_pairs_per_step", "passes",
)  # fmt: skip


@pytest.mark.parametrize("objective", [*objective_names(), "xlm:pairs=0.3", "dict-mlm:as=align-mlm"])
def test_doses_by_a_plain_loop_over_300_batches(objective: str) -> None:
    """In the order of the table; None where an objective has no such dose."""
    made = loader(objective, parallel="50")
    one = made.objective
    read = predicted = in_pairs = pairs = translated = rows_read = 0
    counts: Counter[str] = Counter()
    for micros in made.steps(0, 300):
        counts.update(micros[0].counts)
        for name, batch in micros[0].batches.items():
            if ":" in name:  # the second view of the same rows
                continue
            width = batch.shape[1]
            rows_read += len(batch.lengths)
            for row in range(len(batch.lengths)):
                n = int(batch.lengths[row])
                read += n
                if set(batch.side[row, :n].tolist()) == {0, 1} and name != "switched":
                    in_pairs += n
                    pairs += len(set(batch.sentence_ids[row].tolist()) - {-1})
            own = stream_rows(made, name, micros[0].step, micros[0].step + 1)[0]
            for target, label, language in zip(batch.targets, batch.labels, batch.label_language, strict=True):
                row, column = divmod(int(target), width)
                predicted += 1
                text = own.language[row, column]
                swapped = own.translated is not None and own.translated[row, column]
                other = batch.language[row, column] != text
                translated += bool(language != text or swapped or other)
                assert objective == "clm" or label == own.clean_ids[row, column] or language != text
    entries = len(pair().dictionary.pairs) if objective.startswith(("align-mlm", "dict")) else None
    found = doses_of(counts, one, made.streams, 300, entries)
    of_pairs = objective.partition(":")[0] in ("xlm", "tlm", "weam", "ppa", "xlm-align")
    assert {name: found[name] for name in DOSES} == {
        "subwords_per_step": round(read / 300, 3),
        "predicted_per_step": round(predicted / 300, 3),
        "pair_share": round(in_pairs / read, 6) if of_pairs else None,
        "pairs_per_step": round(pairs / 300, 3) if of_pairs else None,
        "translated_share": round(translated / predicted, 6) if objective.startswith("dict") else None,
        "dictionary_pairs_per_step": entries if objective == "align-mlm" else None,
        "passes": round(300 * float(made.streams[0].size) / made.streams[0].source.n, 4),
    }
    if len(made.streams) == 1:
        assert rows_read == 300 * made.streams[0].size
    assert tuple(found)[: len(DOSES)] == DOSES


def test_doses_over_an_epoch_count_each_pair_once(tmp_path: Path) -> None:
    made = loader("tlm", parallel="100")
    (one,) = made.streams
    steps = -(-one.source.n // one.size)
    found = trained(tmp_path / "run", "tlm", kind="roberta", steps=steps, parallel="100", learning_rate=1e-4)["doses"]
    assert found["pairs_epochs"] == round(steps * one.size / one.source.n, 4)
    assert found["pairs"] <= found["pairs_sentences"] <= found["pairs_epochs"] * found["pairs"] + one.size * 8


def test_a_stopped_run_has_the_doses_of_its_last_checkpoint(unfinished: Path) -> None:
    record = runs.read(unfinished / "run")
    assert (record["step"], record["doses"]["tokens"]) == (6, record["tokens"])
    assert record["doses"]["tokens"] < runs.read(unfinished / "whole")["doses"]["tokens"]


def test_a_logged_loss_is_the_mean_since_the_last_entry(tmp_path: Path) -> None:
    trained(tmp_path / "each", log_every=1)
    trained(tmp_path / "some", log_every=3)
    each = [entry["loss"] for entry in log(tmp_path / "each")]
    some = [entry["loss"] for entry in log(tmp_path / "some")]
    assert some == pytest.approx([sum(each[:3]) / 3, sum(each[3:]) / 3], rel=1e-5)


def test_a_log_that_was_cut_off_goes_on(unfinished: Path, tmp_path: Path) -> None:
    shutil.copytree(unfinished / "run", tmp_path / "run")
    path = tmp_path / "run" / "log.jsonl"
    assert [entry["step"] for entry in log(tmp_path / "run")] == [2, 3, 4, 6, 8]
    path.write_bytes(path.read_bytes()[:-9])
    trained(tmp_path / "run", steps=9, resume=True)
    same_runs(unfinished / "whole", tmp_path / "run", 9)


@pytest.mark.parametrize(
    "line",
    [
        "",
        "{",
        "[]",
        '{"loss": 1}',
        '{"step": 2, "loss": 1.0}',
    ],
)
def test_a_damaged_log_is_written_again(unfinished: Path, line: str, tmp_path: Path) -> None:
    """With one warning: the checkpoint has its entries, too."""
    shutil.copytree(unfinished / "run", tmp_path / "run")
    path = tmp_path / "run" / "log.jsonl"
    lines = path.read_text("utf-8").splitlines()
    path.write_text("\n".join([lines[0], line, *lines[1:], ""]), "utf-8")
    said: list[str] = []
    trained(tmp_path / "run", steps=9, resume=True, warn=said.append)
    assert said == [f"{path} is not what was written until step 6; it is written again"]
    same_runs(unfinished / "whole", tmp_path / "run", 9)


def test_the_learning_rate() -> None:
    wanted = settings(steps=20, warmup=0.2, learning_rate=1.0)
    assert [wanted.learning_rate_at(step) for step in range(4)] == [0.25, 0.5, 0.75, 1.0]
    assert [wanted.learning_rate_at(step) for step in range(4, 21)] == pytest.approx(
        [(20 - step) / 16 for step in range(4, 21)]
    )
    flat = settings(steps=5, warmup=0.0, learning_rate=1.0)
    assert [flat.learning_rate_at(step) for step in range(5)] == pytest.approx([1, 0.8, 0.6, 0.4, 0.2])
    for steps in (1, 2, 3, 50):
        for warmup in (0.0, 0.02, 0.5, 0.99):
            found = [settings(steps=steps, warmup=warmup).learning_rate_at(step) for step in range(steps)]
            assert all(0 < rate < 3.000001e-3 for rate in found), (steps, warmup, found)


def test_norms_and_biases_do_not_decay() -> None:
    net, _ = network("dict-mlm:condition=yes")
    decaying, plain = optimizer_of(net, settings(weight_decay=0.3, beta2=0.98, epsilon=1e-6)).param_groups
    assert (decaying["weight_decay"], plain["weight_decay"]) == (0.3, 0.0)
    assert (decaying["betas"], decaying["eps"]) == ((0.9, 0.98), 1e-6)
    names = {id(parameter): name for name, parameter in net.named_parameters()}
    for parameter in decaying["params"]:
        assert names[id(parameter)].endswith("weight")
        assert parameter.ndim == 2
    for parameter in plain["params"]:
        assert "norm" in names[id(parameter)].lower() or names[id(parameter)].endswith("bias")
    assert len(decaying["params"]) + len(plain["params"]) == len(names)


def test_an_update_is_that_of_adamw_on_the_clipped_gradient(tmp_path: Path) -> None:
    """One step of the loop, by hand."""
    clip = 0.01
    trained(tmp_path / "run", kind="roberta", steps=1, clip=clip, weight_decay=0.1, warmup=0.0)
    lm = build_model(
        ModelConfig.read(model_file("roberta")),
        pair().languages.size,
        32,
        pair().data.special_ids,
        tie=True,
        language_ids=False,
        seed=1,
    )
    mlm = masked_part(Encoder(lm, pair().data.special_ids), rows_batch())
    (mlm.total / mlm.by).backward()
    norm = torch.sqrt(sum(p.grad.pow(2).sum() for p in lm.parameters()))  # type: ignore[arg-type]
    assert log(tmp_path / "run")[0]["grad_norm"] == pytest.approx(norm.item(), rel=1e-4)
    found = load_model(tmp_path / "run" / "model").state_dict()
    for name, parameter in lm.named_parameters():
        gradient = parameter.grad * clip / norm
        decay = 0.1 if parameter.ndim > 1 else 0.0
        expected = parameter * (1 - 3e-3 * decay) - 3e-3 * gradient / (gradient.abs() + 1e-8)
        torch.testing.assert_close(found[name], expected.detach(), rtol=1e-3, atol=1e-5)


@pytest.mark.parametrize(
    "objective",
    ["mlm", "xlm:pairs=0.5", "tlm", "dict-mlm", "dict-tlm", "weam:links=hmm", "ppa:queue=20:momentum=0.5", "xlm-align"],
)
def test_accumulating_changes_nothing(objective: str, tmp_path: Path) -> None:
    trained(tmp_path / "one", objective, kind="roberta")
    trained(tmp_path / "four", objective, kind="roberta", accumulate=4)
    for one, four in zip(log(tmp_path / "one"), log(tmp_path / "four"), strict=True):
        assert four["loss"] == pytest.approx(one["loss"], rel=1e-4)
        assert four["grad_norm"] == pytest.approx(one["grad_norm"], rel=1e-3)
        assert four["tokens"] == one["tokens"]


def test_training_learns(tmp_path: Path) -> None:
    trained(tmp_path / "run", "align-mlm", steps=120, log_every=20, save_every=120, learning_rate=1e-2)
    entries = log(tmp_path / "run")
    assert entries[-1]["parts"]["mlm"] < entries[0]["parts"]["mlm"] - 0.3
    assert entries[-1]["parts"]["align"] < -0.9


@pytest.mark.parametrize(
    ("duration", "steps"),
    [({"epochs": 1.0}, 19), ({"epochs": 0.001}, 1), ({"tokens": 1}, 1)],
)
def test_durations(duration: dict[str, Any], steps: int, tmp_path: Path) -> None:
    result = trained(tmp_path / "run", **duration, log_every=100, save_every=100)
    assert result["steps"] == steps


@pytest.mark.parametrize("objective", ["mlm", "xlm:pairs=0.5", "tlm"])
def test_a_duration_in_tokens_is_what_is_seen(objective: str, tmp_path: Path) -> None:
    result = trained(tmp_path / "run", objective, tokens=5000, save_every=100)
    assert result["tokens"] == pytest.approx(5000, rel=0.05)


def test_a_run_in_bfloat16_after_one_in_full_precision(tmp_path: Path) -> None:
    losses = {}
    for i, precision in enumerate(("fp32", "bf16", "fp32")):
        losses[i] = trained(tmp_path / f"{i}", kind="roberta", precision=precision)["loss"]
        assert {p.dtype for p in load_model(tmp_path / f"{i}" / "model").parameters()} == {torch.float32}
    assert losses[0] == losses[2] != losses[1]
    assert losses[1] == pytest.approx(losses[0], rel=0.01)


# what stops a run


def exploding(at: int) -> type[Objective]:
    """An objective whose loss is no number from a step on."""

    @dataclass(frozen=True, kw_only=True)
    class Exploding(Objective):
        """Masked words, for a while."""

        name = "exploding"

        def loss(self, model: Encoder, micro: Step, state: torch.nn.Module | None) -> Loss:
            calls.append(1)
            mlm = masked_part(model, micro["rows"])
            return {"mlm": LossPart(mlm.total * (float("nan") if len(calls) >= at else 1.0), mlm.by)}

    calls: list[int] = []
    return Exploding


@pytest.mark.parametrize(("at", "kept"), [(5, 3), (8, 6), (2, None)])
def test_a_loss_that_is_no_number(at: int, kept: int | None, tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setitem(registry.OBJECTIVES.added, "exploding", exploding(at))
    with pytest.raises(DataError) as error:
        trained(tmp_path / "run", "exploding", steps=9)
    said = str(error.value)
    assert error.value.id == "not-finite"
    assert "became NaN or infinite by step" in said
    assert (f"the checkpoint of step {kept} is the last good one" if kept else "there is no checkpoint yet") in said
    assert "--learning-rate" in said
    assert "a mean over nothing is NaN, as of a language in a micro-batch that has only rows of the other" in said
    record = runs.read(tmp_path / "run")
    assert record["status"] == "stopped"
    assert all(np.isfinite(entry["loss"]) for entry in log(tmp_path / "run"))
    found = newest(tmp_path / "run", warn=lambda message: None)
    assert (found.step if found else None) == kept
    assert not (tmp_path / "run" / "model").exists()
    if found is not None:
        assert all(bool(torch.isfinite(p).all()) for p in load_model(found.folder / "model").parameters())


def test_a_learning_rate_that_is_far_too_high(tmp_path: Path) -> None:
    """An update may spoil the weights although the loss before it was a number: such weights are not saved."""
    for rate in (1e20, 3e38):
        run_ = tmp_path / f"{rate}"
        with pytest.raises(DataError, match=r"became NaN or infinite(?s:.*)--warmup$"):
            trained(run_, steps=40, learning_rate=rate, save_every=1, log_every=1, warmup=0.0, weight_decay=1.0)
        found = newest(run_, warn=lambda message: None)
        assert found is None or all(
            bool(torch.isfinite(p).all()) for p in load_model(found.folder / "model").parameters()
        )


class FullDisk:
    """The write numbered `fail`, of files, folders and renames, meets a full disk."""

    def __init__(self, patch: pytest.MonkeyPatch, fail: int | None = None):
        self.names: list[str] = []
        self._fail = fail
        for owner, name in [
            (Path, "mkdir"), (Path, "write_text"), (Path, "rename"), (Path, "replace"), (os, "fsync"),
            (shutil, "copyfile"), (shutil, "copytree"), (torch, "save"),
        ]:  # fmt: skip
            patch.setattr(owner, name, self._counting(name, getattr(owner, name)))

    def _counting(self, name: str, call: Callable[..., Any]) -> Callable[..., Any]:
        def counted(*arguments: Any, **options: Any) -> Any:
            self.names.append(name)
            if len(self.names) - 1 == self._fail:
                full = OSError(errno.ENOSPC, os.strerror(errno.ENOSPC))
                if name == "save":  # torch raises its own error while it handles that of the file
                    raise RuntimeError("[enforce fail at inline_container.cc:672] . unexpected pos 576") from full
                raise full
            return call(*arguments, **options)

        return counted


def test_a_disk_that_is_full_at_any_write(tmp_path: Path) -> None:
    """Each write of a run fails in turn: one message, no debris, and the same command goes on to the same model.

    Of equal writes one after the other, as of the files of a folder, the first and the last.
    """
    pair()  # encoded once, for all runs
    options = {"steps": 2, "save_every": 1, "log_every": 1, "keep": 2}
    with pytest.MonkeyPatch.context() as patch:
        writes = FullDisk(patch)
        trained(tmp_path / "whole", **options)
    assert len(writes.names) > 20
    faults = []
    before, after = ["", *writes.names], [*writes.names[1:], ""]
    for number, name in enumerate(writes.names):
        if before[number] == name == after[number]:
            continue
        run_ = tmp_path / str(number)
        with pytest.MonkeyPatch.context() as patch:
            FullDisk(patch, number)
            try:
                trained(run_, **options)
                faults.append(f"write {number} ({name}) was not noticed")
            except StoreError as error:
                if "No space left" not in str(error):
                    faults.append(f"write {number} ({name}): {error}")
        hidden = [str(path.relative_to(run_)) for path in run_.rglob(".*")]
        if hidden:
            faults.append(f"write {number} ({name}) left {hidden}")
        trained(run_, **options, resume=True)
        if not same(weights(run_ / "model"), weights(tmp_path / "whole" / "model")):
            faults.append(f"after write {number} ({name}): another model")
        shutil.rmtree(run_)
    assert not faults, "\n".join(faults)


def limited() -> None:
    resource.setrlimit(resource.RLIMIT_FSIZE, (70_000, 70_000))


def test_a_limit_on_the_size_of_files(tmp_path: Path) -> None:
    """A real error of the system, in torch's writer: the optimiser's state is more than the limit."""
    pair()
    options = [
        "pretrain", "--source", "demo", "--t", "trans,inv", "--model", model_file(), "--data", data_folder(),
        "--steps", 4, "--threads", 1, "-o", tmp_path / "run",
    ]  # fmt: skip
    told = forked(*options, code=1, first=limited).err
    assert "Traceback" not in told
    assert "[cannot-write]" in told or "[disk-full]" in told
    assert not list((tmp_path / "run").glob("checkpoints/*"))
    assert run(*options, "--resume", "--json").json["steps"] == 4


# two runs in one folder


def at_step_2(call: Callable[[], object]) -> Callable[[int, dict[str, Any]], None]:
    """Return a callback that calls `call` at step 2 of a run."""

    def logged(step: int, entry: dict[str, Any]) -> None:
        if step == 2:
            call()

    return logged


@pytest.mark.parametrize("options", [{"seed": 2}, {"seed": 2, "resume": True}, {"seed": 2, "force": True}, {}])
def test_another_run_is_refused_while_one_trains(options: dict[str, Any], tmp_path: Path) -> None:
    refused: list[DerivlangError] = []

    def other() -> None:
        with pytest.raises(StoreError) as caught:
            trained(tmp_path / "run", **options)
        refused.append(caught.value)

    trained(tmp_path / "run", logged=at_step_2(other))
    if options.keys() & {"resume", "force"}:
        assert "another run is making a model in this folder (mlm of trans,inv, seed 1)" in str(refused[0])
        assert refused[0].id == "other-run"
    else:
        assert refused[0].id == "run-exists"
    assert runs.read(tmp_path / "run")["seed"] == 1
    assert not [path for path in tmp_path.rglob(".*")]
    trained(tmp_path / "alone")
    assert same(weights(tmp_path / "run" / "model"), weights(tmp_path / "alone" / "model"))


def test_another_run_is_refused_while_one_is_prepared(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    refused: list[str] = []

    def begin(*arguments: Any, **options: Any) -> Any:
        monkeypatch.undo()
        with pytest.raises(StoreError) as caught:
            trained(tmp_path / "run", seed=2)
        refused.append(caught.value.id)
        return prepare_data(*arguments, **options)

    monkeypatch.setattr("derivlang.training.run.prepare_data", begin)
    trained(tmp_path / "run")
    assert refused == ["other-run"]


def test_the_same_command_waits_for_the_run_and_gives_its_result(tmp_path: Path) -> None:
    results: list[dict[str, Any]] = []
    waits = threading.Event()

    def told(message: str) -> None:
        assert "another run of the same command is making a model in this folder; waiting for it" in message
        waits.set()

    def again() -> None:
        results.append(trained(tmp_path / "run", resume=True, warn=told))

    thread = threading.Thread(target=again)

    def begin() -> None:
        thread.start()
        assert waits.wait(60)

    result = trained(tmp_path / "run", resume=True, logged=at_step_2(begin))
    thread.join()
    assert results == [result]


def test_the_lock_of_a_dead_run_does_not_block(tmp_path: Path) -> None:
    written(tmp_path / "run" / ".derivlang.lock", f"{'0123' * 4} another run")
    trained(tmp_path / "run")
    assert not (tmp_path / "run" / ".derivlang.lock").exists()


# several processes


def torchrun(folder: Path, *options: object, warnings: str = "error") -> subprocess.CompletedProcess[str]:
    command = command_line(
        "pretrain", "--source", "demo", "--t", "trans,inv", "--model", model_file("roberta"), *options,
        warnings=warnings,
    )  # fmt: skip
    at = command.index("-m")
    command[at:at] = ["-m", "torch.distributed.run", "--standalone", "--nproc_per_node", "2"]
    process = subprocess.Popen(
        command, cwd=folder, env=environment(OMP_NUM_THREADS="1"), text=True,
        stdin=subprocess.DEVNULL, stdout=subprocess.PIPE, stderr=subprocess.PIPE, start_new_session=True,
    )  # fmt: skip
    try:
        out, err = process.communicate(timeout=180)
    finally:
        if process.poll() is None:
            os.killpg(process.pid, signal.SIGKILL)
            process.communicate()
    return subprocess.CompletedProcess(command, process.returncode, out, err)


_ACCUMULATED = (
    ["--objective", "dict-mlm:condition=yes", "--no-tie"],
    ["--objective", "weam:links=hmm"],
    ["--objective", "ppa:queue=20:momentum=0.5"],
    ["--objective", "xlm-align:pairs=1.0:start=2"],
)


@pytest.mark.parametrize(
    "options",
    [[], *(pytest.param([*one, "--accumulate", 2], marks=pytest.mark.slow) for one in _ACCUMULATED)],
)
def test_two_processes_train_what_one_does(options: list[object], tmp_path: Path) -> None:
    wanted = ["--objective", "xlm:pairs=0.5", *options, "--log-every", 1, "--json"]
    done = torchrun(tmp_path, *wanted, "-o", "two")
    assert done.returncode == 0, done.stderr
    two = json.loads(done.stdout)
    one = run(
        "pretrain", "--source", "demo", "--t", "trans,inv", "--model", model_file("roberta"), *wanted,
        "-o", tmp_path / "one",
    ).json  # fmt: skip
    assert two["fingerprint"] == one["fingerprint"]
    assert two["tokens"] == one["tokens"]
    for left, right in zip(log(tmp_path / "one"), log(tmp_path / "two"), strict=True):
        assert right["loss"] == pytest.approx(left["loss"], rel=1e-4)
        assert right["grad_norm"] == pytest.approx(left["grad_norm"], rel=1e-3)
    ours, theirs = weights(tmp_path / "one" / "model"), weights(tmp_path / "two" / "model")
    for name, weight in ours.items():
        torch.testing.assert_close(theirs[name], weight, rtol=1e-2 if options else 0, atol=1e-4)


@pytest.mark.slow
def test_two_processes_go_on(tmp_path: Path) -> None:
    wanted = ["--steps", 8, "--save-every", 4, "--log-every", 4, "--json", "-o", "run"]
    assert torchrun(tmp_path, *wanted).returncode == 0
    whole = weights(tmp_path / "run" / "model")
    folder = tmp_path / "run"
    shutil.rmtree(folder / "checkpoints" / "step-00000008")
    shutil.rmtree(folder / "model")
    record = runs.read(folder)
    (folder / "run.json").write_text(json.dumps({**record, "status": "stopped"}))
    seal(folder)
    done = torchrun(tmp_path, *wanted, "--resume")
    assert done.returncode == 0, done.stderr
    assert same(weights(folder / "model"), whole)
    again = torchrun(tmp_path, *wanted, "--resume")
    assert json.loads(again.stdout) == json.loads(done.stdout)


# settings


def read_back(record: dict[str, Any]) -> TrainingSettings:
    """The settings that run.json keeps."""
    names = {name: one for one, name in RECORDED.items()}
    fields = {names.get(name, name): value for name, value in record.items()}
    return TrainingSettings(**{**fields, "spec": str(Pipeline.from_stored(record["spec"]))})


def test_settings_read_back() -> None:
    for wanted in (settings(), settings("dict-mlm:rate=70", limit=5, tie=False, coverage="12.5", precision="bf16")):
        assert read_back(json.loads(json.dumps(record_of(wanted)))) == wanted


def test_the_record_of_a_run(tmp_path: Path) -> None:
    result = trained(tmp_path / "run", "xlm:pairs=0.5", kind="roberta")
    record = runs.read(tmp_path / "run")
    assert set(result) == {
        "out", "steps", "tokens", "seconds", "tokens_per_second", "loss", "parts", "parameters", "fingerprint",
        "doses",
    }  # fmt: skip
    named = {
        "format", "derivlang", "status", "source", "spec", "objective", "seed", "steps", "step", "tokens", "seconds",
        "batch_size", "seq_len", "model", "dictionary", "parallel", "data", "fingerprint",
    }  # fmt: skip
    assert named <= set(record)
    assert set(record["alignment_dictionary"]) == {"coverage", "by", "seed", "pairs", "sha256"}
    assert record["dictionary"] is None
    assert {"name", "parameters", "tie", "language_ids"} <= set(record["model"])
    assert record["alignment_dictionary"]["sha256"] == pair().dictionary.sha256
    assert record["data"] == pair().data.fingerprint
    assert record["model"]["language_ids"] is True
    assert (record["step"], record["tokens"]) == (6, result["tokens"])
    assert record["unread"] == {"coverage": "25", "dictionary_by": "random"}
    assert read_back({**record["settings"], **record["unread"]}) == settings("xlm:pairs=0.5", kind="roberta")
    run_ = tmp_path / "run"
    assert (run_ / "dictionary.tsv").read_bytes() == pair().files["dictionary.tsv"].read_bytes()
    for name in ("tokenizer", "twin", "dictionary.tsv.recipe.json", "model", "log.jsonl"):
        assert (run_ / name).exists()
    assert (run_ / "tokenizer" / "tokenizer.json").read_bytes() == (run_ / "model" / "tokenizer.json").read_bytes()


DICTIONARY = {"coverage", "dictionary_by", "dictionary_seed"}


@pytest.mark.parametrize(
    ("objective", "reads"),
    [
        ("mlm", {"mask", "packing"}),
        ("clm", {"packing"}),
        ("tlm", {"mask", "pair_length", "parallel", "dictionary_seed"}),
        ("weam:links=hmm", {"mask", "pair_length", "parallel", "dictionary_seed"}),
        ("xlm:pairs=0.5", {"mask", "packing", "pair_length", "parallel", "dictionary_seed"}),
        ("xlm:pairs=0", {"mask", "packing"}),
        ("align-mlm", {"mask", "packing", *DICTIONARY}),
        ("dict-mlm:condition=yes", {"mask", "packing", *DICTIONARY}),
        ("dict-tlm", {"mask", "pair_length", *DICTIONARY}),
    ],
)
def test_what_an_objective_reads(objective: str, reads: set[str]) -> None:
    found = read_objective(objective)
    reads = reads | ({"replacements"} if "mask" in reads else set())
    assert found.reads() == reads
    made_by = {"dictionary": {"coverage", "dictionary_by"}, "pairs": {"parallel"}}
    for file, replaced in made_by.items():
        assert not found.reads({file}) & replaced
        assert found.reads({file}) <= reads


@pytest.mark.parametrize("objective", ["mlm", "clm", "tlm", "xlm", "align-mlm", "dict-mlm", "dict-tlm"])
def test_a_setting_that_is_not_read_changes_no_row(objective: str) -> None:
    """And one that is read does."""
    wanted = list(every_step(loader(objective), 0, 3))
    for name, value in {"parallel": "90", "rate": 0.5}.items():
        same = all(
            np.array_equal(one, two)
            for one, two in zip(wanted, every_step(loader(objective, **{name: value}), 0, 3), strict=True)
        )
        assert same == ({"rate": "mask"}.get(name, name) not in read_objective(objective).reads()), name


@pytest.mark.parametrize(("objective", "own"), [("mlm", "alignment_dictionary"), ("align-mlm", "dictionary")])
def test_the_record_leaves_out_what_is_not_read(objective: str, own: str, tmp_path: Path) -> None:
    """A run that is resumed with another value is still another run, and the message names the option."""
    trained(tmp_path / "run", objective, coverage="50")
    record = runs.read(tmp_path / "run")
    assert not {"parallel", "pair_length"} & record["settings"].keys()
    assert ("coverage" in record["settings"]) == (own == "dictionary")
    assert record["settings"].keys() | record["unread"].keys() == record_of(settings()).keys()
    assert not record["settings"].keys() & record["unread"].keys()
    assert record["parallel"] is None
    assert record.pop(own)["coverage"] == "50"
    assert not {"dictionary", "alignment_dictionary"} & {name for name, value in record.items() if value}
    for name, value in {"coverage": "25", "parallel": "30"}.items():
        with pytest.raises(StoreError, match=f"{name} is (50|25), not {value}"):
            trained(tmp_path / "run", objective, resume=True, **{"coverage": "50", name: value})


def test_every_setting_changes_the_fingerprint(tmp_path: Path) -> None:
    wanted, model_config = settings(), ModelConfig.read(model_file())

    def fingerprint(wanted: TrainingSettings, model_config: ModelConfig, found: Prepared, **more: Any) -> str:
        plan = RunPlan(wanted, model_config, None, RunPaths(run=tmp_path))
        return RunInputs(plan, found, loader("tlm"), **more).fingerprint

    prints = {fingerprint(wanted, model_config, pair())}
    other: dict[str, Any] = {
        "source": "x", "spec": "trans", "objective": "xlm", "model": "x", "seed": 2, "steps": 9, "batch_size": 4,
        "seq_len": 64, "pair_length": 64, "accumulate": 2, "learning_rate": 1.0, "warmup": 0.5, "weight_decay": 0.5,
        "beta1": 0.5, "beta2": 0.5, "epsilon": 0.5, "clip": 2.0, "mask": 0.5, "tie": False, "language_ids": True,
        "vocab_size": 9, "coverage": "9", "dictionary_by": "mass", "dictionary_seed": 9, "parallel": "9",
        "packing": "stream", "limit": 9, "precision": "bf16", "embeddings": "new", "freeze": "encoder",
        "own": "positions", "replacements": "both", "languages": "source", "halves": True, "derived_source": "x",
        "tokenizer_for": "both",
    }  # fmt: skip
    assert set(other) == set(record_of(wanted))
    names = {name: one for one, name in RECORDED.items()}
    for name, value in other.items():
        prints.add(fingerprint(replace(wanted, **{names.get(name, name): value}), model_config, pair()))
    prints.add(fingerprint(wanted, ModelConfig.read(model_file("bert")), pair()))
    prints.add(fingerprint(wanted, model_config, pair(coverage="50")))
    prints.add(fingerprint(wanted, model_config, pair("trans,perm")))
    for one in ("1", "2"):
        prints.add(fingerprint(wanted, model_config, pair(), init={"run": "a", "weights": one}))
    assert len(prints) == len(other) + 6
    again = fingerprint(wanted, model_config, pair(), init={"run": "elsewhere", "weights": "1"})
    assert again in prints


def test_a_finished_run_records_its_weights_and_what_made_them(tmp_path: Path) -> None:
    """Equal weights have one hash; other threads or another version of torch can be told apart afterwards."""
    for name in ("one", "two"):
        trained(tmp_path / name)
    records = [json.loads((tmp_path / name / "run.json").read_text()) for name in ("one", "two")]
    assert records[0]["weights"] == records[1]["weights"] == hash_of_weights(tmp_path / "one" / "model")
    (environment,) = records[0]["environments"]
    assert environment["torch"] == torch.__version__
    assert environment["threads"] == torch.get_num_threads()
    assert set(environment) == {"derivlang", "torch", "transformers", "device", "threads", "processes"}
    (path,) = (tmp_path / "one" / "model").glob("*.safetensors")
    damaged = bytearray(path.read_bytes())
    damaged[-1] ^= 1
    path.write_bytes(damaged)
    assert hash_of_weights(tmp_path / "one" / "model") != records[0]["weights"]


def test_a_run_that_goes_on_elsewhere_has_both_environments(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    from derivlang.training import record as module

    trained(tmp_path / "run")
    path = tmp_path / "run" / "run.json"
    record = json.loads(path.read_text())
    path.write_text(json.dumps({**record, "status": "stopped"}))
    seal(tmp_path / "run")
    here = module.environment()
    monkeypatch.setattr(module, "environment", lambda: {**here, "threads": 7})
    trained(tmp_path / "run", resume=True)
    assert [one["threads"] for one in json.loads(path.read_text())["environments"]] == [here["threads"], 7]
