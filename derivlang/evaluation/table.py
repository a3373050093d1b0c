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
from collections.abc import Mapping
from pathlib import Path
from typing import TYPE_CHECKING, Any

import numpy as np
import pyarrow as pa
import pyarrow.parquet as pq

from derivlang.core.errors import StoreError
from derivlang.core.parse_errors import parse_errors
from derivlang.core.version import __version__
from derivlang.evaluation.columns import Column
from derivlang.evaluation.formulas import formula_of
from derivlang.evaluation.plan import check_plan
from derivlang.evaluation.scores import COUNTS, FACTS, SCHEMA, check_counts
from derivlang.store.files import writing
from derivlang.store.record import check_types

if TYPE_CHECKING:
    from pandas import DataFrame

FORMAT = 1
TABLE, TEXT = "scores.parquet", "scores.tsv"
FACTOR, SETTING = "factor.", "set."  # prefixes of columns
ATTRIBUTES = ("columns", "studies", "doses", "states", "tests")
OF_RUN = pa.schema(
    [(name, pa.string()) for name in ("study", "run", "fingerprint", "weights", "version")]
    + [("seed", pa.int64()), ("step", pa.int64())]
)
_LARGEST = 1e15  # of a value


def frame_of(rows: pa.Table, attributes: Mapping[str, Any]) -> DataFrame:
    """Return the table of rows whose columns are those of OF_RUN, of `scores.SCHEMA`, factors and settings."""
    import pandas as pd

    studies: Mapping[str, Any] = attributes.get("studies") or {}
    data: dict[str, Any] = {}
    for name in rows.column_names:
        column = rows[name].combine_chunks()
        if name.startswith((FACTOR, SETTING)):
            found = column.to_pylist()
            used = dict.fromkeys(level for level in found if level is not None)
            if name.startswith(FACTOR):
                told = [one["factors"].get(name.removeprefix(FACTOR)) or () for one in studies.values()]
                used = dict.fromkeys([*(level for levels in told for level in levels if level in used), *used])
            data[name] = pd.Categorical(found, list(used), ordered=name.startswith(FACTOR))
        elif name == "counts":
            flat, ends = column.flatten().to_numpy(), column.offsets.to_numpy()
            data[name] = pd.Series(
                [flat[a - ends[0] : b - ends[0]] if there else None
                 for a, b, there in zip(ends[:-1], ends[1:], column.is_valid().to_pylist(), strict=True)], dtype=object
            )  # fmt: skip
        elif name in ("layer", "ft_seed"):
            data[name] = pd.array(column.to_pylist(), "Int64")
        else:
            data[name] = column.to_pandas()
    frame = pd.DataFrame(data)
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
    columns: dict[str, pa.Array] = {}
    for name in frame.columns:
        if name == "counts":
            columns[name] = pa.array(frame[name].tolist(), COUNTS)
        elif name in OF_RUN.names or name in SCHEMA.names:
            kind = (OF_RUN if name in OF_RUN.names else SCHEMA).field(name).type
            columns[name] = pa.array(frame[name], kind, from_pandas=name in ("layer", "ft_seed"))
        else:
            columns[name] = pa.array(frame[name].astype(object).where(frame[name].notna(), None), pa.string())
    told = {"format": FORMAT, "derivlang": __version__, **{name: frame.attrs.get(name) or {} for name in ATTRIBUTES}}
    table = pa.table(columns).replace_schema_metadata({FACTS: json.dumps(told)})
    with writing(path) as stream:
        pq.write_table(table, stream, compression="zstd")


def read_scores(path: Path) -> DataFrame:
    """Return the table in a Parquet file, which may be somebody else's. Raise StoreError if it is none."""
    fix = "make it again: derivlang report"
    with parse_errors(str(path), "table of scores", error=StoreError, id="scores", fix=fix):
        table = pq.read_table(path)
        told = json.loads((table.schema.metadata or {}).get(FACTS, b"{}"))
        if not isinstance(told, dict) or told.get("format", FORMAT) != FORMAT:
            raise ValueError(f"its format is {told.get('format')!r}, but this version reads {FORMAT}")
        expected = [*OF_RUN, *SCHEMA]
        if missing := [field.name for field in expected if field.name not in table.column_names]:
            raise ValueError(f"it lacks the column {missing[0]}")
        more = [name for name in table.column_names if name.startswith((FACTOR, SETTING))]
        kinds = pa.schema([*expected, *((name, pa.string()) for name in more)])
        table = table.select(kinds.names).replace_schema_metadata(None).cast(kinds)
        check_counts(table)
        _check(table)
        _check_attributes(told)
        return frame_of(table, told)


def _check(table: pa.Table) -> None:
    """Raise ValueError, with its row, for counts that do not give their value, and for a number that is missing."""
    for name in ("run", "seed", "step", "task", "metric", "formula", "value"):
        if table[name].null_count:
            raise ValueError(f"row {table[name].is_null().to_pylist().index(True) + 1} has no {name}")
    rows = zip(*(table[name].to_pylist() for name in ("formula", "value")), table["counts"], strict=True)
    for number, (formula, value, counts) in enumerate(rows, 1):
        if value is not None and np.isfinite(value) and abs(value) > _LARGEST:
            raise ValueError(f"row {number} has the value {value:g}")
        if not formula or not counts.is_valid:
            continue
        function, width = formula_of(formula)
        found = np.asarray(counts.values, np.int64)
        if len(found) % width:
            raise ValueError(f"row {number} has {len(found)} counts, and {formula} takes {width} a unit")
        made = float(function(found.reshape(-1, width).sum(axis=0)))
        if not np.isclose(made, value, rtol=1e-6, atol=1e-6, equal_nan=True):
            raise ValueError(f"row {number} has the value {value:g}, but its counts give {made:g}")


def _check_attributes(told: Mapping[str, Any]) -> None:
    """Raise ValueError for attributes that are not as `frame.attrs` has them."""
    check_types(told, {}, dict.fromkeys(ATTRIBUTES, dict))
    for label, columns in (told.get("columns") or {}).items():
        check_types({label: columns}, {label: list}, where="columns.")
        for column in columns:
            check_types(column, {"name": str}, {"title": str, "unit": str, "over": str}, where=f"columns.{label}.")
            Column(**column)
    for name, study in (told.get("studies") or {}).items():
        check_plan(study, f"studies.{name}.")
    for kind in ("doses", "tests"):
        check_types(told.get(kind) or {}, dict.fromkeys(told.get(kind) or {}, dict), where=f"{kind}.")
    check_types(told.get("states") or {}, dict.fromkeys(told.get("states") or {}, str), where="states.")
