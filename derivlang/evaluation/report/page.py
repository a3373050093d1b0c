"""A report as one self-contained HTML page, of the template page.html, which escapes all text."""

from __future__ import annotations

from base64 import b64encode
from collections.abc import Sequence
from dataclasses import dataclass, replace
from functools import cache
from importlib import resources
from itertools import groupby
from typing import Any

from derivlang.core.errors import UsageError
from derivlang.evaluation.report.cells import EMPTY, Document, Row, Table, TableCell

_TEMPLATE = "page.html"


@dataclass(frozen=True, slots=True)
class TableLayout:
    """A table as HTML needs it. labels, names: of the columns. grouped: whether columns have groups above them.

    texts: which columns hold words. bodies: (title above its rows or None, rows with their (place, label, number of
    rows that share it)).
    """

    labels: Sequence[str]
    names: Sequence[str]
    grouped: bool
    texts: Sequence[bool]
    bodies: Sequence[tuple[str | None, Sequence[tuple[Row, Sequence[tuple[int, str, int]]]]]]


def page(document: Document) -> str:
    """Return the whole page. Raise UsageError without jinja2."""
    page: str = _template().render(document=document).lstrip()
    return page


@cache
def _template() -> Any:
    """Return the compiled template. It calls `layout` and `base64`."""
    try:
        from jinja2 import Environment, StrictUndefined
        from markupsafe import Markup
    except ImportError:
        raise UsageError("a report needs jinja2", fix="pip install 'derivlang[train]'", id="missing-package") from None
    environment = Environment(autoescape=True, undefined=StrictUndefined, trim_blocks=True, lstrip_blocks=True)
    base64 = {"base64": lambda content: b64encode(content).decode()}
    environment.globals |= {"layout": layout, "text": Markup(' class="text"'), **base64}
    return environment.from_string((resources.files(__package__ or "") / _TEMPLATE).read_text("utf-8"))


def layout(one: Table) -> TableLayout:
    """Return the layout of a table.

    If first labels have several rows, they become titles above their rows: a narrow screen has no room for a column.
    """
    titled = len(one.labels) > 1 and 2 * len({row.labels[0] for row in one.rows}) <= len(one.rows)
    texts = [not all(map(_is_number, column)) for column in zip(*(row.cells for row in one.rows), strict=True)]
    bodies: list[tuple[str | None, Sequence[tuple[Row, Sequence[tuple[int, str, int]]]]]] = []
    for title, group in groupby(one.rows, key=lambda row: row.labels[0]):
        rows = [replace(row, labels=row.labels[titled:]) for row in group]
        bodies.append((title if titled else None, list(zip(rows, _heads(rows), strict=True))))
    names = [name for _, names in one.columns for name in names]
    return TableLayout(one.labels[titled:], names, any(group for group, _ in one.columns), texts, bodies)


def _heads(rows: Sequence[Row]) -> list[list[tuple[int, str, int]]]:
    """Return the labels of each row. One that equals the one above, with all labels before it, shares its cell."""
    heads: list[list[tuple[int, str, int]]] = [[] for _ in rows]
    for place in range(len(rows[0].labels)):
        for _, group in groupby(enumerate(rows), key=lambda row: row[1].labels[: place + 1]):
            (first, row), *others = group
            heads[first].append((place, row.labels[place], 1 + len(others)))
    return heads


def _is_number(cell: TableCell) -> bool:
    return cell.text in ("", EMPTY) or cell.text.lstrip("−+< ")[:1].isdigit()
