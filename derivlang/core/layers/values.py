"""Values: one value a record: labels, ids, titles. No order touches them."""

from __future__ import annotations

from dataclasses import dataclass

import pyarrow as pa

from derivlang.core.arrays import Bool
from derivlang.core.batch import Batch, Move, Policies


@dataclass(frozen=True, slots=True, eq=False)
class Values:
    """name: the column. values: Arrow array [R] of any type (int64 codes where it is a class label)."""

    name: str
    values: pa.Array

    def realign(self, move: Move) -> Values:
        return self

    def columns(self, batch: Batch) -> dict[str, pa.Array]:
        return {self.name: self.values}

    def group(self, batch: Batch, policies: Policies, inside: Bool) -> None:
        return None
