"""The table of scores: every number of some runs, as a pandas DataFrame, scores.parquet and scores.tsv.

    study run fingerprint weights version    str        `run` names a run within its study, which is "" without one
    seed                                     int64      of pre-training
    factor.NAME                              category   levels of a study, in the order of its file
    set.NAME                                 category   settings of the run, and of the task's fine-tuning (ft_epochs …)
    step                                     int64      of the weights
    task … value                             as in `scores.py`

One row is one number of one fine-tuning or one measure. `counts` has the sums of each unit of the set, from which
`formula` makes `value`: so a table is read, and every interval computed, without the package that made a score. Means
and differences are not rows. `frame.attrs` says what rows cannot:

    columns    task or measure -> its columns (`columns.py`)
    studies    study -> its plan (`plan.py`)
    doses      "STUDY/RUN" -> what the run was trained on
    states     "STUDY/RUN" -> done, or what is missing
    tests      "STUDY/RUN" -> task -> numbers of the test set: cut rows, labels, unscored ones, rows that are in train
"""

from __future__ import annotations

import json
from collections.abc import Iterable, Mapping, Sequence
from pathlib import Path
from typing import TYPE_CHECKING, Any

import numpy as np
import pyarrow as pa
import pyarrow.parquet as pq

from derivlang.core.errors import StoreError, parse_errors
from derivlang.core.version import __version__
from derivlang.evaluation.columns import Column
from derivlang.evaluation.formulas import formula_of
from derivlang.evaluation.plan import PLAN
from derivlang.evaluation.scores import FACTS, SCHEMA, check_counts
from derivlang.store.files import writing
from derivlang.store.record import check_record
from derivlang.store.shards import for_arrow

if TYPE_CHECKING:
    from pandas import DataFrame

FORMAT = 1
TABLE, TEXT = "scores.parquet", "scores.tsv"
FACTOR, SETTING = "factor.", "set."  # prefixes of columns
TARGET = "target"  # the factor of runs of several languages
ATTRIBUTES = ("columns", "studies", "doses", "states", "tests")
OF_RUN = pa.schema(
    [(name, pa.string()) for name in ("study", "run", "fingerprint", "weights", "version")]
    + [("seed", pa.int64()), ("step", pa.int64())]
)
ROWS = 1000  # at a time, of counts that may be long
_LARGEST = 1e15  # of a value
_ATTRIBUTES = {
    "columns?": {"*": [{"name": str, "title?": str, "unit?": str, "over?": str}]},
    "studies?": {"*": PLAN},
    "doses?": {"*": dict},
    "tests?": {"*": dict},
    "states?": {"*": str},
}


def frame_of(parts: Sequence[DataFrame], attributes: Mapping[str, Any]) -> DataFrame:
    """Return the table of parts with the columns of OF_RUN, of `scores.SCHEMA`, of factors and of settings."""
    import pandas as pd

    frame = pd.concat(parts, ignore_index=True).astype({"layer": "Int64", "ft_seed": "Int64"})
    plans = (attributes.get("studies") or {}).values()
    for name in _levels_in(frame.columns):
        used = dict.fromkeys(frame[name].dropna())
        told = [level for plan in plans for level in plan["factors"].get(name.removeprefix(FACTOR)) or ()]
        levels = dict.fromkeys([*(level for level in told if level in used), *used])
        frame[name] = pd.Categorical(frame[name], list(levels), ordered=name.startswith(FACTOR))
    frame.attrs = {name: attributes.get(name) or {} for name in ATTRIBUTES}
    return frame


