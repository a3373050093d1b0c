"""The runs of a study as a grid: conditions, means over pre-training seeds, marginal means, contrasts.

A *condition* is a combination of levels, without the seed. A factor that has one level, or that follows from those
before it (the lists of a [[zip]], a label), is no part of a condition. A cell of another [[grid]] may lack a factor;
its level is then NONE. Levels have the order of the study's file.

    marginal mean    of a level: the mean over the conditions in which all levels of the factor have a score, each of
                     them with the same weight, by seed
    contrast         a level minus the baseline, in one condition, or by the marginal means over the conditions that
                     both have; paired by seed
"""

from __future__ import annotations

from collections.abc import Collection, Mapping, Sequence
from dataclasses import dataclass
from typing import TypeAlias

from derivlang.core.errors import StoreError
from derivlang.evaluation.report.checks import LAYER_FIGURES
from derivlang.evaluation.report.columns import Column, columns, regimes_of
from derivlang.evaluation.report.estimates import Terms, estimate_of
from derivlang.evaluation.report.plan import StudyPlan
from derivlang.evaluation.report.runs import Run
from derivlang.evaluation.report.scores import ALIGNMENT, PERPLEXITY, ScoreKey, ScoreRow
from derivlang.evaluation.statistics import Estimate, estimate, no_interval
from derivlang.evaluation.tasks.untuned import SIDES

SEED, NONE = "seed", "none"
Condition: TypeAlias = tuple[str, ...]


@dataclass(frozen=True, slots=True)
class Headline:
    """A score with tables by factor. regimes: its keys with their titles. figures: the keys with a figure.

    column: of a fine-tuned task, whose test documents count in intervals. within: whether values are from 0 to 100.
    """

    id: str
    title: str
    regimes: tuple[tuple[ScoreKey, str], ...]
    figures: tuple[ScoreKey, ...]
    column: Column | None = None
    within: bool = True


@dataclass(frozen=True, slots=True, eq=False)
class FactorGrid:
    """A study's conditions.

    x, lines: the factors of rows and columns; lines may be None. factors: all that make a condition, x and lines
    first. levels: of each factor, in order. follow: factors that are no part of a condition. planned: condition -> its
    number of seeds. cells: condition -> seed -> run. values: (id of a run, key) -> number.
    """

    plan: StudyPlan
    factors: tuple[str, ...]
    lines: str | None
    levels: Mapping[str, tuple[str, ...]]
    follow: tuple[str, ...]
    planned: Mapping[Condition, int]
    cells: Mapping[Condition, Mapping[str, Run]]
    headlines: tuple[Headline, ...]
    values: Mapping[tuple[str, ScoreKey], float]

    @property
    def x(self) -> str:
        return self.factors[0]

    @property
    def baselines(self) -> dict[str, str]:
        """The factors with a baseline that conditions have."""
        return {f: self.plan.baseline[f] for f in self.factors if self.plan.baseline.get(f) in self.levels[f]}

    def scored(self, condition: Condition, key: ScoreKey) -> dict[str, Run]:
        """Return the runs of a condition that have this number, by seed."""
        found = self.cells.get(condition, {})
        return {seed: run for seed, run in found.items() if (run.id, key) in self.values}

    def with_level(self, condition: Condition, factor: str, level: str) -> Condition:
        """Return the condition with another level of one factor."""
        place = self.factors.index(factor)
        return (*condition[:place], level, *condition[place + 1 :])

    def balanced(self, factor: str, levels: Sequence[str], key: ScoreKey) -> list[Condition]:
        """Return the conditions, with the first level, in which each of these levels has the number."""
        place = self.factors.index(factor)
        first = [condition for condition in self.planned if condition[place] == levels[0]]
        return [c for c in first if all(self.scored(self.with_level(c, factor, level), key) for level in levels)]

    def mean(self, conditions: Sequence[Condition], headline: Headline, key: ScoreKey) -> Estimate | None:
        """Return the mean over seeds of the mean over conditions, or None if no seed has all of them."""
        found = [self.scored(condition, key) for condition in conditions]
        return self._estimate([[(1 / len(found), runs[s]) for runs in found] for s in _shared(found)], headline, key)

    def contrast(
        self, conditions: Sequence[Condition], factor: str, level: str, headline: Headline, key: ScoreKey
    ) -> Estimate | None:
        """Return the mean over seeds of a level minus the conditions' own, or None if no seed has all of them."""
        sides = [(self.with_level(c, factor, level), 1 / len(conditions)) for c in conditions]
        sides += [(condition, -1 / len(conditions)) for condition in conditions]
        found = [(self.scored(condition, key), weight) for condition, weight in sides]
        seeds = _shared([runs for runs, _ in found])
        return self._estimate([[(weight, runs[seed]) for runs, weight in found] for seed in seeds], headline, key)

    def _estimate(self, seeds: Sequence[Terms], headline: Headline, key: ScoreKey) -> Estimate | None:
        values = [sum(weight * self.values[run.id, key] for weight, run in terms) for terms in seeds]
        if not values:
            return None
        if headline.column is None:
            return estimate(values)
        try:
            return estimate_of(seeds, headline.column, key.regime)
        except StoreError as error:
            if error.id != "other-sentences":
                raise
            return no_interval(values, "other test sentences")


