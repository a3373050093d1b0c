"""Curves by objective and language: over steps or over layers.

scores of checkpoints             over steps, with a table
precision of self-labels          over steps, from log.jsonl of a run that has them
links, retrieval, words           over layers, from the embeddings (0) to the last
"""

from __future__ import annotations

from collections import defaultdict
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass
from statistics import mean
from typing import TypeAlias

from derivlang.evaluation.report.cells import EMPTY, Row, Table, TableCell, decimal
from derivlang.evaluation.report.checks import LAYER_FIGURES
from derivlang.evaluation.report.factors import headlines_of
from derivlang.evaluation.report.runs import Run
from derivlang.evaluation.report.scores import ScoreKey, ScoreRow, scores_of
from derivlang.evaluation.report.settings import Entry, Setting
from derivlang.evaluation.report.variants import Language
from derivlang.training.log_file import read_log

# Measure -> its figures with curves over layers.
LAYER_CURVES = {
    "links": ("argmax", "transport", "joint_argmax", "joint_transport"),
    "retrieval": ("sentences", "first"),
}
_PRECISION = "precision_percent"
Seeds: TypeAlias = dict[Entry, dict[str, dict[int, float]]]  # row -> id of a run -> x -> value


@dataclass(frozen=True, slots=True, eq=False)
class Curve:
    """A score over x, steps or layers. column: its title in a table. seeds: row -> id of a run -> x -> value."""

    title: str
    column: str
    id: str
    seeds: Mapping[Entry, Mapping[str, Mapping[int, float]]]
    x: str = "steps"

    def mean(self, entry: Entry) -> dict[int, tuple[float, int]]:
        """Return x -> (mean, number of runs) at every x that all runs of the row have which have any."""
        runs = list(self.seeds[entry].values())
        shared = [x for x in runs[0] if all(x in run for run in runs)]
        return {x: (mean(run[x] for run in runs), len(runs)) for x in sorted(shared)}


def curves_of(setting: Setting) -> list[Curve]:
    """Return the curve of each main score that two checkpoints of a run have."""
    steps = [checkpoint for run in setting.runs for checkpoint in run.checkpoints]
    values: dict[ScoreKey, Seeds] = {}
    for entry, row in _scores(setting, steps):
        _add(values.setdefault(row.key, {}), entry, row, row.run.steps)
    found = []
    for headline in headlines_of(steps, values.keys()):
        titles = dict(headline.regimes)
        for key in headline.figures:
            seeds = values.get(key, {})
            if any(len(run) > 1 for entry in seeds.values() for run in entry.values()):
                id = "-".join(filter(None, [headline.id, key.regime]))
                title = f"{headline.title}, {titles[key]}"
                found.append(Curve(title, title, id, seeds))
    return found


def logged_curves(setting: Setting) -> list[Curve]:
    """Return the precision of self-labels of each language, if a run has logged it."""
    curves = []
    for number, language in enumerate(_languages(setting)):
        seeds: Seeds = defaultdict(dict)
        for entry in setting.entries:
            for run in entry.runs if entry.language == language else ():
                logged = {one["step"]: one[_PRECISION] for one in read_log(run.folder) if _PRECISION in one}
                if logged:
                    seeds[entry][run.id] = logged
        if seeds:
            title = "Precision of self-labels"
            curves.append(Curve(f"{title}, {language.spec}, %", title, f"precision-{number}", seeds))
    return curves


def layer_curves(setting: Setting) -> list[Curve]:
    """Return the figures of measures by layer, a curve for each figure and language."""
    values: dict[tuple[ScoreKey, str], Seeds] = {}
    for entry, row in _scores(setting, setting.runs):
        measure, name = row.key.task, row.key.metric
        if name in LAYER_CURVES.get(measure, ()):
            seeds_of = values.setdefault((ScoreKey(measure, name), entry.language.spec), {})
            _add(seeds_of, entry, row, int(row.key.part))
    found = []
    for measure, names in LAYER_CURVES.items():
        for name in names:
            title = f"{measure.capitalize()}: {LAYER_FIGURES[measure][name]}"
            for number, language in enumerate(_languages(setting)):
                seeds = values.get((ScoreKey(measure, name), language.spec))
                if seeds and any(len(layers) > 1 for runs in seeds.values() for layers in runs.values()):
                    id = f"layers-{measure}-{name}-{number}"
                    found.append(Curve(f"{title}, {language.spec}, %", title, id, seeds, "layer"))
    return found


def _scores(setting: Setting, runs: Sequence[Run]) -> Iterator[tuple[Entry, ScoreRow]]:
    """Yield the scores of runs, each with the row of the tables that its run belongs to."""
    entry_of = {run.id: entry for entry in setting.entries for run in entry.runs}
    return ((entry_of[row.run.id], row) for row in scores_of(runs))


def _add(seeds: Seeds, entry: Entry, row: ScoreRow, x: int) -> None:
    seeds.setdefault(entry, {}).setdefault(row.run.id, {})[x] = row.value


def _languages(setting: Setting) -> list[Language]:
    return list(dict.fromkeys(entry.language for entry in setting.entries))


def curve_table(setting: Setting, curves: Sequence[Curve]) -> Table:
    """Return the table of all learning curves."""
    text = "Scores of checkpoints: means over the pre-training seeds of a row, at the steps that all of them have."
    return _table(setting, curves, ("curves", "Learning curves", text), "Step")


def layer_table(setting: Setting, curves: Sequence[Curve]) -> Table:
    """Return the table of all curves over layers."""
    text = (
        "Means over the pre-training seeds of a row; layer 0 is the embeddings. Links: alignment error rate of words, "
        "of the two sentences apart and jointly in one row. Retrieval: sentences whose nearest one is their own."
    )
    return _table(setting, curves, ("layers", "By layer", text), "Layer")


def _table(setting: Setting, curves: Sequence[Curve], told: tuple[str, str, str], x: str) -> Table:
    columns = tuple(dict.fromkeys(curve.column for curve in curves))
    rows = []
    for entry in setting.entries:
        means = {curve.column: curve.mean(entry) for curve in curves if entry in curve.seeds}
        for place in sorted({place for one in means.values() for place in one}):
            found = [means.get(column, {}).get(place) for column in columns]
            cells = [TableCell(EMPTY) if one is None else TableCell(decimal(one[0]), f"n={one[1]}") for one in found]
            rows.append(Row((entry.label, entry.language.spec, f"{place:,}"), tuple(cells)))
    return Table(*told, ("Objective", "Language", x), (("", columns),), tuple(rows))
