"""The figures of a section, each with a caption that could stand in a paper.

Large marks are means over pre-training seeds, vertical lines their 95 % intervals, small dots seeds; dashed lines are
what a guess reaches, dotted ones an untrained model. Only numbers are joined by lines: levels that are numbers, layers
and steps.
Colours are the colours of Okabe and Ito (2008), which colour-blind readers can distinguish, on light and dark
backgrounds. A score of one condition, or of one seed, has no figure.
"""

from __future__ import annotations

import io
from collections.abc import Iterator, Mapping
from contextlib import contextmanager
from dataclasses import dataclass
from typing import Any, ClassVar

import numpy as np
import pandas as pd

from derivlang.core.dependencies import module_of
from derivlang.evaluation.columns import PERCENT, Column
from derivlang.evaluation.formulas import SCALE
from derivlang.evaluation.report.compare import MEAN
from derivlang.evaluation.report.correlation import interval_of
from derivlang.evaluation.report.factors import CONTROL, UNTRAINED, Section, is_number, told_of
from derivlang.evaluation.report.frame import CHANCE, DELTA
from derivlang.evaluation.report.tables import ReportedScore, file_name, listed, number, regime_title
from derivlang.evaluation.scores import counts_of

INK = "#010203"  # of text and axes, used for nothing else
GREY = "#767676"  # contrast 4.5 on white, 4.6 on black
STYLE: Any = {
    "svg.fonttype": "none", "svg.hashsalt": "derivlang", "font.size": 9, "text.color": INK, "axes.edgecolor": INK,
    "axes.labelcolor": INK, "xtick.color": INK, "ytick.color": INK, "axes.spines.top": False,
    "axes.spines.right": False, "legend.frameon": False, "legend.fontsize": 8, "axes.axisbelow": True,
    "figure.constrained_layout.use": True, "text.parse_math": False, "pdf.fonttype": 42, "axes.grid": True,
    "axes.grid.axis": "y", "grid.color": INK, "grid.alpha": 0.15, "grid.linewidth": 0.6,
}  # fmt: skip
_FORMATS: dict[str, Any] = {
    "svg": {"transparent": True, "metadata": {"Date": None, "Creator": None}},
    "png": {"dpi": 200, "facecolor": "white", "metadata": {"Software": None}},
    "pdf": {"metadata": {"CreationDate": None, "Creator": None, "Producer": None}},
}
_COLOURS = ("#0072b2", "#e69f00", "#009e73", "#d55e00", "#cc79a7", "#56b4e9", "#8c6d31", "#9467bd")
_NAMES = ("blue", "orange", "green", "red", "pink", "light blue", "brown", "purple")
_MARKERS = "o^sDvPX*"
_UNTRAINED = "untrained model"
_FLOORS = {CHANCE: "dashed", _UNTRAINED: "dotted"}  # and their lines
_LINES = 8  # conditions of a figure over layers or steps, at most
_NAMED = ("source", "t", "spec", "objective", "model", "steps")  # settings that a caption names
_PANELS = 12  # of a figure of points, at most
_WIDE = 36  # letters of tick labels that fit without turning them


@dataclass(frozen=True, slots=True)
class Figure:
    """A figure. name: of its files. caption: its text alternative, too. files: their content, by suffix."""

    folder: ClassVar[str] = "figures"
    name: str
    caption: str
    files: dict[str, bytes]


@contextmanager
def canvas(size: tuple[float, float] = (4.6, 3.5)) -> Iterator[Any]:
    """Yield a figure of a size in inches, without a display and without pyplot's global state."""
    module_of("matplotlib", "a figure")
    from matplotlib import figure, style

    with style.context(STYLE, after_reset=True):
        yield figure.Figure(figsize=size)


