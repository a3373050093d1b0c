"""Lines of a file: where it may be cut, how many there are in a piece, which hold words, and what they hold.

{"n": 1}\\n{"n": 2}\\n\\n{"n": 3}\\n, pieces of about 10 bytes    ->    begins 0, 19; 2 documents in 3 lines, 1 in 1
"""

from __future__ import annotations

from collections.abc import Callable, Iterable, Iterator, Sequence
from itertools import chain
from pathlib import Path
from typing import TypeAlias, cast

import numpy as np
import pyarrow as pa
import pyarrow.compute as pc

from derivlang.core.arrays import Int64, UInt8
from derivlang.core.arrow import string_array, to_arrow, to_numpy
from derivlang.core.columns import value_lists
from derivlang.core.errors import DataError, LayerError
from derivlang.core.keys import strings_from
from derivlang.formats.opening import BOM, Piece, whole_lines
from derivlang.formats.pieces import ASCII_SPACES, WIDE_SPACES

NEWLINE = 10
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


def count_lines(path: Path, piece: Piece, encoding: str, documents: Callable[[UInt8], int]) -> tuple[int, int]:
    """Return (documents, lines) of a piece of a file. documents: counts the documents in a block of lines."""
    n_documents = n_lines = 0
    for block in whole_lines(path, encoding, piece, check=False):
        text = ended(block)
        n_documents += documents(text)
        n_lines += int(np.count_nonzero(text == NEWLINE))
    return n_documents, n_lines


def ended(block: bytes) -> UInt8:
    """Return lines as bytes, whose last line has an end."""
    return np.frombuffer(block if block.endswith(b"\n") else block + b"\n", np.uint8)


def has_words(line: bytes, *, raw: bool) -> bool:
    """Return whether a line holds anything but white space. raw: whether white space beyond ASCII counts as such."""
    return bool(line.decode(errors="replace").strip(ASCII_SPACES + WIDE_SPACES if raw else ASCII_SPACES))


def count_full(text: UInt8, *, raw: bool) -> int:
    """Count the lines that hold a word."""
    return len(full_lines(text, raw=raw))


def full_lines(text: UInt8, *, raw: bool) -> Int64:
    """Return the first byte of each line that holds a word, int64[D]; the last byte of the text is a newline.

    White space beyond ASCII is looked for only in lines whose first byte may begin such a character.
    """
    bounds = np.append(0, np.flatnonzero(text == NEWLINE) + 1)
    words = pc.ascii_ltrim(strings_from(text, bounds), ASCII_SPACES)
    lengths = to_numpy(pc.binary_length(words))
    full = lengths > 0
    if raw:
        unsure = np.flatnonzero(full)
        unsure = unsure[_MAY_BE_WIDE[text[bounds[1:][unsure] - lengths[unsure]]]]
        full[unsure] = [has_words(text[bounds[i] : bounds[i + 1]].tobytes(), raw=True) for i in unsure.tolist()]
    return bounds[:-1][full]


_MAY_BE_WIDE = np.isin(np.arange(256), [space.encode()[0] for space in WIDE_SPACES])  # by the first byte


LinesOfText: TypeAlias = tuple[int, str]  # lines that follow each other: the number of the first, and all of them


def text_blocks(texts: Iterable[str], number: int) -> Iterator[LinesOfText]:
    r"""Yield the runs of lines that are not empty. texts: whole lines, some at a time. number: of the first line.

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
