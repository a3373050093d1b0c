"""Run folders that no model made: counts drawn at stated rates, in the form that `pretrain` and `evaluate` write.

runs(folder)      a grid of them, as in the paper; MLM is poor under trans,inv
"""

from __future__ import annotations

import json
from collections.abc import Mapping
from hashlib import sha256
from pathlib import Path
from typing import Any

import numpy as np

from derivlang.core.seal import sealed
from derivlang.evaluation.metrics import Metric
from derivlang.evaluation.report.published import ALIGNMENT, TABLE_3
from derivlang.evaluation.resample import by_document, difference, summary
from derivlang.evaluation.tasks.registry import task_of
from derivlang.training.run_files import with_hashes

SENTENCES = 150
DOCUMENTS = np.repeat(np.arange(20), np.random.default_rng(0).multinomial(SENTENCES, np.arange(1, 21) / 210))
SEEDS = (1, 2, 3)
SYNTHETIC = "synthetic"


def run(
    folder: Path,
    *,
    objective: str = "mlm",
    spec: str = "trans,inv",
    seed: int = 1,
    steps: int = 1000,
    rates: Mapping[str, tuple[float, float]] | None = None,
    alignment: float | None = 10.0,
    evaluated: bool = True,
    data: str = "feed0123feed0123",
    facts: Mapping[str, Any] | None = None,
    test: int = 100,
) -> Path:
    """A run at `folder`; rates: task -> (SUP, ZS) as shares of right words, entities or pairs."""
    folder.mkdir(parents=True)
    name = objective.partition(":")[0]
    run: dict[str, Any] = {
        "format": 1,
        "derivlang": "0.0.0",
        "status": "done",
        "source": SYNTHETIC,
        "spec": spec,
        "objective": objective,
        "seed": seed,
        "steps": steps,
        "step": steps,
        "tokens": steps * 512,
        "seconds": 1.0,
        "batch_size": 16,
        "seq_len": 32,
        "model": {"name": "toy", "parameters": 1000, "tie": True, "language_ids": name in ("xlm", "dict-mlm")},
        "dictionary": {"coverage": "25", "by": "random", "seed": 1, "pairs": 500, "sha256": "0" * 64},
        "parallel": "25",
        "data": data,
        **(facts or {}),
    }
    run["fingerprint"] = sha256(json.dumps(run, sort_keys=True).encode()).hexdigest()[:16]
    write(folder / "run.json", run)
    if evaluated:
        given = {"pos": (0.9, 0.6)} if rates is None else rates
        write(folder / "evaluation.json", evaluation(folder, run, given, alignment, test))
    return folder


def runs(folder: Path) -> Path:
    """Four objectives, three languages, the published levels and two pre-training seeds of two cells."""
    for number, ((objective, spec), line) in enumerate(TABLE_3.items()):
        for seed in (1, 2) if objective in ("mlm", "align-mlm") and spec != "trans,syn" else (1,):
            shift = 0.01 * (seed - 1)
            rates = {task: (sup / 100, zs / 100 + shift) for task, (sup, zs, _) in line.items() if sup and zs}
            run(folder / f"{number:02}-{seed}", objective=objective, spec=spec, seed=seed, rates=rates,
                alignment=ALIGNMENT[objective, spec])  # fmt: skip
    return folder


def evaluation(
    folder: Path, run: Mapping[str, Any], rates: Mapping[str, tuple[float, float]], alignment: float | None, test: int
) -> dict[str, Any]:
    (folder / "evaluation").mkdir()
    keys = ("derivlang", "spec", "source", "objective", "seed", "data", "fingerprint")
    tasks = {}
    for task, (sup, zs) in rates.items():
        counts: dict[tuple[str, str], list[np.ndarray]] = {}
        metrics = task_of(task).metrics
        documents = DOCUMENTS if task.startswith("pos") else None
        for regime, rate in (("sup", sup), ("zs", zs)):
            for seed in SEEDS:
                tables = {metric.name: drawn(metric, rate, 100 * run["seed"] + seed) for metric in metrics}
                stem = folder / "evaluation" / task_of(task).file_name
                np.savez(f"{stem}.{regime}.{seed}.npz", **tables, **{f"dev_{name}": t for name, t in tables.items()})
                for name, table in tables.items():
                    counts.setdefault((regime, name), []).append(by_document(table, documents))
        settings = {"epochs": 1, "lr": 2e-5, "batch_size": 32, "max_length": 128, "train": 1000,
                    "test": test, "source": SYNTHETIC, "truncated": {"train": 9, "test": 4}, "unscored": 5}  # fmt: skip
        found: dict[str, Any] = {"settings": settings, "sup": {}, "zs": {}, "delta": {}}
        found["test"] = {"unit": "sentence", "units": SENTENCES, "labels": 1000, "in_train": 3, "in_whole_train": 7}
        if documents is not None:
            np.savez(f"{stem}.documents.npz", test=documents, dev=documents)
            found["test"] |= {"unit": "document", "units": int(documents.max()) + 1}
        for metric in metrics:
            for regime in ("sup", "zs"):
                found[regime][metric.name] = summary(counts[regime, metric.name], metric.score, samples=200)
            sides = (counts["sup", metric.name], counts["zs", metric.name])
            found["delta"][metric.name] = difference(*sides, metric.score, samples=200)
        found["dev"] = {regime: found[regime] for regime in ("sup", "zs", "delta")}  # of other sentences in truth
        found["oracle"] = found["zs"]
        tasks[task] = found
    told = None if alignment is None else {"heldout": 0.8 * alignment, "all": alignment, "rows": 2000, "mass": None}
    return {
        "signature": {**{key: run[key] for key in keys}, "model": run["model"], "steps": run["step"]},
        "tasks": tasks,
        "alignment": told,
        "contextual": [{"layer": layer, "words": 10.0 * layer, "sentences": 20.0 * layer} for layer in range(3)],
        "perplexity": {"source": 40.0, "derived": 44.0},
    }


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
    """Write a record with the hashes that the package gives it, so that a changed value is met and not its hash."""
    if path.name == "run.json":
        (path.parent / "model").mkdir(exist_ok=True)
        (path.parent / "model" / "config.json").write_text("{}", "utf-8")
        value = with_hashes(path.parent, value)
    path.write_text(json.dumps(sealed(value)), "utf-8")


def seal(path: Path) -> None:
    """Give a record that was changed by hand its hashes again."""
    write(path, json.loads(path.read_text("utf-8")))
