"""Scores, and the Parquet files of one fine-tuning or one measure: parts of the table of a run.

A row is one number. Its `counts` hold the sums of each unit of the set (a document, a sentence, a pair), and the
column's formula makes `value` of their total (`formulas.py`):

    task  metric    regime  split  group  layer  ft_seed  set       set_hash  unit      formula  counts            value
    pos   accuracy  zs      test                 1        UD EWT    5f0c…     document  percent  [[25, 30], …]      61.2
    links argmax                          0               wikitext  81aa…     sentence  aer      [[3, 3, 9, 8], …]  64.7

    regime      sup, zs, cs; source: ZS on the source's set; oracle: ZS, the epoch chosen on the derived dev set;
                chance: of a guess; source, derived: the language of a score without fine-tuning; "" for none of these
    group       a part of the set, such as a paradigm of minimal pairs, or a direction; "" for all of it
    set_hash    of the rows of the set and of their units: equal for two runs that were tested on the same

A file has the facts of its fine-tuning or measure as metadata, among them a hash of all of it.
"""

from __future__ import annotations

import json
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass
from hashlib import sha256
from pathlib import Path
from typing import Any

import numpy as np
import pyarrow as pa
import pyarrow.parquet as pq

from derivlang.core.arrays import Int64
from derivlang.core.errors import DataError, StoreError, parse_errors
from derivlang.core.seal import HASH, hash_of
from derivlang.evaluation.columns import Column
from derivlang.evaluation.formulas import LARGEST_COUNT, formula_of, value_of
from derivlang.store.files import writing
from derivlang.store.shards import read_parquet

FACTS = b"derivlang"  # the key of the metadata
SCHEMA = pa.schema(
    [(name, pa.string()) for name in ("task", "metric", "regime", "split", "group")]
    + [("layer", pa.int64()), ("ft_seed", pa.int64())]
    + [(name, pa.string()) for name in ("set", "set_hash", "unit", "formula")]
    + [("counts", pa.list_(pa.int32())), ("value", pa.float64())]
)


@dataclass(frozen=True, slots=True, eq=False)
class ScoredSet:
    """A set that scores are of. name: as people call it. hash: of its rows and units (`set_hash`). unit: of a row of
    counts, such as "sentence"."""

    name: str
    hash: str
    unit: str


@dataclass(frozen=True, slots=True, eq=False)
class Score:
    """One number of a task or measure. The module's docstring has the fields.

    counts: int64[U, k], of U units; None if the number has none. value: of a number without counts, or of a picture.
    set: what it was measured on.
    """

    metric: str
    counts: Int64 | None = None
    value: float | None = None
    regime: str = ""
    split: str = ""
    group: str = ""
    layer: int | None = None
    ft_seed: int | None = None
    set: ScoredSet | None = None


def set_hash(keys: Any, units: Any) -> str:
    """Return 16 hex digits of the rows of a set, by their keys uint64[S], and of the unit of each, int64[S]."""
    digest = sha256(np.ascontiguousarray(keys, np.uint64).tobytes())
    digest.update(np.ascontiguousarray(units, np.int64).tobytes())
    return digest.hexdigest()[:16]


def table_of(task: str, columns: Sequence[Column], scores: Iterable[Score]) -> pa.Table:
    """Return scores as a table. task: the label of the task or measure, whose columns these are.

    Raise DataError for a score of no column, and for counts that do not fit its formula.
    """
    known = {column.name: column for column in columns}
    rows: list[dict[str, Any]] = []
    for score in scores:
        _check(task, score, known)
        formula, counts, value = known[score.metric].formula, score.counts, score.value
        of = score.set or ScoredSet("", "", "")
        rows.append(
            {
                **{name: getattr(score, name) for name in ("metric", "regime", "split", "group", "layer", "ft_seed")},
                "task": task,
                "set": of.name,
                "set_hash": of.hash,
                "unit": of.unit,
                "formula": formula,
                "counts": None if counts is None else counts.ravel(),
                "value": value if value is not None or counts is None else value_of(formula, counts),
            }
        )
    return pa.Table.from_pylist(rows, SCHEMA)


def _check(task: str, score: Score, known: Mapping[str, Column]) -> None:
    def wrong(what: str) -> DataError:
        return DataError(f"{task}: {what}", fix="declare it in `columns` of the task or measure", id="score")

    if score.metric not in known:
        raise wrong(f"the score {score.metric!r} is not one of its columns")
    formula = known[score.metric].formula
    if score.counts is None:
        return
    n, width = score.counts.shape
    if not formula and known[score.metric].over != "points":
        raise wrong(f"{score.metric} has counts, but no formula")
    if formula and width != formula_of(formula)[1]:
        raise wrong(f"{score.metric} has {width} counts per unit, which {formula} does not take")
    if n and np.abs(score.counts).max() > LARGEST_COUNT:
        raise wrong(f"a count of {score.metric} is larger than {LARGEST_COUNT:,}")


def counts_of(formula: str, counts: Any) -> Int64:
    """Return int64[U, k] of the list of a row; of a picture, its points int64[U, 2]."""
    return np.asarray(counts, np.int64).reshape(-1, formula_of(formula)[1] if formula else 2)


def write_part(
    path: Path, facts: Mapping[str, Any], task: str, columns: Sequence[Column], scores: Iterable[Score]
) -> None:
    """Write the scores of one fine-tuning or measure with its facts and columns, completely or not at all.

    task, columns: as of `table_of`. The columns are kept so that the scores can be shown without their package.
    """
    table = table_of(task, columns, scores)
    told = {**facts, "task": task, "columns": [column.record() for column in columns]}
    told[HASH] = hash_of({**told, "scores": _digest(table)})
    path.parent.mkdir(parents=True, exist_ok=True)
    with writing(path) as stream:
        pq.write_table(table.replace_schema_metadata({FACTS: json.dumps(told)}), stream, compression="zstd")


def read_part(path: Path) -> tuple[dict[str, Any], pa.Table]:
    """Return (facts, table) of a file that `write_part` wrote. Raise StoreError if it is damaged or was changed."""
    with parse_errors(str(path), "file of scores", error=StoreError, id="scores", fix="evaluate the run again"):
        table = read_parquet(path)
        facts: dict[str, Any] = json.loads((table.schema.metadata or {})[FACTS])
        table = table.replace_schema_metadata(None)
        check_counts(table)
        if not table.schema.equals(SCHEMA):
            raise ValueError("its columns are not the columns of a table of scores")
        if facts.get(HASH) != hash_of({**facts, "scores": _digest(table)}):
            raise ValueError("a value was changed after it was written")
        for formula in set(table["formula"].to_pylist()) - {""}:
            formula_of(formula)
    return facts, table


def check_counts(table: pa.Table) -> None:
    """Raise ValueError for a table that is damaged inside, and for a list of counts that lacks one."""
    table.validate(full=True)
    if table["counts"].combine_chunks().flatten().null_count:
        raise ValueError("a number is missing in the counts")


def _digest(table: pa.Table) -> str:
    """Return a hash of the rows."""
    rows = table.drop_columns(["counts", "value"]).to_pylist()
    counts = table["counts"].combine_chunks()
    digest = sha256(json.dumps(rows).encode())
    for part in (counts.is_valid(), counts.value_lengths().fill_null(0), counts.flatten(), table["value"].fill_null(0)):
        digest.update(np.ascontiguousarray(part.to_numpy(zero_copy_only=False)).tobytes())
    return digest.hexdigest()
