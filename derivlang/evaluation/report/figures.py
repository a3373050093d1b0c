"""The figures of a section, each with a caption that could stand in a paper.

Large marks are means over pre-training seeds, vertical lines their 95 % intervals, small dots seeds. Only numbers are
joined by lines: levels that are numbers, layers and steps. Marks of one place stand side by side. Colours are the
colours of Okabe and Ito (2008), which colour-blind readers can distinguish, on light and dark backgrounds."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import Any, TypeAlias

import numpy as np
import pandas as pd

from derivlang.evaluation.formulas import SCALE
from derivlang.evaluation.report.cells import MEAN, file_name, listed, number
from derivlang.evaluation.report.drawing import INK, Figure, drawing, finished, legend, panels, shown
from derivlang.evaluation.report.factors import NONE, Condition, Section, is_number, told_of
from derivlang.evaluation.report.frame import DELTA
from derivlang.evaluation.report.tables import condition_of, curve_rows, of_score, regime_title, regimes_of, title_of
from derivlang.evaluation.report.transfer import Scatter
from derivlang.evaluation.scores import counts_of

_COLOURS = ("#0072b2", "#e69f00", "#009e73", "#d55e00", "#cc79a7", "#56b4e9", "#8c6d31", "#9467bd")
_NAMES = ("blue", "orange", "green", "red", "pink", "light blue", "brown", "purple")
_MARKERS = "o^sDvPX*"
_MANY = 6  # levels whose long labels stand nearly upright
_LINES = 8  # conditions of a figure over layers or steps, at most
_NAMED = ("source", "t", "spec", "objective", "model", "steps")  # settings that a caption names
_PANELS = 12  # of a figure of points, at most
_WIDE = 36  # letters of tick labels that fit without turning them
Point: TypeAlias = tuple[float, Mapping[str, Any]]  # x, and a mean


def score_figures(section: Section, comparisons: pd.DataFrame, task: str, metric: str) -> list[Figure]:
    """Return the figures of a score: by factor, by layer, over steps; in all regimes but the first,
    which is SUP of a fine-tuned task and the source of others."""
    if section.scores.columns[task, metric].over == "points":
        return _points(section, task, metric)
    means = of_score(comparisons, task, metric, MEAN)
    layers = of_score(comparisons, task, metric, MEAN, layers=True)
    steps = curve_rows(section, comparisons, task, metric)
    figures = []
    regimes = regimes_of(means)
    for regime in regimes[1:] or regimes:
        name = file_name(task, metric, regime)
        title = ", ".join(filter(None, [title_of(section, task, metric), regime_title(regime)]))
        if len(section.planned) > 1:
            figures.append(_by_factor(section, means[means["regime"] == regime], title, name))
        if layers["layer"].nunique() > 1:
            figures += _over(section, layers[layers["regime"] == regime], title, name, "layer")
        if steps is not None:
            figures += _over(section, steps[steps["regime"] == regime], title, name, "step")
    return figures


def correlation_figure(section: Section, one: Scatter) -> Figure:
    """Return the scatter of one score against another, a mark for each condition."""
    labels = [shown(section.label(condition) or "none") for condition, _, _ in one.points]
    found, told = one.correlation, ""
    if found.rho is not None and found.r is not None:
        interval = f" ({found.interval})" if found.interval else ""
        told = f"Spearman's ρ = {number(found.rho, '')}, Pearson's r = {number(found.r, '')}{interval}"
    with drawing(title=told) as (figure, axes):
        for at, ((_, x, y), label) in enumerate(zip(one.points, labels, strict=True)):
            axes.plot([x], [y], markersize=6.5, linestyle="none", label=label, **_mark(at))
        axes.set(xlabel=shown(one.x), ylabel=shown(one.y))
        axes.margins(0.08)
        legend(figure, axes, labels)
        caption = (
            f"{one.y} against {one.x}{told and f': {told}'}. Each mark is a condition, a mean over pre-training seeds."
        )
        return finished(figure, one.name, caption + _constant(section))


def _by_factor(section: Section, means: pd.DataFrame, title: str, name: str) -> Figure:
    """Return the means by x, with a colour and a mark for each condition of the other factors, side by side."""
    levels = section.levels[section.factors[0]]
    numbers = [float(level) for level in levels] if all(map(is_number, levels)) else []
    # Names are evenly spaced, and so are numbers that are too close for their labels.
    even = not numbers or len(numbers) < 2 or np.diff(sorted(numbers)).min() < 0.06 * np.ptp(numbers)
    places = dict(zip(levels, range(len(levels)) if even else numbers, strict=True))
    lines: dict[Condition, list[Point]] = {}
    for row in means.to_dict("records"):
        first, *rest = condition_of(section, row)
        lines.setdefault(tuple(rest), []).append((places[first], row))
    order = dict.fromkeys(condition[1:] for condition in section.planned)
    marked = [(section.label((NONE, *rest)), sorted(lines[rest], key=lambda point: point[0]))
              for rest in order if rest in lines]  # fmt: skip
    with drawing(title=title) as (figure, axes):
        told = _draw(figure, axes, section, marked, joined=bool(numbers))
        labels = [shown(level or "none", _WIDE) for level in levels]
        turned = 0 if sum(map(len, labels)) <= _WIDE else 20 if len(labels) < _MANY else 60
        axes.set_xticks(list(places.values()), labels, rotation=turned, ha="right" if turned else "center",
                        rotation_mode="anchor")  # fmt: skip
        figure.set_figheight(figure.get_figheight() + turned / 60 * 0.05 * max(map(len, labels)))
        axes.set_xlabel(shown(section.factors[0]))
        return finished(figure, f"{name}-by-factor", f"{title}, by {listed(section.factors)}. {told}")


def _over(section: Section, means: pd.DataFrame, title: str, name: str, over: str) -> list[Figure]:
    """Return the means over layers or steps, a line for each condition.

    Of many conditions, a figure shows the levels of the factor that has most; the others have a figure for each.
    """
    lines: dict[Condition, list[Point]] = {}
    for row in means[means[over].notna()].to_dict("records"):
        lines.setdefault(condition_of(section, row), []).append((float(row[over]), row))
    most = max(section.factors, key=lambda factor: len(section.levels[factor]), default="")
    others = [factor for factor in section.factors if factor != most and len(lines) > _LINES]
    groups: dict[str, list[tuple[str, list[Point]]]] = {}
    for condition in section.planned:
        if condition in lines:
            shared = section.label(condition, {*section.factors} - {*others})
            points = sorted(lines[condition], key=lambda point: point[0])
            groups.setdefault(shared, []).append((section.label(condition, others) or "none", points))
    by, figures = listed([over, *(factor for factor in section.factors if factor not in others)]), []
    for shared, marked in groups.items():
        told = ", ".join(filter(None, [title, shared]))
        with drawing(title=told) as (figure, axes):
            caption = f"{told}, by {by}. {_draw(figure, axes, section, marked, joined=True)}"
            axes.xaxis.get_major_locator().set_params(integer=True)
            axes.set_xlabel(over)
            figures.append(finished(figure, file_name(name, shared, f"by-{over}"), caption))
    return figures


def _draw(
    figure: Any, axes: Any, section: Section, lines: Sequence[tuple[str, Sequence[Point]]], *, joined: bool
) -> str:
    """Draw labelled lines of means with seeds and intervals, and return what a caption says of them."""
    places = sorted({x for _, points in lines for x, _ in points})
    slot = (min(np.diff(places)) if len(places) > 1 else 1.0) * (0.3 if joined else 0.7) / max(1, len(lines))
    rows = [row for _, points in lines for _, row in points]
    for at, (label, points) in enumerate(lines):
        mark = _mark(at)
        across = [x + slot * (at - (len(lines) - 1) / 2) for x, _ in points]
        axes.plot(across, [row["value"] for _, row in points], linestyle="-" if joined else "none", linewidth=1,
                  markersize=4.5, label=shown(label) or None, **mark)  # fmt: skip
        spread = [x + slot * (0.15 + 0.3 * seed / row["n"]) for x, (_, row) in zip(across, points, strict=True)
                  for seed in range(row["n"])]  # fmt: skip
        values = [value for _, row in points for value in row["values"]]
        if any(row["n"] > 1 for _, row in points):
            axes.plot(spread, values, ".", color=mark["color"], markersize=3, alpha=0.6)
        ends = np.array([(row["low"], row["high"]) for _, row in points], float)
        axes.vlines(across, ends[:, 0], ends[:, 1], color=mark["color"], linewidth=1.2)
    column = section.scores.columns[rows[0]["task"], rows[0]["metric"]]
    unit = "points" if rows[0]["regime"] == DELTA and column.unit == "%" else column.unit
    better = {"down": "smaller is better", "up": "", "": ""}["" if rows[0]["regime"] == DELTA else column.better]
    axes.set_ylabel(shown(", ".join(filter(None, [regime_title(rows[0]["regime"]) or column.shown, unit, better]))))
    axes.margins(x=0.08)
    if lines[0][0]:
        legend(figure, axes, [shown(label) for label, _ in lines])
    return _caption(rows) + _constant(section)


def _caption(rows: Sequence[Mapping[str, Any]]) -> str:
    """Return what marks, lines and dots are."""
    numbers = sorted({row["n"] for row in rows})
    n = "–".join(dict.fromkeys([str(numbers[0]), str(numbers[-1])]))
    told = f"Marks: means over {n} pre-training seed{'s' * (numbers[-1] > 1)}"
    if any(row["low"] == row["low"] for row in rows):
        units = sorted({(int(row["units"]), row["unit"]) for row in rows if not pd.isna(row["units"])})
        documents = f" and {listed(f'{number:,} test {unit}s' for number, unit in units)}" if units else ""
        told += f"; vertical lines: their 95 % intervals, which cover seeds{documents}"
    return told + ("; dots: seeds." if numbers[-1] > 1 else ".")


def _constant(section: Section) -> str:
    """Return what all runs share, as a sentence: what a caption in a paper names. The page lists the other settings."""
    shared = {name: level for name, level in section.constant.items() if name in _NAMED}
    return f" The same in all runs: {told_of(shared)}." if shared else ""


def _points(section: Section, task: str, metric: str) -> list[Figure]:
    """Return points of two languages, a panel for the first seed of each condition; lines join pairs of points."""
    rows = section.of_score[task, metric]
    rows = rows[rows["final"] & rows["counts"].notna()]
    first: dict[Condition, str] = {}
    for run, (condition, _) in sorted(section.runs.items(), key=lambda one: one[1][1]):
        if (rows["run"] == run).any():
            first.setdefault(condition, run)
    some = [condition for condition in section.planned if condition in first]
    if not some:
        return []
    panelled, of = some[:_PANELS], f", of {_PANELS} of {len(some)} conditions" if len(some) > _PANELS else ""
    title, regimes = title_of(section, task, metric), list(rows["regime"].unique())
    with panels([section.label(condition) for condition in panelled], title) as (figure, every):
        for condition, axes in zip(panelled, every, strict=True):
            here = rows[rows["run"] == first[condition]]
            by_regime = {row["regime"]: counts_of("", row["counts"]) / SCALE for row in here.to_dict("records")}
            if len({points.shape for points in by_regime.values()}) == 1 and len(by_regime) == 2:
                for ends in zip(*by_regime.values(), strict=True):
                    axes.plot(*np.transpose(ends), color=INK, alpha=0.15, linewidth=0.4)
            for regime, points in by_regime.items():
                mark = _mark(regimes.index(regime))
                axes.plot(*points.T, linestyle="none", markersize=2.5, **mark)
        names = listed(f"{regime} ({_NAMES[at % len(_NAMES)]})" for at, regime in enumerate(regimes) if regime)
        caption = f"{title}{of}{f': {names}' if names else ''}. The first seed of each. Lines join pairs."
        return [finished(figure, file_name(task, metric, "points"), caption + _constant(section))]


def _mark(at: int) -> dict[str, Any]:
    """Return the colour and the marker of the line at a place: 64 of them differ."""
    turn = at // len(_COLOURS)
    return {"color": _COLOURS[at % len(_COLOURS)], "marker": _MARKERS[(at + turn) % len(_MARKERS)]}
