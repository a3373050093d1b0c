"""Simulated studies of two factors with two levels each, and how often their intervals hold the truth.

A study has four cells, a b c d, and n seeds of each. Every cell and seed is tested on the same units. The share of unit
u that seed i of cell c has right is

    μ_c + S_ci + D_u + E_cu + I_ciu

S: the seed's; half of its variance is that of the seed's number, which all cells share. D: the unit's; E: the unit's in
one cell; I: in one run. The share is the expected score itself, whatever the formula:

    percent     right, all                              right is binomial
    f1          right, found, gold                      found is right and as many wrong ones as there are misses
    macro_f1    the same of each of 17 classes
    aer         sure and possible right, found, sure    the error rate is 90 % of the share that is not right, since a
                                                        fifth of the wrong links is possible
"""

from __future__ import annotations

import math
from dataclasses import dataclass

import numpy as np

from derivlang.evaluation.formulas import value_of
from derivlang.evaluation.statistics import estimate, influences, variances

SEEDS = 3, 5, 10
COLLAPSE, DROP = 0.2, 0.2  # of the shape "collapsed": the chance that a run of cell a falls, and by how much
MEAN, DIFFERENCE, INTERACTION = (1, 0, 0, 0), (1, -1, 0, 0), (1, -1, -1, 1)
_CLASSES = np.arange(17, 0, -1) ** 2 / sum(i * i for i in range(18))


@dataclass(frozen=True, slots=True)
class Test:
    """A test set. sizes: mean and deviation of the logarithm, smallest, largest. rates: μ of each cell.

    spread: deviations of D, E and I. The default is POS of UD English-EWT under `trans,inv`.
    """

    name: str = "accuracy"
    formula: str = "percent"
    units: int = 316
    sizes: tuple[float, float, int, int] = (3.76, 1.05, 5, 792)
    rates: tuple[float, float, float, float] = (0.6, 0.5, 0.55, 0.5)
    spread: float = 0.03


ACCURACY = Test()
F1_LOW = Test("F1 near 6 %", "f1", 1000, (0, 0.5, 1, 8), (0.09, 0.06, 0.07, 0.06), 0.01)
F1_HIGH = Test("F1 near 45 %", "f1", 1000, (0, 0.5, 1, 8), (0.48, 0.45, 0.46, 0.45), 0.08)
AER = Test("AER", "aer", 300, (2.9, 0.6, 3, 60), (0.6, 0.5, 0.55, 0.5), 0.08)
MACRO_F1 = Test("macro F1", "macro_f1:17")

# (test, shape of seeds, their deviation in points)
ROWS = [
    *((ACCURACY, "normal", deviation) for deviation in (0.1, 0.3, 1.0, 3.0, 5.0)),
    *((ACCURACY, "exponential", deviation) for deviation in (0.3, 3.0)),
    (ACCURACY, "collapsed", 1.0),
    *((test, "normal", deviation) for test, deviation in
      ((F1_LOW, 0.3), (F1_LOW, 2.5), (F1_HIGH, 0.3), (F1_HIGH, 2.5), (AER, 0.3), (AER, 3.0))),
]  # fmt: skip


@dataclass(frozen=True, slots=True)
class Coverage:
    """Percent of studies whose 95 % interval holds the truth, and the mean half-width of the differences in points.

    units_only: of the mean, the interval of the units alone. alike: of the difference, in the quarter of the
    studies whose seeds have the smallest deviations; no_floor: the same without the floor.
    """

    mean: float
    difference: float
    interaction: float
    units_only: float
    no_floor: float
    alike: float
    half_width: float