def grids_of(runs: Sequence[Run], scores: Sequence[ScoreRow]) -> list[FactorGrid]:
    """Return the grid of each study, and of the runs without one that have the same factors, if two conditions differ.

    Raise StoreError for two runs of one condition and seed.
    """
    groups: dict[object, list[Run]] = {}
    for run in runs:
        if run.levels:
            groups.setdefault(run.plan.folder if run.plan else frozenset(run.levels), []).append(run)
    found = [_grid(some[0].plan or _plan_of(some), some, scores) for some in groups.values()]
    return [grid for grid in found if grid is not None]


def _grid(plan: StudyPlan, runs: Sequence[Run], scores: Sequence[ScoreRow]) -> FactorGrid | None:
    """Return the grid of a study, or None if all of its cells have one condition."""
    seed = _seed_factor(plan, runs)
    first = [name for name in (plan.x, plan.lines, *plan.baseline) if name is not None and name in plan.factors]
    kept: list[str] = []
    for name in dict.fromkeys([*first, *plan.factors]):
        if name != seed and not _follows(name, kept, plan):
            kept.append(name)
    if not kept:
        return None
    # A factor that moves with the seed, such as a second seed, makes no condition, unless there is no other.
    kept = [name for name in kept if name in first or not _moves_with(name, seed, plan)] or kept
    free = [name for name in (*plan.baseline, *kept) if name in kept and name != plan.lines]
    x = plan.x if plan.x in kept else next(iter(free), kept[0])
    lines = next((name for name in (plan.lines, *kept) if name in kept and name != x), None)
    factors = tuple(dict.fromkeys([x, *([lines] if lines else []), *kept]))

    def condition(levels: Mapping[str, str]) -> Condition:
        return tuple(levels.get(name, NONE) for name in factors)

    planned: dict[Condition, int] = {}
    for levels in plan.cells.values():
        planned[condition(levels)] = planned.get(condition(levels), 0) + 1
    cells: dict[Condition, dict[str, Run]] = {}
    for run in runs:
        other = cells.setdefault(condition(run.levels), {}).setdefault(run.levels.get(seed or "", str(run.seed)), run)
        if other is not run:
            raise StoreError(
                "two runs have the same factors and the same seed",
                where=f"{other.folder}, {run.folder}",
                fix="leave one of them out, or write separate reports",
                id="run",
            )
    ids = {run.id for run in runs}
    values = {(row.run.id, row.key): row.value for row in scores if row.run.id in ids}
    levels_in_order = {name: _levels(name, plan) for name in factors}
    follow = tuple(name for name in plan.factors if name not in factors and name != seed)
    headlines = tuple(headlines_of(runs, {key for _, key in values}))
    return FactorGrid(plan, factors, lines, levels_in_order, follow, planned, cells, headlines, values)


