"""A report as one self-contained HTML page, with its styles and figures.

It follows the reader's light or dark setting. Tables scroll inside their own boxes, so the page never scrolls sideways.
"""

from __future__ import annotations

from base64 import b64encode
from collections.abc import Iterable, Sequence
from dataclasses import replace
from html import escape
from itertools import groupby

from derivlang.evaluation.report.cells import EMPTY, Row, Table, TableCell
from derivlang.evaluation.report.figures import Figure

_STYLE = """
:root { color-scheme: light dark; --ground: #fff; --ink: #1c1e21; --soft: #5c6370; --line: #d9dce1; --band: #f4f5f7;
  --link: #0b57d0; }
@media (prefers-color-scheme: dark) { :root { --ground: #15171a; --ink: #e6e8eb; --soft: #a0a7b3; --line: #363b43;
  --band: #1e2126; --link: #8ab4f8; } }
* { box-sizing: border-box; }
body { margin: 0 auto; max-width: 84rem; padding: 1.5rem clamp(1rem, 4vw, 2.5rem) 4rem; background: var(--ground);
  color: var(--ink); font: 16px/1.5 system-ui, -apple-system, "Segoe UI", Roboto, "Noto Sans", sans-serif;
  overflow-wrap: break-word; }
h1 { font-size: 1.6rem; line-height: 1.25; margin: 0 0 .25rem; }
h2 { font-size: 1.25rem; line-height: 1.3; margin: 3rem 0 .25rem; padding-top: 1rem;
  border-top: 1px solid var(--line); }
h3 { font-size: 1.05rem; margin: 2rem 0 .25rem; }
p, ul.facts { margin: .25rem 0 .75rem; color: var(--soft); font-size: .9rem; max-width: 48rem; }
ul.facts { list-style: none; padding: 0; max-width: none; }
a { color: var(--link); }
nav a { margin-right: 1rem; display: inline-block; }
.scroll { overflow-x: auto; border: 1px solid var(--line); border-radius: 6px; max-width: max-content; }
.scroll:focus-visible { outline: 2px solid var(--link); }
table { border-collapse: separate; border-spacing: 0; font-size: .82rem; font-variant-numeric: tabular-nums; }
th, td { padding: .25rem .45rem; text-align: right; vertical-align: top; white-space: nowrap; line-height: 1.35; }
th { font-weight: 600; }
thead th { background: var(--band); }
thead tr:first-child th.group { text-align: center; border-left: 1px solid var(--line); }
th.label, th.text, td.text { text-align: left; }
tbody th { font-weight: 400; background: var(--ground); }
tbody th.lead { position: sticky; left: 0; white-space: normal; min-width: 5rem; max-width: 10rem;
  overflow-wrap: normal; z-index: 1; }
thead th.lead { position: sticky; left: 0; z-index: 2; }
tbody th.title { text-align: left; font-weight: 600; padding-top: .5rem; }
tbody th.title span { position: sticky; left: .45rem; }
tbody tr:first-child > * { border-top: 1px solid var(--line); }
tr.paper > :not(.shared), tr.paper small { color: var(--soft); font-style: italic; }
td small { display: block; color: var(--soft); font-size: .72rem; }
.figures { display: grid; grid-template-columns: repeat(auto-fit, minmax(min(100%, 28rem), 1fr)); gap: 1.25rem;
  margin: 1rem 0; }
figure { margin: 0; max-width: 38rem; }
figure svg { width: 100%; height: auto; display: block; color: var(--ink); }
figure svg text { font-family: inherit !important; }
figcaption { font-size: .8rem; color: var(--soft); }
details > summary { cursor: pointer; margin: 1rem 0 .5rem; }
@media print { .scroll { overflow: visible; } }
"""
_TEXT = ' class="text"'


def page(title: str, parts: Iterable[str]) -> str:
    """Return a whole HTML page of these parts, which are HTML."""
    return (
        '<!doctype html>\n<html lang="en">\n<head>\n<meta charset="utf-8">\n'
        '<meta name="viewport" content="width=device-width, initial-scale=1">\n'
        f"<title>{escape(title)}</title>\n<style>{_STYLE}</style>\n</head>\n<body>\n{''.join(parts)}</body>\n</html>\n"
    )


def heading(level: int, text: str, id: str = "") -> str:
    """Return a heading of a level from 1; id: for links."""
    mark = f' id="{escape(id)}"' if id else ""
    return f"<h{level}{mark}>{escape(text)}</h{level}>\n"


def paragraph(text: str) -> str:
    """Return a paragraph of plain text."""
    return f"<p>{escape(text)}</p>\n"


def facts(lines: Sequence[str]) -> str:
    """Return a list of plain lines."""
    return '<ul class="facts">' + "".join(f"<li>{escape(line)}</li>" for line in lines) + "</ul>\n"


