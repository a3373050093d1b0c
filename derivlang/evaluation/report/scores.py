"""One tidy table of all scores, for the tables by factor and, as scores.tsv, for pandas and R.

    run  folder  same_as  seed  objective  spec  task  metric  regime  part  value  factor.NAME …

A row is one number: of a run, a task or measure, a metric, a regime and a part (a layer, a group of items).

    a fine-tuned task      regime: sup, zs, delta, source, oracle, dev-sup …; the mean over fine-tuning seeds
    without fine-tuning    regime: source, derived; part: the group, "" for all items
    alignment              metric: heldout, all, csls …
    perplexity             regime: source, derived
    measures by layer      task: contextual, retrieval, links; part: the layer
"""

from __future__ import annotations

import csv
import io
from collections.abc import Iterable, Iterator, Sequence
from dataclasses import dataclass

from derivlang.evaluation.report.checks import LAYER_FIGURES
from derivlang.evaluation.report.columns import columns, regimes_of
from derivlang.evaluation.report.runs import Run, same_model
from derivlang.evaluation.tasks.untuned import SIDES, shown_groups

ALIGNMENT, PERPLEXITY, SURPRISAL = "alignment", "perplexity", "surprisal"
_HEAD = ("run", "folder", "same_as", "seed", "objective", "spec", "task", "metric", "regime", "part", "value")
_REGIMES = (
    *(name for name, _ in regimes_of(mixed=True)),
    "source",
    "oracle",
    *(name for name, _ in regimes_of(mixed=True, dev=True)),
)


@dataclass(frozen=True, slots=True)
class ScoreKey:
    """What a number measures; the module's docstring has the values."""

    task: str
    metric: str
    regime: str = ""
    part: str = ""


@dataclass(frozen=True, slots=True)
class ScoreRow:
    """A row of the tidy table."""

    run: Run
    key: ScoreKey
    value: float


def scores_of(runs: Iterable[Run]) -> list[ScoreRow]:
    """Return the tidy table of all numbers that the runs have."""
    return [ScoreRow(run, key, float(value)) for run in runs for key, value in _of_run(run) if value is not None]


def scores_file(rows: Sequence[ScoreRow], runs: Sequence[Run]) -> str:
    """Return the table as tab-separated text. Values with tabs, quotes or line ends are quoted as in CSV."""
    names = list(dict.fromkeys(name for run in runs for name in run.levels))
    copies = same_model(runs)
    text = io.StringIO()
    writer = csv.writer(text, "excel-tab", lineterminator="\n")
    writer.writerow([*_HEAD, *(f"factor.{name}" for name in names)])
    for row in rows:
        run, key = row.run, row.key
        facts = run.id, run.folder, copies.get(run.id, ""), run.seed, run.facts["objective"], run.facts["spec"]
        levels = [run.levels.get(name, "") for name in names]
        writer.writerow([*facts, key.task, key.metric, key.regime, key.part, row.value, *levels])
    return text.getvalue()


def _of_run(run: Run) -> Iterator[tuple[ScoreKey, float | None]]:
    for column in columns(run.tasks):
        for regime in _REGIMES:
            score = run.score(column, regime)
            yield ScoreKey(column.task, column.name, regime), None if score is None else score.mean
    for label, task, entry in run.untuned():
        for place, group in enumerate(shown_groups(entry)):
            for side in SIDES:
                yield ScoreKey(label, task.headline, side, group["name"] if place else ""), group[side][task.headline]
    found = run.evaluation or {}
    for name in found.get(ALIGNMENT) or {}:
        yield ScoreKey(ALIGNMENT, name), run.alignment(name)
    for side in SIDES:
        yield ScoreKey(PERPLEXITY, "perplexity", side), run.perplexity(side)
        yield ScoreKey(PERPLEXITY, "bits", side), run.perplexity(f"{side}_bits")
        yield ScoreKey(SURPRISAL, "bits", side), (found.get(SURPRISAL) or {}).get(side)
    for measure, names in LAYER_FIGURES.items():
        for layer in found.get(measure) or ():
            for name in names if layer.get("layer") is not None else ():
                yield ScoreKey(measure, name, "", str(layer["layer"])), layer.get(name)
