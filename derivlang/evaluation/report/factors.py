"""What varies among the runs of a study is a factor, what does not is a caption.

Candidates are the factors of the study, those that its report names first, then the settings of its runs, the source
first. One that has a single level, or that follows from those before it (the lists of a [[zip]], what an objective
implies) and has no baseline, makes no condition, nor does one that repeats the pre-training seed, which distinguishes
replicates. A *condition* is a combination of levels; a run may lack a factor, and its level is then NONE.

    t            objective   coverage   seed
    trans        mlm                    1         factors objective and coverage; t is a caption. MLM, which reads no
    trans        align-mlm   25         1         dictionary, is the baseline of ALIGN-MLM at 25 and at 50
    trans        align-mlm   50         1
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Collection, Iterable, Iterator, Mapping, Sequence
from itertools import product
from typing import Any, TypeAlias

import pandas as pd

from derivlang.core.errors import StoreError, UsageError, unknown
from derivlang.core.settings import text_of
from derivlang.evaluation.columns import Column
from derivlang.evaluation.plan import levels_of
from derivlang.evaluation.report.frame import DELTA, SUP, ZS, checked, columns_of, named
from derivlang.evaluation.table import FACTOR, SETTING, TARGET

NONE = ""  # the level of a run that lacks a factor
SEED, SOURCE, LEVEL, INTERACTION = "seed", "source", "level", "interaction"
CONTROL, UNTRAINED = "control", "untrained"  # a factor of controls, and its level that is a floor
_OF_CONTROLS = (CONTROL, "objective")  # what controls set themselves (studies/scales.toml)
# Settings that a reader has to know of where compared levels differ in them, too: names, or how they begin.
_TOLD = ("ft_", "steps", "tokens", "epochs", "batch_size", "seq_len", "lr", "limit", "coverage")
Condition: TypeAlias = tuple[str, ...]
Levels: TypeAlias = Mapping[str, str]
Outcome: TypeAlias = tuple[str, str, str]  # task, metric, regime


class Section:
    """The runs of one study, or those without one.

    title: in the study's file, else its name. columns: what is declared of each (task, metric). attributes: of the
    table (`evaluation/table.py`). rows: of the table, checked. runs: run -> (condition, seed). factors: of a condition;
    x, then lines, then others. levels: of each factor, in order. planned: condition -> its number of runs, in order.
    constant: settings that all runs share. of_task: those that belong to a task. follows: factors that make no
    condition. baseline: the level of a factor that others are compared with. primary: the main outcome; test: what of
    it. published: numbers that the study names. notes: for the reader.
    """

    def __init__(
        self,
        study: str,
        columns: Mapping[tuple[str, str], Column],
        attributes: Mapping[str, Any],
        rows: pd.DataFrame,
        told: Mapping[str, Any],
        outcomes: Mapping[str, Outcome],
    ) -> None:
        self.name, self.columns, self.attributes, self.rows = study, columns, attributes, rows
        self.title = str(told.get("title") or study or "Runs")
        self.primary, self.test = outcomes.get(told.get("primary") or ""), str(told.get("test") or LEVEL)
        self.published: Sequence[Mapping[str, Any]] = told.get("published") or ()
        facts, self.of_task = _facts(rows)
        if not study:
            _set_control(facts)
        seeds = rows.groupby("run", sort=False)["seed"].first()
        baseline = levels_of(told.get("baseline") or {})
        cells = list(_planned(told.get("cells") or (), facts.index))
        of_study = [name.removeprefix(FACTOR) for name in rows if name.startswith(FACTOR)]
        planned = pd.DataFrame([{name: cell.get(name, NONE) for name in of_study} for cell in cells], dtype=object)
        known = pd.concat([facts[of_study], planned]) if len(planned) else facts[of_study]
        first = [told.get("x"), told.get("lines"), *baseline]
        some = dict.fromkeys([*first, *of_study, SOURCE, *facts])  # the number of steps may follow from the source
        names = [name for name in some if name in facts and name != SEED]
        kept: list[str] = []
        for name in names:
            table = known if {name, *kept} <= set(of_study) else facts
            # A factor with a baseline makes conditions even if it follows from x, as XLM follows from having pairs.
            if (name in baseline or not _follows(table, name, kept)) and not _repeats(facts[name], seeds):
                kept.append(name)
        self.factors = factors = _ordered(kept, told, baseline)
        self.runs = runs = {run: (tuple(facts.loc[run, list(factors)]), int(seeds[run])) for run in facts.index}
        _check_different(study, runs)
        counts = Counter(condition for condition, _ in runs.values())
        if factors and set(factors) <= set(of_study):
            counts |= Counter(tuple(cell.get(name, NONE) for name in factors) for cell in cells)
        given = {name: [text_of(level) for level in some] for name, some in (told.get("factors") or {}).items()}
        self.levels = {
            name: _levels([condition[at] for condition in counts], given.get(name) or ())
            for at, name in enumerate(factors)
        }
        self.constant = {
            name: facts[name].iloc[0] for name in facts
            if name not in factors and facts[name].nunique() == 1 and facts[name].iloc[0] != NONE and name != SEED
        }  # fmt: skip
        self.planned = {
            condition: counts[condition] for condition in product(*self.levels.values()) if condition in counts
        }
        self.follows = tuple(name for name in names if name not in {*factors, *self.constant} and name in of_study)
        self.baseline = {name: level for name, level in baseline.items() if name in factors}
        self.notes = (*_notes(told, baseline, factors, runs, outcomes), *_differing(facts, factors, of_study))

    def partner(self, condition: Condition, factor: str) -> Condition | None:
        """Return the condition to compare with: the baseline's level of a factor, all other levels the same.

        A baseline that lacks another factor is compared with each of its levels. A control is not compared if it is
        untrained, or if its level is also trained without it.
        """
        at = self.factors.index(factor)
        if condition[at] == self.baseline[factor]:
            return None
        control = self.levels_of(condition).get(CONTROL, NONE)
        if control != NONE and factor != CONTROL:
            usual = any(o[at] == condition[at] and self.levels_of(o)[CONTROL] == NONE for o in self.planned)
            if usual or control.startswith(UNTRAINED):
                return None
        wanted = (*condition[:at], self.baseline[factor], *condition[at + 1 :])
        partners = [
            other
            for other in self.planned
            if other[at] == wanted[at] and all(b in (a, NONE) for a, b in zip(wanted, other, strict=True))
        ]
        return min(partners, key=lambda other: other.count(NONE), default=None)

    def untrained(self, condition: Condition) -> Condition | None:
        """Return the condition of the untrained model of the same language; None if it was not run.

        It has all other levels of the condition, or lacks these factors.
        """
        wanted = self.levels_of(condition)
        for other in dict.fromkeys(condition for condition, _ in self.runs.values()):
            levels = self.levels_of(other)
            same = all(level in (wanted[name], NONE) for name, level in levels.items() if name not in _OF_CONTROLS)
            if levels.get(CONTROL) == UNTRAINED and same:
                return other
        return None

    def of_run(self, attribute: str, run: str) -> Any:
        """Return what an attribute of the table says of a run, such as its `doses`, or None."""
        return (self.attributes.get(attribute) or {}).get(f"{self.name}/{run}")

    def levels_of(self, condition: Condition) -> dict[str, str]:
        """Return the levels of a condition by factor."""
        return dict(zip(self.factors, condition, strict=True))

    def label(self, condition: Condition, without: Iterable[str] = ()) -> str:
        """Return a condition as text, such as "t trans, objective mlm"."""
        levels = self.levels_of(condition)
        return told_of({name: level for name, level in levels.items() if level != NONE and name not in without})


def sections_of(
    scores: pd.DataFrame, baseline: Mapping[str, Any] | None = None, primary: str | None = None, test: str | None = None
) -> list[Section]:
    """Return a section for each study, and one for runs without a study. What is not given is as the study says.

    scores: as of `derivlang.scores`, or somebody else's. Raise DataError for a file that is not a table of scores,
    StoreError for two runs of a section that differ in nothing, and UsageError for a baseline or a primary outcome
    that no section has. One that a study names may have no result yet: a note says so.
    """
    if test not in (None, LEVEL, INTERACTION):
        raise unknown("test", str(test), (LEVEL, INTERACTION))
    whole = checked(scores)
    columns = columns_of(whole, scores.attrs.get("columns") or {})
    outcomes = _outcomes(whole, columns)
    if primary is not None and primary not in outcomes:
        raise unknown("primary outcome", primary, outcomes, id="primary")
    asked = None if baseline is None else levels_of(baseline)
    sections = []
    given = {"baseline": asked, "primary": primary, "test": test}
    for study, rows in whole.groupby("study", sort=False):
        told = dict((scores.attrs.get("studies") or {}).get(study) or {})
        told |= {key: value for key, value in given.items() if value is not None}
        sections.append(Section(str(study), columns, scores.attrs, rows, told, outcomes))
    known = dict.fromkeys((name, level) for one in sections for name in one.factors for level in one.levels[name])
    if asked and not known:
        raise UsageError("nothing varies among the runs, so no level has a baseline", id="baseline")
    for choice in (asked or {}).items():
        if choice not in known:
            raise unknown("baseline", " ".join(choice), [" ".join(one) for one in known], id="baseline")
    return sections


def _outcomes(rows: pd.DataFrame, columns: Mapping[tuple[str, str], Column]) -> dict[str, Outcome]:
    """Return outcomes by name: task.metric.regime, or task.regime of a headline; a regime may be empty."""
    outcomes: dict[str, Outcome] = {}
    for (task, metric), regimes in rows.groupby(["task", "metric"], sort=False)["regime"].unique().items():
        for regime in [*regimes, *([DELTA] if {SUP, ZS} <= set(regimes) else [])]:
            outcomes[".".join(filter(None, [task, metric, regime]))] = (task, metric, regime)
            if columns[task, metric].headline:
                outcomes.setdefault(".".join(filter(None, [task, regime])), (task, metric, regime))
    return outcomes


def _set_control(facts: pd.DataFrame) -> None:
    """Name the untrained models among runs without a study, as controls do in a study. Their steps are not a level."""
    if CONTROL not in facts and "steps" in facts and (untrained := facts["steps"] == "0").nunique() == 2:
        facts.insert(0, CONTROL, untrained.map({True: UNTRAINED, False: NONE}))
        facts["steps"] = facts["steps"].mask(untrained, NONE)


def _planned(cells: Iterable[Mapping[str, Any]], runs: Collection[str]) -> Iterator[dict[str, str]]:
    """Yield the levels of each cell of a study, for each target of its run; of a missing run, for all known ones."""
    several = [run.partition("@")[::2] for run in runs]
    every = dict.fromkeys(target for _, target in several if target)
    for cell in cells:
        targets = [target for run, target in several if run == cell["run"]] or every or [""]
        for target in targets:
            yield levels_of(cell["factors"]) | ({TARGET: target} if target else {})


def _differing(facts: pd.DataFrame, factors: Sequence[str], of_study: Sequence[str]) -> Iterator[str]:
    """Yield a sentence for each setting of _TOLD that is not a factor and varies with one, or with several."""
    for name in facts.columns.difference([*factors, *of_study], sort=False):
        causes = [factor for factor in factors if _follows(facts, name, [factor])]
        if not name.startswith(_TOLD) or facts[name].nunique() < 2 or {CONTROL, TARGET} & {*causes}:
            continue
        if not causes:
            yield f"{name} differs between conditions: {', '.join(level or 'none' for level in facts[name].unique())}."
        elif not any(facts[name].equals(facts[cause].rename(name)) for cause in causes):
            by_level = facts.drop_duplicates(causes[0])
            told = (f"{value or 'none'} ({level or 'none'})" for value, level in by_level[[name, causes[0]]].to_numpy())
            yield f"{name} differs with {causes[0]}: {', '.join(told)}."


def _facts(rows: pd.DataFrame) -> tuple[pd.DataFrame, dict[str, dict[str, str]]]:
    """Return (level of each factor and setting, by run, as text; settings that belong to a task and are its caption).

    A setting belongs to tasks if a run has it for some of them only, or has several values. Where it varies between
    runs, it is a setting of the run: "pos 1, ner 2".
    """
    columns = [name for name in rows if name.startswith((FACTOR, SETTING))]
    texts = rows[columns].astype(object)
    each = texts.where(texts.notna(), NONE).astype(str).groupby([rows["run"], rows["task"]], sort=False).max()
    by_run = each.groupby(level="run", sort=False)
    levels: dict[str, pd.Series[str]] = {}
    of_task: dict[str, dict[str, str]] = {}
    for column in sorted(columns, key=lambda name: not name.startswith(FACTOR)):
        name = column.removeprefix(FACTOR).removeprefix(SETTING)
        if name in levels:  # the study's factor is this setting
            continue
        if column.startswith(FACTOR) or (by_run[column].nunique() == 1).all():
            levels[name] = by_run[column].max()
            continue
        by_task = each[column].groupby(level="task", sort=False)
        varied = by_task.nunique() > 1
        for task, value in by_task.first()[~varied].items():
            if value != NONE:
                of_task.setdefault(str(task), {})[name] = value
        if varied.any():
            some = each[column][each.index.get_level_values("task").isin(varied.index[varied])]
            level = {run: ", ".join(f"{task} {value}" for (_, task), value in part.items() if value != NONE)
                     for run, part in some.groupby(level="run", sort=False)}  # fmt: skip
            levels[name] = pd.Series(level).reindex(by_run[column].max().index, fill_value=NONE)
    return pd.DataFrame(levels, index=rows["run"].unique()).astype(object), of_task


def _follows(table: pd.DataFrame, name: str, kept: Sequence[str]) -> bool:
    """Return whether a factor has one level wherever the kept ones agree."""
    groups = table.groupby(list(kept))[name].nunique() if kept else pd.Series([table[name].nunique()])
    return bool((groups <= 1).all())


def _repeats(levels: pd.Series[str], seeds: pd.Series[int]) -> bool:
    """Return whether a factor is another name of the seed: it moves with it, and has its values or `seed` in its name.

    That it moves with the seed is not enough: one run of MLM with seed 1 and one of ALIGN with seed 2 differ in more.
    """
    both = pd.DataFrame({"level": levels, "seed": seeds.astype(str)}).drop_duplicates()
    moves = both["level"].is_unique and both["seed"].is_unique
    return moves and (SEED in str(levels.name) or bool((both["level"] == both["seed"]).all()))


def _ordered(kept: Sequence[str], told: Mapping[str, Any], baseline: Levels) -> tuple[str, ...]:
    """Return the factors with x and lines first: as the study says, else factors that have a baseline."""
    lines = told.get("lines")
    free = [name for name in (*baseline, *kept) if name in kept and name not in (lines, CONTROL)]
    x = told.get("x") if told.get("x") in kept else next(iter(free), None)
    first = [str(name) for name in (x, lines) if name in kept]
    return tuple(dict.fromkeys([*first, *(name for name in kept if name != CONTROL), *kept]))


def _levels(used: Sequence[str], given: Sequence[str]) -> tuple[str, ...]:
    """Return the levels that are used in their given order, numbers without one by size; NONE comes first."""
    rest = [level for level in dict.fromkeys(used) if level not in given and level != NONE]
    if all(map(is_number, rest)):
        rest.sort(key=float)
    return tuple(level for level in dict.fromkeys([NONE, *given, *rest]) if level in set(used))


def is_number(level: str) -> bool:
    """Return whether a level is a finite number."""
    try:
        return abs(float(level)) < float("inf")
    except ValueError:
        return False


def _check_different(study: str, runs: Mapping[str, tuple[Condition, int]]) -> None:
    seen: dict[tuple[Condition, int], str] = {}
    for run, place in runs.items():
        if seen.setdefault(place, run) != run:
            raise StoreError(
                "two runs have the same factors, settings and seed",
                where=f"{named(study, seen[place])}, {named(study, run)}",
                fix="leave one of them out, or name their difference: derivlang pretrain --factor NAME=LEVEL",
                id="run",
            )


def _notes(
    told: Mapping[str, Any],
    baseline: Levels,
    factors: Sequence[str],
    runs: Mapping[str, tuple[Condition, int]],
    outcomes: Mapping[str, Outcome],
) -> tuple[str, ...]:
    """Return sentences on what the comparisons lack, such as a baseline without a result."""
    there = {(name, level) for condition, _ in runs.values() for name, level in zip(factors, condition, strict=True)}
    missing = [one for one in baseline.items() if one[0] in factors and one not in there]
    seeds = max(Counter(condition for condition, _ in runs.values()).values())
    notes = {
        **{f"The baseline {name} {level} has no result: nothing is compared with it.": True for name, level in missing},
        f"The primary outcome {told.get('primary')} has no result.": told.get("primary") not in (None, "", *outcomes),
        "The primary outcome was changed after runs existed, so its tests were not planned.": told.get(
            "changed_primary"
        ),
        "Each condition has one seed: there are no intervals and no tests.": seeds == 1,
    }
    return tuple(note for note, is_said in notes.items() if is_said)


def told_of(levels: Levels) -> str:
    """Return levels or settings as text, such as "t trans, objective mlm"."""
    return ", ".join(f"{name} {level}" for name, level in levels.items())
