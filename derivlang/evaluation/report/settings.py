"""Group runs into settings (tables) and entries (rows).

A *setting* is everything that the numbers of a table have in common: source, model, steps and whatever rows do not
name. Runs of one language on different data, or with different fine-tuning of a task, are in different settings.

An *entry* is a row: an objective with its parameters, and a language. Its runs differ only in the pre-training seed.
"""

from __future__ import annotations

from collections import defaultdict
from collections.abc import Callable, Iterable, Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path
from statistics import mean
from typing import Any

from derivlang.core.errors import DerivlangError
from derivlang.core.spec import read_spec
from derivlang.evaluation.report.columns import Column, columns
from derivlang.evaluation.report.published import METRIC, TABLE_3
from derivlang.evaluation.report.runs import Run, TaskScore, same_model
from derivlang.evaluation.report.variants import Language, Variant, percent_of

# The settings of a run that differ between rows; all others are common to a table.
_OF_ROWS = {
    "source", "spec", "objective", "model", "seed", "steps", "tie", "language_ids", "coverage", "dictionary_by",
    "dictionary_seed", "parallel",
}  # fmt: skip
# Factors of a study that the paper varies, too: those with the names of these options.
_PUBLISHED_FACTORS = {"t", "objective", "seed", "dict-coverage", "parallel"}


@dataclass(frozen=True, slots=True)
class Options:
    """What the name of a row in a study says besides objective and language.

    settings: those in which rows differ, e.g. "learning_rate 0.001". levels: those of other factors, e.g. "from early".
    factors: their names.
    """

    settings: str = ""
    levels: str = ""
    factors: tuple[str, ...] = ()

    def __str__(self) -> str:
        return ", ".join(filter(None, [self.settings, self.levels]))


@dataclass(frozen=True, slots=True, eq=False)
class Entry:
    """A row: runs of an objective and a language with different pre-training seeds.

    told: what the rows of a study are told apart by. more: an addition to the name of runs that differ in what no name
    says.
    """

    variant: Variant
    language: Language
    runs: tuple[Run, ...]
    told: Options = Options()
    more: str = ""

    @property
    def options(self) -> str:
        return str(self.told)

    @property
    def label(self) -> str:
        return ", ".join(filter(None, [self.variant.label, self.options, self.more]))

    @property
    def swept(self) -> bool:
        """Whether it is a point of a sweep over the sizes of dictionary, parallel text or overlap."""
        return not self.variant.usual or self.language.overlap > 0

    @property
    def key(self) -> tuple[str, str]:
        """Where the paper's tables have it: objective and language, without the script."""
        return self.variant.objective, self.language.bare

    def scores(self, column: Column, regime: str) -> list[tuple[Run, TaskScore]]:
        found = ((run, run.score(column, regime)) for run in self.runs)
        return [(run, score) for run, score in found if score is not None]

    def alignment(self, name: str) -> float | None:
        """Return the mean over the runs, or None if no run has it."""
        found = [value for run in self.runs if (value := run.alignment(name)) is not None]
        return mean(found) if found else None

    def delta(self, column: Column) -> float | None:
        found = [score.mean for _, score in self.scores(column, "delta")]
        return mean(found) if found else None


@dataclass(frozen=True, slots=True, eq=False)
class Setting:
    """Runs that may be compared.

    title, notes: what all numbers share. entries: rows, in the paper's order. published: whether the paper's numbers
    stand in the tables. tasks: those that runs have, the paper's first if its numbers stand there.
    """

    title: str
    notes: tuple[str, ...]
    entries: tuple[Entry, ...]
    tasks: tuple[str, ...]
    published: bool

    @property
    def runs(self) -> list[Run]:
        return [run for entry in self.entries for run in entry.runs]

    @property
    def mixed(self) -> bool:
        """Whether a run has the regime CS."""
        return any(run.mixed for run in self.runs)

    @property
    def headline(self) -> tuple[Column, ...]:
        return columns(self.tasks, headline=True, published=self.published)

    @property
    def columns(self) -> tuple[Column, ...]:
        return columns(self.tasks)

    @property
    def planned(self) -> set[tuple[str, Language]]:
        """The objectives and languages of the cells that the runs' studies plan beside them, where factors say them."""
        plans = {run.plan.folder: run.plan for run in self.runs if run.plan}
        alike = [_other_levels(run.levels) for run in self.runs]
        cells = [levels for plan in plans.values() for levels in plan.cells.values()]
        return {key for levels in cells if _other_levels(levels) in alike and (key := _planned_key(levels)) is not None}

    def find(self, objective: str, language: str) -> list[Entry]:
        return [entry for entry in self.entries if entry.key == (objective, language)]


