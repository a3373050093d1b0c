"""What tests of `evaluate` share: a run, task data and quick options, and what they ask of the scores."""

from __future__ import annotations

import json
import shutil
from functools import cache
from pathlib import Path
from tempfile import mkdtemp
from typing import Any

from derivlang.engine.job import Events
from derivlang.evaluation.evaluate import Evaluated, evaluations
from derivlang.evaluation.finetune_settings import FinetuneSettings
from derivlang.evaluation.settings import EvaluateOptions
from derivlang.evaluation.tasks.registry import task_of
from tests.tiny_runs import data_folder, write_run

QUICK = {"epochs": 1, "lr": 5e-3, "batch_size": 16}


@cache
def task_data() -> Path:
    """The demo's sets of the fine-tuned tasks, only to be read."""
    return data_folder(Path(mkdtemp(prefix="derivlang-tests-")) / "data")


@cache
def untouched_run() -> Path:
    """A run of `trans,inv` that has seen no text. Tests may add results to it, and change nothing else."""
    return write_run(Path(mkdtemp(prefix="derivlang-tests-")) / "run", dictionary=20)


def fresh_run(folder: Path) -> Path:
    """The same run at `folder`, for one test to evaluate or to damage."""
    shutil.copytree(untouched_run(), folder, ignore=shutil.ignore_patterns("evaluation*"))
    return folder


def options(*names: str, **changes: Any) -> EvaluateOptions:
    """Options for the named tasks, with one seed and no measures unless `changes` has others."""
    settings = {key: changes.pop(key) for key in tuple(changes) if key in FinetuneSettings.__dataclass_fields__}
    tasks = tuple(task_of(name).with_settings(**(QUICK | settings)) for name in names)  # type: ignore[attr-defined]
    usual = {"seeds": 1, "measures": (), "data_dir": task_data(), "device": "cpu"}
    return EvaluateOptions(tasks=tasks, **(usual | changes))


def evaluate(
    folder: Path, options: EvaluateOptions, events: Events | None = None, *, step: int | None = None
) -> Evaluated:
    """Evaluate a run, or its checkpoint of a step."""
    ((_, found),) = evaluations(folder, {"": options}, [step], events)
    return found


def stored(folder: Path, name: str = "evaluation.json") -> dict[str, Any]:
    """The record of a file, without its hash."""
    found: dict[str, Any] = json.loads((folder / name).read_text("utf-8"))
    return {key: value for key, value in found.items() if key != "sha256"}


def rows(found: Evaluated, task: str, **equal: Any) -> list[dict[str, Any]]:
    """The rows of a task or measure with these values."""
    return [row for row in found.scores.to_pylist() if row["task"] == task and equal.items() <= row.items()]


def values(found: Evaluated, task: str, regime: str, metric: str = "accuracy", split: str = "test") -> list[float]:
    """The value of each fine-tuning, by seed."""
    some = rows(found, task, regime=regime, metric=metric, split=split)
    return [row["value"] for row in sorted(some, key=lambda row: row["ft_seed"] or 0)]


def regimes(found: Evaluated, task: str, split: str = "test") -> set[str]:
    """The regimes that a task has, without that of a guess."""
    return {row["regime"] for row in rows(found, task, split=split)} - {"chance"}


def of_regime(found: Evaluated, task: str, regime: str, split: str = "test") -> list[Any]:
    """The counts of a regime, whatever the regime is called: (metric, seed, set, counts)."""
    some = rows(found, task, regime=regime, split=split)
    return [[row[name] for name in ("metric", "ft_seed", "set_hash", "unit", "counts", "value")] for row in some]
