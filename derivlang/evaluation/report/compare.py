"""Means, contrasts with the baseline and interactions of a table of scores, as one table of their own.

    mean           of a condition, over pre-training seeds
    difference     a level minus the baseline's, paired by seed: in each condition, and over all conditions that both
                   have, with the same weight
    interaction    of two factors: (level, other) - (base, other) - (level, other base) + (base, other base)

Each is a weighted sum of what runs have: the seeds' values, and the influence of each test document on them, where all
sides were tested on the same set. Fine-tuning seeds are averaged within a run. Δ = SUP − ZS is such a sum of regimes.
`range` is 100 (ZS − floor) / (SUP − floor), by seed: the floor is the mean ZS of the untrained model (the study's
controls), or the chance level where there is none.
"""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass, field
from itertools import combinations, product
from typing import Any, TypeAlias

import numpy as np
import pandas as pd

from derivlang.core.errors import DataError
from derivlang.core.threads import one_thread
from derivlang.evaluation.formulas import Float64
from derivlang.evaluation.report.factors import (
    CONTROL,
    INTERACTION,
    NONE,
    UNTRAINED,
    Condition,
    Levels,
    Section,
    sections_of,
)  # fmt: skip
from derivlang.evaluation.report.frame import CHANCE, DELTA, FLOORS, OUTCOME, RANGE, SUP, ZS
from derivlang.evaluation.scores import counts_of
from derivlang.evaluation.statistics import estimate, holm, influences
from derivlang.evaluation.table import FACTOR

PRIMARY, EXPLORATORY = "primary", "exploratory"
MEAN, DIFFERENCE = "mean", "difference"  # besides INTERACTION
_LEAST_RANGE = 5  # points between the floor and SUP: a share of fewer says nothing
OTHER_SETS = "other test sets"
_NO_SEED: dict[str, Any] = {
    "n": 0, "value": float("nan"), "low": None, "high": None, "p": None, "why": "no seed in common", "units": None,
}  # fmt: skip
Terms: TypeAlias = Sequence[tuple[float, Condition]]
Sums: TypeAlias = Mapping[Condition, Terms]


@dataclass(frozen=True, slots=True, eq=False)
class RunValue:
    """An outcome of one run, over its fine-tuning seeds, or a weighted sum of such.

    influence: float64[U], of each of the U units of the set; None without counts, or of several sets. set: its hash,
    and the unit. lost: whether documents are left out since sets differ.
    """

    value: float
    influence: Float64 | None = None
    set: tuple[str, str] = ("", "")
    lost: bool = False


@dataclass(frozen=True, slots=True, eq=False)
class Contrast:
    """A comparison of any outcome. sums: condition -> the weighted sum that it is there. levels: of their mean."""

    kind: str
    factor: str = ""
    contrast: str = ""
    levels: Levels = field(default_factory=dict)
    sums: Sums = field(default_factory=dict)


RunValues: TypeAlias = Mapping[Condition, Mapping[int, RunValue]]  # condition -> pre-training seed -> value


def compare(
    scores: pd.DataFrame, baseline: Mapping[str, Any] | None = None, primary: str | None = None, test: str | None = None
) -> pd.DataFrame:
    """Return means by condition, contrasts with the baseline and interactions, a row each.

    scores: of `derivlang.scores`. baseline: factor -> level. primary: the main outcome, such as "pos.zs", a
    task's headline in a regime. test: "level", what is tested of it are differences; or "interaction". What is not
    given is as the study's file says.

    Columns: `study`; `kind`, mean, difference or interaction; `factor.NAME`, the condition (a difference has the level
    that is compared; NaN where a condition lacks the factor, or over `conditions`, their number); `contrast`, such as
    "align-mlm − mlm"; `task`, `metric`, `regime` (`delta`: SUP − ZS), `split`, `group`, `layer`; `step`, NA
    for finished models; `n` seeds; `value`, its 95 % interval `low` to `high`, and `p`, of a value of 0; `p_holm`, in
    the `family` "primary" by itself; `why` there is no interval, or what it leaves out; `units`, the number of test
    documents in it, of kind `unit`; `seeds` and their `values`.

    Raise DataError for a file that is not a table of scores, StoreError for two runs that differ in nothing, and
    UsageError for a baseline or a primary outcome that the table lacks.
    """
    found = [compared(one) for one in sections_of(scores, baseline, primary, test)]
    return pd.concat(found, ignore_index=True).drop(columns="condition")