def settings_of(runs: Sequence[Run]) -> list[Setting]:
    """Return the settings of runs, without copies of a run (`copies_of`)."""
    copies = copies_of(runs)
    groups = _groups([run for run in runs if run.id not in copies])
    return [_setting_of(title, part) for (title, _), group in groups.items() for part in _divided(group)]


def copies_of(runs: Sequence[Run]) -> dict[str, str]:
    """Return the runs that no table has: the id of a copy -> that of the run that stands for it in the same table.

    Studies that share a run have it in the tables of each. A run of which something else was measured than of the
    others with its weights is not a copy: its numbers stand nowhere else.
    """
    out: dict[str, str] = {}
    for group in _groups(runs).values():
        alike: dict[str, list[Run]] = defaultdict(list)
        same = same_model(group)
        for run in group:
            alike[same.get(run.id, run.id)].append(run)
        for some in alike.values():
            out |= _covered(some)
    return out


def _covered(runs: Sequence[Run]) -> dict[str, str]:
    """Return the runs that others make superfluous: an id -> that of a run that has all of its measurements.

    Of runs with the same measurements, the first stands for all.
    """
    facts = [run.measured for run in runs]

    def better(other: int, one: int) -> bool:
        return _includes(facts[other], facts[one]) and (other < one or not _includes(facts[one], facts[other]))

    numbers = range(len(runs))
    kept = [one for one in numbers if not any(better(other, one) for other in numbers)]
    return {runs[one].id: runs[next(k for k in kept if better(k, one))].id for one in numbers if one not in kept}


def _includes(facts: Mapping[Any, Any], others: Mapping[Any, Any]) -> bool:
    return all(name in facts and facts[name] == value for name, value in others.items())


def _groups(runs: Sequence[Run]) -> dict[tuple[str, Path | str], list[Run]]:
    """Return the runs by title, and by study or else by recipe."""
    return _by(runs, lambda run: (_title(run), _study(run) or _recipe(run)))


def _setting_of(title: str, runs: Sequence[Run]) -> Setting:
    shared, options = _shared_settings(runs)
    entries = _entries(runs, options)
    published = _is_published(entries, runs)
    tasks = _tasks(runs, METRIC if published else ())
    versions, data = (_listed(run.facts[name] for run in runs) for name in ("derivlang", "data"))
    notes = [
        f"derivlang {versions}; data {data}",
        *(f"held-out text: {text}" for text in sorted({text for run in runs for text in run.heldout.values()})),
        *(f"{part}: {text}" if part else text for part, text in shared.items()),
    ]
    return Setting(title, tuple(filter(None, notes)), tuple(entries), tasks, published)


def _is_published(entries: Sequence[Entry], runs: Sequence[Run]) -> bool:
    """Return whether the paper's numbers apply.

    A row must be in its Table 3, and no factor may have two levels but those that name what the paper varies.
    """
    levels = _by_factor(runs)
    others = [name for name, found in levels.items() if name not in _PUBLISHED_FACTORS and len(found) > 1]
    return not others and any(entry.variant.standard and entry.key in TABLE_3 for entry in entries)


def _other_levels(levels: Mapping[str, str]) -> dict[str, str]:
    return {name: level for name, level in levels.items() if name not in _PUBLISHED_FACTORS}


def _planned_key(levels: Mapping[str, str]) -> tuple[str, Language] | None:
    """Return (objective, language) of the levels of a cell; None if they do not say them."""
    try:
        (objective, _, _), *_ = read_spec(levels["objective"], "objective", "align-mlm")
        return objective, Language.of(levels["t"])
    except (KeyError, DerivlangError):
        return None


