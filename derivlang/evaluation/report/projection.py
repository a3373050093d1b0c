"""Pictures of embeddings, of the measure projection: one panel for each row of the tables."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import Any

from derivlang.evaluation.report.cells import Row, Table, number_cell
from derivlang.evaluation.report.drawing import INK, Figure, finished, panels, shown
from derivlang.evaluation.report.runs import Run
from derivlang.evaluation.report.settings import Setting

PROJECTION = "projection"
_SOURCE, _DERIVED = "#0072b2", "#d55e00"


def projection_table(settings: Sequence[Setting]) -> Table:
    """Return the table of what each picture shows of the variance."""
    rows = [
        Row((title, spec), (number_cell(found.get("explained"), run),))
        for spec, some in _found(settings).items()
        for title, run, found in some
    ]
    return Table(
        PROJECTION,
        "Embeddings of frequent sub-words and their twins",
        "The first two principal components of unit vectors, of the first seed of each row. Blue: source; orange: "
        "derived language; lines join pairs, none of them in the training dictionary.",
        ("Objective", "Language"),
        (("", ("of the variance, %",)),),
        tuple(rows),
    )


def projection_figures(settings: Sequence[Setting]) -> list[Figure]:
    """Return a figure for each language, with a panel for each row of its tables."""
    figures = []
    for number, (spec, some) in enumerate(_found(settings).items()):
        titles = [title for title, _, _ in some]
        with panels(titles, f"Embeddings, {spec}") as (figure, every):
            for (_, _, found), axes in zip(some, every, strict=True):
                source, derived = found["source"], found["derived"]
                for ours, theirs in zip(source, derived, strict=True):
                    axes.plot(*zip(ours, theirs, strict=True), color=INK, alpha=0.15, linewidth=0.4)
                for points, colour in ((source, _SOURCE), (derived, _DERIVED)):
                    axes.plot([x for x, _ in points], [y for _, y in points], ".", color=colour, markersize=2.5)
            figures.append(finished(figure, f"{PROJECTION}-{number}", f"Embeddings of pairs, {shown(spec)}"))
    return figures


def _found(settings: Sequence[Setting]) -> dict[str, list[tuple[str, Run, Mapping[str, Any]]]]:
    """Return spec -> (title, run, its projection) of the first run of each entry that has one with pairs.

    Runs that others may have begun from stand first.
    """
    out: dict[str, list[tuple[str, Run, Mapping[str, Any]]]] = {}
    for setting in settings:
        for entry in setting.entries:
            for run in entry.runs:
                found = (run.evaluation or {}).get(PROJECTION) or {}
                if found.get("source"):
                    title = f"{entry.label}, {run.steps:,} steps"
                    out.setdefault(entry.language.spec, []).append((title, run, found))
                    break
    return {spec: sorted(some, key=lambda one: bool(one[1].facts.get("init"))) for spec, some in out.items()}
