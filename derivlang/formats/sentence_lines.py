"""Sentences with a word per line and an empty line after each, as CoNLL-U and tagged files have them."""

from __future__ import annotations

from collections.abc import Iterable, Iterator
from typing import NamedTuple, cast

import pyarrow as pa
import pyarrow.compute as pc

from derivlang.core.errors import LayerError
from derivlang.core.structure import value_lists
from derivlang.formats.line_cuts import EMPTY


class LineBlock(NamedTuple):
    """Lines that follow each other, and their numbers."""

    numbers: list[int]
    lines: list[str]


def line_blocks(lines: Iterable[tuple[int, str]]) -> Iterator[LineBlock]:
    """Yield the runs of non-empty lines; lines: (number, line).

    (1, "a"), (2, "b"), (3, ""), (4, ""), (5, "c")    ->    numbers 1 2, lines a b; numbers 5, lines c
    """
    block = LineBlock([], [])
    for number, line in lines:
        if line:
            block.numbers.append(number)
            block.lines.append(line)
        elif block.lines:
            yield block
            block = LineBlock([], [])
    if block.lines:
        yield block


def begins_sentence(before: bytes, line: bytes) -> bool:
    """Return whether a line follows an empty one, and is not empty itself."""
    return before in EMPTY and line not in EMPTY


def word_values(table: pa.Table, column: str) -> list[str]:
    """Return a list column's values of all words, as strings.

    Raises LayerError: column-type if they are not lists of values, layer-length if a sentence has more or fewer of them
    than `tokens`, null-value for a null.
    """
    lists = value_lists(table.column(column).combine_chunks(), column, None)
    if not pc.list_value_length(lists).equals(pc.list_value_length(table.column("tokens").combine_chunks())):
        raise LayerError(
            f"a sentence has more or fewer values in {column} than tokens",
            fix="give each token one value",
            id="layer-length",
        )
    values = lists.flatten().cast(pa.string())
    if values.null_count:
        raise LayerError(
            f"a word has no value (null) in {column}",
            fix="give every word a value, such as _, or leave the column out",
            id="null-value",
        )
    return cast("list[str]", values.to_pylist())