def _by_factor(runs: Iterable[Run]) -> dict[str, set[str]]:
    found: dict[str, set[str]] = defaultdict(set)
    for run in runs:
        for name, level in run.levels.items():
            found[name].add(level)
    return found


def _entries(runs: Sequence[Run], options: Mapping[str, Options]) -> list[Entry]:
    """Return the entries in the paper's order. Runs with one name that differ in more than the seed get their id."""
    entries: list[Entry] = []
    named = _by(runs, lambda run: (Variant.of(run), Language.of(run.facts["spec"]), options[run.id]))
    for (variant, language, told), group in named.items():
        row = _one_of_each(group)
        if len(_by(row, _unseen)) > 1 or len({run.seed for run in row}) < len(row):
            row = []
        if row:
            entries.append(Entry(variant, language, tuple(sorted(row, key=lambda run: run.seed)), told))
        apart = [run for run in group if run not in row]
        entries += [Entry(variant, language, (run,), told, f"{run.id} {run.fingerprint[:7]}") for run in apart]
    entries.sort(key=lambda e: (e.variant.rank, e.variant.objective, not e.variant.standard, e.variant, e.language))
    return entries


def _one_of_each(runs: Sequence[Run]) -> list[Run]:
    """Return the runs without copies of which something else was measured: of these, the one with most measurements."""
    same = same_model(runs)
    copies = _by(runs, lambda run: same.get(run.id, run.id)).values()
    return [max(some, key=lambda run: len(run.measured)) for some in copies]


def _unseen(run: Run) -> tuple[Any, ...]:
    """Return the settings that the name of a row does not show.

    The dictionary is one of them even if the objective reads none: held-out alignment is that of rows outside it. In a
    study, its factors tell dictionaries apart.
    """
    facts, model = run.facts, run.facts["model"]
    dictionary = facts.get("dictionary") or {}
    seed = (facts.get("settings") or {}).get("dictionary_seed", dictionary.get("seed"))
    coverage, by = percent_of(dictionary.get("coverage")), dictionary.get("by")
    own = (coverage, by, dictionary.get("sha256")) if run.plan is None else ()
    return model.get("language_ids"), model.get("config"), seed, bool(facts.get("init")), own


def _title(run: Run) -> str:
    facts, model = run.facts, run.facts["model"]
    whole = "" if run.steps == facts["steps"] else f" of {facts['steps']:,}"
    parts = [facts["source"], model["name"], f"{run.steps:,}{whole} steps"]
    if run.plan is None and facts.get("batch_size") and facts.get("seq_len"):  # methods of a study may need others
        parts.append(f"batches of {facts['batch_size']} × {facts['seq_len']}")
    if model.get("tie") is False:
        parts.append("embeddings untied")
    if (facts.get("settings") or {}).get("packing") == "stream":
        parts.append("rows cut from a stream")
    return ", ".join(parts)


def _study(run: Run) -> Path | None:
    """Return the folder of a run's study, whose runs may be compared although their settings differ."""
    return run.plan.folder if run.plan else None


def _recipe(run: Run) -> str:
    """Return all other settings of pre-training as text."""
    return _text(_pretraining(run))


def _pretraining(run: Run) -> dict[str, Any]:
    found = run.facts.get("settings") or {}
    return {name: value for name, value in found.items() if name not in _OF_ROWS and value not in (None, "")}


