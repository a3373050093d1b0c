"""Cells of a table that a spreadsheet would run as formulas.

    =HYPERLINK("http://…";"a")      ->      '=HYPERLINK("http://…";"a")

A cell is one if it begins with `=`, `+`, `-`, `@`, a tab or a carriage return. An apostrophe before it makes it text.
A single `-` is text anyway, and `-1.5` a number.
"""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Sequence

import pyarrow as pa
import pyarrow.compute as pc

from derivlang.core.arrow import filled, is_string

_BEGINS = r"[=+\-@\t\r](?s:.)"
_NUMBER = r"^[+-]\d+([.,]\d+)*$"


class Formulas:
    """Counts such cells, and escapes them if asked.

    escape: whether to put an apostrophe before them. quoted: whether the file quotes fields; if not, a quotation mark
    at the beginning of a cell is one to the spreadsheet, which takes it off. found: the number of cells so far.
    """

    def __init__(self, *, escape: bool, quoted: bool):
        self.escape = escape
        self.found = 0
        self._pattern = f"^{_BEGINS}" if quoted else f'^"?{_BEGINS}'

    def names(self, names: Sequence[str]) -> list[str]:
        """Return the cells of a header row."""
        cells: list[str] = self._strings(pa.array(names, pa.string())).to_pylist()
        return cells

    def tables(self, tables: Iterable[pa.Table], columns: Sequence[str]) -> Iterator[pa.Table]:
        """Yield tables with the cells of these columns, which hold values or lists of values."""
        for table in tables:
            for name in columns:
                number = table.schema.get_field_index(name)
                table = table.set_column(number, name, self._column(table.column(name).combine_chunks()))
            yield table

    def _column(self, column: pa.Array) -> pa.Array:
        kind = column.type
        if pa.types.is_list(kind) and _is_text(kind.value_type):
            flat = self._strings(column.flatten())
            lengths = filled(pc.list_value_length(column), 0)
            offsets = pa.concat_arrays([pa.array([0], pa.int32()), pc.cumulative_sum(lengths)])
            return pa.ListArray.from_arrays(offsets, flat, mask=column.is_null())
        return self._strings(column) if _is_text(kind) else column

    def _strings(self, cells: pa.Array) -> pa.Array:
        cells = cells.cast(pa.string())
        begins, numbers = (pc.match_substring_regex(cells, pattern) for pattern in (self._pattern, _NUMBER))
        formulas = pc.and_not(begins, numbers)
        self.found += pc.sum(formulas).as_py() or 0
        if not self.escape:
            return cells
        return pc.if_else(formulas, pc.binary_join_element_wise("'", cells, ""), cells)


def _is_text(kind: pa.DataType) -> bool:
    if pa.types.is_dictionary(kind):
        kind = kind.value_type
    return is_string(kind)
