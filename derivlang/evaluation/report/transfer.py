"""Correlations over conditions: of measures with what fine-tuning transfers, and of scores with what explains them.

alignment.heldout      and pos.accuracy        of each measure with each fine-tuned task, by their headlines
ngrams.bits_5          and perplexity.bits     of a column that declares what it explains, with that score
"""

from __future__ import annotations

from dataclasses import asdict, dataclass
from itertools import product
from typing import TypeAlias

import pandas as pd

from derivlang.evaluation.report.cells import EMPTY, MEAN, Table, file_name, p_value
from derivlang.evaluation.report.correlation import Correlation, correlation
from derivlang.evaluation.report.factors import Condition, Section
from derivlang.evaluation.report.frame import DELTA, REGIMES
from derivlang.evaluation.report.tables import condition_of, of_score, regime_title, regimes_of, title_of

Key: TypeAlias = tuple[str, str]  # task, metric


@dataclass(frozen=True, slots=True, eq=False)
class Scatter:
    """A score, x, against another one, y. points: (condition, x, y)."""

    name: str
    x: str
    y: str
    points: list[tuple[Condition, float, float]]
    correlation: Correlation


def scatters_of(section: Section, comparisons: pd.DataFrame) -> list[Scatter]:
    """Return the correlations over three conditions or more: of each measure with each fine-tuned task, by their
    headlines, and of each column with the score that it explains.

    Of a task it is Δ, if it has one, else its last regime; of a measure, the score of the derived language.
    """
    sides: dict[Key, ScatterSide] = {}
    for key, column in section.scores.columns.items():
        means = of_score(comparisons, *key, MEAN)
        if not means.empty and column.over != "points":
            sides[key] = _side(section, key, means)
    headlines = [key for key in sides if section.scores.columns[key].headline]
    tasks = [key for key in headlines if sides[key].is_tuned]
    pairs = list(product([key for key in headlines if key not in tasks], tasks))
    both = [(pair, (sides[pair[0]], sides[pair[1]])) for pair in pairs]
    for key, side in sides.items():
        task, _, metric = section.scores.columns[key].explains.rpartition(".")
        means = of_score(comparisons, task, metric, MEAN)
        if side.regime in regimes_of(means):  # both of one language
            both.append(((key, (task, metric)), (side, _side(section, (task, metric), means, side.regime))))
    scatters = []
    for (x, y), (xs, ys) in both:
        points = [(one, xs.means[one], ys.means[one]) for one in section.planned if one in xs.means and one in ys.means]
        if len(points) >= 3:
            groups = [_group(section, condition) for condition, _, _ in points]
            one = correlation([x for _, x, _ in points], [y for _, _, y in points], groups)
            name = f"{file_name(*x)}-{file_name(*y)}-correlation"
            scatters.append(Scatter(name, xs.title, ys.title, points, one))
    return scatters


@dataclass(frozen=True, slots=True, eq=False)
class ScatterSide:
    """The means of a score by condition, in one of its regimes. is_tuned: whether it is of a fine-tuned task."""

    title: str
    regime: str
    means: dict[Condition, float]
    is_tuned: bool


def _side(section: Section, key: Key, means: pd.DataFrame, regime: str | None = None) -> ScatterSide:
    """Return the side of a score. regime: the last one for None."""
    regimes = regimes_of(means)
    regime = regimes[-1] if regime is None else regime
    title = ", ".join(filter(None, [title_of(section, *key), regime_title(regime)]))
    some = means[(means["regime"] == regime) & means["value"].notna()]
    by_condition = {condition_of(section, row): row["value"] for row in some.to_dict("records")}
    return ScatterSide(title, regime, by_condition, set(regimes) <= {*REGIMES, DELTA})


def _group(section: Section, condition: Condition) -> Condition:
    """Return what a permutation keeps: all levels but the level of the first factor with a baseline."""
    free = next(iter(section.baseline), None)
    return tuple(level for name, level in section.levels_of(condition).items() if free not in (None, name))


def correlation_table(section: Section, scatters: list[Scatter]) -> Table:
    """Return the table of correlations."""
    correlations = [one.correlation for one in scatters]
    index = pd.MultiIndex.from_tuples([(one.x, one.y) for one in scatters], names=["Measure", "Score"])
    data = pd.DataFrame([asdict(one) for one in correlations], index).rename(columns={"n": "conditions"})
    shown = pd.DataFrame(
        {
            "conditions": [str(one.n) for one in correlations],
            "ρ": [_number(one.rho) for one in correlations],
            "p": [EMPTY if one.p is None else p_value(one.p) for one in correlations],
            "floor of p": [EMPTY if one.floor is None else p_value(one.floor) for one in correlations],
            "r": [_number(one.r) for one in correlations],
            "95 % interval of r": [one.interval or EMPTY for one in correlations],
        },
        index,
    )
    free = next(iter(section.baseline), "")
    note = (
        "Spearman's ρ over conditions, each a mean over pre-training seeds. p: two-sided permutation test"
        f"{f', which exchanges conditions that differ only in {free}' if free else ''}; over all permutations up to "
        "50,000, else over 10,000. Floor: the smallest p that is possible with these conditions; where it is above "
        "0.05, no ρ is significant. r: Pearson's, with Fisher's interval, of four conditions or more. All are "
        "exploratory. Conditions share levels and a source, so they are not independent: p is too small, and the "
        "interval too narrow."
    )
    return Table("correlation", "Correlations over conditions", shown, data.reset_index(), note)


def _number(value: float | None) -> str:
    return EMPTY if value is None else f"{value:.3f}".replace("-", "−")
