"""What to evaluate of a run. Help pages import this module, which therefore imports nothing heavy."""

from __future__ import annotations

from collections.abc import Collection
from dataclasses import dataclass
from pathlib import Path
from typing import ClassVar

from derivlang.core.errors import UsageError
from derivlang.core.settings import Settings, declared, names, setting
from derivlang.core.takes import Listed
from derivlang.engine.options import ParserNames
from derivlang.evaluation.finetune_settings import MAX_LENGTH, USUAL_REGIMES, FinetuneSettings, Regime
from derivlang.evaluation.measures.registry import MEASURES, USUAL, file_of, kind_of, label_of
from derivlang.evaluation.set_names import file_name_of
from derivlang.evaluation.tasks.named import NamedTask
from derivlang.evaluation.tasks.registry import TASKS
from derivlang.sources.request import DataDir


def tasks_and_measures(text: str) -> tuple[tuple[str, ...], tuple[str, ...]]:
    """Return the names of tasks and the names of measures in a list such as `pos,links`, as `--task` takes them.

    () and () for `none`. Raise UsageError if the list names nothing.
    """
    asked = [name for name in names(text, "--task") if name != "none"]
    measures = tuple(name for name in asked if kind_of(name) in MEASURES)
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