def legend(figure: Any, axes: Any) -> None:
    """Put the legend of labelled marks below the axes, in as many columns as fit. The figure's height grows with it."""
    handles, labels = axes.get_legend_handles_labels()
    if labels:
        columns = max(1, min(4, 62 // (max(map(len, labels)) + 5)))
        figure.legend(handles, labels, loc="outside lower center", ncols=columns)
        figure.set_figheight(3.1 + 0.19 * -(-len(labels) // columns))


def finished(figure: Any, name: str, caption: str) -> Figure:
    """Return the figure in three formats, laid out once."""
    figure.draw_without_rendering()
    figure.set_layout_engine("none")
    files = {}
    for kind, options in _FORMATS.items():
        figure.savefig(stream := io.BytesIO(), format=kind, **options)
        files[kind] = stream.getvalue()
    files["svg"] = files["svg"].replace(INK.encode(), GREY.encode())
    return Figure(name, _printable(caption), files)


def shown(text: str, longest: int = 60) -> str:
    """Return a label for matplotlib's font: a letter that it lacks is U+1F141. The middle of a long one is left out.

    A first `_`, which would hide the label, stands behind a space of no width.
    """
    from matplotlib.font_manager import findfont, get_font

    font = get_font(findfont("DejaVu Sans"))
    label = "".join(c if font.get_char_index(ord(c)) else f"U+{ord(c):04X}" for c in _printable(text))
    if len(label) > longest:
        label = f"{label[: longest * 2 // 3]}…{label[-longest // 3 :]}"
    return f"\u200b{label}" if label.startswith("_") else label


def _printable(text: str) -> str:
    """Return a text without control characters, which are invalid in SVG."""
    return "".join(c if c.isprintable() else "\ufffd" for c in text)


def score_figures(score: ReportedScore) -> Iterator[Figure]:
    """Yield the figures of a score: by factor, by layer, over steps; in all regimes but the first, which is SUP of a
    fine-tuned task and the source of others."""
    if score.column.over == "points":
        yield from _points(score)
        return
    layers = score.rows[(score.rows["kind"] == MEAN) & score.rows["step"].isna()]
    for regime in score.regimes[1:] or score.regimes:
        for over, rows in (("", score.means), ("layer", layers), ("step", score.steps())):
            shown = [regime] if regime == DELTA else [regime, CHANCE]
            yield from _figures(score, rows[rows["regime"].isin(shown)], over, regime)


def _figures(score: ReportedScore, rows: pd.DataFrame, over: str, regime: str) -> Iterator[Figure]:
    """Yield the figures of means over layers, over steps or, if `over` is "", over the levels of the first factor.

    Other factors have colours and marks. Of many conditions over layers or steps, a figure shows the levels of the
    factor that has most; the others have a figure for each. rows: of the regime, and of chance.
    """
    section, column = score.section, score.column
    axis = over or next(iter(section.factors), "")
    if not axis or (over and rows[over].nunique() < 2):
        return
    levels = () if over or all(map(is_number, section.levels[axis])) else section.levels[axis]
    conditions = rows["condition"]
    if not over:  # an untrained model is the floor of conditions with other objectives, too
        floors = {one: section.untrained(one) for one in conditions}
        levels_of = {one: {one[0], *(other[0] for other in floors if floors[other] == one)} for one in floors}
        rows = rows.assign(x=[sorted(levels_of[one]) for one in conditions]).explode("x")
        conditions = rows["condition"]
    first = list(rows["x"]) if not over else []
    places = rows[over] if over else map(levels.index, first) if levels else map(float, first)
    apart: set[str] = set()
    if over and conditions.nunique() > _LINES:
        apart = {*section.factors} - {max(section.factors, key=lambda factor: len(section.levels[factor]))}
    untrained = [_UNTRAINED * (section.levels_of(one).get(CONTROL) == UNTRAINED) for one in conditions]
    rows = rows.assign(
        x=pd.Series(list(places), rows.index, "Float64").astype("float64"),
        label=[section.label(one, {axis, *apart}) for one in conditions],
        floor=np.where(rows["regime"] == CHANCE, CHANCE, untrained),
        apart=[section.label(one, {*section.factors} - apart) for one in conditions],
    ).sort_values("x", kind="stable")
    by = [*filter(None, [over]), *(name for name in section.factors if name not in apart)]
    for told, some in rows[rows["x"].notna()].groupby("apart", sort=False):
        means = some[some["floor"] == ""]
        if len(means) > 1 and means["n"].max() > 1:
            title = score.title(regime, told)
            with canvas((max(4.6, 0.36 * len(levels)), 3.5)) as figure:
                axes = figure.subplots()
                axes.set(xlabel=shown(axis), ylabel=_ylabel(column, regime))
                axes.set_title(shown(title), fontsize=9.5, loc="left")
                _draw(axes, some, joined=not levels)
                axes.locator_params("x", integer=bool(over))
                if column.unit == PERCENT and axes.get_ylim()[0] > 0:
                    axes.set_ylim(bottom=0)  # where the scale begins
                if levels:
                    labels = [shown(level or "none", _WIDE) for level in levels]
                    turned = sum(map(len, labels)) > _WIDE
                    axes.set_xticks(range(len(levels)), labels, rotation=30 * turned, ha=("center", "right")[turned],
                                    rotation_mode="anchor")  # fmt: skip
                    axes.set_xlim(-0.5, len(levels) - 0.5)  # with the levels that have no result yet
                legend(figure, axes)
                name = file_name(score.task, column.name, regime, told, f"by-{over or 'factor'}")
                caption = f"{title}, by {listed(by)}. {_caption(means, some)}{_constant(section)}"
                yield finished(figure, name, caption)


def _draw(axes: Any, rows: pd.DataFrame, *, joined: bool) -> None:
    """Draw means with their seeds and intervals, labels side by side; and floors as lines.

    rows: of `compare`, with x, label and floor.
    """
    places, means = sorted(set(rows["x"])), rows[rows["floor"] == ""]
    step = min(np.diff(places), default=1.0)
    lines = list(means.groupby("label", sort=False))
    slot = step * (0.12 if joined else 0.7) / len(lines)
    for at, (label, line) in enumerate(lines):
        mark, across = _mark(at), line["x"] + slot * (at - (len(lines) - 1) / 2)
        axes.plot(across, line["value"], linestyle="-" if joined else "none", linewidth=1, markersize=4.5,
                  label=shown(label), **mark)  # fmt: skip
        axes.vlines(across, line["low"], line["high"], color=mark["color"], linewidth=1.2)
        for x, values in zip(across, line["values"], strict=True):
            axes.plot([x + 0.3 * slot] * len(values), values, ".", color=mark["color"], markersize=3, alpha=0.6)
    for floor, some in rows[rows["floor"] != ""].drop_duplicates(["floor", "x", "value"]).groupby("floor", sort=False):
        ends = some["x"] - step / 2, some["x"] + step / 2
        axes.hlines(some["value"], *ends, INK, _FLOORS[floor], alpha=0.6, linewidth=0.8, label=floor)


def _ylabel(column: Column, regime: str) -> str:
    is_gap = regime == DELTA
    unit = "points" if is_gap and column.unit == PERCENT else column.unit or column.shown
    better = "smaller is better" if column.better == "down" and not is_gap else ""
    return shown(", ".join(dict.fromkeys(filter(None, [regime_title(regime) or column.shown, unit, better]))))


def _caption(means: pd.DataFrame, rows: pd.DataFrame) -> str:
    """Return what marks, lines and dots are."""
    n = "–".join(dict.fromkeys([str(means["n"].min()), str(means["n"].max())]))
    units = means.loc[means["units"].notna(), ["units", "unit"]].drop_duplicates().itertuples(index=False)
    documents = "".join(f" and {number:,} test {unit}s" for number, unit in units)
    told = f"; vertical lines: their 95 % intervals, which cover seeds{documents}" if means["low"].notna().any() else ""
    floors = "".join(f"; {_FLOORS[floor]}: {floor}" for floor in rows["floor"].unique() if floor)
    return f"Marks: means over {n} pre-training seeds{told}{floors}; dots: seeds."


def correlation_figure(section: Section, one: Mapping[str, Any]) -> Figure:
    """Return the scatter of one score against another, a mark for each condition. one: of `correlations_of`."""
    told, interval = "", interval_of(one)
    if one["rho"] == one["rho"]:
        told = f"Spearman's ρ = {number(one['rho'], '')}, Pearson's r = {number(one['r'], '')}"
        told += f" ({interval})" if interval else ""
    with canvas() as figure:
        axes = figure.subplots()
        axes.set_title(told, fontsize=9.5, loc="left")
        for at, (condition, x, y) in enumerate(one["points"].itertuples()):
            label = shown(section.label(condition) or "none")
            axes.plot([x], [y], markersize=6.5, linestyle="none", label=label, **_mark(at))
        axes.set(xlabel=shown(one["x"]), ylabel=shown(one["y"]))
        axes.margins(0.08)
        legend(figure, axes)
        caption = f"{one['y']} against {one['x']}{told and f': {told}'}. "
        caption += f"Each mark is a condition, a mean over pre-training seeds.{_constant(section)}"
        return finished(figure, one["name"], caption)


def _constant(section: Section) -> str:
    """Return what all runs share, as a sentence: what a caption in a paper names. The page lists the other settings."""
    shared = {name: level for name, level in section.constant.items() if name in _NAMED}
    return f" The same in all runs: {told_of(shared)}." if shared else ""


def _points(score: ReportedScore) -> Iterator[Figure]:
    """Yield points of two languages, a panel for the first seed of each condition; lines join pairs of points."""
    section, rows = score.section, score.scores
    of_run = dict(iter(rows[rows["final"] & rows["counts"].notna()].groupby("run")))
    first = {condition: run for run, (condition, seed) in
             sorted(section.runs.items(), key=lambda one: -one[1][1]) if run in of_run}  # fmt: skip
    panels = [condition for condition in section.planned if condition in first][:_PANELS]
    if not panels:
        return
    of = f", of {_PANELS} of {len(first)} conditions" if len(first) > _PANELS else ""
    regimes = list(rows["regime"].unique())
    across = min(3, len(panels))
    down = -(-len(panels) // across)
    with canvas((2.3 * across, 0.4 + 2.2 * down)) as figure:
        figure.suptitle(shown(score.title()), fontsize=9.5, x=0.02, ha="left")
        for place, condition in enumerate(panels, 1):
            axes = figure.add_subplot(down, across, place, xticks=(), yticks=(), aspect="equal", adjustable="datalim")
            axes.set_title(shown(section.label(condition), 40), fontsize=7)
            here = of_run[first[condition]].set_index("regime")["counts"]
            points = {regime: counts_of("", counts) / SCALE for regime, counts in here.items()}
            if len({some.shape for some in points.values()}) == 1 and len(points) == 2:
                axes.plot(*np.stack(list(points.values())).transpose(2, 0, 1), color=INK, alpha=0.15, linewidth=0.4)
            for regime, some in points.items():
                axes.plot(*some.T, linestyle="none", markersize=2.5, **_mark(regimes.index(regime)))
        names = listed(f"{regime} ({_NAMES[at % len(_NAMES)]})" for at, regime in enumerate(regimes) if regime)
        told = f"{score.title()}{of}{f': {names}' if names else ''}. The first seed of each. Lines join pairs."
        yield finished(figure, f"{score.name}-points", told + _constant(section))


def _mark(at: int) -> dict[str, Any]:
    """Return the colour and the marker of the line at a place: 64 of them differ."""
    turn = at // len(_COLOURS)
    return {"color": _COLOURS[at % len(_COLOURS)], "marker": _MARKERS[(at + turn) % len(_MARKERS)]}