@one_thread()
def compared(section: Section) -> pd.DataFrame:
    """Return the comparisons of a section, with the columns of `compare`, and `condition`, its levels."""
    rows = section.rows.assign(step=section.rows["step"].mask(section.rows["final"]))
    planned = list(_planned(section))
    comparisons: list[dict[str, Any]] = []
    for names, some in rows.groupby([*OUTCOME, "step"], sort=False, dropna=False):
        outcome = dict(zip((*OUTCOME, "step"), names, strict=True))
        for regime, values in _regimes(section, some).items():
            told = {"study": section.name, **outcome, "regime": regime}
            is_compared = outcome["step"] is pd.NA and regime not in FLOORS
            for one in planned if is_compared else [one for one in planned if one.kind == MEAN]:
                comparisons += ({**row, **told} for row in _rows(section, values, one))
    return _with_families(section, pd.DataFrame(comparisons).astype({"layer": "Int64", "step": "Int64"}))


def leading(section: Section, rows: pd.DataFrame, regime: str, factor: str, better: str) -> dict[str, Any] | None:
    """Return the best level of a factor minus the next one, over the conditions that all levels have; None without, or
    if a condition has other test sets in another level.

    `best` is the value of the best level. rows: of an outcome. better: "up" or "down".
    """
    values, at = _regimes(section, rows).get(regime, {}), section.factors.index(factor)
    means: dict[str, dict[Condition, float]] = {}
    runs: dict[Condition, list[RunValue]] = {}
    for condition, seeds in values.items():
        if condition[at] != NONE and section.levels_of(condition).get(CONTROL) != UNTRAINED:
            rest = (*condition[:at], *condition[at + 1 :])
            means.setdefault(condition[at], {})[rest] = float(np.mean([one.value for one in seeds.values()]))
            runs.setdefault(rest, []).extend(seeds.values())
    shared = sorted(set.intersection(*map(set, means.values()))) if len(means) > 1 else []
    total = {level: sum(of[rest] for rest in shared) for level, of in means.items()}
    if not shared or not np.isfinite([*total.values()]).all() or any(_one_set(runs[rest])[1] for rest in shared):
        return None
    first, second = sorted(total, key=lambda level: total[level], reverse=better == "up")[:2]
    sides = ((1 / len(shared), first), (-1 / len(shared), second))
    terms = [(weight, (*rest[:at], level, *rest[at:])) for weight, level in sides for rest in shared]
    row = _row(section, values, terms, {}, len(shared), Contrast(DIFFERENCE, factor, f"{first} − {second}"))
    best = total[first] / len(shared)
    return {**{key: np.nan if value is None else value for key, value in row.items()}, "best": best}


def _regimes(section: Section, rows: pd.DataFrame) -> dict[str, RunValues]:
    """Return the values of an outcome in each regime, and Δ if it has both of its sides."""
    by_regime = {str(regime): _run_values(section, some) for regime, some in rows.groupby("regime", sort=False)}
    if {SUP, ZS} <= by_regime.keys():
        sides = [(1.0, by_regime[SUP]), (-1.0, by_regime[ZS])]
        by_regime[DELTA] = {
            condition: {seed: _sum([(weight, side[condition][seed]) for weight, side in sides])
                        for seed in _shared([side.get(condition, {}) for _, side in sides])}
            for condition in by_regime[SUP]
        }  # fmt: skip
        by_regime[RANGE] = {
            condition: shares
            for condition in by_regime[SUP]
            if (shares := _shares(by_regime, condition, section.untrained(condition)))
        }
    return by_regime


def _shares(
    by_regime: Mapping[str, RunValues], condition: Condition, untrained: Condition | None
) -> dict[int, RunValue]:
    """Return the share of the range between the floor and SUP that ZS has, by seed; {} without such a range."""
    floors = by_regime[ZS].get(untrained) if untrained is not None else None
    floors = floors or by_regime.get(CHANCE, {}).get(condition)
    sup, zs = by_regime[SUP][condition], by_regime[ZS].get(condition, {})
    if not floors:
        return {}
    floor = float(np.mean([one.value for one in floors.values()]))
    return {
        seed: RunValue(100 * (zs[seed].value - floor) / (sup[seed].value - floor))
        for seed in _shared([sup, zs])
        if sup[seed].value >= floor + _LEAST_RANGE
    }


