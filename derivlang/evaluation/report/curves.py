"""Learning curves: scores of checkpoints over the steps of a run, by objective and language."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass
from statistics import mean

from derivlang.evaluation.report.cells import EMPTY, Row, Table, TableCell, decimal
from derivlang.evaluation.report.factors import headlines_of
from derivlang.evaluation.report.scores import ScoreKey, scores_of
from derivlang.evaluation.report.settings import Entry, Setting


@dataclass(frozen=True, slots=True, eq=False)
class Curve:
    """A score over steps. seeds: row -> id of a run -> step -> value."""

    title: str
    key: ScoreKey
    id: str
    seeds: Mapping[Entry, Mapping[str, Mapping[int, float]]]

    def mean(self, entry: Entry) -> dict[int, tuple[float, int]]:
        """Return step -> (mean, number of runs) at the steps that all runs of a row with checkpoints have."""
        runs = list(self.seeds[entry].values())
        shared = [step for step in runs[0] if all(step in run for run in runs)]
        return {step: (mean(run[step] for run in runs), len(runs)) for step in sorted(shared)}


def curves_of(setting: Setting) -> list[Curve]:
    """Return the curve of each main score that two checkpoints of a run have."""
    runs = [run for entry in setting.entries for run in entry.runs]
    steps = [checkpoint for run in runs for checkpoint in run.checkpoints]
    entry_of = {run.id: entry for entry in setting.entries for run in entry.runs}
    values: dict[ScoreKey, dict[Entry, dict[str, dict[int, float]]]] = {}
    for row in scores_of(steps):
        by_entry = values.setdefault(row.key, {})
        by_entry.setdefault(entry_of[row.run.id], {}).setdefault(row.run.id, {})[row.run.steps] = row.value
    found = []
    for headline in headlines_of(steps, values.keys()):
        titles = dict(headline.regimes)
        for key in headline.figures:
            seeds = values.get(key, {})
            if any(len(run) > 1 for entry in seeds.values() for run in entry.values()):
                id = "-".join(filter(None, [headline.id, key.regime]))
                found.append(Curve(f"{headline.title}, {titles[key]}", key, id, seeds))
    return found


def curve_table(setting: Setting, curves: list[Curve]) -> Table | None:
    """Return the table of all curves, or None without any."""
    rows = []
    for entry in setting.entries:
        means = [curve.mean(entry) if entry in curve.seeds else {} for curve in curves]
        for step in sorted({step for one in means for step in one}):
            cells = [TableCell(decimal(one[step][0]), f"n={one[step][1]}") if step in one else TableCell(EMPTY)
                     for one in means]  # fmt: skip
            rows.append(Row((entry.label, entry.language.spec, f"{step:,}"), tuple(cells)))
    if not rows:
        return None
    return Table(
        "curves",
        "Learning curves",
        "Scores of checkpoints: means over the pre-training seeds of a row, at the steps that all of them have.",
        ("Objective", "Language", "Step"),
        (("", tuple(curve.title for curve in curves)),),
        tuple(rows),
    )
