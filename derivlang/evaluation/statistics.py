"""Intervals and tests of a mean over pre-training seeds. Arrays in, numbers out: no files, no tables.

A figure of a study is a mean over n pre-training seeds, each of which was tested on the same documents. It has two
sources of error, and the interval adds their variances:

    half-width = sqrt((t · s / √n)² + (z · d)²)

    s   deviation of the seeds' values, n - 1 degrees of freedom; t: the 97.5 % point of Student's t
    d²  variance that the choice of test documents gives to the mean; z: that of the normal distribution, 1.96

Let seed i have the value Y_i = μ + S_i + D + I_i, where S_i is the seed's, D what the drawn documents do to every seed,
and I_i what they do to this seed alone. The mean of n seeds has the variance var(S)/n + var(D) + var(I)/n. The seeds'
values differ by S_i and I_i, so s²/n already estimates var(S)/n + var(I)/n, and only var(D) is missing: the covariance
of two seeds. A bootstrap over documents gives values Y_i^b, and var(D) is estimated by the mean over all pairs i ≠ j of
cov_b(Y_i^b, Y_j^b). This equals the bootstrap variance of the mean over seeds, less the interaction, which is 1/n of
the variance between seeds of Y_i^b - Y_i. A negative estimate counts as 0.

A difference of two objectives is a mean, too: that of the differences of runs with the same seed on the same documents.
"""

from __future__ import annotations

import math
from collections.abc import Sequence
from dataclasses import dataclass, replace
from statistics import NormalDist
from typing import Any

import numpy as np

from derivlang.core.errors import UsageError
from derivlang.core.threads import one_thread
from derivlang.evaluation.metrics import Float64

LEVEL = 0.95
SEEDS = 3  # the smallest number of seeds with an interval: two give a t of 12.7
_SMALLEST = 1e-300  # of p


@dataclass(frozen=True, slots=True)
class Estimate:
    """A mean over n pre-training seeds.

    deviation: s, of the seeds' values; None for one seed. documents: d, the deviation that test documents give to the
    mean; None if not known. low, high: the interval. p: two-sided, of a mean of 0. why: the reason if there is no
    interval and no p. values: of the seeds.
    """

    n: int
    mean: float
    deviation: float | None
    documents: float | None = None
    low: float | None = None
    high: float | None = None
    p: float | None = None
    why: str = ""
    values: tuple[float, ...] = ()


def estimate(values: Sequence[float], documents: float = 0.0, *, level: float = LEVEL) -> Estimate:
    """Return the mean of the seeds' values with its interval. documents: d², the variance of the mean by documents.

    With fewer than three seeds there is no interval.
    """
    found = no_interval(values, f"an interval needs {SEEDS} pre-training seeds")
    if found.deviation is None or found.n < SEEDS:
        return found
    half = _half_width(found.n, found.deviation, documents, 1 - level)
    p = _p_value(found.mean, found.n, found.deviation, documents)
    low, high = found.mean - half, found.mean + half
    return replace(found, documents=math.sqrt(documents), low=low, high=high, p=p, why="")


def no_interval(values: Sequence[float], why: str) -> Estimate:
    """Return the mean of one seed's value or more, without an interval for the reason `why`."""
    n = len(values)
    deviation = float(np.std(values, ddof=1)) if n > 1 else None
    return Estimate(n, float(np.mean(values)), deviation, why=why, values=tuple(map(float, values)))


@one_thread()
def shared_variance(replicates: Float64) -> float:
    """Return d²: the variance of the mean over seeds that is due to the choice of documents, without interaction.

    replicates: float64[n, B], the value of each of n ≥ 2 seeds in B resamples of the documents, the same for all seeds.
    """
    n = len(replicates)
    covariances = np.cov(replicates)
    return max(0.0, float((covariances.sum() - np.trace(covariances)) / (n * (n - 1))))


def holm(values: Sequence[float]) -> list[float]:
    """Return the p-values of m tests, corrected for their number (Holm 1979).

    0.01 0.04 0.03   ->   0.03 0.06 0.06: the smallest times 3, the next (0.03) times 2, the largest at least as that
    """
    order = np.argsort(values, kind="stable")
    factors = len(values) - np.arange(len(values))
    corrected = np.minimum(1.0, np.maximum.accumulate(np.asarray(values, float)[order] * factors))
    out = np.empty(len(values))
    out[order] = corrected
    return [float(value) for value in out]


def wilson(hits: float, n: int) -> tuple[float, float]:
    """Return the interval of a share of independent cases (Wilson 1927), in percent. n: at least 1.

    It is right for small counts as well: 0 of 20 gives 0.0 to 16.1.
    """
    z = NormalDist().inv_cdf((1 + LEVEL) / 2)
    share, square = hits / n, z * z / n
    middle = (share + square / 2) / (1 + square)
    half = z / (1 + square) * math.sqrt(share * (1 - share) / n + square / (4 * n))
    return 100 * (middle - half) if hits else 0.0, 100 * (middle + half) if hits < n else 100.0


def _half_width(n: int, deviation: float, documents: float, alpha: float) -> float:
    """Return the half-width of the interval of level 1 - alpha."""
    special = _special()
    # Of a tiny alpha t is infinite, and times a deviation of 0 would be NaN.
    seeds = special.stdtrit(n - 1, alpha / 2) * deviation / math.sqrt(n) if deviation else 0.0
    return math.hypot(seeds, special.ndtri(alpha / 2) * math.sqrt(documents))


def _p_value(mean: float, n: int, deviation: float, documents: float) -> float:
    """Return the alpha at which the interval ends at 0: below 0.05 exactly if the 95 % interval leaves 0 out.

    It is that of the t-test if documents are 0, and that of the z-test if the deviation is 0.
    """
    if mean == 0:
        return 1.0

    def over(exponent: float) -> float:
        return _half_width(n, deviation, documents, math.exp(exponent)) - abs(mean)

    low, high = math.log(_SMALLEST), 0.0
    for _ in range(60):  # bisection; the half-width falls as alpha grows, to 0 at alpha = 1
        middle = (low + high) / 2
        low, high = (middle, high) if over(middle) > 0 else (low, middle)
    return math.exp(high)


def _special() -> Any:
    try:
        import scipy.special
    except ImportError:
        raise UsageError("a report needs scipy", fix="pip install 'derivlang[train]'", id="missing-package") from None
    return scipy.special
