"""A report as one self-contained HTML page, of the template page.html, which escapes all text."""

from __future__ import annotations

from base64 import b64encode
from collections.abc import Sequence
from dataclasses import dataclass
from functools import cache
from importlib import resources
from itertools import groupby
from typing import Any, TypeAlias

from derivlang.core.extras import module_of
from derivlang.evaluation.report.cells import EMPTY, Document, Table

_TEMPLATE = "page.html"
Line: TypeAlias = tuple[Sequence[tuple[int, str, int]], Sequence[Sequence[str]]]


@dataclass(frozen=True, slots=True)
class TableLayout:
    """A table as HTML needs it. labels, names: of the columns. groups: (title, number of columns) above names, or ().

    texts: which columns hold words. bodies: (title above its rows or None, rows of labels as (place, label, number of
    rows that share it), and of cells as [value, what is smaller]).
    """

    labels: Sequence[str]
    names: Sequence[str]
    groups: Sequence[tuple[str, int]]
    texts: Sequence[bool]
    bodies: Sequence[tuple[str | None, Sequence[Line]]]


def page(document: Document) -> str:
    """Return the whole page. Raise UsageError without jinja2."""
    page: str = _template().render(document=document).lstrip()
    return page


@cache
def _template() -> Any:
    """Return the compiled template. It calls `layout`, `by_kind` and `base64`."""
    jinja2 = module_of("jinja2", "a report")
    from markupsafe import Markup  # jinja2 depends on it

    options = {"autoescape": True, "undefined": jinja2.StrictUndefined, "trim_blocks": True, "lstrip_blocks": True}
    environment = jinja2.Environment(**options)
    base64 = {"base64": lambda content: b64encode(content).decode()}
    environment.globals |= {"layout": layout, "by_kind": by_kind, "text": Markup(' class="text"'), **base64}
    return environment.from_string((resources.files(__package__ or "") / _TEMPLATE).read_text("utf-8"))


def by_kind(blocks: Sequence[Any]) -> list[tuple[str, list[Any]]]:
    """Return tables and figures in order, neighbours of one kind together: figures stand side by side."""
    kinds = groupby(blocks, key=lambda block: "table" if isinstance(block, Table) else "figures")
    return [(kind, list(some)) for kind, some in kinds]


def layout(one: Table) -> TableLayout:
    """Return the layout of a table.

    If first labels have several rows, they become titles above their rows: a narrow screen has no room for a column.
    """
    labels, columns, rows = one.parts
    titled = len(labels) > 1 and 2 * len({names[0] for names, _ in rows}) <= len(rows)
    texts = [not all(map(_is_number, cells)) for cells in zip(*(cells for _, cells in rows), strict=True)]
    bodies: list[tuple[str | None, list[Line]]] = []
    for title, some in groupby(rows, key=lambda row: row[0][0] if titled else None):
        lines = list(some)
        heads = _heads([names[titled:] for names, _ in lines])
        cells = [[cell.partition("\n")[::2] for cell in cells] for _, cells in lines]
        bodies.append((title, list(zip(heads, cells, strict=True))))
    grouped = [(group, len(list(some))) for group, some in groupby(columns, key=lambda names: names[0])]
    groups = grouped if len(columns[0]) > 1 else []
    return TableLayout(labels[titled:], [names[-1] for names in columns], groups, texts, bodies)


def _heads(rows: Sequence[Sequence[str]]) -> list[list[tuple[int, str, int]]]:
    """Return the labels of each row. One that equals the one above, with all labels before it, shares its cell."""
    heads: list[list[tuple[int, str, int]]] = [[] for _ in rows]
    for place in range(len(rows[0])):
        for _, group in groupby(enumerate(rows), key=lambda row: row[1][: place + 1]):
            (first, row), *others = group
            heads[first].append((place, row[place], 1 + len(others)))
    return heads


def _is_number(cell: str) -> bool:
    text = cell.partition("\n")[0]
    return text in ("", EMPTY, "NaN") or text.lstrip("−+< ")[:1].isdigit()
