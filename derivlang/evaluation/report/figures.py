"""The report's figures, SVG and PNG: scores by factor, learning curves, bars of Δ, alignment against Δ.

A dot is a pre-training seed, and a vertical line the 95 % interval of the mean over three seeds or more.

Colours are those of Okabe and Ito (2008), which colour-blind readers can distinguish, on light and dark backgrounds.
Languages have different markers."""

from __future__ import annotations

from collections.abc import Callable, Iterable, Sequence
from dataclasses import dataclass
from textwrap import fill
from typing import Any

import numpy as np

from derivlang.evaluation.report import published
from derivlang.evaluation.report.cells import decimal
from derivlang.evaluation.report.columns import Column
from derivlang.evaluation.report.curves import Curve
from derivlang.evaluation.report.drawing import INK, Figure, drawing, finished, legend, shown
from derivlang.evaluation.report.estimates import mean_of
from derivlang.evaluation.report.factors import FactorGrid, Headline, is_number
from derivlang.evaluation.report.overview import alignment_points
from derivlang.evaluation.report.scores import ScoreKey
from derivlang.evaluation.report.settings import Entry, Setting

_COLOURS = {"mlm": "#0072b2", "xlm": "#e69f00", "dict-mlm": "#009e73", "align-mlm": "#d55e00"}
_MORE = ("#cc79a7", "#56b4e9", "#8c6d31", "#9467bd")
_CYCLE = (*_COLOURS.values(), *_MORE)
_MARKERS = "o^sDvPX*"
# Beyond `_MORE`, colours come again with another hatch of bars and another filling of markers.
_HATCHES = ("", "////", "xxxx", "....")
_FILLINGS = ("full", "none", "left", "top")


@dataclass(frozen=True, slots=True)
class Style:
    """How an objective is drawn. turn: how often its colour was taken by others."""

    colour: str
    turn: int = 0

    @property
    def bar(self) -> dict[str, Any]:
        """Arguments of bars: a hatch is drawn in the colour of the edge, on no background."""
        if not self.turn:
            return {"color": self.colour}
        return {"facecolor": "none", "edgecolor": self.colour, "hatch": _HATCHES[self.turn % len(_HATCHES)]}

    @property
    def marker(self) -> dict[str, Any]:
        """Arguments of markers: their edge has the colour if they are not full."""
        filling = _FILLINGS[self.turn % len(_FILLINGS)]
        edge = {"markeredgecolor": self.colour, "markeredgewidth": 1.2} if self.turn else {}
        return {"color": self.colour, "fillstyle": filling, "markerfacecoloralt": "none", **edge}


def factor_figures(grid: FactorGrid, headline: Headline, prefix: str) -> list[Figure]:
    """Return lines over the levels of x, a figure for each key of a score that some run has."""
    named = dict(headline.regimes)
    found = [_lines(grid, headline, key, named[key], f"{prefix}factor-{headline.id}") for key in headline.figures]
    return [figure for figure in found if figure is not None]


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


def curve_figures(curves: Sequence[Curve], prefix: str) -> list[Figure]:
    """Return lines over steps or layers, a figure for each curve: thick for means, thin for seeds."""
    return [_curve(curve, f"{prefix}curve-{curve.id}") for curve in curves]


