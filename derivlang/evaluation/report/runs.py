"""A run as the report sees it: `run.json`, `evaluation.json`, and the counts behind its scores (reading.py)."""

from __future__ import annotations

import math
import os
from collections.abc import Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

import numpy as np

from derivlang.core.arrays import Int64
from derivlang.core.errors import StoreError
from derivlang.core.parse_errors import parse_errors
from derivlang.core.seal import HASH
from derivlang.evaluation.finetune_settings import DOCUMENTS, ORACLE, REGIMES, ROWS
from derivlang.evaluation.measures.base import LARGEST_PERPLEXITY
from derivlang.evaluation.report.checks import LAYER_FIGURES, untuned_task
from derivlang.evaluation.report.columns import DEV, MIXED, Column
from derivlang.evaluation.report.plan import StudyPlan, levels_of
from derivlang.evaluation.results import FILES
from derivlang.evaluation.tasks.named import file_name_of
from derivlang.evaluation.tasks.untuned import UntunedTask
from derivlang.store.listing import faults

RUN, EVALUATION, COUNTS = "run.json", "evaluation.json", "evaluation"
AGAIN = "evaluate the run again: derivlang evaluate RUN"
# Regime -> prefix of its counts, and the regime of the fine-tunings that they are from.
_COUNTS = {
    "source": ("source_", "zs"),
    "oracle": (ORACLE, "zs"),
    **{f"{DEV}{name}": ("dev_", name) for name in REGIMES},
}
# Measure of held-out text -> the option of `evaluate` that says how many sentences it reads.
_HELDOUT = {**dict.fromkeys(LAYER_FIGURES, "pairs"), "perplexity": "sentences"}
_FINE_TUNING = ("source", "data", "epochs", "lr", "batch_size", "max_length", "frozen", "train", "dev", "test")


@dataclass(frozen=True, slots=True)
class TaskScore:
    """A score in percent. mean, deviation: over fine-tuning seeds. low, high: 95 % interval. None: not known."""

    mean: float
    deviation: float | None
    low: float | None
    high: float | None
    seeds: tuple[float, ...]


