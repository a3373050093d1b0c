"""Spearman's rank correlation of alignment with transfer, with a permutation test.

    p = share of the permutations of one side with |ρ| at least as large, two-sided

The test uses all n! permutations up to n = 8. Above that it uses 10,000 keyed ones, and p = (hits + 1) / (10,000 + 1)
(Davison and Hinkley 1997, §4.3).
"""

from __future__ import annotations

import math
from collections.abc import Sequence
from dataclasses import dataclass
from itertools import permutations

import numpy as np

from derivlang.core.arrays import Int64
from derivlang.core.errors import UsageError
from derivlang.core.keys import Draws
from derivlang.core.threads import one_thread

PERMUTATIONS = 10_000
_EXACT = 8  # 40,320 permutations


@dataclass(frozen=True, slots=True)
class Correlation:
    """A correlation of n points. rho, p: None for fewer than three points, or if one side is constant."""

    n: int
    rho: float | None
    p: float | None
    exact: bool


@one_thread()
def spearman(first: Sequence[float], second: Sequence[float], *, seed: int = 1) -> Correlation:
    """Return the rank correlation of two lists of the same length. Ties get their mean rank."""
    try:
        from scipy.stats import rankdata, spearmanr
    except ImportError:
        raise UsageError("a report needs scipy", fix="pip install 'derivlang[train]'", id="missing-package") from None
    n = len(first)
    exact = n <= _EXACT
    if n < 3 or len(set(first)) == 1 or len(set(second)) == 1:
        return Correlation(n, None, None, exact)
    rho = float(spearmanr(first, second).statistic)
    a, b = (rankdata(side) - (n + 1) / 2 for side in (first, second))
    found = (b[_orders(n, seed)] @ a) / math.sqrt(float(a @ a) * float(b @ b))
    hits = int((np.abs(found) >= abs(rho) - 1e-9).sum())
    return Correlation(n, rho, hits / len(found) if exact else (hits + 1) / (len(found) + 1), exact)


def _orders(n: int, seed: int) -> Int64:
    """Return int64[P, n]: all permutations, or keyed ones."""
    if n <= _EXACT:
        return np.array(list(permutations(range(n))), np.int64)
    keys = np.repeat(np.arange(PERMUTATIONS, dtype=np.uint64), n)
    draws = Draws(f"permutation:seed={seed}").draw(keys, np.tile(np.arange(n), PERMUTATIONS))
    return np.argsort(draws.reshape(PERMUTATIONS, n), axis=1, kind="stable")
