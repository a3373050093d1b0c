"""Differences between objectives and MLM under one language, with paired intervals over the same test sentences.

    ZS    score of the objective - score of MLM, both fine-tuned on the source
    Δ     Δ of the objective - Δ of MLM: below zero, the objective transfers better

The interval resamples sentences. The differences by pre-training seed are listed as well, because resampling sentences
does not show the variation of pre-training runs.
"""

from __future__ import annotations

from dataclasses import dataclass
from statistics import mean

import numpy as np

from derivlang.core.arrays import Int64
from derivlang.core.errors import DataError, StoreError
from derivlang.evaluation.metrics import Float64, Metric
from derivlang.evaluation.report.columns import Column
from derivlang.evaluation.report.runs import Run
from derivlang.evaluation.report.settings import Entry, Setting
from derivlang.evaluation.resample import Score, paired

BASE = "mlm"
REGIMES = ("zs", "delta")


@dataclass(frozen=True, slots=True, eq=False)
class Difference:
    """`entry` minus `base` in points. low, high: 95 % interval, None without counts. by_seed: by pre-training seed."""

    entry: Entry
    base: Entry
    column: Column
    regime: str
    value: float
    low: float | None
    high: float | None
    by_seed: dict[int, float]

    @property
    def runs(self) -> tuple[Run, ...]:
        return (*self.entry.runs, *self.base.runs)


def differences_of(setting: Setting) -> list[Difference]:
    """Return each objective minus MLM, for every language, metric and regime that both have."""
    found = []
    for entry in setting.entries:
        for base in setting.find(BASE, entry.language.spec):
            if entry.variant.objective == BASE or base.variant.parameters or base.more:
                continue
            for column in setting.columns:
                found += [d for r in REGIMES if (d := _difference(entry, base, column, r)) is not None]
    return found


def _difference(entry: Entry, base: Entry, column: Column, regime: str) -> Difference | None:
    ours, theirs = ({run.seed: score.mean for run, score in side.scores(column, regime)} for side in (entry, base))
    if not ours or not theirs:
        return None
    counts = [[table for run in side.runs for table in _tables(run, column, regime)] for side in (entry, base)]
    value = mean(ours.values()) - mean(theirs.values())
    low = high = None
    if counts[0] and counts[1]:
        try:
            found = paired(counts[0], counts[1], _score(column.metric, regime))
        except DataError as error:
            raise StoreError(
                f"{column.task} was tested on other sentences: {error.what}",
                where=f"{entry.runs[0].folder}, {base.runs[0].folder}",
                fix="evaluate the runs on the same data, or write separate reports",
                id="other-sentences",
            ) from None
        low, high = found["low"], found["high"]
    seeds = {seed: ours[seed] - theirs[seed] for seed in sorted(ours.keys() & theirs.keys())}
    return Difference(entry, base, column, regime, value, low, high, seeds)


def _tables(run: Run, column: Column, regime: str) -> list[Int64]:
    """Return int64[S, k] of each fine-tuning seed; for Δ [S, 2k], SUP before ZS."""
    pairs = run.counts(column)
    return [np.concatenate(pair, axis=1) if regime == "delta" else pair[1] for pair in pairs]


def _score(metric: Metric, regime: str) -> Score:
    def delta(totals: Int64 | Float64) -> Float64:
        half = totals.shape[-1] // 2
        return np.asarray(metric.score(totals[..., :half]) - metric.score(totals[..., half:]), np.float64)

    return delta if regime == "delta" else metric.score
