"""The tasks: which source, what is labelled, and how they are fine-tuned where nothing else is asked.

    pos     Universal Dependencies (English-EWT), a tag a word          10 epochs
    ner     WikiAnn (en), an IOB2 tag a word                            10 epochs
    xnli    XNLI (en), a label a pair; trained on MultiNLI               5 epochs

`pos:French-GSD` is another set of the same kind. Published settings (ALIGN-MLM, appendix H): lr 2e-5, batch 32, length
128; AdamW without weight decay, linear decay without warm-up, gradients clipped at 1. Models of some hundred thousand
parameters take others.
"""

from __future__ import annotations

from dataclasses import dataclass, fields, replace
from typing import Any, Literal

from derivlang.core.errors import UsageError, unknown

MAX_LENGTH = 128
Regime = Literal["sup", "zs"]
REGIMES: tuple[Regime, ...] = ("sup", "zs")
SPLITS = {"train": "train", "dev": "validation", "test": "test"}


@dataclass(frozen=True, slots=True)
class Settings:
    """epochs: passes over the examples. lr: of the first step. batch_size: sentences or pairs. max_length: sub-words of
    a row, marks included. train_examples, dev_examples: so many of them, by a keyed ranking; None: all.
    """

    epochs: int
    lr: float = 2e-5
    batch_size: int = 32
    max_length: int = MAX_LENGTH
    train_examples: int | None = None
    dev_examples: int | None = None

    def __post_init__(self) -> None:
        least = {"epochs": 1, "batch_size": 1, "max_length": 8, "train_examples": 1, "dev_examples": 1}
        for field in fields(self):
            value = getattr(self, field.name)
            bad = value is not None and (value < least[field.name] if field.name in least else not 0 < value < 10)
            if bad:
                option = f"--{field.name.replace('_', '-')}"
                span = f"at least {least[field.name]}" if field.name in least else "above 0 and below 10"
                raise UsageError(f"{value} is out of range: {span}", where=option, id="bad-value")

    def batches(self, n: int) -> int:
        """Of a fine-tuning on n examples."""
        return self.epochs * -(-n // self.batch_size)


@dataclass(frozen=True, slots=True)
class Task:
    """name: as asked, `pos` or `pos:French-GSD`; kind: `pos`, which metrics and settings it has; default: the set that
    is meant without a colon. layer: what is labelled. pairs: a label a pair, else one a word.
    """

    name: str
    kind: str
    default: str
    layer: str
    pairs: bool
    settings: Settings

    @property
    def source(self) -> str:
        """The name of its source in full."""
        return self.name if ":" in self.name else f"{self.name}:{self.default}"

    @property
    def file_name(self) -> str:
        """The name where a colon or a slash may not stand."""
        return "".join(c if c.isalnum() or c in "-_." else "-" for c in self.name)

    def with_settings(self, **changes: Any) -> Task:
        """With other settings; None leaves one as it is."""
        changed = {name: value for name, value in changes.items() if value is not None}
        return replace(self, settings=replace(self.settings, **changed))


TASKS = {
    "pos": Task("pos", "pos", "English-EWT", "upos", False, Settings(epochs=10)),
    "ner": Task("ner", "ner", "en", "ner_tags", False, Settings(epochs=10)),
    "xnli": Task("xnli", "xnli", "en", "label", True, Settings(epochs=5)),
}


def task_of(name: str) -> Task:
    """`pos`, or `pos:French-GSD`; UsageError with near names where there is no such task."""
    kind, colon, argument = name.partition(":")
    if kind not in TASKS:
        raise unknown("task", kind, TASKS)
    if colon and not argument:
        raise UsageError(
            f"{name!r} names no set after the colon", where="--task", fix="e.g. pos:French-GSD", id="usage"
        )
    return replace(TASKS[kind], name=name)


def regime_of(name: str) -> Regime:
    """sup or zs; UsageError with near names."""
    for regime in REGIMES:
        if name == regime:
            return regime
    raise unknown("regime", name, REGIMES)
