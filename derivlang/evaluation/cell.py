"""One fine-tuning of one task and regime, and its file: RUN/evaluation/TASK.REGIME.SEED.npz.

In the file, for each metric by its name, int64[sentences, k] counts on the derived test set; `dev_…` on the derived dev
set, which published tables hold; of ZS also `source_…`, on the source's test set. A file of other settings, data or
weights is as none, so that an interrupted evaluation goes on where it was.
"""

from __future__ import annotations

import json
from collections.abc import Callable
from dataclasses import asdict, dataclass
from io import BytesIO
from pathlib import Path
from typing import TYPE_CHECKING, Any
from zipfile import BadZipFile

import numpy as np

import derivlang
from derivlang.core.arrays import Int64
from derivlang.evaluation.examples import Examples, Instances
from derivlang.evaluation.finetune import Classifier, fine_tune, label_lists, predict
from derivlang.evaluation.metrics import METRICS
from derivlang.evaluation.sets import Sets, digest
from derivlang.evaluation.tasks import Regime, Task, regime_of
from derivlang.evaluation.trained import Trained
from derivlang.store.export import writing
from derivlang.training.languages import DERIVED, SOURCE

if TYPE_CHECKING:
    import torch

CELLS = "evaluation"
_RULES = 1  # of fine-tuning: with others, cells are made again


@dataclass(frozen=True, slots=True, eq=False)
class Cell:
    """data_key: of its examples."""

    trained: Trained
    task: Task
    regime: Regime
    seed: int
    data_key: str

    @property
    def path(self) -> Path:
        return self.trained.folder / CELLS / f"{self.task.file_name}.{self.regime}.{self.seed}.npz"

    @property
    def key(self) -> str:
        """All that its counts depend on."""
        return digest(
            {
                "rules": _RULES,
                "weights": self.trained.weights,
                "language_ids": self.trained.language_ids,
                "settings": asdict(self.task.settings),
                "regime": self.regime,
                "seed": self.seed,
                "data": self.data_key,
            }
        )

    def counts(self) -> dict[str, Int64] | None:
        """Counts by metric, int64[S, k]; None where the file is not there, of something else, or damaged."""
        try:
            with np.load(BytesIO(self.path.read_bytes()), allow_pickle=False) as found:
                arrays = dict(found)
            facts = json.loads(str(arrays.pop("facts")))
            return arrays if facts["key"] == self.key else None
        except (OSError, ValueError, KeyError, EOFError, TypeError, BadZipFile):
            return None

    def make(self, sets: Sets, device: torch.device, step: Callable[[], None]) -> None:
        """Fine-tune and write the file, whole or not at all. step: called after each batch."""
        task, metrics = self.task, METRICS[self.task.kind]
        language = DERIVED if self.regime == "sup" else SOURCE

        def side(found: Examples, number: int) -> Instances:
            return found.derived if number == DERIVED else found.source

        def counted(model: Classifier, found: Examples, number: int) -> dict[str, Int64]:
            instances = side(found, number)
            gold = label_lists(instances.gold, instances, found.classes)
            guessed = label_lists(predict(model, instances, number), instances, found.classes)
            several = {metric.count: metric for metric in metrics}  # which score the same counts
            by_count = {count: metric.counts(gold, guessed) for count, metric in several.items()}
            return {metric.name: by_count[metric.count] for metric in metrics}

        def make() -> Classifier:
            return Classifier.of(self.trained.encoder(device), len(sets.train.classes), pairs=task.pairs)

        on_dev: list[dict[str, Int64]] = []

        def dev_score(model: Classifier) -> float:
            on_dev.append(counted(model, sets.dev, language))
            return metrics[0].value(on_dev[-1][metrics[0].name])

        model, facts = fine_tune(make, side(sets.train, language), language, task.settings, self.seed, dev_score, step)
        found = counted(model, sets.test, DERIVED)
        dev = on_dev[facts["epoch"] - 1] if language == DERIVED else counted(model, sets.dev, DERIVED)
        found |= {f"dev_{name}": count for name, count in dev.items()}
        if self.regime == "zs":
            found |= {f"source_{name}": count for name, count in counted(model, sets.test, SOURCE).items()}
        self._write(found, facts)

    def _write(self, counts: dict[str, Int64], facts: dict[str, Any]) -> None:
        told = {"key": self.key, "derivlang": derivlang.__version__, "task": self.task.name, "regime": self.regime}
        text = json.dumps({**told, "seed": self.seed, "settings": asdict(self.task.settings), **facts})
        self.path.parent.mkdir(exist_ok=True)
        with writing(self.path) as stream:
            np.savez_compressed(stream, facts=np.array(text), **counts)  # type: ignore[arg-type]


def forget(trained: Trained, task: Task, data_key: str) -> None:
    """Take away the task's cells of other settings, data or weights: what is there is what evaluation.json says."""
    for path in (trained.folder / CELLS).glob(f"{task.file_name}.*.npz"):
        _, regime, seed = path.name.removesuffix(".npz").rsplit(".", 2)
        if not seed.isdigit() or Cell(trained, task, regime_of(regime), int(seed), data_key).counts() is None:
            path.unlink()
