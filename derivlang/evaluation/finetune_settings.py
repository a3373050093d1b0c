"""Settings of fine-tuning. Help pages import this module, which therefore imports nothing heavy."""

from __future__ import annotations

from dataclasses import asdict, dataclass
from typing import Any, Literal

from derivlang.core.errors import unknown
from derivlang.core.settings import Settings, setting
from derivlang.core.takes import PerTask
from derivlang.training.settings import check_freeze

RULES = 2  # version of the fine-tuning rules; cells of another version are made again
MAX_LENGTH = 128
Regime = Literal["sup", "zs", "cs"]
REGIMES: tuple[Regime, ...] = ("sup", "zs", "cs")
USUAL_REGIMES: tuple[Regime, ...] = ("sup", "zs")
Schedule = Literal["linear", "constant"]
_AS_USUAL = ("warmup", "schedule", "weight_decay", "freeze")  # recorded if they are not the default
SPLITS = {"train": "train", "dev": "validation", "test": "test"}


@dataclass(frozen=True, kw_only=True)
class FinetuneSettings(Settings):
    """How a task is fine-tuned; each task has defaults of its own. Raises UsageError, by the option's name."""

    epochs: PerTask[int] = setting(
        10, "Number of passes over the examples.", minimum=1, unset="10; pawsx and xnli: 5; qa: 3"
    )
    lr: PerTask[float] = setting(
        2e-5, "Peak learning rate.", also="--learning-rate", above=0, below=10, unset="2e-05; dep and qa: 5e-05"
    )
    warmup: PerTask[float] = setting(0.0, "Share of the steps in which the learning rate rises.", minimum=0, below=1)
    schedule: PerTask[Schedule] = setting(
        "linear", "Course of the learning rate after that: linear, to 0, or constant."
    )
    weight_decay: PerTask[float] = setting(0.0, "AdamW weight decay.", minimum=0)
    batch_size: PerTask[int] = setting(32, "Number of sentences or pairs in a batch.", minimum=1)
    max_length: PerTask[int] = setting(
        MAX_LENGTH, "Number of sub-words in a row; longer ones are cut at words.", minimum=8, unset="128; qa: 384"
    )
    train_examples: PerTask[int | None] = setting(
        None, "Number of examples to train on, by a keyed ranking.", minimum=1, unset="all"
    )
    dev_examples: PerTask[int | None] = setting(
        None, "Number of examples of dev, which chooses the epoch.", minimum=1, unset="all"
    )
    freeze: str = setting(
        "",
        "Parts of the encoder that are not trained: embeddings, encoder, layers=0-3, with commas. With embeddings and "
        "encoder, only the head is.",
        check=check_freeze,
        unset="none",
        commas=True,
    )

    def record(self) -> dict[str, Any]:
        """Return the settings by name; of the course of training, only what differs from the usual one."""
        usual = FinetuneSettings()
        return {
            name: value
            for name, value in asdict(self).items()
            if name not in _AS_USUAL or value != getattr(usual, name)
        }

    @property
    def only_head(self) -> bool:
        """Whether the whole encoder keeps its weights."""
        return {"embeddings", "encoder"} <= set(self.freeze.split(","))

    def learning_rate_at(self, step: int, steps: int) -> float:
        """Return the learning rate of a step, from 0, of so many. It rises linearly in the warm-up."""
        warm = round(self.warmup * steps)
        if step < warm:
            return self.lr * (step + 1) / warm
        return self.lr if self.schedule == "constant" else self.lr * (1 - (step - warm) / (steps - warm))


def regime_of(name: str) -> Regime:
    """Return one of REGIMES. Raise UsageError with similar names for anything else."""
    for regime in REGIMES:
        if name == regime:
            return regime
    raise unknown("regime", name, REGIMES)
