"""Run folders that no model made: counts drawn at stated rates, in the form that `pretrain` and `evaluate` write."""

from __future__ import annotations

import json
from collections.abc import Mapping
from hashlib import sha256
from pathlib import Path
from typing import Any

import numpy as np

from derivlang.core.seal import sealed
from derivlang.evaluation import results
from derivlang.evaluation.columns import Column
from derivlang.evaluation.metrics import Metric
from derivlang.evaluation.scores import Score, ScoredSet, set_hash, write_part
from derivlang.evaluation.tasks.registry import task_of
from derivlang.training import run_folder
from derivlang.training.run_folder import with_hashes

SENTENCES = 60
SEEDS = (1, 2, 3)
SYNTHETIC = "synthetic"
SET = ScoredSet(SYNTHETIC, set_hash(np.arange(SENTENCES), np.arange(SENTENCES)), "sentence")
LAYERED = Column("sentences", headline=True, over="layer", chance=True)


def run(
    folder: Path,
    *,
    objective: str = "mlm",
    spec: str = "trans,inv",
    seed: int = 1,
    steps: int = 1000,
    rates: Mapping[str, tuple[float, float]] | None = None,
    evaluated: bool = True,
    facts: Mapping[str, Any] | None = None,
) -> Path:
    """A run at `folder`; rates: task -> (SUP, ZS) as shares of right words, entities or pairs."""
    folder.mkdir(parents=True)
    record: dict[str, Any] = {
        "format": run_folder.FORMAT, "derivlang": "0.0.0", "status": "done", "source": SYNTHETIC, "spec": spec,
        "objective": objective,
        "seed": seed, "steps": steps, "step": steps, "tokens": steps * 512, "seconds": 1.0, "batch_size": 16,
        "seq_len": 32, "model": {"name": "toy", "parameters": 1000, "tie": True, "language_ids": False},
        "settings": {"batch_size": 16, "seq_len": 32}, "data": "feed0123feed0123", "pipeline": "0", **(facts or {}),
    }  # fmt: skip
    record["fingerprint"] = sha256(json.dumps(record, sort_keys=True).encode()).hexdigest()[:16]
    (folder / "model").mkdir(exist_ok=True)
    (folder / "model" / "config.json").write_text("{}", "utf-8")
    write(folder / "run.json", with_hashes(folder, record))
    if evaluated:
        evaluate(folder, record, rates or {"pos": (0.9, 0.6)})
    return folder


def evaluate(folder: Path, record: Mapping[str, Any], rates: Mapping[str, tuple[float, float]]) -> None:
    """Write the scores of tasks at these rates, and of a measure by layer."""
    cells = folder / results.COUNTS
    tasks = {}
    for label, both in rates.items():
        task = task_of(label)
        paths = []
        for regime, rate in zip(("sup", "zs"), both, strict=True):
            for seed in SEEDS:
                told = {"regime": regime, "ft_seed": seed, "set": SET}
                scores = [
                    Score(column.name, drawn(column, rate, 100 * record["seed"] + seed), split=split, **told)
                    for split in ("test", "dev") for column in task.columns if isinstance(column, Metric)
                ]  # fmt: skip
                paths.append(cells / f"{task.file_name}.{regime}.{seed}.parquet")
                write_part(paths[-1], {"key": "k"}, label, task.columns, scores)
        settings = {"source": SYNTHETIC, "epochs": 1, "lr": 2e-5, "train": 1000, "dev": 100, "test": SENTENCES}
        test = {"cut": 4, "labels": 1000, "unscored": 5, "in_train": 3, "in_whole_train": 7}
        tasks[label] = results.entry_of(settings, paths, test=test)
    path = cells / "retrieval.parquet"
    hits = np.stack([np.arange(SENTENCES) % 3, np.full(SENTENCES, 2)], axis=1)
    layers = [
        Score("sentences", np.minimum(hits + np.array([layer, 0]), 2), layer=layer, set=SET) for layer in range(3)
    ]
    write_part(path, {}, "retrieval", [LAYERED], layers)
    signature = {name: record[name] for name in ("derivlang", "spec", "source", "objective", "seed", "data", "steps")}
    signature |= {"fingerprint": record["fingerprint"], "weights": record.get("weights", "")}
    measures = {"retrieval": results.entry_of({"pairs": SENTENCES}, [path])}
    found = {"format": results.FORMAT, "signature": signature, "tasks": tasks, "measures": measures}
    write(folder / results.EVALUATION, sealed(found))


def drawn(metric: Metric, rate: float, seed: int) -> np.ndarray:
    """Counts of sentences of 1 to 20 words; the sizes are the same for every seed."""
    sizes = np.random.default_rng(0).integers(1, 21, SENTENCES)
    right = np.random.default_rng(seed).binomial(sizes, rate)
    width = metric.counts([], []).shape[1]
    if width == 2:
        return np.stack([right, sizes], axis=1)
    if width == 3:
        return np.stack([right, sizes, sizes], axis=1)
    table = np.zeros((SENTENCES, 3, width // 3), np.int64)
    table[:, :, 0] = np.stack([right, sizes, sizes], axis=1)
    return table.reshape(SENTENCES, width)


def write(path: Path, value: Any) -> None:
    path.write_text(json.dumps(value), "utf-8")


def seal(path: Path) -> None:
    """Give a record that was changed by hand its hash again."""
    write(path, sealed(json.loads(path.read_text("utf-8"))))
