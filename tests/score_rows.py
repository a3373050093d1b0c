"""What tests ask of the scores of an evaluation."""

from __future__ import annotations

from typing import Any

from derivlang.evaluation.evaluate import Evaluated


def rows(found: Evaluated, task: str, **equal: Any) -> list[dict[str, Any]]:
    """The rows of a task or measure with these values."""
    return [row for row in found.scores.to_pylist() if row["task"] == task and equal.items() <= row.items()]


def values(found: Evaluated, task: str, regime: str, metric: str = "accuracy", split: str = "test") -> list[float]:
    """The value of each fine-tuning, by seed."""
    some = rows(found, task, regime=regime, metric=metric, split=split)
    return [row["value"] for row in sorted(some, key=lambda row: row["ft_seed"] or 0)]


def regimes(found: Evaluated, task: str, split: str = "test") -> set[str]:
    """The regimes that a task has, without that of a guess."""
    return {row["regime"] for row in rows(found, task, split=split)} - {"chance"}


def of_regime(found: Evaluated, task: str, regime: str, split: str = "test") -> list[Any]:
    """The counts of a regime, whatever the regime is called: (metric, seed, set, counts)."""
    some = rows(found, task, regime=regime, split=split)
    return [[row[name] for name in ("metric", "ft_seed", "set_hash", "unit", "counts", "value")] for row in some]
