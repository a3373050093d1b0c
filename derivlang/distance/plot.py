"""The figures of languages side by side, a panel for each figure and a row for each language.

Each row has a dashed line at the figure of its own source: Kendall's tau 1, its dependency length, its entropies. Rows
of one source have one line.
"""

from __future__ import annotations

from collections.abc import Sequence
from pathlib import Path

from derivlang.core.errors import UsageError
from derivlang.distance.measure import Figures, labels
from derivlang.evaluation.report.figures import INK, canvas, finished, shown
from derivlang.store.files import writing

_PANELS = {  # figure of a language -> title, figure of the source (a name, or a number)
    "kendall_tau": ("Kendall's tau", 1.0),
    "moved_percent": ("words moved, %", 0.0),
    "changed_percent": ("words changed, %", 0.0),
    "derived_dependency_length": ("dependency length", "source_dependency_length"),
    "derived_entropy_3": ("3-local entropy, bits", "source_entropy_3"),
    "subword_overlap_percent": ("sub-words shared, %", 100.0),
}
SUFFIXES = (".svg", ".png", ".pdf")


def check_plot(out: Path) -> None:
    """Raise UsageError unless the name of the file ends in .svg, .png or .pdf."""
    if out.suffix not in SUFFIXES:
        raise UsageError(
            f"{out.name} does not say what kind of picture it is",
            where="--plot",
            fix="end its name in .svg, .png or .pdf",
            id="bad-value",
        )


def write_plot(rows: Sequence[Figures], out: Path, *, force: bool, folders: Sequence[str] = ()) -> None:
    """Draw the figures of languages that some of them have into an SVG, PNG or PDF file.

    force: replace a file that holds something else. folders: of the rows, if they are of sets.
    """
    panels = {name: facts for name, facts in _PANELS.items() if any(row.get(name) is not None for row in rows)}
    places = range(len(rows))[::-1]  # the first language above
    with canvas((2.0 + 1.7 * len(panels), 0.9 + 0.3 * len(rows))) as figure:
        every = figure.subplots(1, len(panels), sharey=True, squeeze=False)[0]
        for axes, (name, (title, of_source)) in zip(every, panels.items(), strict=True):
            for row, place in zip(rows, places, strict=True):
                source = row.get(of_source) if isinstance(of_source, str) else of_source
                if source is not None:
                    axes.vlines(source, place - 0.5, place + 0.5, INK, "--", alpha=0.4, linewidth=0.8)
            values = [(row.get(name), place) for row, place in zip(rows, places, strict=True)]
            known = [pair for pair in values if pair[0] is not None]
            axes.plot(*zip(*known, strict=True), "o", markersize=4)
            axes.margins(x=0.15)
            axes.set_title(title, fontsize=8, loc="left")
        every[0].set_yticks(places, [shown(name, 40) for name in labels(rows, folders)])
        every[0].set_ylim(-0.6, len(rows) - 0.4)
        drawn = finished(figure, "languages", "Distances of languages from their sources, which are the dashed lines")
    content = drawn.files[out.suffix[1:]]
    with writing(out, replace=force) as stream:
        stream.write(content.encode() if isinstance(content, str) else content)
