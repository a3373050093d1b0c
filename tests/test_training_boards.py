"""Figures for TensorBoard and Weights & Biases, by stand-ins of both packages."""

from __future__ import annotations

import json
import sys
from importlib.machinery import ModuleSpec
from pathlib import Path
from types import SimpleNamespace
from typing import Any

import pytest

from derivlang.core.errors import DataError
from derivlang.training.boards import boards_of
from derivlang.training.settings import LogSettings
from tests.test_training_bad_input import pretrain, refused


class Package:
    """What derivlang uses of the package wandb. runs: what `init` got and was logged, by run."""

    __spec__ = ModuleSpec("wandb", None)  # asked for by other packages

    def __init__(self) -> None:
        self.runs: list[dict[str, Any]] = []

    def Settings(self, **given: Any) -> dict[str, Any]:
        return given

    def init(self, **given: Any) -> Any:
        found: dict[str, Any] = {"given": given, "logged": [], "finished": 0}
        self.runs.append(found)
        name = f"offline-run-2026010{len(self.runs)}_120000-{given['id'] or f'new{len(self.runs)}'}"
        (Path(given["dir"]) / "wandb" / name).mkdir(parents=True)

        def finish() -> None:
            found["finished"] += 1

        return SimpleNamespace(log=lambda figures, step: found["logged"].append((step, figures)), finish=finish)


@pytest.fixture
def wandb(monkeypatch: pytest.MonkeyPatch) -> Package:
    found = Package()
    monkeypatch.setitem(sys.modules, "wandb", found)  # type: ignore[arg-type]
    monkeypatch.delenv("WANDB_MODE", raising=False)
    return found


def test_a_run_has_the_figures_of_its_log(wandb: Package, tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    class Writer:
        def __init__(self, folder: str):
            self.folder = folder

        def add_scalar(self, name: str, value: float, step: int) -> None:
            seen.setdefault(step, {})[name] = value

        def close(self) -> None:
            closed.append(self.folder)

    seen: dict[int, dict[str, float]] = {}
    closed: list[str] = []
    module = SimpleNamespace(SummaryWriter=Writer)
    monkeypatch.setitem(sys.modules, "torch.utils.tensorboard", module)  # type: ignore[arg-type]
    monkeypatch.setitem(sys.modules, "tensorboard", SimpleNamespace(__spec__=ModuleSpec("tensorboard", None)))  # type: ignore[arg-type]
    run = tmp_path / "run"
    options = ("--steps", 6, "--log-every", 2, "--wandb", "words", "--tensorboard", tmp_path / "board")
    pretrain(run, *options, objective="mlm")
    entries = [json.loads(line) for line in (run / "log.jsonl").read_text().splitlines()]
    assert len(entries) >= 3
    (one,) = wandb.runs
    names = ("loss", "lr", "tokens_per_second")
    assert one["logged"] == [(e["step"], {n: e[n] for n in names} | {"loss/mlm": e["parts"]["mlm"]}) for e in entries]
    assert dict(one["logged"]) == seen
    assert (one["finished"], closed) == (1, [str(tmp_path / "board")])
    given = one["given"]
    assert (given["project"], given["name"], given["dir"]) == ("words", "run", str(run))
    assert (given["mode"], given["id"]) == ("offline", None)
    assert (given["config"]["steps"], given["config"]["spec"]) == (6, "trans,inv")


def test_a_resumed_run_is_the_same_and_the_environment_has_the_last_word(
    wandb: Package, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    settings = LogSettings(wandb="words")
    for step in (0, 50, 100, 0):
        boards_of(settings, tmp_path, step, {})
    assert [one["given"]["id"] for one in wandb.runs] == [None, "new1", "new1", None]
    monkeypatch.setenv("WANDB_MODE", "online")
    boards_of(settings, tmp_path, 0, {})
    assert wandb.runs[-1]["given"]["mode"] is None  # the package reads it itself
    assert boards_of(LogSettings(), tmp_path, 0, {}) == []


def test_a_package_that_refuses(wandb: Package, tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    def init(**given: Any) -> None:
        raise RuntimeError("no\nkey")

    monkeypatch.setattr(wandb, "init", init)
    with pytest.raises(DataError, match=r"cannot begin a run: no key \[wandb\]"):
        boards_of(LogSettings(wandb="words"), tmp_path, 0, {})


@pytest.mark.parametrize("package", ["tensorboard", "wandb"])
def test_a_package_that_is_missing(package: str, tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setitem(sys.modules, package, None)  # type: ignore[arg-type]
    assert f"pip install 'derivlang[{package}]'" in refused(tmp_path / "run", f"--{package}", "board")