def _run_values(section: Section, rows: pd.DataFrame) -> RunValues:
    """Return the outcome of each run, by condition and seed. rows: of one outcome in one regime."""
    is_counted = rows["counts"].notna() & (rows["formula"] != "") & (rows["set_hash"] != "")
    # A few columns: the rows of all of them take five times as long.
    columns = rows[["run", "value", "task", "metric", "counts", "formula", "set_hash", "unit"]]
    by_condition: dict[Condition, dict[int, RunValue]] = {}
    units: dict[tuple[str, str], int] = {}  # (formula, set) -> their number
    for run, some in columns.assign(is_counted=is_counted).groupby("run", sort=False):
        condition, seed = section.runs[str(run)]
        values = [
            RunValue(row.value, _influence(row, units) if row.is_counted else None, (row.set_hash, row.unit))
            for row in some.itertuples()
        ]
        by_condition.setdefault(condition, {})[seed] = _sum([(1 / len(values), one) for one in values])
    return by_condition


def _influence(row: Any, units: dict[tuple[str, str], int]) -> Float64:
    """Return the influence of each unit. Raise DataError if the counts do not fit the formula or another row's set."""
    try:
        influence: Float64 = influences(row.formula, [counts_of(row.formula, row.counts)])[0]
        if units.setdefault((row.formula, row.set_hash), len(influence)) == len(influence):
            return influence
    except ValueError:
        pass
    raise DataError(
        f"the counts of {row.task} {row.metric} do not fit {row.formula}, or are not all of one set",
        where=str(row.run), fix="evaluate the run again", id="other-sentences",
    )  # fmt: skip


def _sum(terms: Sequence[tuple[float, RunValue]]) -> RunValue:
    """Return a weighted sum, of values and, if all have the same set, of the influences of its units."""
    value = sum(weight * one.value for weight, one in terms)
    same, lost = _one_set([one for _, one in terms])
    if not same:
        return RunValue(value, lost=lost)
    influence = sum((weight * np.asarray(one.influence) for weight, one in terms), np.zeros(1))
    return RunValue(value, influence, terms[0][1].set, lost)


def _one_set(values: Sequence[RunValue]) -> tuple[bool, bool]:
    """Return (whether all have influences of the same set, whether some are lost since sets differ)."""
    units = [(one.set, len(one.influence)) for one in values if one.influence is not None]
    known = len(units) == len(values)
    n = len(set(units)) if known else 0
    return n == 1, n > 1 or any(one.lost for one in values)


def _planned(section: Section) -> Iterator[Contrast]:
    """Yield all comparisons of a section, whatever the outcome. An interaction is a difference of differences."""
    means: Sums = {condition: [(1.0, condition)] for condition in section.planned}
    for condition, terms in means.items():
        yield Contrast(MEAN, sums={condition: terms})
    differences = {factor: _minus(section, means, factor) for factor in section.baseline}
    for factor, base in section.baseline.items():
        for level in filter(None, section.levels[factor]):  # the lack of a factor is not a level
            yield _contrast(section, DIFFERENCE, f"{level} − {base}", {factor: level}, differences[factor])
    for (first, base), (second, other_base) in combinations(section.baseline.items(), 2):
        crossed = {
            condition: terms
            for condition, terms in _minus(section, differences[first], second).items()
            # All four sides are conditions of their own, whichever factor comes first.
            if len({side for _, side in terms}) == 4 and section.partner(terms[1][1], second) == terms[3][1]
        }
        for one, other in product(section.levels[first], section.levels[second]):
            contrast = f"({one} − {base}) × ({other} − {other_base})"
            yield _contrast(section, INTERACTION, contrast, {first: one, second: other}, crossed)


def _minus(section: Section, sums: Sums, factor: str) -> Sums:
    """Return the sum of each condition minus its partner's, where there is one."""
    return {
        condition: [*terms, *((-weight, side) for weight, side in sums[partner])]
        for condition, terms in sums.items()
        if (partner := section.partner(condition, factor)) is not None and partner in sums
    }