@dataclass(frozen=True, slots=True, eq=False)
class Run:
    """A run. id: R1, R2 … in the report. facts: `run.json`. evaluation: `evaluation.json`, or None.

    plan: the study that has this run, or None. checkpoints: the same run with the evaluations of its checkpoints, by
    step. memo: replicates that `estimates.py` has drawn.
    """

    id: str
    folder: Path
    facts: Mapping[str, Any]
    evaluation: Mapping[str, Any] | None
    plan: StudyPlan | None = None
    checkpoints: tuple[Run, ...] = ()
    memo: dict[Any, Any] = field(default_factory=dict, repr=False)

    @property
    def fingerprint(self) -> str:
        return str(self.facts["fingerprint"])

    @property
    def levels(self) -> Mapping[str, str]:
        """The levels of its factors: the study's, else those of run.json."""
        return self.plan.cells[place_of(self.folder)] if self.plan else levels_of(self.facts.get("factors") or {})

    @property
    def weights(self) -> str:
        """The hash of the finished model's weights; "" if run.json has none."""
        return str(self.facts.get("weights") or "")

    @property
    def seed(self) -> int:
        return int(self.facts["seed"])

    @property
    def state(self) -> str:
        """The state of the run: done, or unfinished or not evaluated."""
        status, step, steps = (self.facts.get(name) for name in ("status", "step", "steps"))
        parts = [] if status in (None, "done") else [f"{status} at step {shown(step)} of {shown(steps)}"]
        return ", ".join(parts + ([] if self.evaluation else ["not evaluated"])) or "done"

    @property
    def signature(self) -> str:
        """Everything that its numbers depend on, in one line."""
        facts = self.facts
        parts = {
            "spec": facts["spec"],
            "objective": facts["objective"],
            "fingerprint": self.fingerprint,
            "seed": self.seed,
            "steps": shown(self.steps),
            "derivlang": facts["derivlang"],
        }
        return f"{self.id}: " + ", ".join(f"{name} {value}" for name, value in parts.items())

    @property
    def tasks(self) -> tuple[str, ...]:
        return tuple((self.evaluation or {}).get("tasks") or ())

    @property
    def steps(self) -> int:
        """The step of the evaluated weights, else the number of steps of the run."""
        signature = (self.evaluation or {}).get("signature") or {}
        return int(signature.get("steps") or self.facts["steps"])

    @property
    def mixed(self) -> bool:
        """Whether a task was fine-tuned on pairs in both languages (CS)."""
        return any(self._task(label).get(MIXED[0]) for label in self.tasks)

    @property
    def measured(self) -> dict[tuple[int, str, str], Any]:
        """What was measured, of its checkpoints, too: (step, measure or "tasks" or "heldout", task or "") -> result."""
        found: dict[tuple[int, str, str], Any] = {}
        for one in (self, *self.checkpoints):
            for name, value in (one.evaluation or {}).items():
                parts = value if name in ("tasks", "heldout") else {"": value}
                found |= {
                    (one.steps, name, part): _without_files(told)
                    for part, told in (parts or {}).items()
                    if name not in ("format", "signature", HASH)
                }
        return found

    def untuned(self) -> Iterator[tuple[str, UntunedTask, Mapping[str, Any]]]:
        """Yield (label, task, entry) of each task without fine-tuning."""
        for label in self.tasks:
            task = untuned_task(label)
            if task is not None:
                yield label, task, self._task(label)

    def settings(self, task: str) -> Mapping[str, Any] | None:
        """Return the fine-tuning settings of a task, equal for equal settings; None if it was not evaluated."""
        found = self._task(task).get("settings")
        return None if found is None else {name: found[name] for name in _FINE_TUNING if name in found}

    def score(self, column: Column, regime: str) -> TaskScore | None:
        """Return a score or None.

        regime: sup, zs, delta, dev-sup … (derived dev set), source (ZS on the source's test set), oracle (ZS, epoch
        chosen on the derived dev set).
        """
        task = self._task(column.task)
        part = (task.get("dev") or {}) if regime.startswith(DEV) else task
        found = (part.get(regime.removeprefix(DEV)) or {}).get(column.name)
        if found is None or found["mean"] is None:
            return None
        low, high, deviation = (found.get(name) for name in ("low", "high", "deviation"))
        return TaskScore(float(found["mean"]), deviation, low, high, tuple(found["seeds"]))

    def chance(self, column: Column) -> float | None:
        """Return the chance level on the test set, or None if the metric has none."""
        value = (self._task(column.task).get("chance") or {}).get(column.name)
        return None if value is None else float(value)

    def alignment(self, name: str) -> float | None:
        """Return the percentage of aligned rows, or None if not measured."""
        value = ((self.evaluation or {}).get("alignment") or {}).get(name)
        return None if value is None else float(value)

    def perplexity(self, side: str) -> float | None:
        """Return a figure of the measure perplexity. Earlier versions wrote up to 1e304 for a diverged model."""
        value = ((self.evaluation or {}).get("perplexity") or {}).get(side)
        return None if value is None else min(float(value), LARGEST_PERPLEXITY)

    def layers(self) -> list[dict[str, Any]]:
        """Return for each layer its number and its figures, named as in `LAYER_FIGURES`."""
        found: dict[Any, dict[str, Any]] = {}
        for measure, names in LAYER_FIGURES.items():
            for layer in (self.evaluation or {}).get(measure) or ():
                told = found.setdefault(layer.get("layer"), {"layer": layer.get("layer")})
                told |= {title: layer[name] for name, title in names.items() if name in layer}
        return list(found.values())

    @property
    def heldout(self) -> dict[str, str]:
        """The number and the length of the held-out sentences as text, by the option of their number.

        Also their split, unless it is the usual one; earlier versions told none.
        """
        found = (self.evaluation or {}).get("heldout") or {}
        told: dict[str, set[str]] = {}
        for measure, option in _HELDOUT.items():
            if measure in found:
                read = {name: value for name, value in found[measure].items() if name in (option, "length", "split")}
                if read.get("split") == "validation":
                    del read["split"]
                told.setdefault(option, set()).add(", ".join(f"{name} {value}" for name, value in read.items()))
        return {option: "; ".join(sorted(each)) for option, each in told.items()}

    def n_test(self, task: str) -> int | None:
        """Return the number of rows of the test set, or None if not known."""
        found: int | None = (self._task(task).get("settings") or {}).get("test")
        return found

    def test_set(self, task: str) -> Mapping[str, Any]:
        """Return what is known of a task's test set: unit, units, labels, in_train; {} from earlier versions."""
        found: Mapping[str, Any] = self._task(task).get("test") or {}
        return found

    def lost(self, task: str) -> dict[str, int]:
        """Return the numbers of cut rows and of unscored labels of the test set, as far as they are known."""
        settings = self._task(task).get("settings") or {}
        found = {"cut": (settings.get("truncated") or {}).get("test"), "unscored": settings.get("unscored")}
        return {name: count for name, count in found.items() if count is not None}

    def documents(self, task: str, regime: str) -> Int64 | None:
        """Return int64[S]: the document of each row of counts; None if each row is one, or if none are known.

        Raise StoreError if evaluation.json names documents, and their file is missing.
        """
        told, path = self.test_set(task), self.folder / COUNTS / f"{file_name_of(task)}.{DOCUMENTS}"
        if told and path.exists():
            self._check_file(task, path)
            return _array(path, ["dev" if regime.startswith(DEV) else "test"], 1)
        if told.get("unit", ROWS[0]) in ROWS:
            return None
        raise StoreError("the documents of the test set are missing", where=str(path), fix=AGAIN, id="run")

    def counts(self, column: Column, regime: str) -> list[Int64] | None:
        """Return int64[S, k] of each fine-tuning seed, or None if a file is missing.

        regime: as of `score`, but not delta. Raise StoreError if they do not give the stored scores.
        """
        score = self.score(column, regime)
        if score is None:
            return None
        prefix, side = _COUNTS.get(regime, ("", regime))
        names = [prefix + column.name, *([column.name] if regime == "oracle" else [])]  # one epoch: the same counts
        stem = f"{file_name_of(column.task)}.{side}"
        paths = [self.folder / COUNTS / f"{stem}.{seed}.npz" for seed in range(1, len(score.seeds) + 1)]
        if not all(path.exists() for path in paths):
            return None
        for path in paths:
            self._check_file(column.task, path)
        found = [_array(path, names, 2) for path in paths]
        for path, counts, value in zip(paths, found, score.seeds, strict=True):
            if not math.isclose(column.metric.value(counts), value, abs_tol=1e-6):
                raise StoreError(f"does not give the scores of {EVALUATION}", where=str(path), fix=AGAIN, id="run")
        return found

    def _check_file(self, task: str, path: Path) -> None:
        """Raise StoreError for a file of counts that is not the one that was evaluated."""
        files: Mapping[str, Any] = self._task(task).get(FILES) or {}
        for _, what in faults({name: files[name] for name in files if name == path.name}, {path.name: path}):
            raise StoreError(f"{what} since it was evaluated", where=str(path), fix=AGAIN, id="damaged")

    def _task(self, task: str) -> Mapping[str, Any]:
        found: Mapping[str, Any] = ((self.evaluation or {}).get("tasks") or {}).get(task) or {}
        return found


