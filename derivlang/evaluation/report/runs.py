"""Run folders as the report reads them: `run.json`, `evaluation.json`, and the counts behind its scores.

A run without an evaluation is listed, and its cells stay empty. Anything that cannot be read is an error: a report over
what happens to be readable would be a silent choice of runs.
"""

from __future__ import annotations

import json
import math
import zipfile
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import numpy as np

from derivlang.core.arrays import Int64
from derivlang.core.errors import StoreError, UsageError
from derivlang.core.spec import read_spec
from derivlang.evaluation.report.columns import DEV, Column
from derivlang.evaluation.tasks import REGIMES, task_of

RUN, EVALUATION, COUNTS = "run.json", "evaluation.json", "evaluation"
FORMAT = 1
_FINE_TUNING = ("source", "epochs", "lr", "batch_size", "max_length", "train", "dev", "test")


@dataclass(frozen=True, slots=True)
class Score:
    """Percent. mean over fine-tuning seeds; deviation None of one seed; low, high: 95 %, None where not known."""

    mean: float
    deviation: float | None
    low: float | None
    high: float | None
    seeds: tuple[float, ...]


@dataclass(frozen=True, slots=True, eq=False)
class Run:
    """id: R1, R2 … in the report. facts: `run.json`. evaluation: `evaluation.json`, None if there is none."""

    id: str
    folder: Path
    facts: Mapping[str, Any]
    evaluation: Mapping[str, Any] | None

    @property
    def fingerprint(self) -> str:
        return str(self.facts["fingerprint"])

    @property
    def seed(self) -> int:
        return int(self.facts["seed"])

    @property
    def state(self) -> str:
        """What a reader must know of the run besides its numbers."""
        status, step, steps = (self.facts.get(name) for name in ("status", "step", "steps"))
        parts = [] if status in (None, "done") else [f"{status} at step {_count(step)} of {_count(steps)}"]
        return ", ".join(parts + ([] if self.evaluation else ["not evaluated"])) or "done"

    @property
    def signature(self) -> str:
        """All that its numbers depend on, in a line."""
        facts = self.facts
        parts = {
            "spec": facts["spec"],
            "objective": facts["objective"],
            "fingerprint": self.fingerprint,
            "seed": self.seed,
            "steps": _count(self.steps),
            "derivlang": facts["derivlang"],
        }
        return f"{self.id}: " + ", ".join(f"{name} {value}" for name, value in parts.items())

    @property
    def tasks(self) -> tuple[str, ...]:
        return tuple((self.evaluation or {}).get("tasks") or ())

    @property
    def steps(self) -> int:
        """Of the weights that were evaluated, else of the run as a whole."""
        signature = (self.evaluation or {}).get("signature") or {}
        return int(signature.get("steps") or self.facts["steps"])

    def settings(self, task: str) -> str | None:
        """How a task was fine-tuned and tested, as text that is equal for equal settings; None if it was not."""
        found = self._task(task).get("settings")
        return None if found is None else ", ".join(f"{name} {found[name]}" for name in _FINE_TUNING if name in found)

    def score(self, column: Column, regime: str) -> Score | None:
        """regime: sup, zs, delta, dev-sup … (on the derived dev set), or source (ZS, tested on the source)."""
        task = self._task(column.task)
        part = (task.get("dev") or {}) if regime.startswith(DEV) else task
        found = (part.get(regime.removeprefix(DEV)) or {}).get(column.name)
        if found is None or found["mean"] is None:
            return None
        low, high, deviation = (found.get(name) for name in ("low", "high", "deviation"))
        return Score(float(found["mean"]), deviation, low, high, tuple(found["seeds"]))

    def alignment(self, name: str) -> float | None:
        """Percent of rows; None where it was not measured."""
        value = ((self.evaluation or {}).get("alignment") or {}).get(name)
        return None if value is None else float(value)

    def perplexity(self, side: str) -> float | None:
        value = ((self.evaluation or {}).get("perplexity") or {}).get(side)
        return None if value is None else float(value)

    def contextual(self) -> Sequence[Mapping[str, Any]]:
        """Layers with their word alignment and sentence retrieval."""
        return tuple((self.evaluation or {}).get("contextual") or ())

    def counts(self, column: Column) -> list[tuple[Int64, Int64]]:
        """(SUP, ZS) int64[S, k] of each fine-tuning seed; [] unless all are there. StoreError if not of its scores."""
        scores = [self.score(column, regime) for regime in REGIMES]
        if None in scores:
            return []
        sides = [self._counts(column, regime, score) for regime, score in zip(REGIMES, scores, strict=True) if score]
        return list(zip(*sides, strict=True)) if all(sides) and len({len(side) for side in sides}) == 1 else []

    def _counts(self, column: Column, regime: str, score: Score) -> list[Int64]:
        name = task_of(column.task).file_name
        paths = [self.folder / COUNTS / f"{name}.{regime}.{seed}.npz" for seed in range(1, len(score.seeds) + 1)]
        if not all(path.exists() for path in paths):
            return []
        found = [_counts(path, column.name) for path in paths]
        for path, counts, value in zip(paths, found, score.seeds, strict=True):
            if not math.isclose(column.metric.value(counts), value, abs_tol=1e-6):
                raise StoreError(f"is not what {EVALUATION} was made of", where=str(path), fix=_AGAIN, id="run")
        return found

    def _task(self, task: str) -> Mapping[str, Any]:
        found: Mapping[str, Any] = ((self.evaluation or {}).get("tasks") or {}).get(task) or {}
        return found


