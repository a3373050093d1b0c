"""Check a table of scores, which may be somebody else's, and fill in the columns that it lacks."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import fields, replace
from typing import Any

import pandas as pd

from derivlang.core.errors import DataError
from derivlang.core.settings import text_of
from derivlang.evaluation.columns import Column
from derivlang.evaluation.formulas import formula_of
from derivlang.evaluation.scores import SCHEMA
from derivlang.evaluation.table import FACTOR, OF_RUN

NEEDED = ("run", "seed", "task", "metric", "value")
# A number of a run is one of these, in a regime; fine-tuning seeds repeat it.
OUTCOME = ("task", "metric", "split", "group", "layer")
SUP, ZS, DELTA, RANGE, CHANCE = "sup", "zs", "delta", "range", "chance"
REGIMES = {SUP: "SUP", ZS: "ZS", "cs": "CS", DELTA: "Δ"}  # of fine-tuned tasks, with their titles
FLOORS = {RANGE: "% of range", CHANCE: "chance"}  # besides, in tables of a task


def checked(scores: pd.DataFrame) -> pd.DataFrame:
    """Return the rows of a table with all columns, and `final`, whether a row is of the last step of its run.

    Raise DataError for a table that lacks a column, or has a row that does not belong in a table of scores.
    """
    if missing := [name for name in NEEDED if name not in scores]:
        raise _bad(f"the table of scores has no column {', '.join(missing)}")
    if scores.empty:
        raise DataError("there are no scores", fix="evaluate the runs: derivlang evaluate RUN", id="scores")
    rows = pd.DataFrame(scores.reset_index(drop=True))
    rows.attrs = {}  # pandas copies them with every part of the table
    for column in (*OF_RUN, *SCHEMA):
        name, kind = column.name, str(column.type)
        if kind == "string":
            rows[name] = rows[name].astype(object).fillna("").astype(str) if name in rows else ""
        elif name != "counts":
            given = rows[name] if name in rows else pd.Series(0 if name == "step" else pd.NA, rows.index, "Int64")
            numbers = pd.to_numeric(given, errors="coerce")
            wrong = numbers.isna() & given.notna() if name != "seed" else numbers.isna()
            if wrong.any():
                raise _bad(f"row {wrong.idxmax() + 1:,} has the {name} {given[wrong.idxmax()]!r}")
            rows[name] = numbers.astype("float64" if kind == "double" else "Int64")
    if "counts" not in rows:
        rows["counts"] = None
    try:
        for formula in filter(None, rows["formula"].unique()):
            formula_of(formula)
    except ValueError as error:
        raise _bad(str(error)) from None
    rows["final"] = rows["step"] == rows.groupby(["study", "run"])["step"].transform("max")
    same = rows.duplicated(["study", "run", *OUTCOME, "regime", "step", "ft_seed"])
    if same.any():
        row = rows.loc[same.idxmax()]
        raise _bad(f"{named(row['study'], row['run'])} has two values of {row['task']} {row['metric']}")
    return rows


def columns_of(rows: pd.DataFrame, declared: Mapping[str, Any]) -> dict[tuple[str, str], Column]:
    """Return the columns of all metrics, in the order of their declaration; fine-tuned tasks first.

    A metric that is not declared has its name. If a task declares no headline, that is its first metric.
    """
    known = {field.name for field in fields(Column)} - {"formula"}  # rows have it
    tuned = set(rows.loc[rows["regime"].isin(list(REGIMES)), "task"])
    by_score: dict[tuple[str, str], Column] = {}
    for task in sorted(rows["task"].unique(), key=lambda task: task not in tuned):
        there = rows.loc[rows["task"] == task, "metric"].unique()
        records = {record["name"]: record for record in declared.get(task) or () if record["name"] in there}
        records |= {name: {"name": name, "unit": "", "better": ""} for name in there if name not in records}
        columns = [Column(**{key: one[key] for key in one if key in known}) for one in records.values()]
        if not any(column.headline for column in columns):
            columns[0] = replace(columns[0], headline=True)
        by_score |= {(task, column.name): column for column in columns}
    return by_score


def with_names(scores: pd.DataFrame) -> pd.DataFrame:
    """Return the table with the names that studies give to levels of their factors, in place of these."""
    frame, studies = scores.copy(), {}
    for study, told in (scores.attrs.get("studies") or {}).items():
        names: Mapping[str, Mapping[str, str]] = told.get("names") or {}

        def renamed(levels: Mapping[str, Any], names: Mapping[str, Mapping[str, str]] = names) -> dict[str, Any]:
            return {factor: names.get(factor, {}).get(text_of(level), level) for factor, level in levels.items()}

        for factor in names:
            column, here = f"{FACTOR}{factor}", frame["study"] == study
            levels = frame[column].astype(object)
            frame[column] = levels.where(~here, levels.map(lambda level, f=factor: renamed({f: level})[f]))
        studies[study] = {
            **told,
            "factors": {f: [renamed({f: one})[f] for one in some] for f, some in (told.get("factors") or {}).items()},
            "baseline": renamed(told.get("baseline") or {}),
            "cells": [{**cell, "factors": renamed(cell["factors"])} for cell in told.get("cells") or ()],
            "published": [renamed(one) for one in told.get("published") or ()],
        }
    frame.attrs = {**scores.attrs, "studies": studies}
    return frame


def named(study: str, run: str) -> str:
    return f"{study}/{run}" if study else run


def _bad(what: str) -> DataError:
    return DataError(what, fix="write it with derivlang.scores or `derivlang report`", id="scores")
