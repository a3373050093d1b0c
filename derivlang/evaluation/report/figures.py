"""The report's figures: bars of Δ by language and objective, and alignment against Δ. SVG and PNG.

A dot on a bar is a pre-training seed, and a line the 95 % interval of the mean over three seeds or more.

Colours are those of Okabe and Ito (2008), which colour-blind readers can distinguish, on light and dark backgrounds.
Languages have different markers. Axes and text are drawn in a placeholder colour, which becomes the page's text colour
(`Figure.inline`), or in files a grey that is visible on both backgrounds.
"""

from __future__ import annotations

import io
import re
from collections.abc import Iterator, Sequence
from contextlib import contextmanager
from dataclasses import dataclass
from html import escape
from typing import Any

import numpy as np

from derivlang.core.errors import UsageError
from derivlang.evaluation.report import published
from derivlang.evaluation.report.columns import Column
from derivlang.evaluation.report.estimates import mean_of
from derivlang.evaluation.report.overview import alignment_points
from derivlang.evaluation.report.settings import Entry, Setting

_INK = "#010203"  # placeholder of the text colour, used for nothing else
_GREY = "#767676"  # contrast 4.5 on white, 4.6 on black
_COLOURS = {"mlm": "#0072b2", "xlm": "#e69f00", "dict-mlm": "#009e73", "align-mlm": "#d55e00"}
_MORE = ("#cc79a7", "#56b4e9", "#8c6d31", "#9467bd")
_MARKERS = "o^sDvPX*"
_STYLE: Any = {
    "svg.fonttype": "none", "svg.hashsalt": "derivlang", "font.size": 9, "text.color": _INK, "axes.edgecolor": _INK,
    "axes.labelcolor": _INK, "xtick.color": _INK, "ytick.color": _INK, "axes.spines.top": False,
    "axes.spines.right": False, "legend.frameon": False, "legend.fontsize": 8, "axes.axisbelow": True,
    "figure.constrained_layout.use": True, "text.parse_math": False,
}  # fmt: skip


@dataclass(frozen=True, slots=True)
class Figure:
    """A figure. name: of its files. title: a text alternative. svg: in the placeholder colour. png: on white."""

    name: str
    title: str
    svg: str
    png: bytes

    @property
    def file(self) -> str:
        """The SVG as a separate file, with a transparent background."""
        return self.svg.replace(_INK, _GREY)

    @property
    def inline(self) -> str:
        """The SVG inside a page: in the page's text colour, with ids that are unique in the page."""
        svg = self.svg[self.svg.index("<svg") :].replace(_INK, "currentColor")
        svg = re.sub(r'\bid="([^"]+)"', rf'id="{self.name}-\1"', svg)
        svg = re.sub(r'(href="|url\()#', rf"\1#{self.name}-", svg)
        svg = re.sub(r"<metadata>.*?</metadata>", "", svg, flags=re.DOTALL)
        svg = re.sub(r' (?:width|height)="[\d.]+pt"', "", svg, count=2)  # as wide as its place
        return svg.replace("<svg ", f'<svg role="img" aria-label="{escape(self.title)}" ', 1)


def delta_figures(setting: Setting, prefix: str) -> list[Figure]:
    """Return bars of Δ, a figure for each score that some run has."""
    return [
        figure
        for column in setting.headline
        if (figure := _bars(setting, column, f"{prefix}delta-{column.id}")) is not None
    ]


def alignment_figures(setting: Setting, prefix: str) -> list[Figure]:
    """Return held-out alignment against Δ, a figure for each score with two points or more."""
    return [
        figure
        for column in setting.headline
        if (figure := _scatter(setting, column, f"{prefix}alignment-{column.id}")) is not None
    ]


def _bars(setting: Setting, column: Column, name: str) -> Figure | None:
    entries = [entry for entry in setting.entries if not entry.swept and entry.delta(column) is not None]
    if not entries:
        return None
    languages = _unique([_language(entry) for entry in entries])
    objectives = _unique([_name(entry) for entry in entries])
    colours = _colours(entries)
    width = min(0.8 / len(objectives), 0.25)
    printed = []
    with _drawing(title=f"Δ = SUP − ZS, {column.title}") as (figure, axes):
        for number, label in enumerate(objectives):
            mine = [entry for entry in entries if _name(entry) == label]
            places = [
                languages.index(_language(entry)) + (number + 0.5 - len(objectives) / 2) * width for entry in mine
            ]
            heights = [entry.delta(column) or 0.0 for entry in mine]
            axes.bar(places, heights, width * 0.92, color=colours[label], label=label)
            for entry, place, height in zip(mine, places, heights, strict=True):
                found = mean_of(entry, column, "delta")
                if found is not None and found.low is not None:
                    axes.plot([place] * 2, [found.low, found.high], color=_INK, linewidth=1, solid_capstyle="butt")
                values = [score.mean for _, score in entry.scores(column, "delta")]
                if len(values) > 1:
                    axes.plot([place] * len(values), values, ".", color=_INK, markersize=3)
                if column.printed and entry.variant.standard and entry.key in published.TABLE_3:
                    printed.append((place, published.TABLE_3[entry.key][column.task][2], height))
        if printed:
            axes.plot([x for x, _, _ in printed], [y for _, y, _ in printed], "D", markersize=4.5, fillstyle="none",
                      color=_INK, label="paper")  # fmt: skip
        axes.axhline(0, color=_INK, linewidth=0.8)
        crowded = sum(map(len, languages)) > 36
        axes.set_xticks(
            range(len(languages)), languages, rotation=20 if crowded else 0, ha="right" if crowded else "center"
        )
        axes.set_xlim(-0.6, len(languages) - 0.4)
        axes.tick_params(axis="x", length=0)
        axes.set_ylabel("Δ, points (less is better)")
        axes.grid(axis="y", color=_INK, alpha=0.15, linewidth=0.6)
        _legend(figure, axes, [*objectives, *(["paper"] if printed else [])])
        return _figure(figure, name, f"Bars of Δ by language and objective: {column.title}")


