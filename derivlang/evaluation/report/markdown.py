"""A report as Markdown: headings, tables, figures by file name. All text is escaped, as names come from runs' files."""

from __future__ import annotations

import re
from collections.abc import Iterable, Sequence
from html import escape

from derivlang.evaluation.report.cells import Table, TableCell

_MARKS = re.compile(r"[\\`*_\[\]~|]|://")  # markup of emphasis, code, links and cell borders
_FIRST = re.compile(r"^([#+=-]+|\d+[.)])(?=\s|$)")  # markup that begins a heading or a list


def text(plain: str) -> str:
    """Return one line of Markdown that shows this text, without markup and HTML."""
    line = escape(" ".join(plain.split()), quote=False)
    line = _MARKS.sub(lambda found: "".join(f"&#{ord(c)};" for c in found[0]), line)
    return _FIRST.sub(lambda found: f"&#{ord(found[0][0])};{found[0][1:]}", line)


def paragraph(plain: str) -> str:
    """Return a paragraph of plain text."""
    return f"{text(plain)}\n"


def points(lines: Iterable[str]) -> str:
    """Return a list."""
    return "".join(f"- {text(line)}\n" for line in lines)


def heading(level: int, plain: str) -> str:
    """Return a heading of a level from 1."""
    return f"{'#' * level} {text(plain)}\n"


def figures(names: Sequence[tuple[str, str]]) -> str:
    """Return the figures. names: (file name without suffix, title) of each."""
    return "".join(f"![{text(title)}](figures/{name}.png)\n" for name, title in names)


def table(one: Table) -> str:
    """Return a pipe table. Column names include their group, and notes follow their values in brackets."""
    names = [*one.labels, *(f"{group} {name}".strip() for group, columns in one.columns for name in columns)]
    left = len(one.labels)
    rule = _line(["---"] * left + ["---:"] * (len(names) - left))
    rows = "".join(_line(map(text, [*row.labels, *map(_cell, row.cells)])) for row in one.rows)
    return f"{paragraph(one.note)}\n{_line(map(text, names))}{rule}{rows}"


def _line(cells: Iterable[str]) -> str:
    return f"| {' | '.join(cells)} |\n"


def _cell(cell: TableCell) -> str:
    return f"{cell.text} ({cell.note})" if cell.note else cell.text
