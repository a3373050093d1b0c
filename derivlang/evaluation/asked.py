"""The tasks, regimes and measures of an evaluation, from the options of the command or the arguments of `evaluate`."""

from __future__ import annotations

from collections.abc import Callable, Collection, Mapping
from dataclasses import dataclass, fields
from typing import Any

from derivlang.core.errors import UsageError
from derivlang.core.settings import declared, names
from derivlang.evaluation.finetune_settings import FinetuneSettings, regime_of
from derivlang.evaluation.measures.registry import MEASURES
from derivlang.evaluation.settings import EvaluateOptions, tasks_and_measures
from derivlang.evaluation.tasks.base import Task
from derivlang.evaluation.tasks.named import NamedTask
from derivlang.evaluation.tasks.registry import task_of

_SENTENCES = ("pairs", "sentences", "heldout_length")  # of the text that measures read


@dataclass(frozen=True, slots=True)
class Numbers:
    """The value of an option of fine-tuning: one number for all tasks, or one for each."""

    option: str
    values: tuple[int | float, ...]

    def of(self, task: int, n_tasks: int) -> int | float:
        """Return the number for a task, by its position from 0. Raise UsageError unless there are 1 or n_tasks."""
        if len(self.values) not in (1, n_tasks):
            raise UsageError(
                f"{len(self.values)} numbers for {n_tasks} tasks",
                where=self.option,
                fix="give one number for all tasks, or one for each",
                id="usage",
            )
        return self.values[task % len(self.values)]


def asked_for(
    values: Mapping[str, Any], given: Collection[str], warn: Callable[[str], None] = lambda message: None
) -> EvaluateOptions:
    """Return the options of an evaluation, and warn of those that have no effect.

    values: `tasks`, `regimes` and `measures` as texts with commas, the settings of fine-tuning as Numbers (`frozen` as
    a bool), and the fields of EvaluateOptions, by name. given: the names that the user gave. Raise UsageError for
    invalid values and values that do not fit together.
    """
    (asked, also), measured = tasks_and_measures(values["tasks"]), _listed(values["measures"], "--measure")
    if also:  # --task links,retrieval measures only these
        measured = (*also, *(measured if "measures" in given else ()))
    numbers: dict[str, Numbers] = {
        name: values[name] for name in declared(FinetuneSettings) if name != "frozen" and values[name]
    }
    named = [task_of(name) for name in asked]
    tuned = [task for task in named if isinstance(task, Task)]

    def fitted(task: NamedTask) -> NamedTask:
        if not isinstance(task, Task):
            return task
        changes = {name: number.of(tuned.index(task), len(tuned)) for name, number in numbers.items()}
        return task.with_settings(**changes, frozen=values["frozen"])

    settings = EvaluateOptions(
        tasks=tuple(map(fitted, named)),
        regimes=tuple(dict.fromkeys(regime_of(name) for name in _listed(values["regimes"], "--regime"))),
        measures=tuple(dict.fromkeys(measured)),
        **{field.name: values[field.name] for field in fields(EvaluateOptions) if field.name in values and
           field.name not in ("tasks", "regimes", "measures")},
    )  # fmt: skip
    if not settings.tasks and not settings.measures:
        raise UsageError("there is nothing to evaluate", fix="give --task pos or --measure alignment", id="usage")
    _warn_of_unused(settings, given, warn)
    return settings


def _warn_of_unused(settings: EvaluateOptions, given: Collection[str], warn: Callable[[str], None]) -> None:
    of_tuning = {name: str(one.option) for name, one in declared(FinetuneSettings).items()}
    of_sentences = {name: str(one.option) for name, one in declared(EvaluateOptions).items() if name in _SENTENCES}
    if not any(isinstance(task, Task) for task in settings.tasks):
        for name, flag in {"regimes": "--regime", "seeds": "--seeds", **of_tuning}.items():
            if name in given:
                warn(f"no task is fine-tuned, so {flag} has no effect")
    read = {option for measure in settings.measures for option in MEASURES.find(measure).reads}
    for name, flag in of_sentences.items():
        if name in given and (not read if name == "heldout_length" else name not in read):
            warn(f"no measure of this evaluation reads such sentences, so {flag} has no effect")


def _listed(text: str, option: str) -> tuple[str, ...]:
    """Return the names of a list separated by commas; () for `none`."""
    found = names(text, option)
    return () if found == ("none",) else found
