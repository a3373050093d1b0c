"""One fine-tuning of one task and regime, and its file: RUN/evaluation/TASK.REGIME.SEED.npz.

The file holds int64[sentences, k] counts of each metric under its name: on the derived test set, as `dev_…` on the
derived dev set (which published tables use), and for ZS as `source_…` on the source's test set. A ZS fine-tuning of
several epochs has `oracle_…` as well: on the derived test set, of the epoch that the derived dev set chooses. Its
`facts` say what it was made of, and have a hash of the whole content. A file of other settings, data or weights, or
with a changed content, is ignored, so an interrupted evaluation resumes with the next cell.
"""

from __future__ import annotations

import json
from dataclasses import dataclass
from hashlib import sha256
from io import BytesIO
from pathlib import Path
from typing import Any

import numpy as np
import torch

from derivlang.core.arrays import Int64
from derivlang.core.errors import DataError
from derivlang.core.parse_errors import parse_errors
from derivlang.core.seal import HASH, hash_of, is_intact
from derivlang.core.version import __version__
from derivlang.evaluation.examples import Examples, Instances
from derivlang.evaluation.finetune import TaskModel, fine_tune, predict
from derivlang.evaluation.finetune_settings import ORACLE, REGIMES, Regime, regime_of
from derivlang.evaluation.sets import Sets
from derivlang.evaluation.tasks.base import Task
from derivlang.evaluation.trained import PretrainedRun
from derivlang.store.files import writing
from derivlang.store.record import digest
from derivlang.training.languages import DERIVED, SOURCE

RULES = 1  # version of the fine-tuning rules; cells of another version are made again


@dataclass(frozen=True, slots=True, eq=False)
class FinetuneCell:
    """A fine-tuning of a run. data_key: digest of its examples. words: how their text was split into words."""

    trained: PretrainedRun
    task: Task
    regime: Regime
    seed: int
    data_key: str
    words: str

    @property
    def path(self) -> Path:
        return self.trained.cells / f"{self.task.file_name}.{self.regime}.{self.seed}.npz"

    @property
    def key(self) -> str:
        """The digest of everything that its counts depend on."""
        return digest(
            {
                "rules": RULES,
                "weights": self.trained.weights,
                "language_ids": self.trained.language_ids,
                "settings": self.task.settings.record(),
                "regime": self.regime,
                "seed": self.seed,
                "data": self.data_key,
            }
        )

    def counts(self) -> dict[str, Int64] | None:
        """Return the counts by metric, int64[S, k], or None if the file is missing, damaged or of something else."""
        try:
            with (
                parse_errors(str(self.path), "cell"),
                np.load(BytesIO(self.path.read_bytes()), allow_pickle=False) as found,
            ):
                arrays = dict(found)
                facts = json.loads(str(arrays.pop("facts")))
                wrong = [name for name, array in arrays.items() if array.ndim != 2 or array.dtype.kind not in "iu"]
                # Not in the key: cells of earlier versions, which do not tell it, stay valid.
                same = facts["key"] == self.key and facts.get("words", self.words) == self.words
                intact = is_intact({**facts, **_hashes(arrays)}, ())  # cells of earlier versions have no hash
                return arrays if same and intact and not wrong else None
        except DataError:
            return None

    def n_rows(self, sets: Sets) -> int:
        """Return the number of rows that `make` processes at most: training and dev sets of all epochs, the tests."""
        epochs, test, dev = self.task.settings.epochs, sets.test.n_rows, sets.dev.n_rows
        mixed = epochs * sets.train.n_rows if self.regime == "cs" else 0
        of_zs = epochs * dev + (test if epochs == 1 else 2 * test) if self.regime == "zs" else 0
        return epochs * (sets.train.n_rows + dev) + test + of_zs + mixed

    def make(self, sets: Sets, device: torch.device) -> None:
        """Fine-tune, and write the file completely or not at all."""
        task = self.task
        language = SOURCE if self.regime == "zs" else DERIVED

        def side(found: Examples, number: int) -> Instances:
            return found.derived if number == DERIVED else found.source

        def counted(model: TaskModel, found: Examples, number: int) -> dict[str, Int64]:
            instances = side(found, number)
            both = instances.gold, predict(model, instances, number)
            return task.score(*(task.labels(instances, values, found.classes) for values in both))

        def make() -> TaskModel:
            return TaskModel.of(task, self.trained.encoder(device), len(sets.train.classes))

        on_dev: list[dict[str, Int64]] = []  # of each epoch, on the derived dev set
        scores: list[float] = []
        best: list[torch.Tensor] = []  # weights of the epoch that the derived dev set chooses

        def dev_score(model: TaskModel) -> float:
            on_dev.append(counted(model, sets.dev, DERIVED))
            scores.append(task.main_metric.value(on_dev[-1][task.headline]))
            if language == DERIVED:
                return scores[-1]
            if task.settings.epochs > 1 and int(np.argmax(scores)) + 1 == len(scores):
                best[:] = model.state()
            return task.main_metric.value(counted(model, sets.dev, SOURCE)[task.headline])

        train, together = side(sets.train, language), 1
        if self.regime == "cs":
            assert sets.mixed is not None
            train, together = sets.mixed, 2
        model, facts = fine_tune(make, train, language, task.settings, self.seed, dev_score, together)
        on_test = counted(model, sets.test, DERIVED)
        found = on_test | {f"dev_{name}": count for name, count in on_dev[facts["epoch"] - 1].items()}
        if self.regime == "zs":
            found |= {f"source_{name}": count for name, count in counted(model, sets.test, SOURCE).items()}
            if best:
                facts["oracle_epoch"] = int(np.argmax(scores)) + 1
                if facts["oracle_epoch"] != facts["epoch"]:
                    model.restore(best)
                    on_test = counted(model, sets.test, DERIVED)
                found |= {f"{ORACLE}{name}": count for name, count in on_test.items()}
        self._write(found, facts)

    def _write(self, counts: dict[str, Int64], facts: dict[str, Any]) -> None:
        told: dict[str, Any] = {"key": self.key, "words": self.words, "derivlang": __version__, "task": self.task.label}
        told |= {"regime": self.regime, "seed": self.seed, "settings": self.task.settings.record(), **facts}
        text = json.dumps({**told, HASH: hash_of({**told, **_hashes(counts)})})
        self.path.parent.mkdir(parents=True, exist_ok=True)
        with writing(self.path) as stream:
            np.savez_compressed(stream, facts=np.array(text), **counts)  # type: ignore[arg-type]


def _hashes(counts: dict[str, Int64]) -> dict[str, str]:
    """Return a hash of each array of counts, by a name that no fact has."""
    return {f"counts of {name}": sha256(repr((array.shape, array.tolist())).encode()).hexdigest()
            for name, array in counts.items()}  # fmt: skip


def forget(trained: PretrainedRun, task: Task, data_key: str, words: str) -> None:
    """Remove the task's cells of other settings, data or weights, so that the files match evaluation.json."""
    for path in trained.cells.glob(f"{task.file_name}.*.*.npz"):
        name, regime, seed = path.name.removesuffix(".npz").rsplit(".", 2)
        # A task `pos-a.b` beside `pos-a` has files such as pos-a.b.sup.1.npz and pos-a.b.documents.npz.
        if name != task.file_name or regime not in REGIMES or not seed.isdecimal():
            continue
        if FinetuneCell(trained, task, regime_of(regime), int(seed), data_key, words).counts() is None:
            path.unlink()
