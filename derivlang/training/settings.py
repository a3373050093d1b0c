"""What a run is: every number that a model depends on, checked when it is made."""

from __future__ import annotations

import dataclasses
import math
from collections.abc import Mapping
from dataclasses import asdict, dataclass
from fractions import Fraction
from typing import Any, get_args, get_type_hints

from derivlang.core.errors import UsageError, unknown
from derivlang.lexical.percent import percent
from derivlang.training.data import LONGEST


@dataclass(frozen=True, slots=True, kw_only=True)
class Settings:
    """A run's recipe. Raises UsageError, by the option's name, for what cannot be.

    Rates and shares from 0 to 1 unless they say percent; a step is one update of the weights.
    """

    source: str
    spec: str
    objective: str
    model: str
    seed: int = 1
    steps: int = 0  # of the whole run; the schedule depends on it
    batch_size: int = 128  # rows of the two corpora in a step
    seq_len: int = 512  # sub-words in a row
    accumulate: int = 1  # micro-batches in a step, on each process
    learning_rate: float = 1e-4
    warmup: float = 0.02  # share of the steps in which the rate rises; it then falls to 0
    weight_decay: float = 0.0
    beta1: float = 0.9
    beta2: float = 0.999
    epsilon: float = 1e-8
    clip: float = 1.0  # norm of the gradient, at most
    mask: float = 0.15  # share of sub-words that are hidden
    tie: bool = True  # input and output embeddings are one matrix
    language_ids: bool = False
    vocab_size: int = 40_000
    coverage: str = "25"  # percent of the dictionary
    dictionary_by: str = "random"
    dictionary_seed: int = 1
    parallel: str = "25"  # percent of the sentences that are pairs
    packing: str = "sentences"  # whole ones; stream: cut every seq_len places, as the released MLM and ALIGN runs
    limit: int | None = None  # documents of the source
    precision: str = "fp32"

    def __post_init__(self) -> None:
        for name, kind in get_type_hints(type(self)).items():
            kinds = get_args(kind) or ((int, float) if kind is float else (kind,))
            value = getattr(self, name)
            if not isinstance(value, kinds) or (isinstance(value, bool) and kind is not bool):
                raise _wrong(name, repr(value), _KINDS[kinds[0]])
        _at_least(self, 1, "steps", "batch_size", "accumulate", "vocab_size")
        _at_least(self, 0, "weight_decay", "seed")
        for name in ("learning_rate", "epsilon", "clip"):
            if not (getattr(self, name) > 0 and math.isfinite(getattr(self, name))):
                raise _wrong(name, getattr(self, name), "above 0")
        if not 8 <= self.seq_len <= LONGEST:
            raise _wrong("seq_len", self.seq_len, f"from 8 to {LONGEST:,}")
        for name, low, high in (("mask", 0, 1), ("warmup", -1e-9, 1), ("beta1", -1e-9, 1), ("beta2", -1e-9, 1)):
            if not low < getattr(self, name) < high:
                raise _wrong(name, getattr(self, name), "between 0 and 1")
        if self.batch_size % self.accumulate:
            raise UsageError(
                f"{self.batch_size} rows are not {self.accumulate} equal parts", where="--accumulate", id="bad-value"
            )
        if self.packing not in ("sentences", "stream"):
            raise _wrong("packing", self.packing, "sentences or stream")
        for name, choices in _CHOICES.items():
            if getattr(self, name) not in choices:
                raise _wrong(name, repr(getattr(self, name)), " or ".join(choices))
        percent(self.coverage, "--dict-coverage")
        percent(self.parallel, "--parallel")

    @property
    def parallel_rate(self) -> Fraction:
        return percent(self.parallel, "--parallel")

    def rate(self, step: int) -> float:
        """The learning rate of a step, from 0: up linearly over the warm-up, then down to 0 after the last."""
        warm = round(self.warmup * self.steps)
        if step < warm:
            return self.learning_rate * (step + 1) / warm
        return self.learning_rate * (self.steps - step) / max(self.steps - warm, 1)

    def to_json(self) -> dict[str, Any]:
        return asdict(self)

    @classmethod
    def from_json(cls, data: Mapping[str, Any]) -> Settings:
        """Of run.json; names that this version does not know are an error."""
        names = {field.name for field in dataclasses.fields(cls)}
        for name in data:
            if name not in names:
                raise unknown("setting", name, names)
        return cls(**data)


_CHOICES = {
    "precision": ("fp32", "bf16"),
    "packing": ("sentences", "stream"),
    "dictionary_by": ("random", "frequency", "mass"),
}
_KINDS = {int: "a whole number", float: "a number", str: "text", bool: "true or false"}


def _at_least(settings: Settings, low: int, *names: str) -> None:
    for name in names:
        if getattr(settings, name) < low:
            raise _wrong(name, getattr(settings, name), f"at least {low}")


def _wrong(name: str, value: object, what: str) -> UsageError:
    return UsageError(f"{value} must be {what}", where="--" + name.replace("_", "-"), id="bad-value")
