"""A report as Markdown: the same tables and figures as on the page. All text is escaped, as names come from files."""

from __future__ import annotations

import re
from collections.abc import Iterable
from html import escape

from derivlang.evaluation.report.cells import Document, Table

_MARKS = re.compile(r"[\\`*_\[\]~|]|://")  # markup of emphasis, code, links and cell borders
_FIRST = re.compile(r"^([#+=-]+|\d+[.)])(?=\s|$)")  # markup that begins a heading or a list


def text(plain: str) -> str:
    """Return one line of Markdown that shows this text, without markup and HTML."""
    line = escape(" ".join(plain.split()), quote=False)
    line = _MARKS.sub(lambda match: "".join(f"&#{ord(c)};" for c in match[0]), line)
    return _FIRST.sub(lambda match: f"&#{ord(match[0][0])};{match[0][1:]}", line)


def markdown(document: Document) -> str:
    """Return the whole report. Figures are named by their PNG files."""
    out = [f"# {text(document.title)}", "", text(document.told), ""]
    for part in document.parts:
        out += [f"## {text(part.title)}", "", *(f"- {text(line)}" for line in part.facts), ""]
        for one in part.blocks:
            if isinstance(one, Table):
                told = [f"{text(line)}\n" for line in (one.note, one.signature) if line]
                out += [f"### {text(one.title)}", "", *told, table_text(one)]
            else:
                out += [f"![{text(one.caption)}](figures/{one.name}.png)\n", f"{text(one.caption)}\n"]
    return "\n".join(out)


def table_text(one: Table) -> str:
    """Return a pipe table. Column names include their group, and what is smaller follows a value in brackets."""
    labels, columns, rows = one.parts
    names = [*labels, *(" ".join(filter(None, names)) for names in columns)]
    rule = _line(["---"] * len(labels) + ["---:"] * len(columns))
    return _line(map(text, names)) + rule + "".join(
        _line(map(text, [*names, *map(_cell, cells)])) for names, cells in rows
    )  # fmt: skip


def _line(cells: Iterable[str]) -> str:
    return f"| {' | '.join(cells)} |\n"


def _cell(cell: str) -> str:
    value, _, note = cell.partition("\n")
    return f"{value} ({note})" if note else value
