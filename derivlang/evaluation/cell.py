"""One fine-tuning: of a run, for a task, in a regime, with a seed.

Its scores are in RUN/evaluation/TASK.REGIME.SEED.parquet (`scores.py`): on the derived test set, on the derived dev
set (which published tables use), and for ZS on the source's test set, as the regime `source`. A ZS fine-tuning of
several epochs has the regime `oracle` as well: scores on the derived test set of the epoch that the derived dev set
chooses. The facts of the file say what it was made of. A file of other settings, data or weights, or one that was
changed, is ignored, so an interrupted evaluation resumes with the next cell.

If predictions are asked for, TASK.REGIME.SEED.predictions.parquet has them (`predictions.py`). Its hash is among the
facts, so that other predictions are not taken for those that were scored.
"""

from __future__ import annotations

from dataclasses import dataclass
from pathlib import Path
from typing import Any

import numpy as np
import torch

from derivlang.core.arrays import Int64
from derivlang.core.errors import StoreError
from derivlang.core.version import __version__
from derivlang.evaluation.examples import Examples
from derivlang.evaluation.finetune import TaskModel, fine_tune, predict
from derivlang.evaluation.finetune_settings import REGIMES, RULES, Regime, regime_of
from derivlang.evaluation.predictions import write_predictions
from derivlang.evaluation.scores import read_part, write_part
from derivlang.evaluation.sets import Sets
from derivlang.evaluation.tasks.base import Task
from derivlang.evaluation.trained import PretrainedRun
from derivlang.store.listing import file_hash
from derivlang.store.record import digest
from derivlang.training.languages import DERIVED, SOURCE

Counts = dict[str, Int64]  # of each metric, int64[S, k]


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
        return self.trained.cells / f"{self.task.file_name}.{self.regime}.{self.seed}.parquet"

    @property
    def key(self) -> str:
        """The digest of everything that its scores depend on."""
        return digest(
            {
                "rules": RULES,
                "weights": self.trained.weights,
                "language_ids": self.trained.language_ids,
                "settings": self.task.settings.record(),
                "regime": self.regime,
                "seed": self.seed,
                "data": self.data_key,
                "words": self.words,
            }
        )

    @property
    def predictions(self) -> Path:
        return self.path.with_suffix(".predictions.parquet")

    @property
    def facts(self) -> dict[str, Any]:
        """What its file says of it; {} if the file is missing, damaged or of something else."""
        try:
            facts, _ = read_part(self.path)
        except StoreError:
            return {}
        return facts if facts.get("key") == self.key else {}

    def has_predictions(self) -> bool:
        """Return whether the predictions that were scored are there."""
        told, path = self.facts.get("predictions"), self.predictions
        return told is not None and path.is_file() and told == file_hash(path)

    def n_rows(self, sets: Sets) -> int:
        """Return the number of rows that `make` processes at most: training and dev sets of all epochs, the tests."""
        epochs, test, dev = self.task.settings.epochs, sets.test.n_rows, sets.dev.n_rows
        mixed = epochs * sets.train.n_rows if self.regime == "cs" else 0
        of_zs = epochs * dev + (test if epochs == 1 else 2 * test) if self.regime == "zs" else 0
        return epochs * (sets.train.n_rows + dev) + test + of_zs + mixed

    def make(self, sets: Sets, device: torch.device) -> None:
        """Fine-tune, and write each file completely or not at all."""
        task = self.task
        language = SOURCE if self.regime == "zs" else DERIVED
        headline = task.headline()
        on_test: dict[int, Int64] = {}  # by language; the first predictions, as later ones are the oracle's

        def counted(model: TaskModel, examples: Examples, number: int) -> Counts:
            instances = examples.side(number)
            predicted = predict(model, instances, number)
            if examples is sets.test:
                on_test.setdefault(number, predicted)
            return task.score(*(task.labels(instances, v, examples.classes) for v in (instances.gold, predicted)))

        def make() -> TaskModel:
            return TaskModel.of(task, self.trained.encoder(device), len(sets.train.classes))

        on_dev: list[Counts] = []  # of each epoch, on the derived dev set
        scores: list[float] = []
        best: list[torch.Tensor] = []  # weights of the epoch that the derived dev set chooses

        def dev_score(model: TaskModel) -> float:
            on_dev.append(counted(model, sets.dev, DERIVED))
            scores.append(headline.value(on_dev[-1][headline.name]))
            if language == DERIVED:
                return scores[-1]
            if task.settings.epochs > 1 and int(np.argmax(scores)) + 1 == len(scores):
                best[:] = model.state()
            return headline.value(counted(model, sets.dev, SOURCE)[headline.name])

        train, together = sets.train.side(language), 1
        if self.regime == "cs":
            assert sets.mixed is not None
            train, together = sets.mixed, 2
        model, facts = fine_tune(make, train, language, task.settings, self.seed, dev_score, together)
        of_test = counted(model, sets.test, DERIVED)
        rows = sets.scores("test", of_test, self.regime, self.seed)
        rows += sets.scores("dev", on_dev[facts["epoch"] - 1], self.regime, self.seed)
        if self.regime == "zs":
            rows += sets.scores("test", counted(model, sets.test, SOURCE), "source", self.seed)
            if best:
                facts["oracle_epoch"] = int(np.argmax(scores)) + 1
                if facts["oracle_epoch"] != facts["epoch"]:
                    model.restore(best)
                    of_test = counted(model, sets.test, DERIVED)
                rows += sets.scores("test", of_test, "oracle", self.seed)
        told: dict[str, Any] = {"key": self.key, "words": self.words, "derivlang": __version__}
        told |= {"regime": self.regime, "seed": self.seed, "settings": task.settings.record(), **facts}
        if sets.told is not None:
            told["predictions"] = write_predictions(self.predictions, told, task, sets.test, sets.told, on_test)
        write_part(self.path, told, task.label, task.columns, rows)


def forget(trained: PretrainedRun, task: Task, data_key: str, words: str) -> None:
    """Remove the task's cells of other settings, data or weights, so that the files match evaluation.json."""
    for path in trained.cells.glob(f"{task.file_name}.*.*.parquet"):
        name, regime, seed = path.name.removesuffix(".parquet").rsplit(".", 2)
        # A task `pos-a.b` beside `pos-a` has files such as pos-a.b.sup.1.parquet.
        if name != task.file_name or regime not in REGIMES or not seed.isdecimal():
            continue
        cell = FinetuneCell(trained, task, regime_of(regime), int(seed), data_key, words)
        if not cell.has_predictions():
            cell.predictions.unlink(missing_ok=True)
        if not cell.facts:
            path.unlink()
