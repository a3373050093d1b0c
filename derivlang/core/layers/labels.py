"""Labels: the columns from which layers are read, and their places in a file for errors."""

from __future__ import annotations

from collections import Counter
from collections.abc import Callable, Mapping
from dataclasses import dataclass, field

import numpy as np
import pyarrow as pa
import pyarrow.compute as pc

from derivlang.core.arrays import lengths_of
from derivlang.core.arrow import to_numpy
from derivlang.core.bare_batch import BareBatch
from derivlang.core.errors import LayerError

Where = Callable[[int, int | None], str]  # (row, word or None) -> "file:line"


@dataclass(frozen=True, slots=True)
class Labels:
    """The label columns of R rows, and the batch of their words.

    columns: Arrow arrays [R], by name. where: returns the place of a row or a word of a labelled table; None for a
    derived set. repair: repair ill-formed tags instead of raising. counts: what is repaired or widened, by reason.
    no_null_strings: no word may have null for a string, since shards cannot hold it.
    """

    columns: Mapping[str, pa.Array]
    batch: BareBatch
    where: Where | None = None
    repair: bool = False
    counts: Counter[str] = field(default_factory=Counter)
    no_null_strings: bool = False

    def __contains__(self, name: str) -> bool:
        return name in self.columns

    def __getitem__(self, name: str) -> pa.Array:
        return self.columns[name]

    def per_word(self, name: str, *, shown: str | None = None, side: int | None = None) -> pa.Array:
        """Return the values of a list column, one for each word: Arrow [N].

        shown: the source's name of the column. side: the side whose words it annotates; None is allowed if there is
        only one. Raise LayerError if a row has more or fewer values than words.
        """
        column, batch = self.columns[name], self.batch
        words = lengths_of(batch.unit_words)[batch.records[:, side or 0]]
        lengths = pc.list_value_length(column)
        values = to_numpy(lengths.fill_null(-1) if lengths.null_count else lengths)  # fill_null may import pandas
        wrong = np.flatnonzero(values != words)
        if wrong.size or (side is None and len(batch.sides) > 1):
            row = int(wrong[0]) if wrong.size else 0
            raise LayerError(
                f"{int(words[row])} words but {max(0, int(values[row]))} values in {shown or name}",
                where=self.row(row),
                fix="every word needs exactly one value",
                id="label-length",
            )
        return column.flatten()

    def row(self, row: int) -> str | None:
        """Return the place of a row, or None if it is not known."""
        return self.where(row, None) if self.where else None

    def word(self, word: int) -> str | None:
        """Return the place of a word of the batch, or None if it is not known."""
        unit = int(np.searchsorted(self.batch.unit_words, word, "right")) - 1
        return self.where(unit, word - int(self.batch.unit_words[unit])) if self.where else None