def headlines_of(runs: Sequence[Run], keys: Collection[ScoreKey]) -> list[Headline]:
    """Return the main score of each task and measure that has one of these keys: tasks first, then measures."""
    tasks = sorted({task for run in runs for task in run.tasks})
    found = []
    for column in columns(tasks, headline=True, published=False):
        found_regimes = regimes_of(mixed=any(run.mixed for run in runs))
        regimes = tuple((ScoreKey(column.task, column.name, regime), title) for regime, title in found_regimes)
        found.append(Headline(column.id, column.title, regimes, tuple(key for key, _ in regimes[1:]), column))
    for label, task in {label: task for run in runs for label, task, _ in run.untuned()}.items():
        regimes = tuple((ScoreKey(label, task.headline, side), side) for side in SIDES)
        found.append(Headline(f"untuned-{len(found)}", f"{label} {task.headline}", regimes, (regimes[1][0],)))
    aligned = ScoreKey(ALIGNMENT, "heldout")
    found.append(Headline(ALIGNMENT, "Held-out alignment", ((aligned, "held-out"),), (aligned,)))
    sides = tuple((ScoreKey(PERPLEXITY, "perplexity", side), side) for side in SIDES)
    found.append(Headline(PERPLEXITY, "Perplexity", sides, (sides[1][0],), within=False))
    for measure, names in LAYER_FIGURES.items():
        name, title = next(iter(names.items()))
        layers = sorted({key for key in keys if (key.task, key.metric) == (measure, name)}, key=lambda k: float(k.part))
        by_layer = tuple((key, f"layer {key.part}") for key in layers)
        found.append(Headline(measure, f"{measure.title()}: {title}", by_layer, tuple(layers[-1:])))
    return [one for one in found if any(key in keys for key, _ in one.regimes)]


def _follows(name: str, kept: Sequence[str], plan: StudyPlan) -> bool:
    """Return whether the level of a factor is the same in all cells that agree in the kept factors."""
    found: dict[Condition, str] = {}
    return all(
        found.setdefault(tuple(levels.get(one, NONE) for one in kept), levels.get(name, NONE)) == levels.get(name, NONE)
        for levels in plan.cells.values()
    )


def _moves_with(name: str, seed: str | None, plan: StudyPlan) -> bool:
    """Return whether each level of a factor has one seed, and each seed one level."""
    return seed is not None and _follows(name, [seed], plan) and _follows(seed, [name], plan)


def _seed_factor(plan: StudyPlan, runs: Sequence[Run]) -> str | None:
    """Return the factor that is the pre-training seed: the one of this name, else one that has its values."""
    if SEED in plan.factors:
        return SEED
    for name in plan.factors:
        if len({run.seed for run in runs}) > 1 and all(run.levels.get(name) == str(run.seed) for run in runs):
            return name
    return None


def _levels(name: str, plan: StudyPlan) -> tuple[str, ...]:
    """Return the levels that cells have, in the file's order; NONE first."""
    used = {levels.get(name, NONE) for levels in plan.cells.values()}
    return tuple(level for level in dict.fromkeys([NONE, *plan.factors[name]]) if level in used)


def _plan_of(runs: Sequence[Run]) -> StudyPlan:
    """Return a plan of runs without a study: what was run was planned. Numbers are sorted."""
    factors: dict[str, tuple[str, ...]] = {}
    for name in runs[0].levels:
        levels = list(dict.fromkeys(run.levels[name] for run in runs))
        factors[name] = tuple(sorted(levels, key=float) if all(map(is_number, levels)) else levels)
    cells = {run.folder.resolve(): run.levels for run in runs}
    return StudyPlan(runs[0].folder.parent, ", ".join(factors), factors, {}, None, None, cells)


def is_number(text: str) -> bool:
    """Return whether a level is a finite number."""
    try:
        return abs(float(text)) < float("inf")
    except ValueError:
        return False


def _shared(found: Sequence[Mapping[str, Run]]) -> list[str]:
    """Return the seeds that all of these have, in the order of the first."""
    return [seed for seed in found[0] if all(seed in some for some in found)] if found else []
