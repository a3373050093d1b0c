"""What is scored of the model as it is, without fine-tuning: measures, and tasks of a language model.

Each writes its scores into RUN/evaluation/NAME.parquet, and gives an entry of the record (`results.py`).
"""

from __future__ import annotations

from collections.abc import Callable, Iterable, Iterator, Sequence
from pathlib import Path
from typing import Any

import torch

from derivlang.core.version import __version__
from derivlang.evaluation import results
from derivlang.evaluation.checks import why_not_measured
from derivlang.evaluation.columns import Column
from derivlang.evaluation.encoded import EncodedText
from derivlang.evaluation.measures.registry import label_of, measure_of
from derivlang.evaluation.measures.sets import MeasureSets
from derivlang.evaluation.scores import Score, write_part
from derivlang.evaluation.set_names import file_name_of, short_name
from derivlang.evaluation.settings import EvaluateOptions
from derivlang.evaluation.sources import digest_of
from derivlang.evaluation.tasks.untuned import UntunedTask
from derivlang.evaluation.trained import PretrainedRun
from derivlang.formats.progress import stage


def measured(
    text: EncodedText,
    trained: PretrainedRun,
    options: EvaluateOptions,
    device: torch.device,
    warn: Callable[[str], None],
) -> Iterator[tuple[str, dict[str, Any]]]:
    """Yield the name of each measure with its entry, once its scores are written.

    One that does not suit the model is left out, with a warning. Held-out text is read when a measure first needs it.
    """
    if not options.measures:
        return
    model = trained.language_model(device)
    source = short_name(str(trained.facts["source"]))
    of_text = source, lambda: text.heldout, options.pairs, options.sentences
    sets = MeasureSets(trained.pair_folder, trained.languages, *of_text, trained.cells, lambda: text.training)
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


def untuned(task: UntunedTask, text: EncodedText, trained: PretrainedRun, device: torch.device) -> dict[str, Any]:
    """Return the entry of a task without fine-tuning, once its scores are written. text: with the task's source."""
    (source,) = text.sources_of(task)
    settings, scores = task.score(trained.language_model(device), trained.languages, source, trained.longest)
    path = _written(trained, task.file_name, task.label, task.columns, scores)
    return results.entry_of({"source": short_name(*task.sets), "data": digest_of(source.corpus), **settings}, [path])


def _written(trained: PretrainedRun, name: str, label: str, columns: Sequence[Column], scores: Iterable[Score]) -> Path:
    """Return the file of scores of these weights, once it is written."""
    path = trained.cells / f"{name}.parquet"
    write_part(path, {"derivlang": __version__, "weights": trained.weights}, label, columns, scores)
    return path
