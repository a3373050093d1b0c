"""Tables of scores that no model made, with a known truth: counts of documents at stated rates.

frame(runs, tasks)     a row for each run, task, metric, regime and fine-tuning seed, as `derivlang.scores` gives it
study(…)               of a grid of factors, with the metadata of its study
"""

from __future__ import annotations

from collections.abc import Callable, Iterable, Mapping
from dataclasses import asdict, dataclass
from itertools import product
from typing import Any
from zlib import crc32

import numpy as np
import pandas as pd

from derivlang.evaluation.columns import Column
from derivlang.evaluation.formulas import value_of

DOCUMENTS = 40
SIZES = np.random.default_rng(0).integers(5, 60, DOCUMENTS)  # words of a document, the same for all
Rate = Callable[[Mapping[str, str], str], float]


@dataclass(frozen=True)
class FakeTask:
    """A task or measure. regimes: of its rows. layers: None without. ft_seeds: None without fine-tuning."""

    label: str
    columns: tuple[Column, ...]
    regimes: tuple[str, ...] = ("",)
    layers: tuple[int | None, ...] = (None,)
    ft_seeds: tuple[int | None, ...] = (None,)
    split: str = ""
    settings: Mapping[str, str] | None = None


ACCURACY = Column("accuracy", headline=True, chance=True)
POS = FakeTask(
    "pos",
    (ACCURACY, Column("seqeval_f1", "seqeval F1", formula="f1")),
    ("sup", "zs"),
    ft_seeds=(1, 2),
    split="test",
    settings={"epochs": "1", "lr": "0.002"},
)
NER = FakeTask(
    "ner", (Column("f1", "F1", formula="f1", headline=True),), ("sup", "zs"), ft_seeds=(1,), split="test",
    settings={"epochs": "2", "lr": "0.002"},
)  # fmt: skip
LINKS = FakeTask(
    "links",
    (Column("transport", "AER by transport", better="down", formula="aer", headline=True, over="layer"),),
    layers=(0, 1, 2),
)
ALIGNMENT = FakeTask("alignment", (Column("heldout", "held-out", headline=True), Column("all")))
PERPLEXITY = FakeTask(
    "perplexity", (Column("perplexity", unit="", better="down", formula="exp", headline=True),), ("source", "derived")
)
BITS = FakeTask(
    "perplexity",
    (*PERPLEXITY.columns, Column("bits", "bits a word", unit="", better="down", formula="mean")),
    ("source", "derived"),
)
NGRAMS = FakeTask(
    "ngrams",
    tuple(
        Column(f"bits_{m}", unit="", better="down", formula="mean", headline=m == 5, explains="perplexity.bits")
        for m in (2, 5)
    ),
    ("source", "derived"),
)
PICTURE = FakeTask("projection", (Column("variance", formula="", over="points", headline=True),), ("source", "derived"))


def study(
    factors: Mapping[str, Iterable[Any]],
    tasks: Iterable[FakeTask] = (POS, LINKS),
    seeds: Iterable[int] = (1, 2, 3),
    rate: Rate | None = None,
    name: str = "overlap",
    settings: Mapping[str, str] | None = None,
    **told: Any,
) -> pd.DataFrame:
    """The scores of a study of all combinations. told: what its file says of the report."""
    levels = {factor: [str(level) for level in some] for factor, some in factors.items()}
    cells = [dict(zip(levels, combination, strict=True)) for combination in product(*levels.values())]
    runs = [(cell, seed) for seed in seeds for cell in cells]
    found = frame(
        [{"study": name, "factors": cell, "seed": seed, "settings": settings} for cell, seed in runs], tasks, rate
    )
    planned = [{"run": run_name(cell, seed), "factors": cell} for cell, seed in runs]
    found.attrs["studies"] = {name: {"factors": levels, "cells": planned, **told}}
    for factor, some in levels.items():
        found[f"factor.{factor}"] = pd.Categorical(found[f"factor.{factor}"], some, ordered=True)
    return found


def run_name(levels: Mapping[str, str], seed: int) -> str:
    return ".".join([*levels.values(), str(seed)])


def frame(
    runs: Iterable[Mapping[str, Any]], tasks: Iterable[FakeTask] = (POS,), rate: Rate | None = None
) -> pd.DataFrame:
    """The scores of runs: each {"seed", and any of "study", "factors", "settings", "run", "steps", "tasks"}."""
    rows: list[dict[str, Any]] = []
    several = list(tasks)
    for number, run in enumerate(runs):
        levels, settings = run.get("factors") or {}, run.get("settings") or {}
        name = run.get("run") or (run_name(levels, run["seed"]) if levels else f"run-{number}")
        for step, task in product(run.get("steps", (1000,)), run.get("tasks", several)):
            shared = {
                "study": run.get("study", ""), "run": name, "seed": run["seed"], "step": step,
                "fingerprint": f"{crc32(name.encode()):08x}", "weights": f"{crc32(name.encode()) ^ 1:08x}",
                "version": "0.9.0", "task": task.label, "group": "",
                **{f"factor.{factor}": level for factor, level in levels.items()},
                **{f"set.{key}": value for key, value in (settings | (task.settings or {})).items()},
            }  # fmt: skip
            rows += (shared | one for one in _scores(task, levels | settings, run["seed"], step, rate or _rate))
    found = pd.DataFrame(rows).astype({"layer": "Int64", "ft_seed": "Int64"})
    for column in [name for name in found if name.startswith(("factor.", "set."))]:
        found[column] = found[column].astype("category")
    found.attrs = {"columns": {task.label: [asdict(column) for column in task.columns] for task in several}}
    return found


def _rate(levels: Mapping[str, str], regime: str) -> float:
    """A rate between 0.3 and 0.7 that levels and regime determine."""
    return 0.3 + 0.4 * (crc32(repr((sorted(levels.items()), regime)).encode()) % 100) / 100


def _scores(task: FakeTask, levels: Mapping[str, str], seed: int, step: int, rate: Rate) -> Iterable[dict[str, Any]]:
    for column, regime, layer, ft_seed in product(task.columns, task.regimes, task.layers, task.ft_seeds):
        key = f"{sorted(levels.items())} {column.name} {regime} {layer} {ft_seed} {seed} {step}"
        draws = np.random.default_rng(crc32(key.encode()))
        share = np.clip(rate(levels, regime) + 0.02 * np.random.default_rng(seed).normal(), 0.01, 0.99)
        right = draws.binomial(SIZES, share)
        if column.over == "points":
            counts = draws.integers(-10_000, 10_000, (20, 2))
        elif column.formula == "aer":
            counts = np.stack([right, right, SIZES, SIZES], axis=1)
        elif column.formula in ("f1", "precision", "recall"):
            counts = np.stack([right, SIZES, SIZES], axis=1)
        else:
            counts = np.stack([right, SIZES], axis=1)
        yield {
            "metric": column.name, "regime": regime, "split": task.split, "layer": layer, "ft_seed": ft_seed,
            "set": f"set of {task.label}", "set_hash": f"{crc32(task.label.encode()):016x}", "unit": "document",
            "formula": column.formula, "counts": counts.astype(np.int32).ravel(),
            "value": value_of(column.formula, counts.astype(np.int64)) if column.formula else 43.2,
        }  # fmt: skip
