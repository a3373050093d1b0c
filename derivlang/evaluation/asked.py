"""What an evaluation is asked for, from the options of the command or the arguments of the Python function."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, fields
from typing import Any

from derivlang.core.errors import UsageError
from derivlang.core.settings import declared, names
from derivlang.evaluation.finetune_settings import FinetuneSettings, regime_of
from derivlang.evaluation.settings import EvaluateOptions, tasks_and_measures
from derivlang.evaluation.tasks.base import Task
from derivlang.evaluation.tasks.named import NamedTask
from derivlang.evaluation.tasks.registry import task_of


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


def asked_for(values: Mapping[str, Any], *, has_measures: bool) -> EvaluateOptions:
    """Return the options of an evaluation.

    values: `tasks`, `regimes` and `measures` as texts with commas, the settings of fine-tuning as Numbers (`frozen` as
    a bool), and those of EvaluateOptions, by name. has_measures: whether the user gave the measures. Raise UsageError
    for values that are none or do not fit.
    """
    (asked, also), measured = tasks_and_measures(values["tasks"]), _listed(values["measures"], "--measure")
    if also:  # --task links,retrieval measures these alone
        measured = (*also, *(measured if has_measures else ()))
    numbers: dict[str, Numbers] = {
        name: given for name in declared(FinetuneSettings) if name != "frozen" and (given := values[name])
    }
    named = [task_of(name) for name in asked]
    tuned = [task for task in named if isinstance(task, Task)]

    def fitted(task: NamedTask) -> NamedTask:
        if not isinstance(task, Task):
            return task
        changes = {name: given.of(tuned.index(task), len(tuned)) for name, given in numbers.items()}
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
    return settings


def _listed(text: str, option: str) -> tuple[str, ...]:
    """Return the names of a list separated by commas; () for `none`."""
    found = names(text, option)
    return () if found == ("none",) else found
