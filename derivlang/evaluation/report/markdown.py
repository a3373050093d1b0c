"""A report as Markdown: headings, tables, figures by their files."""

from __future__ import annotations

from collections.abc import Iterable, Sequence

from derivlang.evaluation.report.cells import Cell, Table


def heading(level: int, text: str) -> str:
    return f"{'#' * level} {text}\n"


def figures(names: Sequence[tuple[str, str]]) -> str:
    """(file name without ending, title) of each."""
    return "".join(f"![{title}](figures/{name}.png)\n" for name, title in names)


def table(one: Table) -> str:
    """A pipe table; groups of columns become parts of names, notes follow their values in brackets."""
    names = [*one.labels, *(f"{group} {name}".strip() for group, columns in one.columns for name in columns)]
    left = len(one.labels)
    lines = [names, ["---"] * left + ["---:"] * (len(names) - left)]
    lines += [[*row.labels, *map(_cell, row.cells)] for row in one.rows]
    return f"{one.note}\n\n" + "".join(_line(line) for line in lines)


def _line(cells: Iterable[str]) -> str:
    return f"| {' | '.join(text.replace('|', '&#124;') for text in cells)} |\n"


def _cell(cell: Cell) -> str:
    return f"{cell.text} ({cell.note})" if cell.note else cell.text
