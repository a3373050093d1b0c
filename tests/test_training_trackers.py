"""Figures for experiment trackers, by stand-ins of their packages."""

from __future__ import annotations

import json
import sys
from importlib.machinery import ModuleSpec
from pathlib import Path
from types import SimpleNamespace
from typing import Any

import pytest
from accelerate import tracking

from derivlang.core.errors import DataError
from tests.test_training_bad_input import pretrain, refused
from tests.training import trained


class Package:
    """What accelerate uses of the package wandb. runs: what `init` got and was logged, by run."""

    __spec__ = ModuleSpec("wandb", None)  # asked for by other packages

    def __init__(self) -> None:
        self.runs: list[dict[str, Any]] = []
        self.config = SimpleNamespace(update=lambda values, **_: self.runs[-1].update(config=values))

    def init(self, **given: Any) -> Any:
        found: dict[str, Any] = {"given": given, "logged": [], "finished": 0}
        self.runs.append(found)

        def finish() -> None:
            found["finished"] += 1

        return SimpleNamespace(log=lambda figures, step: found["logged"].append((step, figures)), finish=finish)


@pytest.fixture
def wandb(monkeypatch: pytest.MonkeyPatch) -> Package:
    found = Package()
    monkeypatch.setitem(sys.modules, "wandb", found)  # type: ignore[arg-type]
    monkeypatch.setattr(tracking, "_available_trackers", ["wandb", "tensorboard"])
    return found


def test_a_run_has_the_figures_of_its_log(wandb: Package, tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    class Writer:
        def __init__(self, folder: str):
            self.folder = folder

        def add_scalar(self, name: str, value: float, global_step: int) -> None:
            seen.setdefault(global_step, {})[name] = value

        def add_hparams(self, values: dict[str, Any], metric_dict: dict[str, Any]) -> None:
            assert values["steps"] == 6

        def flush(self) -> None:
            pass

        def close(self) -> None:
            closed.append(self.folder)

    seen: dict[int, dict[str, float]] = {}
    closed: list[str] = []
    module = SimpleNamespace(SummaryWriter=Writer)
    monkeypatch.setitem(sys.modules, "torch.utils.tensorboard", module)  # type: ignore[arg-type]
    monkeypatch.setitem(sys.modules, "tensorboard", SimpleNamespace(__spec__=ModuleSpec("tensorboard", None)))  # type: ignore[arg-type]
    run = tmp_path / "run"
    options = ("--steps", 6, "--log-every", 2, "--tracker", "wandb=words", "--tracker", "tensorboard=board")
    pretrain(run, *options, objective="mlm")
    entries = [json.loads(line) for line in (run / "log.jsonl").read_text().splitlines()]
    assert len(entries) >= 3
    (one,) = wandb.runs
    names = ("loss", "lr", "tokens_per_second")
    assert one["logged"] == [(e["step"], {n: e[n] for n in names} | {"loss/mlm": e["parts"]["mlm"]}) for e in entries]
    assert dict(one["logged"]) == seen
    assert (one["finished"], closed) == (1, [str(run / "board")])
    assert one["given"] == {"project": "words"}
    assert (one["config"]["steps"], one["config"]["spec"]) == (6, "trans:table=2,inv")


def test_a_package_that_refuses(wandb: Package, tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    def init(**given: Any) -> None:
        raise RuntimeError("no\nkey")

    monkeypatch.setattr(wandb, "init", init)
    with pytest.raises(DataError, match=r"tracker failed: no key \[tracker\]"):
        trained(tmp_path / "run", tracker=("wandb=words",))


def test_another_tracker(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    class Other(tracking.GeneralTracker):  # type: ignore[misc]
        name, requires_logging_directory = "mlflow", False

        def __init__(self, project: str):
            super().__init__()
            self.project = project

        tracker = None

        def store_init_configuration(self, values: dict[str, Any]) -> None:
            seen.append((self.project, values["objective"]))

        def log(self, values: dict[str, Any], step: int | None, **_: Any) -> None:
            seen.append((step, values["loss"]))

        def finish(self) -> None:
            seen.append("end")

    seen: list[Any] = []
    monkeypatch.setitem(tracking.LOGGER_TYPE_TO_CLASS, "mlflow", Other)
    monkeypatch.setattr(tracking, "_available_trackers", ["mlflow"])
    run = tmp_path / "run"
    pretrain(run, "--steps", 2, "--log-every", 1, "--tracker", "mlflow=words", objective="mlm")
    losses = [json.loads(line)["loss"] for line in (run / "log.jsonl").read_text().splitlines()]
    assert seen == [("words", "mlm"), (1, losses[0]), (2, losses[1]), "end"]


@pytest.mark.parametrize(
    ("asked", "told"),
    [
        ("mlflo=words", "there is no experiment tracker 'mlflo'; did you mean mlflow?"),
        ("mlflow=words", "mlflow is not installed [missing-package]\n  pip install mlflow"),
        ("mlflow", "'mlflow' is not NAME=PROJECT"),
    ],
)
def test_a_tracker_that_is_unknown_or_missing(asked: str, told: str, tmp_path: Path) -> None:
    said = refused(tmp_path / "run", "--tracker", asked)
    assert told in said
    assert "--tracker" in said