def _scatter(setting: Setting, column: Column, name: str) -> Figure | None:
    points = alignment_points(setting, "heldout", column)
    if len(points) < 2:
        return None
    entries = [entry for entry, _, _ in points]
    colours = _colours(entries)
    languages = _unique([_language(entry) for entry in entries])
    places = {spec: place for place, spec in enumerate(dict.fromkeys([*published.LANGUAGES, *languages]))}
    markers = {spec: _MARKERS[place % len(_MARKERS)] for spec, place in places.items()}
    with _drawing(title=f"Held-out alignment and Δ, {column.title}") as (figure, axes):
        for entry, x, y in points:
            axes.plot([x], [y], markers[_language(entry)], color=colours[_name(entry)], markersize=7.5,
                      markeredgecolor=_INK, markeredgewidth=0.4)  # fmt: skip
        for label in _unique([_name(entry) for entry in entries]):
            axes.plot([], [], "s", color=colours[label], label=label)
        for spec in languages:
            axes.plot([], [], markers[spec], color=_INK, fillstyle="none", linestyle="none", label=spec)
        axes.set_xlabel("held-out alignment, %")
        axes.set_ylabel("Δ, points (less is better)")
        axes.grid(color=_INK, alpha=0.15, linewidth=0.6)
        axes.margins(0.08)
        _legend(figure, axes, [*colours, *languages])
        return _figure(figure, name, f"Held-out alignment against Δ: {column.title}")


@contextmanager
def _drawing(*, title: str) -> Iterator[tuple[Any, Any]]:
    """Yield an empty figure and its axes, without a display and without pyplot's global state."""
    try:
        import matplotlib as mpl
        from matplotlib.backends.backend_agg import FigureCanvasAgg
        from matplotlib.figure import Figure as Canvas
    except ImportError:
        raise UsageError(
            "a report needs matplotlib", fix="pip install 'derivlang[train]'", id="missing-package"
        ) from None
    with mpl.rc_context():
        mpl.rcdefaults()
        mpl.rcParams.update(_STYLE)
        figure = Canvas(figsize=(4.6, 3.5))
        FigureCanvasAgg(figure)
        axes = figure.add_subplot()
        axes.set_title(_shown(title), fontsize=9.5, loc="left")
        yield figure, axes


def _legend(figure: Any, axes: Any, labels: Sequence[str]) -> None:
    """Put the legend below the axes, in this order, in as many columns as fit. The figure's height grows with it."""

    def letters(columns: int) -> int:
        return sum(max(map(len, part)) + 5 for part in np.array_split(np.array(labels), columns))  # as matplotlib does

    fitting = [n for n in range(1, min(4, len(labels)) + 1) if n == 1 or letters(n) <= 62]
    rows = -(-len(labels) // fitting[-1])
    columns = next(n for n in fitting if -(-len(labels) // n) == rows)
    handles = dict(zip(*reversed(axes.get_legend_handles_labels()), strict=True))
    figure.legend([handles[label] for label in labels], labels, loc="outside lower center", ncols=columns)
    figure.set_figheight(3.1 + 0.19 * rows)


def _figure(figure: Any, name: str, title: str) -> Figure:
    svg, png = io.StringIO(), io.BytesIO()
    figure.savefig(svg, format="svg", transparent=True, metadata={"Date": None, "Creator": None})
    figure.savefig(png, format="png", dpi=200, facecolor="white", metadata={"Software": None})
    return Figure(name, _shown(title), svg.getvalue(), png.getvalue())


def _colours(entries: Sequence[Entry]) -> dict[str, str]:
    """Return colours by name. Those of the paper's four objectives are fixed."""
    out: dict[str, str] = {}
    for entry in entries:
        usual = None if entry.variant.parameters or entry.more else _COLOURS.get(entry.variant.objective)
        extra = sum(colour in _MORE for colour in out.values())
        out.setdefault(_name(entry), usual or _MORE[extra % len(_MORE)])
    return out


def _name(entry: Entry) -> str:
    return _shown(", ".join(filter(None, [entry.variant.family, entry.more])))


def _language(entry: Entry) -> str:
    return _shown(entry.language.spec)


def _shown(text: str) -> str:
    """Return a label without control characters, invalid in SVG, and without a first `_`, which matplotlib hides."""
    shown = "".join(c if c.isprintable() else "\ufffd" for c in text)
    return f"\u200b{shown}" if shown.startswith("_") else shown


def _unique(names: Sequence[str]) -> list[str]:
    return list(dict.fromkeys(names))