def read_runs(folders: Iterable[Path]) -> list[Run]:
    """The runs in these folders, in this order; a folder of run folders stands for them. Each folder once.

    Raises UsageError where there is none, StoreError for a folder that holds no run and for damaged files.
    """
    found: dict[Path, Path] = {}
    for folder in folders:
        for run in _find(folder):
            found.setdefault(run.resolve(), run)
    if not found:
        raise UsageError("there are no runs to report", where="RUNS", fix="name run folders", id="no-runs")
    return [_read(folder, f"R{number}") for number, folder in enumerate(found.values(), 1)]


def same_model(runs: Iterable[Run]) -> dict[str, str]:
    """Copies: a run's id -> the id of an earlier run with the same fingerprint."""
    first: dict[str, str] = {}
    return {run.id: first[run.fingerprint] for run in runs if first.setdefault(run.fingerprint, run.id) != run.id}


def _find(folder: Path) -> list[Path]:
    if not folder.is_dir():
        raise StoreError("there is no such folder", where=str(folder), id="missing-folder")
    if (folder / RUN).exists():
        return [folder]
    inside = sorted(path.parent for path in folder.glob(f"*/{RUN}"))
    if not inside:
        raise StoreError(
            f"not a run: there is no {RUN}, here or in a folder in it",
            where=str(folder),
            fix="make one: derivlang pretrain … -o RUN",
            id="not-a-run",
        )
    return inside


def _read(folder: Path, id: str) -> Run:
    path = folder / RUN
    facts = _json(path, _RERUN)
    if facts.get("format") != FORMAT:
        raise _damaged(path, f"format {facts.get('format')}, but this version reads {FORMAT}", _RERUN)
    for name, kind in _FACTS.items():
        if not isinstance(facts.get(name), kind):
            raise _damaged(path, f"{name} is {json.dumps(facts.get(name))}", _RERUN)
    if not isinstance(facts["model"].get("name"), str):
        raise _damaged(path, "the model has no name", _RERUN)
    for name in ("spec", "objective"):
        try:
            read_spec(facts[name], name)
        except UsageError as error:
            raise _damaged(path, str(error.what), _RERUN) from None
    path = folder / EVALUATION
    if not path.exists():
        return Run(id, folder, facts, None)
    evaluation = _json(path, _AGAIN)
    try:
        told = evaluation["signature"]["fingerprint"]
        _check_scores(evaluation)
    except (KeyError, TypeError, ValueError, AttributeError) as error:
        told = error.args[0] if not isinstance(error, KeyError) else f"there is no {error}"
        raise _damaged(path, told, _AGAIN) from None
    made = facts["fingerprint"]
    told_step, step = evaluation["signature"].get("steps"), facts.get("step", facts["steps"])
    if (told, told_step) != (made, step):
        raise StoreError(
            f"is of {told} at step {_count(told_step)}, but the run has made {made} at step {_count(step)}",
            where=str(path),
            fix=_AGAIN,
            id="stale-evaluation",
        )
    return Run(id, folder, facts, evaluation)


def _check_scores(evaluation: Mapping[str, Any]) -> None:
    """ValueError for what would be printed as a number and is none."""
    for task, entry in (evaluation.get("tasks") or {}).items():
        regimes = {regime: entry.get(regime) for regime in (*REGIMES, "delta", "source")}
        regimes |= {f"{DEV}{regime}": found for regime, found in (entry.get("dev") or {}).items()}
        for regime, found in regimes.items():
            for metric, score in (found or {}).items():
                for name in ("mean", "deviation", "low", "high"):
                    _check_number(score.get(name), f"{task}.{regime}.{metric}.{name}")
                for value in score["seeds"]:
                    _check_number(value, f"{task}.{regime}.{metric}.seeds")
    for part in ("alignment", "perplexity"):
        for name, value in (evaluation.get(part) or {}).items():
            _check_number(value, f"{part}.{name}")
    for layer in evaluation.get("contextual") or ():
        for name in ("layer", "words", "sentences"):
            _check_number(layer.get(name), f"contextual.{name}")


def _check_number(value: Any, name: str) -> None:
    if value is not None and not (isinstance(value, int | float) and math.isfinite(value)):
        raise ValueError(f"{name} is {json.dumps(value)}, not a number")


def _json(path: Path, fix: str) -> dict[str, Any]:
    try:
        found = json.loads(path.read_text("utf-8"))
    except OSError as error:
        raise StoreError(f"cannot be read: {error.strerror}", where=str(path), id="run") from error
    except ValueError as error:
        raise _damaged(path, str(error), fix) from None
    if not isinstance(found, dict):
        raise _damaged(path, "not an object", fix)
    return found


def _counts(path: Path, metric: str) -> Int64:
    try:
        with path.open("rb") as stream, np.load(stream) as arrays:
            found = np.asarray(arrays[metric], np.int64)
        if found.ndim != 2:
            raise ValueError(f"{metric} has {found.ndim} dimensions")
    except OSError as error:
        raise StoreError(f"cannot be read: {error.strerror or error}", where=str(path), id="run") from error
    except (KeyError, ValueError, EOFError, zipfile.BadZipFile) as error:
        raise _damaged(path, str(error.args[0] if error.args else error), _AGAIN) from None
    return found


def _damaged(path: Path, what: str, fix: str) -> StoreError:
    return StoreError(f"not what derivlang can read: {what}", where=str(path), fix=fix, id="run")


def _count(value: Any) -> str:
    return f"{value:,}" if isinstance(value, int) else str(value)


_FACTS: dict[str, type] = {
    "source": str, "spec": str, "objective": str, "seed": int, "steps": int, "model": dict, "data": str,
    "fingerprint": str, "derivlang": str,
}  # fmt: skip
_RERUN = "leave this run out, or make it again"
_AGAIN = "evaluate the run again: derivlang evaluate RUN"
