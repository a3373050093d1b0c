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
from collections.abc import Mapping
from pathlib import Path
from typing import Any

import numpy as np
import pyarrow as pa
import pyarrow.parquet as pq

from derivlang.core.arrays import Int64
from derivlang.core.errors import DataError
from derivlang.evaluation.columns import SIDES
from derivlang.evaluation.scores import FACTS
from derivlang.evaluation.sets import Sets
from derivlang.evaluation.tasks.base import Task
from derivlang.store.files import writing
from derivlang.store.listing import file_hash
from derivlang.training.languages import DERIVED


def write_predictions(
    path: Path, facts: Mapping[str, Any], task: Task, sets: Sets, predicted: Mapping[int, Int64]
) -> str:
    """Write the predictions on a test set, completely or not at all, and return the SHA-256 of the file.

    sets: with the rows of test, for people. predicted: int64[G, k], by the language of the rows.
    Raise DataError if the task's labels have no one Arrow type.
    """
    of = {number: sets.of(number) for number in predicted}
    rows = {number: one.told for number, one in of.items() if one.told is not None}
    sides = [one.test.side(number) for number, one in of.items()]
    words = [one.words[number] for number, one in rows.items()]
    values = [[side.gold for side in sides], predicted.values()]
    told = [
        [label for one in zip(words, sides, some, strict=True) for label in task.told(*one, sets.test.classes)]
        for some in values
    ]
    columns: dict[str, Any] = {
        "on": [SIDES[number] for number, one in rows.items() for _ in one.numbers],
        "row": np.concatenate([one.numbers for one in rows.values()]),
        "id": pa.concat_arrays([one.ids for one in rows.values()]),
    }
    lists = [one.words[number].columns(rows[DERIVED].sides) for number, one in rows.items()]
    columns |= {name: pa.concat_arrays([one[name] for one in lists]) for name in lists[0]}
    try:
        labels = pa.array([*told[0], *told[1]])  # both at once: a list without a label has no type of its own
        table = pa.table(columns | {"gold": labels[: len(told[0])], "predicted": labels[len(told[0]) :]})
    except pa.ArrowException as error:
        raise DataError(
            f"{task.label}: its `told` does not return one value per row, of one type: {error}",
            fix="return lists, structs (as dict) or values that Arrow can hold",
            id="predictions",
        ) from None
    path.parent.mkdir(parents=True, exist_ok=True)
    with writing(path) as stream:
        pq.write_table(table.replace_schema_metadata({FACTS: json.dumps(dict(facts))}), stream, compression="zstd")
    return file_hash(path)