def coverage(test: Test, shape: str, deviation: float, n: int, studies: int) -> Coverage:
    """Return the coverage of studies with n seeds, whose values have this deviation in points."""
    rng = np.random.default_rng([n, int(10 * deviation), test.units, *map(ord, shape + test.name)])
    truths = 100 * np.array(test.rates)
    if test.formula == "aer":
        truths = 90 - 0.9 * truths
    held, deviations, widths = np.zeros((studies, 5), bool), np.zeros(studies), np.zeros(studies)
    for i in range(studies):
        counts = study(rng, test, shape, deviation / 100, n)
        values = np.array([value_of(test.formula, one) for one in counts]).reshape(4, n)
        rows = influences(test.formula, counts).reshape(4, n, test.units)
        for j, weights in enumerate((MEAN, DIFFERENCE, INTERACTION)):
            of_seeds, of_units = np.tensordot(weights, values, 1), np.tensordot(weights, rows, 1)
            found = estimate(of_seeds.tolist(), of_units)
            off, width = abs(found["value"] - weights @ truths), (found["high"] - found["low"]) / 2
            held[i, j] = off <= width
            if weights == MEAN:
                whole = np.square(rows[0].mean(axis=0)).sum() / (test.units * (test.units - 1))
                held[i, 3] = off <= 1.96 * math.sqrt(whole)
            if weights == DIFFERENCE:
                deviations[i], widths[i] = of_seeds.std(ddof=1), width
                seeds = T[n] * deviations[i] / math.sqrt(n)
                held[i, 4] = off <= math.hypot(seeds, 1.96 * math.sqrt(variances(of_units)[0]))
    alike = deviations <= np.quantile(deviations, 0.25)
    mean, difference, interaction, units_only, _ = 100 * held.mean(axis=0)
    return Coverage(
        mean, difference, interaction, units_only,
        100 * held[alike, 4].mean(), 100 * held[alike, 1].mean(), float(widths.mean()),
    )  # fmt: skip


T = {3: 4.303, 5: 2.776, 10: 2.262}  # the 97.5 % point of Student's t for n seeds


def study(rng: np.random.Generator, test: Test, shape: str, deviation: float, n: int) -> list[np.ndarray]:
    """Return int64[U, k], the counts of n seeds of each of the four cells in turn."""
    middle, spread, least, most = test.sizes
    sizes = np.clip(rng.lognormal(middle, spread, test.units), least, most).astype(np.int64)
    unit = rng.normal(0, test.spread, test.units)
    cell = rng.normal(0, test.spread, (4, 1, test.units))
    run = rng.normal(0, test.spread, (4, n, test.units))
    rates = np.array(test.rates)[:, None] + seeds(rng, shape, deviation, n)
    shares = np.clip(rates[:, :, None] + unit + cell + run, 0, 1).reshape(4 * n, test.units)
    return [_counts(rng, test.formula, sizes, share) for share in shares]


def seeds(rng: np.random.Generator, shape: str, deviation: float, n: int) -> np.ndarray:
    """Return float64[4, n], what each seed of each cell adds to the rate; its mean is 0.

    normal, or exponential (its skewness is 2), or collapsed: normal, and some runs of cell a fall far behind.
    """
    size = (5, n)
    parts = rng.exponential(size=size) - 1 if shape == "exponential" else rng.normal(size=size)
    found: np.ndarray = deviation * math.sqrt(0.5) * (parts[0] + parts[1:])
    if shape == "collapsed":
        found[0] += DROP * (COLLAPSE - (rng.random(n) < COLLAPSE))
    return found


def _counts(rng: np.random.Generator, formula: str, sizes: np.ndarray, share: np.ndarray) -> np.ndarray:
    if formula == "macro_f1:17":
        sizes, share = rng.multinomial(sizes, _CLASSES), share[:, None]
    right = rng.binomial(sizes, share)
    if formula == "percent":
        return np.stack([right, sizes], axis=1)
    wrong = rng.poisson(sizes * (1 - share))
    if formula == "aer":
        return np.stack([right, right + rng.binomial(wrong, 0.2), right + wrong, sizes], axis=1)
    return np.stack([right, right + wrong, sizes], axis=1).reshape(len(sizes), -1)
