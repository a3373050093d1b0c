"""The rows of a test set, for people who read its predictions (`predictions.py`)."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass

import numpy as np
import pyarrow as pa
import pyarrow.compute as pc

from derivlang.core.arrays import Int64
from derivlang.core.arrow import to_arrow
from derivlang.core.errors import DataError
from derivlang.core.layers.values import Values
from derivlang.evaluation.examples import Examples
from derivlang.evaluation.rows import RowWords
from derivlang.training.languages import DERIVED, SOURCE, Languages

_IDS = ("id", "idx", "pairID")  # columns that name a row


@dataclass(frozen=True, slots=True, eq=False)
class ToldRows:
    """R rows of a test set, for people. numbers: int64[R], in the split; ids: Arrow strings [R]; words: by language."""

    numbers: Int64
    ids: pa.Array
    sides: tuple[str, ...]
    words: Mapping[int, RowWords]

    @classmethod
    def of(cls, examples: Examples, languages: Languages, begun: int) -> ToldRows:
        """Return the rows of the examples of a batch. begun: number of rows in the batches before.

        Raise DataError for examples of another package that `ParallelRows.examples` did not make.
        """
        if examples.origin is None:
            raise DataError(
                "the words of the task's examples are not known",
                where="--predictions",
                fix="leave it out; a task makes its examples by ParallelRows.examples",
                id="predictions",
            )
        rows, some = examples.origin
        batch = rows.batch
        source, derived = batch.strings(), languages.readers[DERIVED].words(batch)
        layers = [layer for name in _IDS if isinstance(layer := batch.layers.get(name), Values)]
        named = [layer.values for layer in layers if not pa.types.is_nested(layer.values.type)]
        ids = named[0].cast(pa.string()) if named else pa.nulls(batch.n_records, pa.string())
        words = {
            SOURCE: RowWords.of(rows.source, some, source, source),
            DERIVED: RowWords.of(rows.derived, some, derived, source),
        }
        ids = pc.if_else(pc.equal(ids, ""), None, ids).take(to_arrow(some))
        return cls(begun + some, ids, batch.sides, words)

    @classmethod
    def joined(cls, parts: Sequence[ToldRows]) -> ToldRows:
        return cls(
            np.concatenate([part.numbers for part in parts]),
            pa.concat_arrays([part.ids for part in parts]),
            parts[0].sides,
            {n: RowWords.joined([part.words[n] for part in parts]) for n in (SOURCE, DERIVED)},
        )