def same_model(runs: Iterable[Run]) -> dict[str, str]:
    """Return a run's id -> the id of an earlier run with the same fingerprint and the same weights.

    Equal settings and data are not enough, as other threads, devices or libraries give other weights. A run whose
    weights are unknown (of an older version, or unfinished) is the same as none.
    """
    first: dict[tuple[str, str], str] = {}
    return {
        run.id: first[run.fingerprint, run.weights]
        for run in runs
        if run.weights and first.setdefault((run.fingerprint, run.weights), run.id) != run.id
    }


def place_of(run: Path) -> Path:
    """Return the absolute path of a run as a study has it: without `..`, links not followed."""
    return Path(os.path.normpath(run.absolute()))


def _array(path: Path, names: Sequence[str], dimensions: int) -> Int64:
    """Return the first of these arrays that a file has. Raise StoreError if there is none, or if it is damaged."""
    with (
        parse_errors(str(path), "file of counts", error=StoreError, id="run", fix=AGAIN),
        path.open("rb") as stream,
        np.load(stream, allow_pickle=False) as arrays,
    ):
        found = np.asarray(arrays[next((name for name in names if name in arrays), names[0])], np.int64)
        if found.ndim != dimensions or found.min(initial=0) < 0:
            raise ValueError(f"{names[0]} has {found.ndim} dimensions, or negative values")
        return found


def _without_files(told: Any) -> Any:
    """Return a result without the hashes of its files, which also depend on the version that wrote them."""
    return {name: value for name, value in told.items() if name != FILES} if isinstance(told, dict) else told


def shown(value: Any) -> str:
    """Return a number, or what stands in its place, as text."""
    return f"{value:,}" if isinstance(value, int) else str(value)