def _shared_settings(runs: Sequence[Run]) -> tuple[dict[str, str], dict[str, Options]]:
    """Return the settings of the runs as text by part ("" for pre-training, or a task), and the options by run.

    Options are settings, and levels of other factors, in which runs of one objective and language differ. Settings that
    differ, but follow from these two, are told with the values of all. Only runs of a study differ (`settings_of`).
    """
    shared: dict[str, str] = {}
    options: dict[str, list[str]] = {run.id: [] for run in runs}
    rows = _by(runs, lambda run: (Variant.of(run), Language.of(run.facts["spec"]))).values()
    for part in ("", *_tasks(runs)):
        found = {run.id: run.settings(part) if part else _pretraining(run) for run in runs}
        known = [(run, one) for run in runs if (one := found[run.id]) is not None]
        names = list(dict.fromkeys(name for _, one in known for name in one))
        told = [name for name in names if not _is_option(name, rows, found)]
        if text := ", ".join(_with_rows(name, known) for name in told):
            shared[part] = text
        for run_id, one in found.items():
            differ = {name: one.get(name, "–") for name in names if name not in told} if one is not None else {}
            options[run_id] += [" ".join(filter(None, [part, text])) for text in filter(None, [_text(differ)])]
    told_of = {}
    for row in rows:  # the levels of factors that no setting says, such as those of `init`
        factors: dict[str, None] = {}
        for alike in _by(row, lambda run: (tuple(options[run.id]), run.seed)).values():
            every = dict.fromkeys(name for run in alike for name in run.levels)
            factors |= {name: None for name in every if len({run.levels.get(name) for run in alike}) > 1}
        for run in row:
            levels = _text({name: run.levels[name] for name in factors if name in run.levels})
            told_of[run.id] = Options(", ".join(options[run.id]), levels, tuple(factors))
    return shared, told_of


def _is_option(name: str, rows: Iterable[Sequence[Run]], found: Mapping[str, Mapping[str, Any] | None]) -> bool:
    """Return whether a setting differs between runs of one objective and language. found: the settings by run."""
    values = ([str(one.get(name)) for run in row if (one := found[run.id]) is not None] for row in rows)
    return any(len(set(row)) > 1 for row in values)


def _with_rows(name: str, known: Sequence[tuple[Run, Mapping[str, Any]]]) -> str:
    """Return a setting as text, e.g. "batch_size 16 (MLM; XLM) or 32 (tlm)", with the objectives if they differ."""
    objectives: dict[str, list[str]] = defaultdict(list)
    for run, one in known:
        objectives[str(one.get(name, "–"))].append(Variant.of(run).family)
    if len(objectives) == 1:
        return f"{name} {next(iter(objectives))}"
    told = (f"{value} ({'; '.join(sorted(set(of)))})" for value, of in objectives.items())
    return f"{name} {' or '.join(told)}"


def _text(settings: Mapping[str, Any]) -> str:
    return ", ".join(f"{name} {value}" for name, value in settings.items())


def _tasks(runs: Iterable[Run], first: Iterable[str] = ()) -> tuple[str, ...]:
    """Return the tasks that runs have: these in their order, then the others."""
    found = {task for run in runs for task in run.tasks}
    return (*(task for task in first if task in found), *sorted(found - set(first)))


def _listed(values: Iterable[str]) -> str:
    return ", ".join(sorted(set(values)))


def _divided(runs: Sequence[Run]) -> list[list[Run]]:
    """Divide runs by data if a language has several, and by held-out text and fine-tuning if these differ.

    Runs of a study may have other settings, but not other data.
    """
    marks: list[Callable[[Run], Any]] = []
    if any(
        len({run.facts["data"] for run in group}) > 1
        for group in _by(runs, lambda r: Language.of(r.facts["spec"])).values()
    ):
        marks.append(lambda run: run.facts["data"])
    for option in sorted({option for run in runs for option in run.heldout}):
        if len({run.heldout[option] for run in runs if option in run.heldout}) > 1:
            marks.append(lambda run, option=option: run.heldout.get(option))  # type: ignore[misc]
    for task in _tasks(runs):
        if len({_fine_tuning(run, task) for run in runs} - {""}) > 1:
            marks.append(lambda run, task=task: _fine_tuning(run, task))  # type: ignore[misc]
    return list(_by(runs, lambda run: tuple(mark(run) for mark in marks)).values())


def _fine_tuning(run: Run, task: str) -> str:
    """Return the settings of a task in which runs of a table may not differ, as text; "" without any."""
    found = run.settings(task) or {}
    return _text({name: value for name, value in found.items() if not run.plan or name in ("source", "data", "test")})


def _by(runs: Iterable[Run], key: Callable[[Run], Any]) -> dict[Any, list[Run]]:
    groups: dict[Any, list[Run]] = defaultdict(list)
    for run in runs:
        groups[key(run)].append(run)
    return dict(groups)
