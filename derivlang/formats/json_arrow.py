"""JSON lines by Arrow's reader, where it cannot take what `json_text.py` refuses, or give it another value.

A stretch of lines, as many as a table has, is read at once. With the types of the columns given, Arrow refuses a key
twice, new keys, other types, NaN and integers beyond 64 bits. What it lets pass is looked for here: missing keys, which
become null, and two objects on a line. Rows with null, and columns of other types than text and whole numbers, are left
to `json_text.py`, as are long rows and all that Arrow refuses: it writes the message.

    the lines {"n":1}  {"n":2}  (blank)  {"n":3}   in tables of two rows   ->   lines 1 and 2 | line 4
"""

from __future__ import annotations

import sys
from collections.abc import Iterable, Iterator
from dataclasses import dataclass
from functools import cached_property
from itertools import chain

import numpy as np
import pyarrow as pa

from derivlang.core.arrays import Int64
from derivlang.core.errors import DerivlangError
from derivlang.formats.line_cuts import bounds_of_lines
from derivlang.formats.opening import newlines

_TYPES = {pa.string(), pa.int64(), pa.list_(pa.string()), pa.list_(pa.int64())}
# Python's own reader is faster for rows of more bytes than LONG, on average, and for texts of fewer than SHORT.
LONG, SHORT = 1 << 11, 1 << 13


@dataclass(frozen=True)
class Stretch:
    """Lines of a file, one after the other.

    text: of them, UTF-8. line: the first one. starts: int64[R], where those begin that are not blank. rest: the blocks
    of lines that follow, if all that follows belongs to it, as rows are long.
    """

    text: bytes
    line: int
    starts: Int64
    rest: Iterable[bytes] | None = None

    @property
    def for_arrow(self) -> bool:
        """Whether Arrow is to try it."""
        return self.rest is None and SHORT <= len(self.text) <= LONG * len(self.starts)

    def texts(self) -> Iterator[str]:
        """Yield the lines, with their ends."""
        for text in chain([self.text], self.rest or ()):
            lines = text.split(b"\n")  # lines end there only
            last = lines.pop()
            yield from (f"{line.decode()}\n" for line in lines)
            if last:
                yield last.decode()

    @cached_property
    def ends(self) -> Int64:
        """int64[L]: where the newlines stand."""
        return np.flatnonzero(np.frombuffer(self.text, np.uint8) == ord("\n"))

    @property
    def lines(self) -> Int64:
        """int64[R]: the lines that are not blank."""
        return np.asarray(self.line + np.searchsorted(self.ends, self.starts), np.int64)


def stretches(blocks: Iterator[bytes], line: int, *, rows: int, limit: int | None) -> Iterator[Stretch]:
    """Yield blocks of whole lines as stretches of `rows` lines that are not blank; the last one may have fewer.

    line: the first. limit: rows at most, behind which nothing is read. Where rows are long, all that follows is one
    stretch. An error in reading the blocks is raised behind the lines before it.
    """
    held, starts, left = b"", np.zeros(0, np.int64), sys.maxsize if limit is None else limit
    error: DerivlangError | None = None
    while left and error is None:
        try:
            text = next(blocks, None)
        except DerivlangError as raised:
            text, error = None, raised
        if text is None:
            break
        starts = np.concatenate([starts, _full_lines(text) + len(held)])
        held += text
        while left and len(starts) >= (most := min(rows, left)):
            end = int(starts[most]) if len(starts) > most else len(held)
            yield Stretch(held[:end], line, starts[:most])
            line += newlines(held[:end])
            held, starts, left = held[end:], starts[most:] - end, left - most
        if not len(starts):
            line, held = line + newlines(held), b""
        elif left and len(held) > LONG * min(rows, left):
            yield Stretch(held, line, starts, blocks)
            return
    if left and len(starts):
        yield Stretch(held, line, starts)
    if error is not None:
        raise error


def _full_lines(block: bytes) -> Int64:
    """Return the first bytes of the lines of a block that are not blank, int64[R]."""
    text = np.frombuffer(block if block.endswith(b"\n") else block + b"\n", np.uint8)
    starts, ends = bounds_of_lines(text)
    first, lengths = text[starts], ends - starts
    full = first == ord("{")
    for line in np.flatnonzero(~full & (lengths > 0) & ~((lengths == 1) & (first == ord("\r")))).tolist():
        full[line] = not is_blank(text[starts[line] : ends[line]].tobytes().decode())
    found: Int64 = starts[full]
    return found


def is_blank(line: str) -> bool:
    """Return whether a line holds nothing but white space, of any kind."""
    return not line or line.isspace()


def table_of(stretch: Stretch, schema: pa.Schema) -> pa.Table | None:
    """Return the objects of a stretch, one a line, as a table, or None if they have to be read one by one."""
    if not (stretch.for_arrow and _TYPES.issuperset(schema.types) and _begin_and_end(stretch)):
        return None
    from pyarrow import json

    try:
        table = json.read_json(
            pa.BufferReader(stretch.text),
            read_options=json.ReadOptions(use_threads=False, block_size=len(stretch.text) + 1),
            parse_options=json.ParseOptions(
                explicit_schema=schema, newlines_in_values=False, unexpected_field_behavior="error"
            ),
        ).combine_chunks()
    except pa.ArrowInvalid:
        return None
    whole = table.num_rows == len(stretch.starts) and not any(column.null_count for column in table.columns)
    return table if whole else None


def _begin_and_end(stretch: Stretch) -> bool:
    """Return whether each line that is not blank begins with { and ends with }.

    No object goes on from a line that ends with } to one that begins with {. So where there are as many objects as such
    lines, each line holds one.
    """
    starts, text = stretch.starts, np.frombuffer(stretch.text, np.uint8)
    last = np.append(stretch.ends, len(text))[np.searchsorted(stretch.ends, starts)] - 1
    last -= text[last] == ord("\r")
    return bool((text[starts] == ord("{")).all() and (text[last] == ord("}")).all())
