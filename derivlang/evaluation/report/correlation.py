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
from itertools import permutations, product
from typing import Any

import numpy as np
import pandas as pd

from derivlang.core.dependencies import module_of
from derivlang.core.keys import Draws
from derivlang.core.threads import one_thread
from derivlang.evaluation.report.factors import Section
from derivlang.evaluation.report.frame import REGIMES
from derivlang.evaluation.report.tables import EMPTY, ReportedScore, Table, p_value

PERMUTATIONS = 10_000
_EXACT = 50_000  # permutations at most
_NUMBERS = ("rho", "p", "floor", "exact", "r", "low", "high")


@one_thread()
def correlation(
    first: Sequence[float], second: Sequence[float], groups: Sequence[Hashable] | None = None, *, seed: int = 1
) -> dict[str, Any]:
    """Return the correlations of two lists of the same length. Ties get their mean rank.

    groups: the group of each point; only points of one group are exchanged. None: all are of one group. The result has
    `n`; `rho`, Spearman's; `p`; `floor`, the smallest p that is possible; `exact`, whether p comes from all
    permutations; `r`, Pearson's, with its 95 % interval `low` to `high`, NaN for three points. All but n are NaN for
    fewer than three points, or if one side is constant.
    """
    stats, n = module_of("scipy.stats", "a report"), len(first)
    found: dict[str, Any] = {"n": n, **dict.fromkeys(_NUMBERS, math.nan)}
    if n < 3 or len(set(first)) == 1 or len(set(second)) == 1:
        return found
    of = groups or [0] * n
    places = [[at for at, one in enumerate(of) if one == group] for group in dict.fromkeys(of)]
    exact = math.prod(math.factorial(len(group)) for group in places) <= _EXACT
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
    a, b = (stats.rankdata(side) - (n + 1) / 2 for side in (first, second))
    rhos = np.abs((b[orders] @ a) / math.sqrt(float(a @ a) * float(b @ b)))
    rho, pearson = float(stats.spearmanr(first, second).statistic), stats.pearsonr(first, second)
    hits, most = (int((rhos >= value - 1e-9).sum()) for value in (abs(rho), rhos.max()))
    more = 0 if exact else 1  # the order itself is not among those that are drawn
    found |= {"rho": rho, "p": (hits + more) / (len(rhos) + more), "exact": exact, "r": float(pearson.statistic),
              "floor": (most if exact else 1) / (len(rhos) + more)}  # fmt: skip
    if n > 3:
        found["low"], found["high"] = map(float, pearson.confidence_interval(0.95))
    return found


def correlations_of(section: Section, scores: Sequence[ReportedScore]) -> pd.DataFrame:
    """Return the correlations over three conditions or more, a row each: of each measure with each fine-tuned task, by
    their headlines, and of each column with the score that it explains.

    Of a task it is Δ, if it has one, else its last regime; of a measure, the score of the derived language. Columns:
    `name`, of files; `x`, `y`, the titles of both sides; `points`, their means by condition; and of `correlation`.
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
    rows = []
    for x, y, regime in pairs:
        sides = [one.means[one.means["regime"] == its].set_index("condition")["value"]
                 for one, its in ((x, x.regimes[-1]), (y, regime))]  # fmt: skip
        points = pd.concat(sides, axis=1, keys=["x", "y"]).reindex(list(section.planned)).dropna()
        # A permutation keeps all levels but the level of the first factor with a baseline.
        groups = [tuple(level for name, level in section.levels_of(one).items() if free not in (None, name))
                  for one in points.index]  # fmt: skip
        if len(points) >= 3:
            found = correlation(points["x"].tolist(), points["y"].tolist(), groups)
            told = {"name": f"{x.name}-{y.name}-correlation", "x": x.title(x.regimes[-1]), "y": y.title(regime)}
            rows.append({**told, "points": points, **found})
    return pd.DataFrame(rows)


def correlation_table(section: Section, found: pd.DataFrame) -> Table:
    """Return the table of correlations. found: of `correlations_of`."""
    rounded = found[["rho", "r"]].map(lambda value: EMPTY if value != value else f"{value:.3f}".replace("-", "−"))
    shown = found[["x", "y"]].set_axis(["Measure", "Score"], axis=1)
    shown = shown.assign(conditions=found["n"].astype(str), ρ=rounded["rho"], p=found["p"].map(p_value))
    shown["floor of p"], shown["r"] = found["floor"].map(p_value), rounded["r"]
    if found["low"].notna().any():
        shown["95 % interval of r"] = [interval_of(one) or EMPTY for one in found.to_dict("records")]
    free = next(iter(section.baseline), "")
    note = (
        "Spearman's ρ over conditions, each a mean over pre-training seeds. p: two-sided permutation test"
        f"{f', which exchanges conditions that differ only in {free}' if free else ''}; over all permutations up to "
        "50,000, else over 10,000. Floor: the smallest p that is possible with these conditions; where it is above "
        "0.05, no ρ is significant. r: Pearson's, with Fisher's interval, of four conditions or more. All are "
        "exploratory. Conditions share levels and a source, so they are not independent: p is too small, and the "
        "interval too narrow."
    )
    data = found.rename(columns={"x": "Measure", "y": "Score", "n": "conditions"}).drop(columns=["name", "points"])
    return Table("correlation", "Correlations over conditions", shown.set_index(["Measure", "Score"]), data, note)


def interval_of(found: Any) -> str:
    """Return the interval of Pearson's r as text, "" without one."""
    ends = f"{found['low']:.2f} to {found['high']:.2f}".replace("-", "−")
    return ends if found["low"] == found["low"] else ""
