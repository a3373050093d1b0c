"""A stream with rows of only the derived language, and an objective that reads it: masked words of these rows."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any

import numpy as np

from derivlang.training.batch import Step, SubwordRows
from derivlang.training.data import Data
from derivlang.training.languages import DERIVED
from derivlang.training.objectives.base import Loss, Objective, masked_part
from derivlang.training.prepare import Prepared
from derivlang.training.streams.base import RowSource, Stream


@dataclass(frozen=True, kw_only=True)
class Derived(Stream):
    """Packed rows of the derived language."""

    name = "derived"

    def open(self, prepared: Prepared) -> RowSource:
        return DerivedRows(prepared.text(prepared.settings.seq_len, DERIVED))


class DerivedRows(RowSource):
    """The derived language's rows of a corpus, in its order."""

    def __init__(self, data: Data):
        self.data = data
        self.n, self.length = data.n_instances(DERIVED), data.seq_len
        self.mean_subwords = data.filled(DERIVED) / self.n

    def rows(self, numbers: Any, keys: Any) -> SubwordRows:
        return self.data.rows(numbers, np.full(len(numbers), DERIVED))


@dataclass(frozen=True, kw_only=True)
class DerivedMlm(Objective):
    """Masked words of only the derived language."""

    name = "derived-mlm"

    def streams(self) -> tuple[Stream, ...]:
        return (Derived(),)

    def loss(self, model: Any, micro: Step, state: Any) -> Loss:
        return {"mlm": masked_part(model, micro["derived"])}
