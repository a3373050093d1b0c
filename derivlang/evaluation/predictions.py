"""Predictions on a test set as a table: RUN/evaluation/TASK.REGIME.SEED.predictions.parquet.

    on       row  id   words           source_words    gold                       predicted
    derived  0    s1   [it' low' we']  [it lower we]   [PRON, VERB, PRON]         [PRON, NOUN, PRON]
    derived  0    q1   context, question, source_…     [{text, source, …}, …]     [{text, source, …}]

    on             the language of the words: derived, or, for ZS, also source
    row            number in the test split, from 0; pairs without a label, which are not scored, are left out
    id             as in the set (the columns `id`, `idx` or `pairID`); null if it has none
    words          of the row, in the order of the language; for pairs a column for each side, named as in the set
    source_words   the source's word of each, so that derived words can be read; likewise of each side
    gold, predicted    as the task writes labels (`Task.told`)

Scores are computed only from labels, so they can be computed again from this file by other programs.
"""

from __future__ import annotations

import json
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from itertools import pairwise
from pathlib import Path
from typing import Any, TypeAlias

import numpy as np
import pyarrow as pa
import pyarrow.compute as pc
import pyarrow.parquet as pq

from derivlang.core.arrays import Int64, lengths_of, offsets_of, owners, take_rows
from derivlang.core.arrow import list_array, to_arrow
from derivlang.core.errors import DataError
from derivlang.core.layers.words import Values
from derivlang.evaluation.columns import SIDES
from derivlang.evaluation.examples import Examples, Instances
from derivlang.evaluation.rows import LanguageRows
from derivlang.evaluation.scores import FACTS
from derivlang.store.files import writing
from derivlang.store.record import file_hash
from derivlang.training.languages import DERIVED, SOURCE, Languages

_IDS = ("id", "idx", "pairID")  # columns that name a row


@dataclass(frozen=True, slots=True, eq=False)
class RowWords:
    """The W words that begin in R rows of one language, in its order.

    forms: Arrow strings [W]; source: the source's word of each. at: int64[W], the position of each in its row. offsets:
    int64[R * n_sides + 1], the words of each side of each row.
    """

    forms: pa.Array
    source: pa.Array
    at: Int64
    offsets: Int64
    n_sides: int

    @classmethod
    def of(cls, text: LanguageRows, rows: Int64, forms: pa.Array, source: pa.Array) -> RowWords:
        """Return the words of some rows int64[R]. forms, source: of all words of the batch, in the source's order."""
        counts = np.bincount(text.segments, minlength=len(text.segment_offsets) - 1)
        segments = (rows[:, None] * text.n_sides + np.arange(text.n_sides)).ravel()
        some, offsets = take_rows(offsets_of(counts), segments)
        words = to_arrow(text.words[some])
        return cls(forms.take(words), source.take(words), text.at[some], offsets, text.n_sides)

    @classmethod
    def joined(cls, parts: Sequence[RowWords]) -> RowWords:
        return cls(
            pa.concat_arrays([part.forms for part in parts]),
            pa.concat_arrays([part.source for part in parts]),
            np.concatenate([part.at for part in parts]),
            offsets_of(np.concatenate([lengths_of(part.offsets) for part in parts])),
            parts[0].n_sides,
        )

    def find(self, instances: Instances, at: Int64) -> Int64:
        """Return int64[G]: which of the W words begins at a position of each label's row, int64[G]."""
        rows = owners(self.offsets).astype(np.int64) // self.n_sides
        keys = instances.offsets[rows] + self.at  # ascending
        return np.searchsorted(keys, instances.offsets[owners(instances.label_offsets)] + at)

    def numbers(self, instances: Instances, at: Int64) -> Int64:
        """Return int64[G]: the number of these words in their side of the row, from 0."""
        index = self.find(instances, at)
        return np.asarray(index - self.offsets[owners(self.offsets)[index]], np.int64)

    def labelled(self, instances: Instances, labels: Sequence[Any]) -> list[list[Any]]:
        """Return one list per row: the label of each of its words, None for a word without one. labels: [G]."""
        out: list[Any] = [None] * len(self.at)
        for word, label in zip(self.find(instances, instances.at).tolist(), labels, strict=True):
            out[word] = label
        return [out[a:b] for a, b in pairwise(self.offsets[:: self.n_sides].tolist())]

    def columns(self, sides: Sequence[str]) -> dict[str, pa.Array]:
        """Return the columns of words, list<string>[R] each."""
        out = {}
        for prefix, forms in (("", self.forms), ("source_", self.source)):
            lists = list_array(self.offsets, forms)
            for k, side in enumerate(sides):
                out[f"{prefix}{side or 'words'}"] = lists[k :: self.n_sides]
        return out


