"""The tasks, regimes and measures of an evaluation, from the options of the command or the arguments of `evaluate`."""

from __future__ import annotations

from collections.abc import Callable, Collection
from typing import Any

from derivlang.core.errors import UsageError
from derivlang.core.settings import declared, names
from derivlang.evaluation.finetune_settings import FinetuneSettings, regime_of
from derivlang.evaluation.measures.registry import measure_of
from derivlang.evaluation.settings import EvaluateChoice, EvaluateOptions, MeasureOptions, tasks_and_measures
from derivlang.evaluation.tasks.base import Task
from derivlang.evaluation.tasks.named import NamedTask
from derivlang.evaluation.tasks.registry import task_of

_SENTENCES = ("pairs", "sentences", "ngram_sentences", "heldout_length")  # of the text that measures read


def asked_for(asked: EvaluateChoice, given: Collection[str], warn: Callable[[str], None]) -> EvaluateOptions:
    """Return the options of an evaluation, and warn of what has no effect.

    given: the names that the user gave. Raise UsageError for values that do not fit together.
    """
    (tasks, also), measured = tasks_and_measures(str(asked.task)), _listed(str(asked.measure), "--measure")
    if also:  # --task links,retrieval measures only these
        measured = (*also, *(measured if "measure" in given else ()))
    numbers = {
        name: one for name, one in declared(FinetuneSettings).items() if name in asked.per_task and name in given
    }
    named = [task_of(name) for name in tasks]
    tuned = [task for task in named if isinstance(task, Task)]

    def fitted(task: NamedTask) -> NamedTask:
        if not isinstance(task, Task):
            return task
        at, n = tuned.index(task), len(tuned)
        changes = {name: _number(str(one.option), getattr(asked, name), at, n) for name, one in numbers.items()}
        return task.with_settings(**changes, freeze=asked.freeze)

    common = {name: getattr(asked, name) for name in (*declared(MeasureOptions), "data_dir", "parser", "parses")}
    settings = EvaluateOptions(
        tasks=tuple(map(fitted, named)),
        regimes=tuple(dict.fromkeys(regime_of(name) for name in _listed(str(asked.regime), "--regime"))),
        measures=tuple(dict.fromkeys(measured)),
        **common,
    )
    if not settings.tasks and not settings.measures:
        raise UsageError("there is nothing to evaluate", fix="give --task pos or --measure alignment", id="usage")
    _warn_of_unused(settings, given, warn)
    return settings


def _warn_of_unused(settings: EvaluateOptions, typed: Collection[str], warn: Callable[[str], None]) -> None:
    of_tuning = {name: str(one.option) for name, one in declared(FinetuneSettings).items()}
    of_sentences = {name: str(one.option) for name, one in declared(MeasureOptions).items() if name in _SENTENCES}
    if not any(isinstance(task, Task) for task in settings.tasks):
        for name, flag in {"regime": "--regime", "seeds": "--seeds", **of_tuning}.items():
            if name in typed:
                warn(f"no task is fine-tuned, so {flag} has no effect")
    read = {option for name in settings.measures for option in measure_of(name, "").reads}
    for name, flag in of_sentences.items():
        if name in typed and (not read if name == "heldout_length" else name not in read):
            warn(f"no measure of this evaluation reads such sentences, so {flag} has no effect")


def _number(option: str, values: Any, task: int, n_tasks: int) -> Any:
    """Return the value for a task, by its position from 0. Raise UsageError unless there are 1 or n_tasks."""
    if not isinstance(values, tuple):  # the default
        return values
    if len(values) not in (1, n_tasks):
        raise UsageError(
            f"{len(values)} numbers for {n_tasks} tasks",
            where=option,
            fix="give one number for all tasks, or one for each",
            id="usage",
        )
    return values[task % len(values)]


def _listed(text: str, option: str) -> tuple[str, ...]:
    """Return the names of a list separated by commas; () for `none`."""
    listed = names(text, option)
    return () if listed == ("none",) else listed
