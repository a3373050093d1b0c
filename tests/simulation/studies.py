"""Simulated studies of two objectives, and how often their intervals hold the truth.

The share of right words of objective o, seed i and document d is

    μ_o + S_oi + D_d + E_od + I_oid

S: the seed's; half of its variance is that of the seed's number, which both objectives share. D: the document's; E: its
for one objective; I: its for one run. Right words are binomial. The deviations of D, E and I, and the log-normal sizes
of documents are those of UD English-EWT (316 test documents) and of POS under `trans,inv` (docs/studies/statistics.md).
"""

from __future__ import annotations

import math
from dataclasses import dataclass

import numpy as np

from derivlang.evaluation.metrics import share
from derivlang.evaluation.resample import each
from derivlang.evaluation.statistics import estimate, shared_variance

DOCUMENTS = 316
SIZES = 3.76, 1.05, 5, 792  # mean and deviation of the logarithm; the smallest and the largest
DOCUMENT, OBJECTIVE, RUN = 0.03, 0.03, 0.03  # deviations of D, E and I
RATES = 0.6, 0.5
SEEDS, DEVIATIONS, SHAPES = (3, 5, 10), (0.2, 1.0, 5.0), ("normal", "exponential")


@dataclass(frozen=True, slots=True)
class Coverage:
    """Percent of studies whose 95 % interval holds the truth, and the mean half-width in points.

    documents_only: the interval that resamples documents and takes the runs as given.
    """

    mean: float
    difference: float
    documents_only: float
    half_width: float


def coverage(n: int, deviation: float, shape: str, studies: int, documents: int = DOCUMENTS) -> Coverage:
    """Return the coverage of studies with n seeds, whose values have this deviation in points."""
    rng = np.random.default_rng([n, int(10 * deviation), SHAPES.index(shape)])
    held = np.zeros(3)
    widths = 0.0
    for _ in range(studies):
        counts = study(rng, n, deviation / 100, shape, documents)
        drawn = each(counts, share)
        values = np.array([float(share(one.sum(axis=0))) for one in counts])
        first, second = drawn[:n], drawn[n:]
        mean = estimate(values[:n].tolist(), shared_variance(first))
        difference = estimate((values[:n] - values[n:]).tolist(), shared_variance(first - second))
        assert mean.low is not None
        assert mean.high is not None
        assert difference.low is not None
        assert difference.high is not None
        half = 1.96 * float(first.mean(axis=0).std(ddof=1))
        truth, apart = 100 * RATES[0], 100 * (RATES[0] - RATES[1])
        held += [
            mean.low <= truth <= mean.high,
            difference.low <= apart <= difference.high,
            abs(mean.mean - truth) <= half,
        ]
        widths += (mean.high - mean.low) / 2
    return Coverage(*(100 * held / studies).tolist(), widths / studies)


def study(
    rng: np.random.Generator, n: int, deviation: float, shape: str, documents: int = DOCUMENTS
) -> list[np.ndarray]:
    """Return int64[D, 2], right words and words, of n seeds of the first objective and then of the second."""
    middle, spread, least, most = SIZES
    sizes = np.clip(rng.lognormal(middle, spread, documents), least, most).astype(np.int64)
    parts = seeds(rng, (3, n), shape) * deviation * math.sqrt(0.5)
    shared, own = parts[0], parts[1:]
    document = rng.normal(0, DOCUMENT, documents)
    out = []
    for rate, values in zip(RATES, own, strict=True):
        objective = rng.normal(0, OBJECTIVE, documents)
        for value in shared + values:
            rates = rate + value + document + objective + rng.normal(0, RUN, documents)
            out.append(np.stack([rng.binomial(sizes, np.clip(rates, 0, 1)), sizes], axis=1))
    return out


def seeds(rng: np.random.Generator, size: tuple[int, ...], shape: str) -> np.ndarray:
    """Return draws with mean 0 and deviation 1: normal, or of an exponential distribution, whose skewness is 2."""
    return rng.normal(size=size) if shape == "normal" else rng.exponential(size=size) - 1
