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

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, replace
from pathlib import Path
from typing import Any, Literal

import numpy as np
import torch

from derivlang.core.arrays import Int64
from derivlang.core.errors import StoreError
from derivlang.core.version import __version__
from derivlang.evaluation.finetune import TaskModel, fine_tune, predict
from derivlang.evaluation.finetune_settings import REGIMES, RULES, Regime, regime_of
from derivlang.evaluation.predictions import write_predictions
from derivlang.evaluation.scores import Score, read_part, write_part
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

    def n_rows(self, sets: Sets, others: Sequence[tuple[FinetuneCell, Sets]]) -> int:
        """Return the number of rows that `make` processes at most: training and dev sets of all epochs, the tests."""
        epochs, tested = self.task.settings.epochs, [sets, *(own for _, own in others)]
        dev, test = sum(one.dev.n_rows for one in tested), sum(one.test.n_rows for one in tested)
        if self.regime == "zs":
            ours = sets.of(SOURCE)
            learnt = epochs * (ours.train.n_rows + ours.dev.n_rows)
            return learnt + epochs * dev + min(epochs, 2) * test + sum(one.of(SOURCE).test.n_rows for one in tested)
        return epochs * (sets.train.n_rows * (2 if self.regime == "cs" else 1) + dev) + test

    def make(self, sets: Sets, device: torch.device, others: Sequence[tuple[FinetuneCell, Sets]]) -> None:
        """Fine-tune, and write each file completely or not at all.

        others: cells of other targets and their sets, which this fine-tuning serves, too: it sees the same.
        """
        task, language = self.task, SOURCE if self.regime == "zs" else DERIVED
        tested = [_Tested(cell, own) for cell, own in ((self, sets), *others)]
        kept: dict[int, list[torch.Tensor]] = {}  # weights of the epochs that derived dev sets choose

        def make() -> TaskModel:
            return TaskModel.of(task, self.trained.encoder(device), len(sets.test.classes))

        def dev_score(model: TaskModel) -> float:
            for one in tested:
                one.add_epoch(model)
            if language == DERIVED:
                return tested[0].dev_scores[-1]
            if task.settings.epochs > 1:
                known = dict(kept)
                kept.clear()
                for epoch in {one.best_epoch for one in tested if one.dev_scores}:
                    kept[epoch] = known.get(epoch) or model.state()
            return task.headline().value(tested[0].counted(model, "dev", SOURCE)[task.headline().name])

        train, together = sets.of(language).train.side(language), 1
        if self.regime == "cs":
            assert sets.mixed is not None
            train, together = sets.mixed, 2
        model, facts = fine_tune(make, train, language, task.settings, self.seed, dev_score, together)
        for one in tested:
            one.test(model, facts["epoch"])
        for one in tested:
            told = dict(facts)
            if kept and one.dev_scores:
                told["oracle_epoch"] = one.best_epoch
                if one.best_epoch != facts["epoch"]:
                    model.restore(kept[one.best_epoch])
                one.test_oracle(model, again=one.best_epoch != facts["epoch"])
            one.write(told)


class _Tested:
    """The scores of a cell while its model is fine-tuned. dev_scores: of each epoch, on the derived dev set."""

    def __init__(self, cell: FinetuneCell, sets: Sets):
        self._cell, self._sets = cell, sets
        self._on_dev: list[Counts] = []  # of each epoch, on the derived dev set
        self._of_test: Counts = {}  # on the derived test set
        self._on_test: dict[int, Int64] = {}  # by language; the first predictions, as later ones are the oracle's
        self._rows: list[Score] = []
        self.dev_scores: list[float] = []

    @property
    def best_epoch(self) -> int:
        """The number, from 1, of the epoch with the highest score on the derived dev set."""
        return int(np.argmax(self.dev_scores)) + 1

    def counted(self, model: TaskModel, split: Literal["dev", "test"], number: int) -> Counts:
        """Return the counts of the task on a split in a language. model: of any target."""
        task, examples = self._cell.task, getattr(self._sets.of(number), split)
        instances = examples.side(number)
        own = replace(model, encoder=self._cell.trained.reader(model.encoder))
        predicted = predict(own, instances, number)
        if split == "test":
            self._on_test.setdefault(number, predicted)
        return task.score(*(task.labels(instances, v, examples.classes) for v in (instances.gold, predicted)))

    def add_epoch(self, model: TaskModel) -> None:
        """Score the derived dev set after an epoch; a target's own set may have none."""
        if not self._sets.dev.n_rows:
            return
        headline = self._cell.task.headline()
        self._on_dev.append(self.counted(model, "dev", DERIVED))
        self.dev_scores.append(headline.value(self._on_dev[-1][headline.name]))

    def test(self, model: TaskModel, epoch: int) -> None:
        """Score the test sets by the model of the chosen epoch."""
        self._of_test = self.counted(model, "test", DERIVED)
        self._add("test", self._of_test, self._cell.regime)
        if self._on_dev:
            self._add("dev", self._on_dev[epoch - 1], self._cell.regime)
        if self._cell.regime == "zs":
            self._add("test", self.counted(model, "test", SOURCE), "source", SOURCE)

    def test_oracle(self, model: TaskModel, *, again: bool) -> None:
        """Score the derived test set by the model of the best epoch. again: whether it is another model."""
        self._add("test", self.counted(model, "test", DERIVED) if again else self._of_test, "oracle")

    def _add(self, split: str, counts: Counts, regime: str, language: int = DERIVED) -> None:
        self._rows += self._sets.of(language).scores(split, counts, regime, self._cell.seed)

    def write(self, facts: Mapping[str, Any]) -> None:
        """Write the files of the cell. facts: of the fine-tuning."""
        cell, sets = self._cell, self._sets
        told: dict[str, Any] = {"key": cell.key, "words": cell.words, "derivlang": __version__}
        told |= {"regime": cell.regime, "seed": cell.seed, "settings": cell.task.settings.record(), **facts}
        if sets.told is not None:
            told["predictions"] = write_predictions(cell.predictions, told, cell.task, sets, self._on_test)
        write_part(cell.path, told, cell.task.label, cell.task.columns, self._rows)


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
