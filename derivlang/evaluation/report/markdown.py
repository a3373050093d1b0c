"""A report as Markdown: headings, tables, figures by file name. All text is escaped, as names come from runs' files."""

from __future__ import annotations

import re
from collections.abc import Iterable
from html import escape

from derivlang.evaluation.report.cells import Document, Table, TableCell

_MARKS = re.compile(r"[\\`*_\[\]~|]|://")  # markup of emphasis, code, links and cell borders
_FIRST = re.compile(r"^([#+=-]+|\d+[.)])(?=\s|$)")  # markup that begins a heading or a list


def text(plain: str) -> str:
    """Return one line of Markdown that shows this text, without markup and HTML."""
    line = escape(" ".join(plain.split()), quote=False)
    line = _MARKS.sub(lambda found: "".join(f"&#{ord(c)};" for c in found[0]), line)
    return _FIRST.sub(lambda found: f"&#{ord(found[0][0])};{found[0][1:]}", line)


def markdown(document: Document) -> str:
    """Return the whole report."""
    out = [f"# {text(document.title)}", "", text(document.told), ""]
    for part in document.parts:
        out += [f"## {text(part.title)}", "", *(f"- {text(line)}" for line in part.notes), ""]
        for one, figures in (*part.shown, *((table, ()) for table in part.folded)):
            out += [f"### {text(one.title)}", ""] if one.title != part.title else []
            out += [table_text(one), *(f"![{text(f.title)}](figures/{f.name}.png)\n" for f in figures)]
    return "\n".join(out)


def table_text(one: Table) -> str:
    """Return a table's note and a pipe table. Column names include their group, and notes follow values in brackets."""
    names = [*one.labels, *(f"{group} {name}".strip() for group, columns in one.columns for name in columns)]
    left = len(one.labels)
    rule = _line(["---"] * left + ["---:"] * (len(names) - left))
    rows = "".join(_line(map(text, [*row.labels, *map(_cell, row.cells)])) for row in one.rows)
    note = f"{text(one.note)}\n\n" if one.note else ""
    return f"{note}{_line(map(text, names))}{rule}{rows}"


def _line(cells: Iterable[str]) -> str:
    return f"| {' | '.join(cells)} |\n"


def _cell(cell: TableCell) -> str:
    return f"{cell.text} ({cell.note})" if cell.note else cell.text
