"""`derivlang evaluate`: fine-tune and measure a run, and write the results into its folder.

    cell = (task, regime, seed)     RUN/evaluation/TASK.REGIME.SEED.parquet, with TASK.REGIME.SEED.predictions.parquet
    measure, task without fine-tuning, chance of a task         RUN/evaluation/NAME.parquet, TASK.chance.parquet
    RUN/evaluation.json             the record of all finished cells and measures (`results.py`)

For a checkpoint, RUN@STEP, both are elsewhere (`trained.py`). The regimes are described in `finetuned.py`.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import pyarrow as pa

from derivlang.engine.job import Events
from derivlang.evaluation import results
from derivlang.evaluation.checks import check_asked, fitting, with_seen_regimes
from derivlang.evaluation.encoded import EncodedText, OpenedRun
from derivlang.evaluation.finetuned import check_settings, finetuned
from derivlang.evaluation.measures.registry import measure_of
from derivlang.evaluation.settings import EvaluateOptions
from derivlang.evaluation.sources import Sources
from derivlang.evaluation.tasks.base import Task
from derivlang.evaluation.tasks.untuned import UntunedTask
from derivlang.evaluation.trained import PretrainedRun
from derivlang.evaluation.untuned import measured, untuned
from derivlang.store.folders import sweep
from derivlang.training.devices import device_of, use_threads


@dataclass(frozen=True, slots=True, eq=False)
class Evaluated:
    """What was evaluated. record: the content of evaluation.json. scores: the rows of what was asked (`scores.py`).

    columns: records of the columns of each task and measure that was asked for, by its label.
    """

    record: dict[str, Any]
    scores: pa.Table
    columns: dict[str, list[dict[str, Any]]]

    def entry(self, label: str) -> dict[str, Any]:
        """Return what the record has of a task or measure."""
        (entry,) = (self.record[kind][label] for kind in results.KINDS if label in self.record[kind])
        return dict(entry)


def evaluate(
    folder: Path, options: EvaluateOptions, events: Events | None = None, *, step: int | None = None
) -> Evaluated:
    """Evaluate a run, or its checkpoint of a step. Raise DerivlangError as `Evaluation.of`."""
    return Evaluation(folder, options, events).of(step)


class Evaluation:
    """The evaluation of a run, or of its checkpoints, whose text is read and encoded once.

    keep: whether its text is asked for again, by another checkpoint or target. target: as of `PretrainedRun.load`.
    """

    def __init__(
        self, folder: Path, options: EvaluateOptions, events: Events | None = None, *, keep: bool = False,
        target: str = "",
    ):  # fmt: skip
        self._folder, self._options, self._events = folder, options, events or Events()
        self._keep, self._target = keep, target
        self._text: EncodedText | None = None
        self._opened: dict[int | None, OpenedRun] = {}

    def of(self, step: int | None = None, others: Sequence[Evaluation] = ()) -> Evaluated:
        """Evaluate the run, or its checkpoint of a step, and write the files of its results.

        others: of the same run and options, for other targets. A fine-tuning on the source is made for them, too.

        Results of other tasks and measures are kept. Raise StoreError if they are of other weights, unless
        `options.force` replaces them, and DerivlangError if something does not fit; then no model has been trained.
        """
        run = self._open(step)
        trained, options, text = run.trained, run.options, run.text
        beside = [one._open(step) for one in others]
        sweep(trained.folder)
        sweep(trained.cells)
        for one in (run, *beside):
            check_settings(one, results.stored(one.trained, force=options.force))
        before = record = results.stored(trained, force=options.force, drop=True)

        # Measures. Each entry is written at once, so that an interrupted evaluation keeps it.
        labels = [task.label for task in run.tasks]
        for name, entry in measured(text, trained, options, run.device, self._events.warn):
            labels.append(name)
            record = results.add(trained, "measures", name, entry, force=options.force)

        # Tasks: the cells of those with fine-tuning
        for task in run.tasks:
            if isinstance(task, UntunedTask):
                entry = untuned(task, text, trained, run.device)
            else:
                assert isinstance(task, Task)
                entry = finetuned(task, run, beside, before, self._events.warn)
            record = results.add(trained, "tasks", task.label, entry, force=options.force)

        return Evaluated(record, *results.scores_of(trained.cells, record, labels))

    def _open(self, step: int | None) -> OpenedRun:
        """Return what is evaluated. All of it is found and checked before hours of fine-tuning begin."""
        if step in self._opened:
            return self._opened[step]
        options, events = self._options, self._events
        trained = PretrainedRun.load(self._folder, step, self._target)
        check_asked(trained, options)
        options = with_seen_regimes(trained, options, events.warn)
        tasks = fitting(options.tasks, trained)
        for name in options.measures:
            measure_of(name, trained.target_name).check(trained.languages)
        device = device_of(options.device)
        use_threads(options.threads, trained.config.hidden_size)
        self._text = self._text or EncodedText(
            Sources(trained, options, events, trained.languages), tasks, keep=self._keep
        )
        self._opened[step] = OpenedRun(trained, options, tasks, self._text, device)
        return self._opened[step]
