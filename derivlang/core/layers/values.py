"""Values: one value per record (labels, ids, titles). No order touches them."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Self

import numpy as np
import pyarrow as pa

from derivlang.core.arrow import to_arrow
from derivlang.core.bare_batch import BareBatch
from derivlang.core.layers.base import Layer, Realignment
from derivlang.core.layers.labels import Labels, read_classes, stored_classes
from derivlang.core.schema import NO_LABEL, Field


@dataclass(frozen=True, slots=True, eq=False)
class Values(Layer):
    """name: the column. values: Arrow array [R] of any type; int64 codes for a class label."""

    name: str
    values: pa.Array

    @classmethod
    def read(cls, field: Field, labels: Labels) -> Self:
        """Return the values of a column. A missing class label (NO_LABEL) becomes -1."""
        values = labels[field.column]
        if field.classes is not None:
            values = to_arrow(read_classes(field, values, labels.row, missing=NO_LABEL).astype(np.int64))
        return cls(field.column, values)

    @classmethod
    def restore(cls, field: Field, labels: Labels) -> Self:
        """Return the values of a derived set's column. Raises LayerError for a number that is not a class."""
        values = labels[field.column]
        if field.classes is not None:
            stored_classes(field, values, null=-1)
        return cls(field.column, values)

    def realign(self, move: Realignment) -> Values:
        """Return self: an order does not change the values of a record."""
        return self

    def columns(self, batch: BareBatch) -> dict[str, pa.Array]:
        """Return the column."""
        return {self.name: self.values}

    def may_change(self, *, has_order: bool, exact: bool) -> bool:
        """Return False."""
        return False
