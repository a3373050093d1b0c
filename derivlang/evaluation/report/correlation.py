"""Correlations over conditions: of measures with what fine-tuning transfers, and of scores with what explains them.

    alignment.heldout  and pos.accuracy      of each measure with each fine-tuned task, by their headlines
    ngrams.bits_5      and perplexity.bits   of a column that declares what it explains, with that score

Spearman's rank correlation has a permutation test within languages, Pearson's an interval.

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
from dataclasses import asdict, dataclass
from itertools import permutations, product

import numpy as np
import pandas as pd

from derivlang.core.dependencies import module_of
from derivlang.core.keys import Draws
from derivlang.core.threads import one_thread
from derivlang.evaluation.report.cells import EMPTY, Table, grid, p_value
from derivlang.evaluation.report.factors import Condition, Section
from derivlang.evaluation.report.frame import REGIMES
from derivlang.evaluation.report.score import ReportedScore

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
    places = [
        [at for at, one in enumerate(groups or [0] * n) if one == group] for group in dict.fromkeys(groups or [0])
    ]
    exact = math.prod(math.factorial(len(group)) for group in places) <= _EXACT
    if n < 3 or len(set(first)) == 1 or len(set(second)) == 1:
        return Correlation(n, None, None, None, exact)
    rho = float(stats.spearmanr(first, second).statistic)
    a, b = (stats.rankdata(side) - (n + 1) / 2 for side in (first, second))
    if exact:  # all permutations within groups; groups (0, 2) and (1,): 0 1 2 and 2 1 0
        some = [[place for part in parts for place in part] for parts in product(*map(permutations, places))]
        orders = np.empty((len(some), n), np.int64)
        orders[:, np.concatenate(places)] = some
    else:  # keyed ones
        keys = np.repeat(np.arange(PERMUTATIONS, dtype=np.uint64), n)
        draws = Draws(f"permutation:seed={seed}").draw(keys, np.tile(np.arange(n), PERMUTATIONS)).reshape(-1, n)
        orders = np.empty((PERMUTATIONS, n), np.int64)
        for group in places:
            orders[:, group] = np.array(group)[np.argsort(draws[:, group], axis=1, kind="stable")]
    rhos = np.abs((b[orders] @ a) / math.sqrt(float(a @ a) * float(b @ b)))
    hits, most = (int((rhos >= value - 1e-9).sum()) for value in (abs(rho), rhos.max()))
    more = 0 if exact else 1  # the order itself is not among those that are drawn
    p, floor = (hits + more) / (len(rhos) + more), (most if exact else 1) / (len(rhos) + more)
    pearson = stats.pearsonr(first, second)
    ends = map(float, pearson.confidence_interval(0.95)) if n > 3 else (None, None)
    return Correlation(n, rho, p, floor, exact, float(pearson.statistic), *ends)


@dataclass(frozen=True, slots=True, eq=False)
class Scatter:
    """A score, x, against another one, y. points: (condition, x, y)."""

    name: str
    x: str
    y: str
    points: list[tuple[Condition, float, float]]
    correlation: Correlation


def scatters_of(section: Section, scores: Sequence[ReportedScore]) -> list[Scatter]:
    """Return the correlations over three conditions or more: of each measure with each fine-tuned task, by their
    headlines, and of each column with the score that it explains.

    Of a task it is Δ, if it has one, else its last regime; of a measure, the score of the derived language.
    """
    several = {(one.task, one.column.name): one for one in scores if one.column.over != "points" and one.regimes}
    tuned = [one for one in several.values() if set(one.regimes) <= REGIMES.keys()]
    headlines = [one for one in several.values() if one.column.headline]
    pairs = [(x, y, y.regimes[-1]) for x in headlines if x not in tuned for y in headlines if y in tuned]
    for one in several.values():
        task, _, metric = one.column.explains.rpartition(".")
        if (explained := several.get((task, metric))) and one.regimes[-1] in explained.regimes:
            pairs.append((one, explained, one.regimes[-1]))  # both of one language
    free = next(iter(section.baseline), None)
    scatters = []
    for x, y, regime in pairs:
        across, up = _by_condition(x, x.regimes[-1]), _by_condition(y, regime)
        points = [(one, across[one], up[one]) for one in section.planned if one in across and one in up]
        # A permutation keeps all levels but the level of the first factor with a baseline.
        groups = [tuple(level for name, level in section.levels_of(one).items() if free not in (None, name))
                  for one, _, _ in points]  # fmt: skip
        if len(points) >= 3:
            found = correlation([x for _, x, _ in points], [y for _, _, y in points], groups)
            name = f"{x.name}-{y.name}-correlation"
            scatters.append(Scatter(name, x.title(x.regimes[-1]), y.title(regime), points, found))
    return scatters


def _by_condition(score: ReportedScore, regime: str) -> dict[Condition, float]:
    some = score.means[(score.means["regime"] == regime) & score.means["value"].notna()]
    return dict(zip(some["condition"], some["value"], strict=True))


def correlation_table(section: Section, scatters: Sequence[Scatter]) -> Table:
    """Return the table of correlations."""
    lines = []
    for one in scatters:
        found = one.correlation
        rho, r = (EMPTY if one is None else f"{one:.3f}".replace("-", "−") for one in (found.rho, found.r))
        p, floor = (EMPTY if one is None else p_value(one) for one in (found.p, found.floor))
        values = {"ρ": rho, "p": p, "floor of p": floor, "r": r}
        told = {"95 % interval of r": found.interval} if found.interval else {}
        lines.append(((one.x, one.y), {"conditions": str(found.n), **values, **told}))
    data = pd.DataFrame([{"Measure": one.x, "Score": one.y, **asdict(one.correlation)} for one in scatters])
    free = next(iter(section.baseline), "")
    note = (
        "Spearman's ρ over conditions, each a mean over pre-training seeds. p: two-sided permutation test"
        f"{f', which exchanges conditions that differ only in {free}' if free else ''}; over all permutations up to "
        "50,000, else over 10,000. Floor: the smallest p that is possible with these conditions; where it is above "
        "0.05, no ρ is significant. r: Pearson's, with Fisher's interval, of four conditions or more. All are "
        "exploratory. Conditions share levels and a source, so they are not independent: p is too small, and the "
        "interval too narrow."
    )
    shown = grid(lines, ["Measure", "Score"])
    return Table("correlation", "Correlations over conditions", shown, data.rename(columns={"n": "conditions"}), note)