# The rows of a test set in a language, for people: their words, and the columns before the labels.
ToldRows: TypeAlias = tuple[RowWords, pa.Table]


def told_rows(parts: Sequence[Examples], languages: Languages) -> dict[int, ToldRows]:
    """Return the rows of the examples of each batch of a split, by language.

    Raise DataError for examples of another package that `ParallelRows.examples` did not make.
    """
    if any(part.origin is None for part in parts):
        raise DataError(
            "the words of the task's examples are not known",
            where="--predictions",
            fix="leave it out; a task makes its examples by ParallelRows.examples",
            id="predictions",
        )
    numbers, ids, begun = [], [], 0
    sides: tuple[str, ...] = ()
    words: dict[int, list[RowWords]] = {SOURCE: [], DERIVED: []}
    for rows, some in (part.origin for part in parts if part.origin):
        batch, sides = rows.batch, rows.batch.sides
        source, derived = batch.strings(), languages.readers[DERIVED].words(batch)
        words[SOURCE].append(RowWords.of(rows.source, some, source, source))
        words[DERIVED].append(RowWords.of(rows.derived, some, derived, source))
        layers = [layer for name in _IDS if isinstance(layer := batch.layers.get(name), Values)]
        named = [layer.values for layer in layers if not pa.types.is_nested(layer.values.type)]
        every = named[0].cast(pa.string()) if named else pa.nulls(batch.n_records, pa.string())
        ids.append(pc.if_else(pc.equal(every, ""), None, every).take(to_arrow(some)))
        numbers.append(begun + some)
        begun += batch.n_records
    columns = {"row": np.concatenate(numbers), "id": pa.concat_arrays(ids)}
    by_language = {number: RowWords.joined(some) for number, some in words.items()}
    return {number: (one, pa.table(columns | one.columns(sides))) for number, one in by_language.items()}


def write_predictions(
    path: Path, facts: Mapping[str, Any], rows: Mapping[int, ToldRows], gold: Sequence[Any], predicted: Sequence[Any]
) -> str:
    """Write the predictions on a test set, completely or not at all, and return the SHA-256 of the file.

    facts: of the fine-tuning. rows: of test, by their language. gold, predicted: the labels of each of these rows,
    as of `Task.told`.
    Raise DataError if the labels have no one Arrow type.
    """
    names = rows[DERIVED][1].column_names  # sets of two languages may name their sides differently
    table = pa.concat_tables([one.rename_columns(names) for _, one in rows.values()]).combine_chunks()
    on = [SIDES[number] for number, (_, one) in rows.items() for _ in range(one.num_rows)]
    try:
        labels = pa.array([*gold, *predicted])  # both at once: a list without a label has no type of its own
        table = table.add_column(0, "on", pa.array(on, pa.string())).append_column("gold", labels[: len(gold)])
        table = table.append_column("predicted", labels[len(gold) :])
    except pa.ArrowException as error:
        raise DataError(
            f"`told` of the task does not return one value per row, of one type: {error}",
            where=path.name,
            fix="return lists, structs (as dict) or values that Arrow can hold",
            id="predictions",
        ) from None
    path.parent.mkdir(parents=True, exist_ok=True)
    with writing(path) as stream:
        pq.write_table(table.replace_schema_metadata({FACTS: json.dumps(dict(facts))}), stream, compression="zstd")
    return file_hash(path)
