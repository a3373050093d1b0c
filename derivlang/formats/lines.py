"""Lines of a file: where it may be cut, how many there are in a piece, which hold words, and what they hold.

{"n": 1}\\n{"n": 2}\\n\\n{"n": 3}\\n, pieces of about 10 bytes    ->    begins 0, 19; 2 documents in 3 lines, 1 in 1
"""

from __future__ import annotations

import re
from collections.abc import Callable, Iterable, Iterator, Sequence
from itertools import chain
from pathlib import Path
from typing import cast

import numpy as np
import pyarrow as pa
import pyarrow.compute as pc

from derivlang.core.arrow import string_array, to_arrow, to_numpy
from derivlang.core.columns import value_lists
from derivlang.core.errors import DataError, LayerError
from derivlang.formats.opening import BOM, Piece, whole_lines
from derivlang.formats.pieces import ASCII_SPACES, WIDE_SPACES

EMPTY = (b"\n", b"\r\n")  # lines without a character, with their ends


def cut_lines(path: Path, size: int, target: int, begins: Callable[[bytes, bytes], bool]) -> list[int]:
    """Return where pieces of about `target` bytes begin in a plain file of `size` bytes, the first of them at 0.

    begins: whether a piece may begin at a line, given the line before it and the line, with their ends.
    """
    found = [0]
    with path.open("rb") as stream:
        before, line = EMPTY[0], stream.readline().removeprefix(BOM)
        while line and not begins(before, line):
            before, line = line, stream.readline()
        at = max(target, stream.tell() - 1)  # what stands before the first line where a piece may begin belongs to it
        while at < size:
            stream.seek(at)
            before = stream.readline() and b"..."  # the end of a line, of which nothing is known
            start = stream.tell()
            while (line := stream.readline()) and not begins(before, line):
                before, start = line, stream.tell()
            if not line:
                break
            found.append(start)
            at = start + target
    return found


def count_lines(path: Path, piece: Piece, encoding: str, documents: Callable[[bytes], int]) -> tuple[int, int]:
    """Return (documents, lines) of a piece of a file. documents: counts the documents in a block of lines."""
    n_documents = n_lines = 0
    for block in whole_lines(path, encoding, piece, check=False):
        n_documents += documents(block)
        n_lines += n_lines_of(block)
    return n_documents, n_lines


def n_lines_of(block: bytes) -> int:
    """Return the number of lines of a block, whose last line may lack its end."""
    return block.count(b"\n") + (not block.endswith(b"\n"))


def full_lines(block: bytes, *, raw: bool) -> list[int]:
    """Return the first byte of each line that holds more than white space; beyond ASCII it counts only if `raw`."""
    return [line.start() for line in (_FULL_RAW if raw else _FULL).finditer(b"\n" + block)]


# A line end, before a line whose white space does not reach to its own end.
_FULL, _FULL_RAW = (
    re.compile(f"\n(?!(?:{'|'.join(spaces.replace(chr(10), ''))})*+(?:\n|\\Z))".encode())
    for spaces in (ASCII_SPACES, ASCII_SPACES + WIDE_SPACES)
)


def text_blocks(texts: Iterable[str], number: int) -> Iterator[tuple[int, str]]:
    r"""Yield (line number, text) of each run of lines that are not empty.

    texts: whole lines, some at a time. number: of the first line.

    "a\nb\n\n\nc\n", 1    ->    (1, "a\nb"), (5, "c")
    """
    rest = ""
    for text in chain(texts, ["\n\n"]):
        *parts, rest = (rest + text).split("\n\n")
        for part in parts:
            begun = part.lstrip("\n")
            if begun:
                yield number + len(part) - len(begun), begun.rstrip("\n")
            number += part.count("\n") + 2


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


def split_columns(text: str, n_columns: int, separator: str = "\t") -> list[pa.Array] | int:
    r"""Return the columns of lines with `n_columns` fields each, or the index of the first line with more or fewer.

    "a<TAB>1\nb<TAB>2"    ->    ["a", "b"], ["1", "2"]
    """
    fields = pc.split_pattern(pc.split_pattern(string_array([text]), "\n").flatten(), separator)
    misfits = np.flatnonzero(to_numpy(pc.list_value_length(fields)) != n_columns)
    if len(misfits):
        return int(misfits[0])
    flat = fields.flatten()
    return [flat.take(to_arrow(np.arange(at, len(flat), n_columns))) for at in range(n_columns)]


def columns_of(line: str, separator: str = "\t") -> str:
    """Return the number of columns of a line as a message says it: "1 column", "3 columns"."""
    n = line.count(separator) + 1
    return f"{n} column{'s' * (n > 1)}"


def join_columns(names: Sequence[str], columns: Sequence[list[str]]) -> list[str]:
    """Join columns into tab-separated lines. Raises DataError tsv-value, with the name of the column."""
    lines = list(map("\t".join, zip(*columns, strict=True)))
    n_tabs = len(columns) - 1
    for row, line in enumerate(lines):
        if line.count("\t") != n_tabs or "\n" in line or line.endswith("\r"):
            values = [(name, column[row]) for name, column in zip(names, columns, strict=True)]
            name, value = next(((n, v) for n, v in values if "\t" in v or "\n" in v), values[-1])
            raise DataError(
                f"the value {value[:80]!r} of column {name} holds a tab or a line end",
                fix="replace it by a space, or write another format",
                id="tsv-value",
            )
    return lines
