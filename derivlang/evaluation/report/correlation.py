"""Spearman's rank correlation of two scores, with a permutation test within languages; and Pearson's, with an interval.

    p = share of the permutations of one side with |ρ| at least as large, two-sided

Only points of one language are exchanged. A language that is hard for every objective correlates both sides, and so
says nothing of the objectives. The test uses all permutations if there are at most 50,000 (four objectives in three
languages: 4!³ = 13,824). Above that it uses 10,000 keyed ones, and p = (hits + 1) / (10,000 + 1) (Davison and Hinkley
1997, §4.3). The *floor* is the smallest p that these values could give: 2 / 24 for four points of one language.

The 95 % interval of Pearson's r is Fisher's: r's inverse hyperbolic tangent is normal with the variance 1 / (n - 3).
"""

from __future__ import annotations

import math
from collections.abc import Hashable, Sequence
from dataclasses import dataclass
from functools import lru_cache
from itertools import permutations, product

import numpy as np

from derivlang.core.arrays import Int64
from derivlang.core.extras import module_of
from derivlang.core.keys import Draws
from derivlang.core.threads import one_thread

PERMUTATIONS = 10_000
_EXACT = 50_000  # permutations at most


@dataclass(frozen=True, slots=True)
class Correlation:
    """A correlation of n points. The numbers are None for fewer than three points, or if one side is constant.

    rho: Spearman's. floor: the smallest p that is possible. exact: whether p comes from all permutations. r: Pearson's;
    low, high: its 95 % interval, None for three points.
    """

    n: int
    rho: float | None
    p: float | None
    floor: float | None
    exact: bool
    r: float | None = None
    low: float | None = None
    high: float | None = None

    @property
    def interval(self) -> str:
        """The interval of r as text, "" without one."""
        ends = [] if self.low is None or self.high is None else [self.low, self.high]
        return " to ".join(f"{end:.2f}".replace("-", "−") for end in ends)


@one_thread()
def correlation(
    first: Sequence[float], second: Sequence[float], groups: Sequence[Hashable] | None = None, *, seed: int = 1
) -> Correlation:
    """Return the correlations of two lists of the same length. Ties get their mean rank.

    groups: the group of each point; only points of one group are exchanged. None: all are of one group.
    """
    stats = module_of("scipy.stats", "a report")
    n = len(first)
    places = _places((0,) * n if groups is None else tuple(groups))
    exact = math.prod(math.factorial(len(group)) for group in places) <= _EXACT
    if n < 3 or len(set(first)) == 1 or len(set(second)) == 1:
        return Correlation(n, None, None, None, exact)
    rho = float(stats.spearmanr(first, second).statistic)
    a, b = (stats.rankdata(side) - (n + 1) / 2 for side in (first, second))
    orders = _all_orders(n, places) if exact else _keyed_orders(n, places, seed)
    rhos = np.abs((b[orders] @ a) / math.sqrt(float(a @ a) * float(b @ b)))
    hits, most = (int((rhos >= value - 1e-9).sum()) for value in (abs(rho), rhos.max()))
    more = 0 if exact else 1  # the order itself is not among those that are drawn
    p, floor = (hits + more) / (len(rhos) + more), (most if exact else 1) / (len(rhos) + more)
    pearson = stats.pearsonr(first, second)
    ends = map(float, pearson.confidence_interval(0.95)) if n > 3 else (None, None)
    return Correlation(n, rho, p, floor, exact, float(pearson.statistic), *ends)


def _places(groups: tuple[Hashable, ...]) -> tuple[tuple[int, ...], ...]:
    """Return the points of each group: a b a   ->   (0, 2), (1,)."""
    places: dict[Hashable, list[int]] = {}
    for place, group in enumerate(groups):
        places.setdefault(group, []).append(place)
    return tuple(map(tuple, places.values()))


@lru_cache(maxsize=4)  # a report asks for the same permutations once per panel
def _all_orders(n: int, places: tuple[tuple[int, ...], ...]) -> Int64:
    """Return int64[P, n]: all permutations within groups. Groups (0, 2) and (1,): 0 1 2 and 2 1 0."""
    flat = np.concatenate([np.array(group, np.int64) for group in places])
    out = np.empty((math.prod(math.factorial(len(group)) for group in places), n), np.int64)
    out[:, flat] = [[place for part in parts for place in part] for parts in product(*map(permutations, places))]
    return out


def _keyed_orders(n: int, places: tuple[tuple[int, ...], ...], seed: int) -> Int64:
    """Return int64[PERMUTATIONS, n]: keyed permutations within groups."""
    keys = np.repeat(np.arange(PERMUTATIONS, dtype=np.uint64), n)
    draws = Draws(f"permutation:seed={seed}").draw(keys, np.tile(np.arange(n), PERMUTATIONS)).reshape(-1, n)
    out = np.empty((PERMUTATIONS, n), np.int64)
    for group in map(list, places):
        out[:, group] = np.array(group)[np.argsort(draws[:, group], axis=1, kind="stable")]
    return out