def contents(entries: Sequence[tuple[str, str]]) -> str:
    """Return the links to the parts. entries: (id, text) of each part."""
    links = "".join(f'<a href="#{escape(id)}">{escape(text)}</a>' for id, text in entries)
    return f'<nav aria-label="Contents">{links}</nav>\n'


def folded(summary: str, inside: str) -> str:
    """Return a part that opens on a click. inside: HTML."""
    return f"<details><summary>{escape(summary)}</summary>\n{inside}</details>\n"


def figures(found: Sequence[Figure]) -> str:
    """Return the figures side by side, empty without any."""
    if not found:
        return ""
    return f'<div class="figures">{"".join(map(_figure, found))}</div>\n'


def table(one: Table) -> str:
    """Return a table's note and the table in a scrolling box. A box can have the focus, so that keys scroll it.

    If first labels have several rows, they become titles above their rows: a narrow screen has no room for a column.
    """
    titled = 2 * len({row.labels[0] for row in one.rows}) <= len(one.rows)
    width = len(one.labels) + sum(len(names) for _, names in one.columns) - 1
    texts = [not all(map(_is_number, column)) for column in zip(*(row.cells for row in one.rows), strict=True)]
    bodies = []
    for title, group in groupby(one.rows, key=lambda row: row.labels[0]):
        rows = list(group)
        if titled:
            head = f'<tr><th scope="rowgroup" class="title" colspan="{width}"><span>{escape(title)}</span></th></tr>\n'
            rows = [replace(row, labels=row.labels[1:]) for row in rows]
        bodies.append(f"<tbody>\n{head if titled else ''}{_body(rows, texts)}</tbody>\n")
    return (
        f"{paragraph(one.note)}"
        f'<div class="scroll" tabindex="0" role="region" aria-label="{escape(one.title)}">\n'
        f"<table>\n<thead>\n{_head(one, one.labels[titled:], texts)}</thead>\n{''.join(bodies)}</table>\n</div>\n"
    )


def _head(one: Table, labels: Sequence[str], texts: Sequence[bool]) -> str:
    grouped = any(group for group, _ in one.columns)
    span = ' rowspan="2"' if grouped else ""
    top = "".join(
        f'<th scope="col" class="label{" lead" * (not place)}"{span}>{escape(name)}</th>'
        for place, name in enumerate(labels)
    )
    columns = [name for _, names in one.columns for name in names]
    names = "".join(
        f'<th scope="col"{_TEXT * words}>{escape(name)}</th>' for name, words in zip(columns, texts, strict=True)
    )
    if not grouped:
        return f"<tr>{top}{names}</tr>\n"
    groups = "".join(
        f'<th scope="colgroup" class="group" colspan="{len(columns)}">{escape(group)}</th>'
        for group, columns in one.columns
    )
    return f"<tr>{top}{groups}</tr>\n<tr>{names}</tr>\n"


def _body(rows: Sequence[Row], texts: Sequence[bool]) -> str:
    """Return table rows. A label that equals the one above, with all labels before it, shares its cell."""
    lines = []
    for number, row in enumerate(rows):
        heads = []
        for place, label in enumerate(row.labels):
            above = rows[number - 1].labels[: place + 1] if number else None
            if above == row.labels[: place + 1]:
                continue
            same = 1
            while number + same < len(rows) and rows[number + same].labels[: place + 1] == row.labels[: place + 1]:
                same += 1
            span = f' rowspan="{same}"' if same > 1 else ""
            kind = "label" + " lead" * (not place) + " shared" * (same > 1)
            heads.append(f'<th scope="{"rowgroup" if same > 1 else "row"}" class="{kind}"{span}>{_label(label)}</th>')
        cells = "".join(_cell(cell, words) for cell, words in zip(row.cells, texts, strict=True))
        kind = ' class="paper"' if row.paper else ""
        lines.append(f"<tr{kind}>{''.join(heads)}{cells}</tr>\n")
    return "".join(lines)


def _cell(cell: TableCell, words: bool) -> str:
    title = f' title="{escape(cell.title)}"' if cell.title else ""
    note = f"<small>{escape(cell.note)}</small>" if cell.note else ""
    return f"<td{_TEXT * words}{title}>{escape(cell.text)}{note}</td>"


def _label(text: str) -> str:
    """Return an escaped label in which a spec may break after a comma."""
    return escape(text).replace(",", ",<wbr>")


def _is_number(cell: TableCell) -> bool:
    return cell.text in ("", EMPTY) or cell.text.lstrip("−+< ")[:1].isdigit()


def _figure(figure: Figure) -> str:
    png = b64encode(figure.png).decode()
    return (
        f"<figure>{figure.inline}<figcaption>"
        f'<a download="{figure.name}.png" href="data:image/png;base64,{png}">Save as PNG</a></figcaption></figure>\n'
    )
