"""The tasks, with their sources, labels and default fine-tuning settings.

    pos     Universal Dependencies (English-EWT), a tag a word          10 epochs
    ner     WikiAnn (en), an IOB2 tag a word                            10 epochs
    xnli    XNLI (en), a label a pair; trained on MultiNLI               5 epochs

`pos:French-GSD` is another set of the same kind. The defaults are the published settings (ALIGN-MLM, appendix H): lr
2e-5, batch 32, length 128; AdamW without weight decay, linear decay without warm-up, gradients clipped at 1. Models of
some hundred thousand parameters need others.
"""

from __future__ import annotations

from dataclasses import dataclass, replace
from typing import Any, Literal

from derivlang.core.errors import UsageError, unknown
from derivlang.core.settings import check_settings, setting

MAX_LENGTH = 128
Regime = Literal["sup", "zs"]
REGIMES: tuple[Regime, ...] = ("sup", "zs")
SPLITS = {"train": "train", "dev": "validation", "test": "test"}


@dataclass(frozen=True, slots=True)
class FinetuneSettings:
    """How a task is fine-tuned; the defaults are the published settings. Raises UsageError, by the option's name."""

    epochs: int = setting(10, "Number of passes over the examples.", minimum=1, unset="10; xnli: 5")
    lr: float = setting(2e-5, "Learning rate of the first step.", above=0, below=10)
    batch_size: int = setting(32, "Number of sentences or pairs in a batch.", minimum=1)
    max_length: int = setting(MAX_LENGTH, "Number of sub-words in a row; longer ones are cut at words.", minimum=8)
    train_examples: int | None = setting(
        None, "Number of examples to train on, by a keyed ranking.", minimum=1, unset="all"
    )
    dev_examples: int | None = setting(
        None, "Number of examples of dev, which chooses the epoch.", minimum=1, unset="all"
    )

    def __post_init__(self) -> None:
        check_settings(self)


@dataclass(frozen=True, slots=True)
class Task:
    """A task.

    name: as given, `pos` or `pos:French-GSD`. kind: `pos`, which determines metrics and settings. default: the set of a
    name without a colon. layer: name of the labels. pairs: one label a pair, else one a word.
    """

    name: str
    kind: str
    default: str
    layer: str
    pairs: bool
    settings: FinetuneSettings

    @property
    def source(self) -> str:
        """The full name of its source."""
        return self.name if ":" in self.name else f"{self.name}:{self.default}"

    @property
    def file_name(self) -> str:
        """The name without colons and slashes, for file names."""
        return "".join(c if c.isalnum() or c in "-_." else "-" for c in self.name)

    def with_settings(self, **changes: Any) -> Task:
        """Return the task with other settings. None leaves a setting unchanged."""
        changed = {name: value for name, value in changes.items() if value is not None}
        return replace(self, settings=replace(self.settings, **changed))


TASKS = {
    "pos": Task("pos", "pos", "English-EWT", "upos", False, FinetuneSettings(epochs=10)),
    "ner": Task("ner", "ner", "en", "ner_tags", False, FinetuneSettings(epochs=10)),
    "xnli": Task("xnli", "xnli", "en", "label", True, FinetuneSettings(epochs=5)),
}


def task_of(name: str) -> Task:
    """Return the task of a name such as `pos` or `pos:French-GSD`. Raise UsageError with similar names otherwise."""
    kind, colon, argument = name.partition(":")
    if kind not in TASKS:
        raise unknown("task", kind, TASKS)
    if colon and not argument:
        raise UsageError(
            f"{name!r} names no set after the colon", where="--task", fix="write e.g. pos:French-GSD", id="usage"
        )
    return replace(TASKS[kind], name=name)


def regime_of(name: str) -> Regime:
    """Return sup or zs. Raise UsageError with similar names for anything else."""
    for regime in REGIMES:
        if name == regime:
            return regime
    raise unknown("regime", name, REGIMES)
