"""Intervals and tests of a mean over pre-training seeds. Arrays in, numbers out: no files, no tables.

A figure of a study is a mean over n pre-training seeds, each of which was tested on the same units (documents,
sentences or pairs). It has two sources of error, and the interval adds their variances:

    half-width = max( sqrt((t · s / √n)² + z² · V_shared),  z · sqrt(V_mean) )

    s         deviation of the seeds' values, n - 1 degrees of freedom; t: the 97.5 % point of Student's t
    V_shared  variance that the choice of units gives to every seed alike; z: the 97.5 % point of the normal, 1.96
    V_mean    variance that the choice of units gives to the mean, if these n models are all there are

Let seed i have the value Y_i = μ + S_i + D + I_i, where S_i is the seed's, D what the units do to every seed, and I_i
what they do only to this seed. The mean of n seeds has the variance var(S)/n + var(D) + var(I)/n. The seeds' values
differ by S_i and I_i, so s²/n already estimates var(S)/n + var(I)/n, and only var(D) = V_shared is missing: the mean
covariance of two different seeds over units. A negative estimate counts as 0.

The values of a few seeds may lie close together by chance, and s is then too small. V_mean = var(D) + var(I)/n does
not depend on s. It is the floor: no interval is narrower than the one that only the units give.

A difference of two objectives is a mean, too: the mean of the differences of runs with the same seed on the same units.

Influence of each unit of a test set on a score, by the jackknife (Efron and Stein 1981): how far the score moves if
unit u is left out, enlarged to the scale of one unit.

    influence_u = (U - 1) · (mean of all θ_-v - θ_-u)        θ_-u: the score of all units but u

    three sentences of one word, right, wrong, right: θ = 2/3; without each 1/2, 1, 1/2; influences 1/3, -2/3, 1/3

Influences sum to 0, and the sample of units gives the score the variance sum(influence²) / (U · (U - 1)). Of a weighted
sum of scores of the same units, such as a difference, they are the weighted sum of the influences. So every contrast
has its variance, two scores have a covariance, and nothing is drawn at random.
"""

from __future__ import annotations

import math
from collections.abc import Sequence
from typing import Any

import numpy as np

from derivlang.core.arrays import Int64
from derivlang.core.dependencies import module_of
from derivlang.evaluation.formulas import Float64, formula_of


def influences(formula: str, counts: Sequence[Int64]) -> Float64:
    """Return float64[n, U]: the influence of each of U units on each of n scores, U at least 1.

    counts: int64[U, k] of each score. A row is NaN if the score without one of the units is NaN.
    """
    score, influence = formula_of(formula)[0], []
    for one in counts:
        left = score(one.sum(axis=0) - one)
        influence.append((len(one) - 1) * (left.mean() - left))
    return np.stack(influence)


LEVEL = 0.95
SEEDS = 3  # the smallest number of seeds with an interval: two give a t of 12.7
# A report warns below this number of units. In simulations (docs/studies/statistics.md), 95 % intervals of accuracy
# hold the true value in 94 % of the studies with 50 units, but in only 91 % of those with 20.
FEW_UNITS = 50
_SMALLEST = 1e-300  # of p


def estimate(values: Sequence[float], influences: Float64 | None = None, *, level: float = LEVEL) -> dict[str, Any]:
    """Return the mean of the values of n pre-training seeds with its interval, as columns of `compare`.

    influences: float64[n, U], of each of U units on each seed's value (`influences`); for weighted sums of scores,
    the same weighted sums of their influences. None if units are not known: the interval is only of seeds.
    There is no interval with fewer than three seeds, with one unit, or if a number is NaN.

    n; value: the mean; low, high: its interval; p: two-sided, of a mean of 0; why: the reason if there is no interval
    and no p, which are None; units: the number of documents, sentences or pairs, None if not known.
    """
    mean, why = float(np.mean(values)), _why_not(values, influences)
    found: dict[str, Any] = {"n": len(values), "value": mean, "low": None, "high": None, "p": None, "why": why}
    if not why:
        spread = (
            len(values),
            float(np.std(values, ddof=1)),
            *((0.0, 0.0) if influences is None else variances(influences)),
        )
        half = _half_width(*spread, 1 - level)
        found |= {"low": mean - half, "high": mean + half, "p": _p_value(mean, *spread)}
    return found | {"units": None if influences is None else influences.shape[1]}


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


def _why_not(values: Sequence[float], influences: Float64 | None) -> str:
    """Return why there is no interval, or "" if there is one."""
    if not np.isfinite(values).all():
        return "a value is NaN"
    if len(values) < SEEDS:
        return f"an interval needs {SEEDS} pre-training seeds"
    if influences is None:
        return ""
    if influences.shape[1] < 2:
        return "the test set has one unit"
    return "" if np.isfinite(influences).all() else "without one unit a value is NaN"


def variances(influences: Float64) -> tuple[float, float]:
    """Return (V_shared, V_mean). influences: float64[n, U], n and U at least 2."""
    n, units = influences.shape
    # The variances that the choice of units gives to each seed's value, and to their mean
    own, whole = (
        sum(float(np.square(one).sum()) / (units * (units - 1)) for one in rows)
        for rows in (influences, [influences.mean(axis=0)])
    )
    # n² · whole is the sum of all covariances; without `own`, of the n (n - 1) pairs of different seeds
    return max(0.0, (n * n * whole - own) / (n * (n - 1))), whole


def _half_width(n: int, deviation: float, shared: float, whole: float, alpha: float) -> float:
    """Return the half-width of the interval of level 1 - alpha."""
    special = module_of("scipy.special", "a report")
    z = -special.ndtri(alpha / 2)
    # Of a tiny alpha t is infinite, and times a deviation of 0 would be NaN.
    seeds = special.stdtrit(n - 1, alpha / 2) * deviation / math.sqrt(n) if deviation else 0.0
    return float(max(math.hypot(seeds, z * math.sqrt(shared)), z * math.sqrt(whole)))


def _p_value(mean: float, n: int, deviation: float, shared: float, whole: float) -> float:
    """Return the alpha at which the interval ends at 0: below 0.05 exactly if the 95 % interval leaves 0 out.

    It is the larger p of the two parts of the maximum: from the t-test if units are not known, and from the
    z-test of units if the deviation is 0.
    """
    if mean == 0:
        return 1.0

    def over(exponent: float) -> float:
        return _half_width(n, deviation, shared, whole, math.exp(exponent)) - abs(mean)

    low, high = math.log(_SMALLEST), 0.0
    for _ in range(60):  # bisection; the half-width falls as alpha grows, to 0 at alpha = 1
        middle = (low + high) / 2
        low, high = (middle, high) if over(middle) > 0 else (low, middle)
    return math.exp(high)
