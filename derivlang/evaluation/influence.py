"""Influence of each unit of a test set on a score, by the jackknife (Efron and Stein 1981).

A unit is a document, a sentence or a pair: what another sample of the test set would have others of. The influence of
unit u is how far the score moves if u is left out, enlarged to the scale of one unit:

    influence_u = (U - 1) · (mean of all θ_-v - θ_-u)        θ_-u: the score of all units but u

    three sentences of one word, right, wrong, right: θ = 2/3; without each 1/2, 1, 1/2; influences 1/3, -2/3, 1/3

Influences sum to 0, and the sample of units gives the score the variance sum(influence²) / (U · (U - 1)). Of a weighted
sum of scores of the same units, such as a difference, they are the weighted sum of the influences. So every contrast
has its variance, two scores have a covariance, and nothing is drawn at random.
"""

from __future__ import annotations

from collections.abc import Sequence

import numpy as np

from derivlang.core.arrays import Int64
from derivlang.evaluation.formulas import Float64, formula_of

_AT_ONCE = 1 << 20  # number of counts at a time: macro F1 has 51 of a unit


def influences(formula: str, counts: Sequence[Int64]) -> Float64:
    """Return float64[n, U]: the influence of each of U units on each of n scores, U at least 1.

    counts: int64[U, k] of each score. A row is NaN if the score without one of the units is NaN.
    """
    return np.stack([_of_score(formula, one) for one in counts])


def variance_of(influence: Float64) -> float:
    """Return the variance that the choice of units gives to a score. influence: float64[U], U at least 2."""
    units = len(influence)
    return float(np.square(influence).sum()) / (units * (units - 1))


def _of_score(formula: str, counts: Int64) -> Float64:
    score, width = formula_of(formula)
    totals = counts.sum(axis=0)
    step = max(1, _AT_ONCE // width)
    left = np.concatenate([score(totals - counts[i : i + step]) for i in range(0, len(counts), step)])
    return np.asarray((len(counts) - 1) * (left.mean() - left), np.float64)
