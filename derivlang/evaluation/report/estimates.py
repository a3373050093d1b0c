"""Means and differences over pre-training seeds, with the intervals of `evaluation/statistics.py`.

A figure of the report is a sum of terms for each seed: the score of a run (SUP), a difference of its regimes (Δ = SUP -
ZS), a difference of two runs of one seed, or a mean of several runs. Values and replicates are summed alike, so an
interval is that of its own estimate. If the counts of one run are missing there is no interval at all.
"""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from itertools import pairwise
from typing import TypeAlias

import numpy as np

from derivlang.core.arrays import Int64
from derivlang.core.errors import DataError, StoreError
from derivlang.evaluation.metrics import Float64
from derivlang.evaluation.report.columns import DEV, Column
from derivlang.evaluation.report.runs import Run
from derivlang.evaluation.report.settings import Entry
from derivlang.evaluation.resample import by_document, replicates
from derivlang.evaluation.statistics import SEEDS, Estimate, estimate, no_interval, shared_variance

Terms: TypeAlias = Sequence[tuple[float, Run]]  # of one seed: weight, run


def mean_of(entry: Entry, column: Column, regime: str) -> Estimate | None:
    """Return the mean of a score over the pre-training seeds of a row, or None without any."""
    seeds = [[(1, run)] for run, _ in entry.scores(column, regime)]
    return estimate_of(seeds, column, regime) if seeds else None


def difference_of(pairs: Sequence[tuple[Run, Run]], column: Column, regime: str) -> Estimate:
    """Return the mean difference, first minus second, over one pair or more of runs that have the score.

    Raise StoreError if the runs were tested on different numbers of rows.
    """
    _check_rows([run for pair in pairs for run in pair], column, regime)
    return estimate_of([[(1, first), (-1, second)] for first, second in pairs], column, regime)


def documents_of(runs: Sequence[Run], task: str, regime: str) -> Int64 | None:
    """Return int64[S]: the document of each row of counts; None if rows are documents, or if a run knows none.

    Raise StoreError if the runs know different documents.
    """
    known = [(run, run.documents(task, regime)) for run in runs if run.test_set(task)]
    for (first, ours), (other, theirs) in pairwise(known):
        if not np.array_equal([] if ours is None else ours, [] if theirs is None else theirs):
            raise _other_sentences(task, "their documents differ", [first, other])
    return known[0][1] if len(known) == len(runs) else None


def estimate_of(seeds: Sequence[Terms], column: Column, regime: str) -> Estimate:
    """Return the mean over seeds, one or more, of the weighted sum of their runs' scores; all runs have the score.

    Raise StoreError if the runs were tested on other documents.
    """
    values = [sum(weight * _mean(run, column, regime) for weight, run in terms) for terms in seeds]
    runs = _runs(seeds)
    if len(seeds) < SEEDS:
        return estimate(values)
    missing = [run.id for run in runs if _n_rows(run, column, regime) is None]
    if missing:
        return no_interval(values, f"the counts of {', '.join(missing)} are missing")
    _check_rows(runs, column, regime)
    documents = documents_of(runs, column.task, regime)
    drawn = [sum(weight * _replicates(run, column, regime, documents) for weight, run in terms) for terms in seeds]
    return estimate(values, shared_variance(np.stack(drawn)))


def _mean(run: Run, column: Column, regime: str) -> float:
    score = run.score(column, regime)
    assert score is not None  # the caller's runs have it
    return score.mean


def _replicates(run: Run, column: Column, regime: str, documents: Int64 | None) -> Float64:
    """Return float64[B]: the score in each resample of the documents, or of the rows if documents are None."""
    key = column, regime, documents is None
    if key not in run.memo:
        run.memo[key] = sum(sign * _drawn(run, column, part, documents) for sign, part in _parts(regime))
    found: Float64 = run.memo[key]
    return found


def _drawn(run: Run, column: Column, regime: str, documents: Int64 | None) -> Float64:
    try:
        counts = [by_document(one, documents) for one in run.counts(column, regime) or ()]
        return replicates(counts, column.metric.score)
    except DataError as error:
        raise StoreError(error.what, where=str(run.folder), fix=error.fix, id="run") from None


def _n_rows(run: Run, column: Column, regime: str) -> int | None:
    """Return the number of rows of a run's counts, or None if a file is missing."""
    key = column, regime, "rows"
    if key not in run.memo:
        found = [run.counts(column, part) for _, part in _parts(regime)]
        run.memo[key] = None if any(counts is None for counts in found) else len(found[0][0]) if found[0] else None
    n_rows: int | None = run.memo[key]
    return n_rows


def _check_rows(runs: Sequence[Run], column: Column, regime: str) -> None:
    """Raise StoreError if counts have different numbers of rows."""
    sizes = {n: run for run in runs if (n := _n_rows(run, column, regime)) is not None}
    if len(sizes) > 1:
        raise _other_sentences(column.task, ", ".join(f"{n:,}" for n in sorted(sizes)), sizes.values())


def _other_sentences(task: str, how: str, runs: Iterable[Run]) -> StoreError:
    return StoreError(
        f"{task} was tested on other sentences: {how}",
        where=", ".join(str(run.folder) for run in runs),
        fix="evaluate the runs on the same data, or write separate reports",
        id="other-sentences",
    )


def _parts(regime: str) -> list[tuple[int, str]]:
    """Return the regimes that a score is a sum of, with their signs: Δ = SUP - ZS."""
    prefix = DEV if regime.startswith(DEV) else ""
    return [(1, f"{prefix}sup"), (-1, f"{prefix}zs")] if regime == f"{prefix}delta" else [(1, regime)]


def _runs(seeds: Sequence[Terms]) -> list[Run]:
    return list(dict.fromkeys(run for terms in seeds for _, run in terms))
