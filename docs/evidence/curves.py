"""The learning curves of the page of ALIGN-MLM: when two languages come together, with and without inversion."""

from __future__ import annotations

import pandas as pd
from kept import parts, scores
from outcomes import CURVES, OF_CURVES

from derivlang.evaluation.report.figures import canvas, finished, legend
from derivlang.evaluation.report.tables import number
from derivlang.evaluation.table import FACTOR

_LINES = {"trans": ("#0072b2", "o"), "trans,inv": ("#e69f00", "^")}  # language -> colour, mark
_STEPS, _EARLY = (2_000, 14_000, 26_000), 4_000  # those that the page names


def curves() -> dict[str, pd.DataFrame]:
    """Return the percentages of each outcome, by its title: a row for each step, a column for each language."""
    rows, found = scores(CURVES), {}
    for title, outcome in OF_CURVES.items():
        *place, layer = parts(outcome)
        some = rows[(rows[["task", "metric", "regime"]] == place).all(axis=1)]
        some = some[some["layer"].isna() if layer is None else some["layer"] == layer]
        found[title] = some.pivot(index="step", columns=f"{FACTOR}t", values="value")
    return found


def curve_figure() -> str:
    """Return the figure as SVG: a panel for each outcome, a line for each language."""
    with canvas((8.4, 3.0)) as figure:
        panels = figure.subplots(1, len(OF_CURVES), sharey=True)
        for axes, (title, table) in zip(panels, curves().items(), strict=True):
            for language, (colour, mark) in _LINES.items():
                axes.plot(table.index, table[language], color=colour, marker=mark, markersize=4, label=language)
            axes.set(xlabel="steps", xticks=range(0, 26_001, 10_000), xlim=(0, None), ylim=(0, 100))
            axes.set_title(title, fontsize=9.5, loc="left")
        panels[0].set_ylabel("%")
        legend(figure, panels[0])
        return finished(figure, CURVES, "").files["svg"].decode()


def curve_statements() -> list[str]:
    """Return what the page says of the curves."""
    found = curves()

    def told(title: str, language: str) -> str:
        first, middle, last = (number(found[title].loc[step, language]) for step in _STEPS)
        return f"{first}, {middle} and {last} %"

    early = [number(found[title].loc[_EARLY, "trans"]) for title in OF_CURVES]
    return [
        f"at step {_EARLY:,} ZS is {early[0]} %, while {early[1]} % of the sentences find their translation and "
        f"{early[2]} % of the sub-words are aligned",
        f"ZS is below the {number(found['POS ZS'].loc[_STEPS[0], 'trans'])} % that `trans` has after {_STEPS[0]:,}",
        f"ZS under `trans` is {told('POS ZS', 'trans')}",
        f"under `trans,inv` it is {told('POS ZS', 'trans,inv')}",
        f"aligned are {told('alignment, held-out', 'trans')}",
        f"with inversion, {told('alignment, held-out', 'trans,inv')}",
    ]