def write_scores(frame: DataFrame, path: Path) -> None:
    """Write a table as Parquet, with its attributes as metadata; to a path .tsv as text without counts, for people.

    In text, a missing value is an empty cell.
    """
    if path.suffix == ".tsv":
        with writing(path) as stream:
            stream.write(frame.drop(columns="counts").to_csv(sep="\t", index=False, lineterminator="\n").encode())
        return
    told = {"format": FORMAT, "derivlang": __version__, **{name: frame.attrs.get(name) or {} for name in ATTRIBUTES}}
    texts = frame.astype(dict.fromkeys(_levels_in(frame.columns), object))
    schema = _schema(frame.columns)
    told_schema = schema.with_metadata({FACTS: json.dumps(told)})
    with writing(path) as stream, pq.ParquetWriter(stream, told_schema, compression="zstd") as writer:
        for first in range(0, max(1, len(texts)), ROWS):
            table = pa.Table.from_pandas(texts[first : first + ROWS], schema, preserve_index=False)
            writer.write_table(table.replace_schema_metadata(told_schema.metadata))


def read_scores(path: Path) -> DataFrame:
    """Return the table in a Parquet file, which may be somebody else's. Raise StoreError if it is not such a table."""
    fix = "make it again: derivlang report"
    with parse_errors(str(path), "table of scores", error=StoreError, id="scores", fix=fix):
        with for_arrow(path) as source, pq.ParquetFile(source) as file:
            told = json.loads((file.schema_arrow.metadata or {}).get(FACTS, b"{}"))
            if not isinstance(told, dict) or told.get("format", FORMAT) != FORMAT:
                raise ValueError(f"its format is {told.get('format')!r}, but this version reads {FORMAT}")
            expected, names = [*OF_RUN, *SCHEMA], file.schema_arrow.names
            if missing := [field.name for field in expected if field.name not in names]:
                raise ValueError(f"it lacks the column {missing[0]}")
            kinds = _schema([*(field.name for field in expected), *_levels_in(names)])
            check_record(told, _ATTRIBUTES)
            for columns in (told.get("columns") or {}).values():
                [Column(**column) for column in columns]
            parts = [kinds.empty_table().to_pandas()] if not file.metadata.num_rows else []
            for batch in file.iter_batches(ROWS, columns=kinds.names):
                rows = pa.Table.from_batches([batch]).select(kinds.names).replace_schema_metadata(None).cast(kinds)
                check_counts(rows)
                _check(rows, sum(map(len, parts)))
                parts.append(rows.to_pandas())
        return frame_of(parts, told)


def _levels_in(names: Iterable[str]) -> list[str]:
    """Return the names of the columns of factors and settings."""
    return [name for name in names if name.startswith((FACTOR, SETTING))]


def _schema(names: Iterable[str]) -> pa.Schema:
    """Return the Arrow types of columns; levels are text."""
    known = {field.name: field for field in (*OF_RUN, *SCHEMA)}
    return pa.schema([known.get(name, pa.field(name, pa.string())) for name in names])


def _check(table: pa.Table, first: int) -> None:
    """Raise ValueError, with its row, for counts that do not give their value, and for a number that is missing.

    first: number of rows before these.
    """
    for name in ("run", "seed", "step", "task", "metric", "formula", "value"):
        if table[name].null_count:
            raise ValueError(f"row {first + table[name].is_null().to_pylist().index(True) + 1} has no {name}")
    rows = zip(*(table[name].to_pylist() for name in ("formula", "value")), table["counts"], strict=True)
    for number, (formula, value, counts) in enumerate(rows, first + 1):
        if value is not None and np.isfinite(value) and abs(value) > _LARGEST:
            raise ValueError(f"row {number} has the value {value:g}")
        if not formula or not counts.is_valid:
            continue
        function, width = formula_of(formula)
        numbers = np.asarray(counts.values, np.int64)
        if len(numbers) % width:
            raise ValueError(f"row {number} has {len(numbers)} counts, and {formula} takes {width} per unit")
        made = float(function(numbers.reshape(-1, width).sum(axis=0)))
        if not np.isclose(made, value, rtol=1e-6, atol=1e-6, equal_nan=True):
            raise ValueError(f"row {number} has the value {value:g}, but its counts give {made:g}")