def _curve(curve: Curve, name: str) -> Figure:
    labels = {entry: shown(f"{entry.label}, {entry.language.spec}") for entry in curve.seeds}
    with drawing(title=curve.title) as (figure, axes):
        for number, (entry, runs) in enumerate(curve.seeds.items()):
            colour = _CYCLE[number % len(_CYCLE)]
            marker = _MARKERS[number // len(_CYCLE) % len(_MARKERS)]
            for run in runs.values() if len(runs) > 1 else ():
                steps = sorted(run)
                axes.plot(steps, [run[step] for step in steps], "-", color=colour, linewidth=0.7, alpha=0.5)
            means = curve.mean(entry)
            heights = [value for value, _ in means.values()]
            axes.plot(list(means), heights, f"{marker}-", color=colour, label=labels[entry], markersize=4)
        axes.set_xlabel(curve.x)
        axes.xaxis.get_major_locator().set_params(integer=True)
        axes.grid(axis="y", color=INK, alpha=0.15, linewidth=0.6)
        legend(figure, axes, list(labels.values()))
        return finished(figure, name, f"{curve.title}, by {curve.x}")


def _lines(grid: FactorGrid, headline: Headline, key: ScoreKey, regime: str, name: str) -> Figure | None:
    levels = grid.levels[grid.x]
    numbers = [float(level) for level in levels] if all(map(is_number, levels)) else []
    gaps = np.diff(sorted(numbers))
    even = not numbers or (gaps.size and gaps.min() < 0.06 * gaps.sum())  # names, or too close for their labels
    places = dict(zip(levels, range(len(levels)) if even else numbers, strict=True))
    shift = 0.012 * max(1.0, max(places.values()) - min(places.values()))
    others = {condition[1:]: None for condition in grid.planned}
    lines = {rest: [(level, *rest) for level in levels if grid.scored((level, *rest), key)] for rest in others}
    lines = {rest: conditions for rest, conditions in lines.items() if conditions}
    if not lines:
        return None
    labels = [shown(", ".join(f"{f} {level}" for f, level in zip(grid.factors[1:], r, strict=True))) for r in lines]
    with drawing(title=f"{headline.title}, {regime}") as (figure, axes):
        for number, (conditions, label) in enumerate(zip(lines.values(), labels, strict=True)):
            colour = _CYCLE[number % len(_CYCLE)]
            across = shift * (number - (len(lines) - 1) / 2)
            means = [(places[c[0]] + across, c, grid.mean([c], headline, key)) for c in conditions]
            heights = [mean.mean for _, _, mean in means if mean is not None]
            marker = _MARKERS[number // len(_CYCLE) % len(_MARKERS)]
            axes.plot(
                [x for x, _, _ in means],
                heights,
                f"{marker}{'-' if numbers else ':'}",
                color=colour,
                label=label or None,
                markersize=4.5,
            )
            for x, condition, mean in means:
                values = [grid.values[run.id, key] for run in grid.scored(condition, key).values()]
                axes.plot([x] * len(values), values, ".", color=colour, markersize=3, alpha=0.6)
                if mean is not None and mean.low is not None:
                    axes.plot([x] * 2, [mean.low, mean.high], color=colour, linewidth=1.2, solid_capstyle="butt")
        crowded = sum(map(len, levels)) > 36
        axes.set_xticks(list(places.values()), [shown(level) for level in levels],
                        rotation=20 if crowded else 0, ha="right" if crowded else "center")  # fmt: skip
        axes.set_xlabel(shown(grid.x))
        axes.set_ylabel(shown(regime))
        axes.grid(axis="y", color=INK, alpha=0.15, linewidth=0.6)
        axes.margins(x=0.08)
        if labels[0]:
            legend(figure, axes, labels)
        file = "-".join(filter(None, [name, key.regime]))
        return finished(figure, file, f"{headline.title}, {regime}, by {', '.join(grid.factors)}")


def _bars(setting: Setting, column: Column, name: str) -> Figure | None:
    entries = _main([entry for entry in setting.entries if entry.delta(column) is not None])
    if not entries:
        return None
    languages = _unique([_language(entry) for entry in entries])
    objectives = _unique([_label(entry) for entry in entries])
    styles = _styles(entries, _label)
    width = min(0.8 / len(objectives), 0.25)
    printed = []
    with drawing(title=f"Δ = SUP − ZS, {column.title}") as (figure, axes):
        for number, label in enumerate(objectives):
            mine = [entry for entry in entries if _label(entry) == label]
            places = [
                languages.index(_language(entry)) + (number + 0.5 - len(objectives) / 2) * width for entry in mine
            ]
            heights = [entry.delta(column) or 0.0 for entry in mine]
            axes.bar(places, heights, width * 0.92, label=label, **styles[label].bar)
            for entry, place, height in zip(mine, places, heights, strict=True):
                found = mean_of(entry, column, "delta")
                if found is not None and found.low is not None:
                    axes.plot([place] * 2, [found.low, found.high], color=INK, linewidth=1, solid_capstyle="butt")
                values = [score.mean for _, score in entry.scores(column, "delta")]
                if len(values) > 1:
                    axes.plot([place] * len(values), values, ".", color=INK, markersize=3)
                if setting.published and column.printed and entry.variant.standard and entry.key in published.TABLE_3:
                    printed.append((place, published.TABLE_3[entry.key][column.task][2], height))
        if printed:
            axes.plot([x for x, _, _ in printed], [y for _, y, _ in printed], "D", markersize=4.5, fillstyle="none",
                      color=INK, label="paper")  # fmt: skip
        axes.axhline(0, color=INK, linewidth=0.8)
        ticks = [fill(language, 36) for language in languages]  # a spec may hold the path of a file
        crowded = sum(max(map(len, tick.split("\n"))) for tick in ticks) > 36
        axes.set_xticks(
            range(len(languages)), ticks, rotation=20 if crowded else 0, ha="right" if crowded else "center"
        )
        axes.set_xlim(-0.6, len(languages) - 0.4)
        axes.tick_params(axis="x", length=0)
        deltas = [entry.delta(column) or 0.0 for entry in entries]
        alike = _alike(deltas) if decimal(max(deltas)) == "0.0" else ""  # there is no bar to be seen
        axes.set_ylabel(f"Δ, points (less is better){alike}")
        axes.grid(axis="y", color=INK, alpha=0.15, linewidth=0.6)
        legend(figure, axes, [*objectives, *(["paper"] if printed else [])])
        return finished(figure, name, f"Bars of Δ by language and objective: {column.title}{alike}")


def _main(entries: Sequence[Entry]) -> list[Entry]:
    """Return the entries of the bars: other sizes (overlap, dictionary, pairs) of one of them have their own tables."""

    def place(entry: Entry) -> tuple[str, str, str]:
        return entry.variant.family, entry.options, entry.language.without_overlap

    usual = {place(entry) for entry in entries if not entry.swept}
    return [entry for entry in entries if not entry.swept or place(entry) not in usual]


def _scatter(setting: Setting, column: Column, name: str) -> Figure | None:
    points = alignment_points(setting, "heldout", column)
    if len(points) < 2:
        return None
    entries = [entry for entry, _, _ in points]
    styles = _styles(entries, _name)
    languages = _unique([_language(entry) for entry in entries])
    places = {spec: place for place, spec in enumerate(dict.fromkeys([*published.LANGUAGES, *languages]))}
    markers = {spec: _MARKERS[place % len(_MARKERS)] for spec, place in places.items()}
    with drawing(title=f"Held-out alignment and Δ, {column.title}") as (figure, axes):
        for entry, x, y in points:
            edge = {"markeredgecolor": INK, "markeredgewidth": 0.4}
            axes.plot([x], [y], markers[_language(entry)], markersize=7.5, **edge | styles[_name(entry)].marker)
        for label, style in styles.items():
            axes.plot([], [], "s", label=label, **style.marker)
        for spec in languages:
            axes.plot([], [], markers[spec], color=INK, fillstyle="none", linestyle="none", label=spec)
        alike = _alike(x for _, x, _ in points)
        if alike:
            axes.set_xticks([points[0][1]], [decimal(points[0][1])])
        axes.set_xlabel(f"held-out alignment, %{alike}")
        axes.set_ylabel("Δ, points (less is better)")
        axes.grid(color=INK, alpha=0.15, linewidth=0.6)
        axes.margins(0.08)
        legend(figure, axes, [*styles, *languages])
        return finished(figure, name, f"Held-out alignment against Δ: {column.title}{alike}")


def _alike(values: Iterable[float]) -> str:
    """Return what to say if all values are written alike, which looks like an error; "" otherwise."""
    written = {decimal(value) for value in values}
    return f": {written.pop()} in every row" if len(written) == 1 else ""


def _styles(entries: Sequence[Entry], name: Callable[[Entry], str]) -> dict[str, Style]:
    """Return styles by name. The colours of the paper's four objectives are fixed."""
    out: dict[str, Style] = {}
    for entry in entries:
        plain = not (entry.variant.parameters or entry.options or entry.more)
        usual = Style(_COLOURS[entry.variant.objective]) if plain and entry.variant.objective in _COLOURS else None
        if usual in out.values():  # another size of the dictionary or of parallel text has it
            usual = None
        turn, at = divmod(sum(style.colour in _MORE for style in out.values()), len(_MORE))
        out.setdefault(name(entry), usual or Style(_MORE[at], turn))
    return out


def _name(entry: Entry) -> str:
    """Return the name of a row without the sizes of dictionary and parallel text."""
    return shown(", ".join(filter(None, [entry.variant.family, entry.options, entry.more])))


def _label(entry: Entry) -> str:
    return shown(entry.label)


def _language(entry: Entry) -> str:
    return shown(entry.language.spec)


def _unique(names: Sequence[str]) -> list[str]:
    return list(dict.fromkeys(names))
