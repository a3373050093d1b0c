"""Bootstrap over the documents of a test set, for scores and differences of scores (Efron 1979; Koehn 2004, §4).

A resample draws as many documents as there are, with replacement (`documents.py`; rows where a set has none). All
fine-tuning seeds, all metrics, all runs and both sides of a difference use the same resamples, so differences of
replicates are paired. The replicate of a run is the mean over its fine-tuning seeds.

    replicate b = mean over seeds of score(W[b] @ counts),   W[b, d] = count of document d in resample b

The interval of one run holds the middle 95 % of its replicates. It covers the choice of test documents, but not the
variation of training runs: an interval of an objective is that of `statistics.py`. Draws are keyed by (seed, resample,
position), so replicates depend on nothing else.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from functools import lru_cache
from typing import Any, TypeAlias

import numpy as np
from numpy.typing import NDArray

from derivlang.core.arrays import Int64
from derivlang.core.errors import DataError
from derivlang.core.keys import Draws
from derivlang.core.threads import one_thread
from derivlang.evaluation.metrics import Float64

Score: TypeAlias = Callable[[Int64 | Float64], Float64]

SAMPLES = 1000
_AT_ONCE = 1 << 21  # number of draws at a time


def bootstrap(counts: Sequence[Int64], score: Score, *, samples: int = SAMPLES, seed: int = 1) -> tuple[float, float]:
    """Return (low, high), the 95 % interval of the mean score over seeds. counts: int64[D, k] for each seed."""
    return _interval(replicates(counts, score, samples=samples, seed=seed))


def by_document(counts: Int64, documents: Int64 | None) -> Int64:
    """Return int64[D, k]: the sums of int64[S, k] by document, numbers from 0; unchanged if documents are None.

    Raise DataError if the numbers of rows differ.
    """
    if documents is None:
        return counts
    if len(documents) != len(counts):
        raise DataError(
            f"there are counts of {len(counts):,} rows, but documents of {len(documents):,}",
            fix="evaluate the run again: derivlang evaluate RUN",
            id="sentences",
        )
    out = np.zeros((int(documents.max(initial=-1)) + 1, counts.shape[1]), np.int64)
    np.add.at(out, documents, counts)
    return out


def summary(counts: Sequence[Int64], score: Score, *, samples: int = SAMPLES, seed: int = 1) -> dict[str, Any]:
    """Return a score of `evaluation.json`: mean, sample deviation (None for one seed), low, high, seeds."""
    values = [float(score(one.sum(axis=0))) for one in counts]
    low, high = bootstrap(counts, score, samples=samples, seed=seed)
    return _summary(values, low, high)


def difference(
    counts: Sequence[Int64], others: Sequence[Int64], score: Score, *, samples: int = SAMPLES, seed: int = 1
) -> dict[str, Any]:
    """Return a score of `counts` minus `others` by seed, with a paired interval: Δ = SUP - ZS.

    Raise DataError if the numbers of documents differ.
    """
    values = [
        float(score(a.sum(axis=0)) - score(b.sum(axis=0))) for a, b in zip(counts, others, strict=True)
    ]  # fmt: skip
    _rows([*counts, *others])
    ours, theirs = (replicates(side, score, samples=samples, seed=seed) for side in (counts, others))
    return _summary(values, *_interval(ours - theirs))


def _summary(values: list[float], low: float, high: float) -> dict[str, Any]:
    deviation = float(np.std(values, ddof=1)) if len(values) > 1 else None
    return {"mean": float(np.mean(values)), "deviation": deviation, "low": low, "high": high, "seeds": values}


def replicates(counts: Sequence[Int64], score: Score, *, samples: int = SAMPLES, seed: int = 1) -> Float64:
    """Return float64[samples]: the mean score over fine-tuning seeds in each resample. counts: int64[D, k] of each.

    Raise DataError as `each`.
    """
    found: Float64 = each(counts, score, samples=samples, seed=seed).mean(axis=0)
    return found


@one_thread()
def each(counts: Sequence[Int64], score: Score, *, samples: int = SAMPLES, seed: int = 1) -> Float64:
    """Return float64[n, samples]: the score of each of n counts, int64[D, k], in the same resamples of D documents.

    Raise DataError if there are none, or if the numbers of documents differ.
    """
    rows = _rows(counts)
    table = np.concatenate(counts, axis=1).astype(np.float64)  # exact: below 2^53
    cuts = np.cumsum([one.shape[1] for one in counts])[:-1]
    step = max(1, _AT_ONCE // rows)
    found = []
    for first in range(0, samples, step):
        weights = _weights(rows, first, min(step, samples - first), seed)
        totals = np.split(weights.astype(np.float64) @ table, cuts, axis=1)
        found.append(np.stack([score(total) for total in totals]))
    return np.concatenate(found, axis=1)


@lru_cache(maxsize=16)  # 64 MB: many scores share their resamples, and drawing them is most of the work
def _weights(rows: int, first: int, n: int, seed: int) -> NDArray[np.uint16]:
    """Return uint16[n, rows]: the count of each document in the resamples first … first + n - 1."""
    keys = np.repeat(np.arange(first, first + n, dtype=np.uint64), rows)
    draws = Draws(f"bootstrap:seed={seed}").draw(keys, np.tile(np.arange(rows), n))
    chosen = ((draws >> np.uint64(32)) * np.uint64(rows)) >> np.uint64(32)
    places = chosen.astype(np.int64) + np.repeat(np.arange(n) * rows, rows)
    weights = np.bincount(places, minlength=n * rows).reshape(n, rows).astype(np.uint16)
    weights.flags.writeable = False
    return weights


def _interval(values: Float64) -> tuple[float, float]:
    low, high = np.percentile(values, [2.5, 97.5])
    return float(low), float(high)


def _rows(counts: Sequence[Int64]) -> int:
    sizes = {len(one) for one in counts}
    if len(sizes) != 1 or sizes == {0}:
        told = ", ".join(f"{size:,}" for size in sorted(sizes)) or "no"
        raise DataError(
            f"scores of {told} documents cannot be resampled together",
            fix="compare runs that were evaluated on the same test set",
            id="sentences",
        )
    return sizes.pop()
