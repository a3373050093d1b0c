"""What to evaluate of a run: settings, and the tasks, regimes and measures that they name.

Help pages import this module, which therefore imports nothing heavy."""

from __future__ import annotations

from collections.abc import Callable, Collection
from dataclasses import dataclass
from pathlib import Path
from typing import Any, ClassVar

from derivlang.core.errors import UsageError
from derivlang.core.settings import Settings, declared, names, setting
from derivlang.core.takes import Listed
from derivlang.engine.options import ParserNames
from derivlang.evaluation.finetune_settings import MAX_LENGTH, USUAL_REGIMES, FinetuneSettings, Regime, regime_of
from derivlang.evaluation.measures.registry import MEASURES, USUAL, file_of, label_of, measure_of
from derivlang.evaluation.set_names import file_name_of
from derivlang.evaluation.tasks.base import NamedTask, PairTask, Task
from derivlang.evaluation.tasks.registry import TASKS, task_of, tuned_tasks
from derivlang.sources.request import DataDir


def tasks_and_measures(text: str) -> tuple[tuple[str, ...], tuple[str, ...]]:
    """Return the names of tasks and the names of measures in a list such as `pos,links`, as `--task` takes them.

    () and () for `none`. Raise UsageError if the list names nothing.
    """
    asked = [name for name in names(text, "--task") if name != "none"]
    measures = tuple(name for name in asked if name.partition(":")[0] in MEASURES)
    return tuple(name for name in asked if name not in measures), measures


@dataclass(frozen=True, kw_only=True)
class EvaluateNames(Settings):
    """What to evaluate as it is typed: names, with commas. every_checkpoint: whether it is asked of each checkpoint."""

    task: Listed = setting(
        "none",
        f"Tasks: any of {', '.join(sorted(TASKS.built_in))}; pos:French-GSD names another set, pos:A+B takes train and "
        "dev from A and test from B, pos:fr=French-GSD tests on a set in a language fr of the run, "
        "blimp:FILE or blimp:demo names minimal pairs. Measures may be named, too.",
        commas=True,
    )
    regime: Listed = setting(
        ",".join(USUAL_REGIMES),
        "Regimes: sup fine-tunes on the derived language, zs on the source, cs on pairs with one side in each (tasks "
        "with pairs: pawsx, qa, xnli).",
        commas=True,
    )
    measure: Listed = setting(
        ",".join(USUAL),
        "Measures, as `derivlang ls` lists them; none to evaluate only tasks. links:en-fr=GOLD, retrieval:en-fr=PAIRS "
        "and translation:en-fr=DICTIONARY measure on a file; of a run whose languages have no names, links:GOLD.",
        commas=True,
    )
    every_checkpoint: bool = setting(False, "Evaluate every checkpoint of RUN, with a line for each.")


@dataclass(frozen=True, kw_only=True)
class MeasureOptions(Settings):
    """How to evaluate. device: as torch names it; None: a GPU where there is one."""

    seeds: int = setting(3, "Number of fine-tunings, with seeds 1, 2, and so on.", minimum=1)
    pairs: int = setting(500, "Number of sentence pairs of contextual, retrieval and links.", minimum=1)
    sentences: int = setting(2000, "Number of sentences of perplexity, ngrams, regions and surprisal.", minimum=1)
    ngram_sentences: int = setting(
        200_000, "Number of sentences of the training text that ngrams reads, from its start.", minimum=1
    )
    heldout_length: int | None = setting(
        None, "Maximum length of held-out sentences, in sub-words with <s> and </s>.", minimum=8,
        unset=f"{MAX_LENGTH}, or the model's"
    )  # fmt: skip
    predictions: bool = setting(
        False, "Write the predictions on the test set, too; fine-tunings that lack them are made again."
    )
    device: str | None = setting(
        None, "Device, as torch names it: cpu, cuda, cuda:1.", unset="a GPU where there is one"
    )
    threads: int | None = setting(
        None, "Number of CPU threads; others give slightly other numbers.", minimum=1, unset="as pretrain"
    )
    force: bool = setting(False, "Repeat finished fine-tunings, and replace results of other weights.")


@dataclass(frozen=True, kw_only=True)
class EvaluateChoice(EvaluateNames, MeasureOptions, FinetuneSettings, ParserNames, DataDir):
    """All that the user asks of an evaluation."""

    per_task: ClassVar[Collection[str]] = tuple(name for name in declared(FinetuneSettings) if name != "freeze")


@dataclass(frozen=True, kw_only=True)
class EvaluateOptions(MeasureOptions):
    """What to evaluate. tasks, regimes, measures: any may be empty. parser, parses: as of `make`, for orders that need
    trees. Raises UsageError, by the option's name."""

    tasks: tuple[NamedTask, ...] = ()
    regimes: tuple[Regime, ...] = USUAL_REGIMES
    measures: tuple[str, ...] = USUAL
    data_dir: Path | None = None
    parser: str | None = None
    parses: Path | None = None

    def __post_init__(self) -> None:
        super().__post_init__()
        if len({task.file_name for task in self.tasks}) < len(self.tasks):
            raise UsageError("a task is named twice", where="--task", id="bad-value")
        for name in self.measures:
            file_of(name)
        if len({file_name_of(label_of(name)) for name in self.measures}) < len(self.measures):
            raise UsageError(
                "two measures have one name of their results",
                where="--measure",
                fix="name each file once, or rename one: a/b and a-b have one name",
                id="bad-value",
            )
        for task in self.tasks if "cs" in self.regimes else ():
            if isinstance(task, Task):
                _check_mixed(task)


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
        also = {name: f"--{name}" for name in ("regime", "seeds", "predictions")}
        for name, flag in {**also, **of_tuning}.items():
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


def _check_mixed(task: Task) -> None:
    """Raise UsageError for the regime cs if a task has no mixed pairs, or if two do not fit into a batch."""
    if not isinstance(task, PairTask):
        names = ", ".join(sorted(name for name, kind in tuned_tasks().items() if issubclass(kind, PairTask)))
        raise UsageError(
            f"cs mixes the two sides of pairs, which {task.kind} does not have",
            where="--regime",
            fix=f"leave out cs, or evaluate apart the tasks that have pairs: {names}",
            id="no-pairs",
        )
    if task.settings.batch_size % 2:
        raise UsageError(
            f"cs puts the two mixed pairs of an example into one batch; got {task.settings.batch_size}",
            where="--batch-size",
            fix="give an even number",
            id="bad-value",
        )