def _contrast(section: Section, kind: str, contrast: str, levels: Levels, sums: Sums) -> Contrast:
    """Return a comparison in the conditions that have these levels."""
    there = {one: terms for one, terms in sums.items() if levels.items() <= section.levels_of(one).items()}
    return Contrast(kind, " × ".join(levels), contrast, levels, there)


def _rows(section: Section, values: RunValues, planned: Contrast) -> Iterator[dict[str, Any]]:
    """Yield a comparison in each condition whose sides all have the outcome, and its mean over these."""
    measured = {one: terms for one, terms in planned.sums.items() if all(side in values for _, side in terms)}
    for condition, terms in measured.items():
        yield _row(section, values, terms, section.levels_of(condition), 1, planned)
    if len(measured) > 1:
        mean = [(weight / len(measured), side) for terms in measured.values() for weight, side in terms]
        yield _row(section, values, mean, planned.levels, len(measured), planned)


def _row(
    section: Section, values: RunValues, terms: Terms, levels: Levels, conditions: int, planned: Contrast
) -> dict[str, Any]:
    """Return a comparison: the weighted sum of conditions by seed, over the seeds that all of them have."""
    seeds = _shared([values[condition] for _, condition in terms])
    sums = [_sum([(weight, values[condition][seed]) for weight, condition in terms]) for seed in seeds]
    same, lost = _one_set(sums)
    influences = np.stack([np.asarray(one.influence) for one in sums]) if same else None
    made = estimate([one.value for one in sums], influences) if sums else _NO_SEED
    return {
        **{f"{FACTOR}{name}": levels.get(name) or None for name in section.factors},
        "condition": tuple(levels.get(name, NONE) for name in section.factors),
        "kind": planned.kind,
        "factor": planned.factor,
        "contrast": planned.contrast,
        "conditions": conditions,
        **made,
        "why": ", ".join(filter(None, [made["why"], OTHER_SETS if lost else ""])),
        "unit": sums[0].set[1] if same and sums else "",
        "seeds": tuple(seeds),
        "values": tuple(one.value for one in sums),
    }


def _with_families(section: Section, comparisons: pd.DataFrame) -> pd.DataFrame:
    """Return comparisons with `family`, and with `p_holm` in the primary outcome's family (Holm 1979).

    Means have no p, unless they are means of Δ: it is not a finding that a score differs from 0.
    """
    comparisons.loc[(comparisons["kind"] == MEAN) & (comparisons["regime"] != DELTA), "p"] = None
    primary = pd.Series(False, comparisons.index)
    if section.primary is not None:
        kind = INTERACTION if section.test == INTERACTION else DIFFERENCE
        wanted = pd.Series([*section.primary, kind, 1], ["task", "metric", "regime", "kind", "conditions"])
        primary = (comparisons[wanted.index] == wanted).all(axis=1)
        primary &= is_whole(comparisons, last_layer(comparisons, *section.primary[:2]))
    comparisons["family"] = np.where(primary, PRIMARY, EXPLORATORY)
    comparisons["p_holm"] = np.nan
    tested = primary & comparisons["p"].notna()
    comparisons.loc[tested, "p_holm"] = holm(comparisons.loc[tested, "p"].tolist())
    numbers = dict.fromkeys(("n", "value", "low", "high", "p", "p_holm", "units"), float)
    return comparisons.astype(numbers).astype({"n": int, "units": "Int64"})


def is_whole(comparisons: pd.DataFrame, layer: int | None = None) -> pd.Series[bool]:
    """Return which rows are of a finished model on a whole test set, those by layer of one layer."""
    here = comparisons["layer"].isna() if layer is None else comparisons["layer"] == layer
    return (
        comparisons["step"].isna() & (comparisons["split"] != "dev") & (comparisons["group"] == "") & here.fillna(False)
    )


def last_layer(comparisons: pd.DataFrame, task: str, metric: str) -> int | None:
    """Return the last layer that a metric has, None if the metric is not by layer."""
    layers = comparisons.loc[(comparisons["task"] == task) & (comparisons["metric"] == metric), "layer"].dropna()
    return None if layers.empty else int(layers.max())


def _shared(values: Iterable[Mapping[int, Any]]) -> list[int]:
    """Return the seeds that all of these have, in order."""
    several = list(values)
    return sorted(set.intersection(*(set(one) for one in several))) if several else []
