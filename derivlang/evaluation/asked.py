"""The tasks, regimes and measures of an evaluation, from the options of the command or the arguments of `evaluate`."""

from __future__ import annotations

from collections.abc import Callable, Collection, Mapping
from dataclasses import dataclass
from typing import Any, Self

from derivlang.core.errors import UsageError
from derivlang.core.settings import Declared, declared, given, names
from derivlang.evaluation.finetune_settings import FinetuneSettings, regime_of
from derivlang.evaluation.measures.registry import MEASURES
from derivlang.evaluation.settings import EvaluateNames, EvaluateOptions, tasks_and_measures
from derivlang.evaluation.tasks.base import Task
from derivlang.evaluation.tasks.named import NamedTask
from derivlang.evaluation.tasks.registry import task_of

_SENTENCES = ("pairs", "sentences", "ngram_sentences", "heldout_length")  # of the text that measures read


@dataclass(frozen=True, slots=True)
class Numbers:
    """The value of an option of fine-tuning: one number (or name) for all tasks, or one for each."""

    option: str
    values: tuple[int | float | str, ...]

    @classmethod
    def read(cls, one: Declared, text: str) -> Self:
        """Return the numbers of a text such as `1,2`.

        Raise UsageError for text that is not a list of numbers or is out of bounds.
        """
        try:
            numbers = tuple(map(one.read, text.split(",")))
        except UsageError as error:
            error.fix = "give one number, or one for each task, separated by commas"
            raise
        for number in numbers:
            one.check(number)
        return cls(str(one.option), numbers)

    def of(self, task: int, n_tasks: int) -> int | float | str:
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
    values: Mapping[str, Any], typed: Collection[str], warn: Callable[[str], None] = lambda message: None
) -> EvaluateOptions:
    """Return the options of an evaluation, and warn of those that have no effect.

    values: the fields of EvaluateNames and EvaluateOptions by name, and the settings of fine-tuning as Numbers
    (`freeze` as a text); what is missing or None has its default. typed: the names that the user gave. Raise UsageError
    for invalid values and values that do not fit together.
    """
    listed = EvaluateNames(**given(EvaluateNames, values))
    (asked, also), measured = tasks_and_measures(listed.tasks), _listed(listed.measures, "--measure")
    if also:  # --task links,retrieval measures only these
        measured = (*also, *(measured if "measures" in typed else ()))
    numbers: dict[str, Numbers] = given(FinetuneSettings, values)
    freeze = numbers.pop("freeze", "")
    named = [task_of(name) for name in asked]
    tuned = [task for task in named if isinstance(task, Task)]

    def fitted(task: NamedTask) -> NamedTask:
        if not isinstance(task, Task):
            return task
        changes = {name: number.of(tuned.index(task), len(tuned)) for name, number in numbers.items()}
        return task.with_settings(**changes, freeze=freeze)

    places: dict[str, Any] = {name: values.get(name) for name in ("data_dir", "parser", "parses")}
    settings = EvaluateOptions(
        tasks=tuple(map(fitted, named)),
        regimes=tuple(dict.fromkeys(regime_of(name) for name in _listed(listed.regimes, "--regime"))),
        measures=tuple(dict.fromkeys(measured)),
        **given(EvaluateOptions, values),
        **places,
    )
    if not settings.tasks and not settings.measures:
        raise UsageError("there is nothing to evaluate", fix="give --task pos or --measure alignment", id="usage")
    _warn_of_unused(settings, typed, warn)
    return settings


def _warn_of_unused(settings: EvaluateOptions, typed: Collection[str], warn: Callable[[str], None]) -> None:
    of_tuning = {name: str(one.option) for name, one in declared(FinetuneSettings).items()}
    of_sentences = {name: str(one.option) for name, one in declared(EvaluateOptions).items() if name in _SENTENCES}
    if not any(isinstance(task, Task) for task in settings.tasks):
        for name, flag in {"regimes": "--regime", "seeds": "--seeds", **of_tuning}.items():
            if name in typed:
                warn(f"no task is fine-tuned, so {flag} has no effect")
    read = {option for measure in settings.measures for option in MEASURES.find(measure).reads}
    for name, flag in of_sentences.items():
        if name in typed and (not read if name == "heldout_length" else name not in read):
            warn(f"no measure of this evaluation reads such sentences, so {flag} has no effect")


def _listed(text: str, option: str) -> tuple[str, ...]:
    """Return the names of a list separated by commas; () for `none`."""
    listed = names(text, option)
    return () if listed == ("none",) else listed
