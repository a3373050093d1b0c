"""Does a measure of a pre-trained model go with what its fine-tuning transfers? Correlations over conditions."""

from __future__ import annotations

from dataclasses import asdict, dataclass
from itertools import product

import pandas as pd

from derivlang.evaluation.report.cells import EMPTY, MEAN, Table, file_name, p_value
from derivlang.evaluation.report.correlation import Correlation, spearman
from derivlang.evaluation.report.factors import Condition, Section
from derivlang.evaluation.report.frame import DELTA, REGIMES
from derivlang.evaluation.report.tables import condition_of, of_score, regime_title, regimes_of, title_of


@dataclass(frozen=True, slots=True, eq=False)
class Scatter:
    """The headline of a measure, x, against the headline of a fine-tuned task, y. points: (condition, x, y)."""

    name: str
    x: str
    y: str
    points: list[tuple[Condition, float, float]]
    correlation: Correlation


def scatters_of(section: Section, comparisons: pd.DataFrame) -> list[Scatter]:
    """Return the correlation of each measure with each fine-tuned task, over three conditions or more.

    Of a task it is Δ, if it has one, else its last regime; of a measure, the score of the derived language.
    """
    tasks: dict[str, tuple[str, dict[Condition, float]]] = {}
    measures: dict[str, tuple[str, dict[Condition, float]]] = {}
    for (task, metric), column in section.scores.columns.items():
        means = of_score(comparisons, task, metric, MEAN)
        if not column.headline or means.empty or column.over == "points":
            continue
        regimes = regimes_of(means)
        title = ", ".join(filter(None, [title_of(section, task, metric), regime_title(regimes[-1])]))
        some = means[(means["regime"] == regimes[-1]) & means["value"].notna()]
        side = tasks if set(regimes) <= {*REGIMES, DELTA} else measures
        side[file_name(task, metric)] = (
            title, {condition_of(section, row): row["value"] for row in some.to_dict("records")}
        )  # fmt: skip
    scatters = []
    for (x, (x_title, xs)), (y, (y_title, ys)) in product(measures.items(), tasks.items()):
        points = [(one, xs[one], ys[one]) for one in section.planned if one in xs and one in ys]
        if len(points) >= 3:
            groups = [_group(section, condition) for condition, _, _ in points]
            one = spearman([x for _, x, _ in points], [y for _, _, y in points], groups)
            scatters.append(Scatter(f"{x}-{y}-correlation", x_title, y_title, points, one))
    return scatters


def _group(section: Section, condition: Condition) -> Condition:
    """Return what a permutation keeps: all levels but the level of the first factor with a baseline."""
    free = next(iter(section.baseline), None)
    return tuple(level for name, level in section.levels_of(condition).items() if free not in (None, name))


def correlation_table(section: Section, scatters: list[Scatter]) -> Table:
    """Return the table of correlations."""
    correlations = [one.correlation for one in scatters]
    index = pd.MultiIndex.from_tuples([(one.x, one.y) for one in scatters], names=["Measure", "Task"])
    data = pd.DataFrame([asdict(one) for one in correlations], index).rename(columns={"n": "conditions"})
    shown = pd.DataFrame(
        {
            "conditions": [str(one.n) for one in correlations],
            "ρ": [EMPTY if one.rho is None else f"{one.rho:.3f}".replace("-", "−") for one in correlations],
            "p": [EMPTY if one.p is None else p_value(one.p) for one in correlations],
            "floor of p": [EMPTY if one.floor is None else p_value(one.floor) for one in correlations],
        },
        index,
    )
    free = next(iter(section.baseline), "")
    note = (
        "Spearman's ρ over conditions, each a mean over pre-training seeds. p: two-sided permutation test"
        f"{f', which exchanges conditions that differ only in {free}' if free else ''}; over all permutations up to "
        "50,000, else over 10,000. Floor: the smallest p that is possible with these conditions; where it is above "
        "0.05, no ρ is significant. All are exploratory. Conditions share levels, so they are not independent, and p "
        "is too small."
    )
    return Table("correlation", "Correlation of measures with transfer", shown, data.reset_index(), note)
