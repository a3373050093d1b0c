"""`derivlang evaluate`: fine-tune and measure a run, and write the results into its folder.

    cell = (task, regime, seed)     RUN/evaluation/TASK.REGIME.SEED.parquet, with TASK.REGIME.SEED.predictions.parquet
    measure, task without fine-tuning, chance of a task         RUN/evaluation/NAME.parquet, TASK.chance.parquet
    RUN/evaluation.json             the record of all finished cells and measures (`results.py`)

For a checkpoint, RUN@STEP, both are elsewhere (`trained.py`). The regimes are described in `cell.py`.

Without fine-tuning, measures and tasks of a language model score the model as it is.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass
from functools import cache
from pathlib import Path
from typing import Any

import pyarrow as pa

from derivlang.core.version import __version__
from derivlang.engine.job import Events
from derivlang.evaluation import results
from derivlang.evaluation.cell import check_settings, finetuned
from derivlang.evaluation.checks import suited, why_not_measured
from derivlang.evaluation.columns import Column
from derivlang.evaluation.encoded import EncodedText, OpenedRun, digest_of
from derivlang.evaluation.measures.registry import label_of, measure_of
from derivlang.evaluation.measures.sets import MeasureSets
from derivlang.evaluation.scores import Score, write_part
from derivlang.evaluation.set_names import file_name_of, short_name
from derivlang.evaluation.settings import EvaluateOptions
from derivlang.evaluation.tasks.base import NamedTask, Task, UntunedTask
from derivlang.evaluation.trained import PretrainedRun
from derivlang.formats.progress import stage
from derivlang.store.folders import sweep
from derivlang.training.data_folder import LANGUAGES
from derivlang.training.devices import device_of, use_threads


@dataclass(frozen=True, slots=True, eq=False)
class Evaluated:
    """What was evaluated. record: the content of evaluation.json. scores: the rows of what was asked (`scores.py`).

    columns: records of the columns of each task and measure that was asked for, by its label.
    """

    record: dict[str, Any]
    scores: pa.Table
    columns: dict[str, list[dict[str, Any]]]


def evaluations(
    folder: Path, targets: Mapping[str, EvaluateOptions], steps: Sequence[int | None], events: Events | None = None
) -> Iterator[tuple[int | None, Evaluated]]:
    """Evaluate a run, or its checkpoints, and write the files of its results. Yield the step of each with its results.

    targets: as of `targets_of`. Text is read and encoded once for all steps. A fine-tuning on the source is made for
    all targets.

    Results of other tasks and measures are kept. Raise StoreError if they are of other weights, unless
    `options.force` replaces them, and DerivlangError if something does not fit; then no model has been trained.
    """
    events = events or Events()
    texts: dict[str, EncodedText] = {}

    @cache
    def opened(target: str, step: int | None) -> OpenedRun:
        """Return what is evaluated. All of it is found and checked before hours of fine-tuning begin."""
        trained = PretrainedRun.load(folder, step, target)
        options = suited(trained, targets[target], events.warn)
        device = device_of(options.device)
        use_threads(options.threads, trained.config.hidden_size)
        if target not in texts:
            texts[target] = EncodedText(trained, options, events, keep=len(steps) * len(targets) > 1)
        return OpenedRun(trained, options, texts[target], device)

    for place in range(len(targets)):
        for step in steps:
            run, *others = (opened(target, step) for target in list(targets)[place:])
            yield step, _evaluated(run, others, events.warn)


def _evaluated(run: OpenedRun, others: Sequence[OpenedRun], warn: Callable[[str], None]) -> Evaluated:
    """Evaluate a run. others: the run on other targets."""
    trained, force = run.trained, run.options.force
    sweep(trained.folder)
    sweep(trained.cells)
    for one in (run, *others):
        check_settings(one, results.stored(one.trained, force=force))
    before = record = results.stored(trained, force=force)

    # Measures. Each entry is written at once, so that an interrupted evaluation keeps it.
    labels = [task.label for task in run.options.tasks]
    for name, entry in measured(run, warn):
        labels.append(name)
        record = results.add(trained, "measures", name, entry, force=force)

    # Tasks: the cells of those with fine-tuning
    for task in run.options.tasks:
        entry = finetuned(task, run, others, before, warn) if isinstance(task, Task) else untuned(task, run)
        record = results.add(trained, "tasks", task.label, entry, force=force)

    return Evaluated(record, *results.scores_of(trained.cells, record, labels))


def measured(run: OpenedRun, warn: Callable[[str], None]) -> Iterator[tuple[str, dict[str, Any]]]:
    """Yield the name of each measure with its entry, once its scores are written.

    One that does not suit the model is left out, with a warning. Held-out text is read when a measure first needs it.
    """
    trained, options, text = run.trained, run.options, run.text
    if not options.measures:
        return
    model = trained.language_model(run.device)
    source = short_name(str(trained.facts["source"]))
    folder = trained.folder / LANGUAGES / trained.target if trained.target else trained.folder
    of_text = source, lambda: text.heldout, options.pairs, options.sentences
    sets = MeasureSets(folder, trained.languages, *of_text, trained.cells, lambda: text.training)
    for name in options.measures:
        measure = measure_of(name, trained.target_name)
        label = label_of(name)
        why = why_not_measured(name, measure, trained)
        if not why and (what := measure.lacks(sets)):
            why = f"{name} needs {what}, but the held-out text of {trained.languages.pipeline} has none"
        if why:
            warn(why)
            continue
        with stage(name, None):
            rows = list(measure.measure(model, sets))
        path = _written(trained, file_name_of(label), label, measure.columns, rows)
        settings: dict[str, Any] = {option: getattr(options, option) for option in measure.reads}
        if settings:
            settings |= {"length": text.heldout_length, "split": sets.text.split}
        yield label, results.entry_of(settings, [path], [trained.cells / file for file in measure.files])


def untuned(task: NamedTask, run: OpenedRun) -> dict[str, Any]:
    """Return the entry of a task without fine-tuning, once its scores are written."""
    assert isinstance(task, UntunedTask)
    trained, (source,) = run.trained, run.text.sources_of(task)
    settings, scores = task.score(trained.language_model(run.device), trained.languages, source, trained.longest)
    path = _written(trained, task.file_name, task.label, task.columns, scores)
    return results.entry_of({"source": short_name(*task.sets), "data": digest_of(source.corpus), **settings}, [path])


def _written(trained: PretrainedRun, name: str, label: str, columns: Sequence[Column], scores: Iterable[Score]) -> Path:
    """Return the file of scores of these weights, once it is written."""
    path = trained.cells / f"{name}.parquet"
    write_part(path, {"derivlang": __version__, "weights": trained.weights}, label, columns, scores)
    return path
