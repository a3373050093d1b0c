"""How figures are drawn: a canvas without a display, its style, and the figure as SVG, PNG and PDF.

Axes and text are drawn in a placeholder colour, which becomes the page's text colour (`Figure.inline`), or in files a
grey that is visible on light and dark backgrounds.
"""

from __future__ import annotations

import io
import re
from collections.abc import Iterator, Sequence
from contextlib import contextmanager
from dataclasses import dataclass
from html import escape
from textwrap import fill
from typing import Any

import numpy as np

from derivlang.core.extras import module_of

INK = "#010203"  # placeholder of the text colour, used for nothing else
GREY = "#767676"  # contrast 4.5 on white, 4.6 on black
STYLE: Any = {
    "svg.fonttype": "none", "svg.hashsalt": "derivlang", "font.size": 9, "text.color": INK, "axes.edgecolor": INK,
    "axes.labelcolor": INK, "xtick.color": INK, "ytick.color": INK, "axes.spines.top": False,
    "axes.spines.right": False, "legend.frameon": False, "legend.fontsize": 8, "axes.axisbelow": True,
    "figure.constrained_layout.use": True, "text.parse_math": False, "pdf.fonttype": 42, "axes.grid": True,
    "axes.grid.axis": "y", "grid.color": INK, "grid.alpha": 0.15, "grid.linewidth": 0.6,
}  # fmt: skip


@dataclass(frozen=True, slots=True)
class Figure:
    """A figure. name: of its files. caption: its text alternative, too. svg: in the placeholder colour."""

    name: str
    caption: str
    svg: str
    png: bytes
    pdf: bytes

    @property
    def files(self) -> dict[str, str | bytes]:
        """The content of its files, by suffix. The SVG has a transparent background."""
        return {"svg": self.svg.replace(INK, GREY), "png": self.png, "pdf": self.pdf}

    @property
    def inline(self) -> str:
        """The SVG inside a page: in the page's text colour, with ids that are unique in the page."""
        svg = self.svg[self.svg.index("<svg") :].replace(INK, "currentColor")
        svg = re.sub(r'\bid="([^"]+)"', rf'id="{self.name}-\1"', svg)
        svg = re.sub(r'(href="|url\()#', rf"\1#{self.name}-", svg)
        svg = re.sub(r"<metadata>.*?</metadata>", "", svg, flags=re.DOTALL)
        svg = re.sub(r' (?:width|height)="[\d.]+pt"', "", svg, count=2)  # as wide as its place
        return svg.replace("<svg ", f'<svg role="img" aria-label="{escape(self.caption)}" ', 1)


@contextmanager
def drawing(*, title: str) -> Iterator[tuple[Any, Any]]:
    """Yield an empty figure and its axes, without a display and without pyplot's global state."""
    with canvas((4.6, 3.5)) as figure:
        axes = figure.add_subplot()
        axes.set_title(shown(title), fontsize=9.5, loc="left")
        yield figure, axes


@contextmanager
def panels(titles: Sequence[str], title: str) -> Iterator[tuple[Any, list[Any]]]:
    """Yield a figure and the axes of its panels, without ticks, at most three side by side."""
    columns = min(3, len(titles))
    rows = -(-len(titles) // columns)
    with canvas((2.3 * columns, 0.4 + 2.2 * rows)) as figure:
        figure.suptitle(shown(title), fontsize=9.5, x=0.02, ha="left")
        every = [figure.add_subplot(rows, columns, number) for number in range(1, len(titles) + 1)]
        for axes, told in zip(every, titles, strict=True):
            axes.set_title(fill(shown(told), 40), fontsize=7)
            axes.set(xticks=(), yticks=(), aspect="equal")
            axes.grid(visible=False)
            axes.set_adjustable("datalim")
        yield figure, every


@contextmanager
def canvas(size: tuple[float, float]) -> Iterator[Any]:
    """Yield a figure of a size in inches, without a display and without pyplot's global state."""
    mpl = module_of("matplotlib", "a figure")
    from matplotlib.backends.backend_agg import FigureCanvasAgg
    from matplotlib.figure import Figure as Canvas

    with mpl.rc_context():
        mpl.rcdefaults()
        mpl.rcParams.update(STYLE)
        figure = Canvas(figsize=size)
        FigureCanvasAgg(figure)
        yield figure


def legend(figure: Any, axes: Any, labels: Sequence[str]) -> None:
    """Put the legend below the axes, in this order, in as many columns as fit. The figure's height grows with it."""

    def letters(columns: int) -> int:
        return sum(max(map(len, part)) + 5 for part in np.array_split(np.array(labels), columns))  # as matplotlib does

    fitting = [n for n in range(1, min(4, len(labels)) + 1) if n == 1 or letters(n) <= 62]
    rows = -(-len(labels) // fitting[-1])
    columns = next(n for n in fitting if -(-len(labels) // n) == rows)
    handles = dict(zip(*reversed(axes.get_legend_handles_labels()), strict=True))
    figure.legend([handles[label] for label in labels], labels, loc="outside lower center", ncols=columns)
    figure.set_figheight(3.1 + 0.19 * rows)


def finished(figure: Any, name: str, caption: str) -> Figure:
    """Return the figure in three formats, laid out once."""
    svg, png, pdf = io.StringIO(), io.BytesIO(), io.BytesIO()
    figure.draw_without_rendering()
    figure.set_layout_engine("none")
    figure.savefig(svg, format="svg", transparent=True, metadata={"Date": None, "Creator": None})
    figure.savefig(png, format="png", dpi=200, facecolor="white", metadata={"Software": None})
    figure.savefig(pdf, format="pdf", metadata={"CreationDate": None, "Creator": None, "Producer": None})
    return Figure(name, _printable(caption), svg.getvalue(), png.getvalue(), pdf.getvalue())


def shown(text: str, longest: int = 60) -> str:
    """Return a label without a first `_`, which matplotlib hides. The middle of a long one is left out."""
    label = _printable(text)
    if len(label) > longest:
        label = f"{label[: longest * 2 // 3]}…{label[-longest // 3 :]}"
    return f"\u200b{label}" if label.startswith("_") else label


def _printable(text: str) -> str:
    """Return a text without control characters, which are invalid in SVG."""
    return "".join(c if c.isprintable() else "\ufffd" for c in text)
