"""Stretches of a file: whole records, as many as a table has, which Arrow reads at once.

A format says where its records begin. What Arrow refuses in a stretch is read record by record, which gives the
message.

    the lines {"n":1}  {"n":2}  (blank)  {"n":3}   in tables of two rows   ->   lines 1 and 2 | line 4
"""

from __future__ import annotations

import sys
from collections.abc import Iterable, Iterator
from dataclasses import dataclass
from functools import cached_property
from itertools import chain
from typing import Protocol

import numpy as np

from derivlang.core.arrays import Int64, UInt8
from derivlang.core.errors import DerivlangError
from derivlang.formats.opening import newlines

# Python's own readers are faster for records of more bytes than LONG, on average, and for texts of fewer than SHORT.
LONG, SHORT = 1 << 11, 1 << 13


class Finder(Protocol):
    """Finds where records begin, in the blocks of a file in turn.

    quoted: whether the last block ended within a record. broken: whether nothing is known of what follows.
    """

    quoted: bool
    broken: bool

    def starts(self, text: UInt8) -> Int64:
        """Return the first bytes of the records that begin in a block of whole lines, int64[R]."""


@dataclass(frozen=True)
class Stretch:
    """Whole records, one after the other.

    text: of them, UTF-8. line: its first line. starts: int64[R], where each begins. right: whether these are all; else
    the finder is broken or the records are long, and `rest` has the blocks of text that follow.
    """

    text: bytes
    line: int
    starts: Int64
    right: bool = True
    rest: Iterable[bytes] = ()

    @property
    def for_arrow(self) -> bool:
        """Whether Arrow is to try it."""
        return self.right and SHORT <= len(self.text) <= LONG * len(self.starts)

    def texts(self) -> Iterator[str]:
        """Yield the lines, with their ends."""
        for text in chain([self.text], self.rest):
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
        """int64[R]: the line at which each record begins."""
        return np.asarray(self.line + np.searchsorted(self.ends, self.starts), np.int64)


def stretches(
    blocks: Iterator[bytes], line: int, finder: Finder, *, rows: int, limit: int | None, header: bool = False
) -> Iterator[Stretch]:
    """Yield blocks of whole lines as stretches of `rows` records; the last one may have fewer.

    line: the first. header: leave out the first record. limit: records at most, behind which nothing is read. Where the
    finder is broken or records are long, all that follows is one stretch. An error in reading the blocks is raised
    behind the records before it.
    """
    held, size = list[bytes](), 0
    starts, first, left = np.zeros(0, np.int64), int(header), sys.maxsize if limit is None else limit

    def stretch(text: bytes, end: int, *, right: bool = True, rest: Iterable[bytes] = ()) -> Stretch:
        begin = int(starts[first]) if len(starts) > first else end
        some = starts[first : int(np.searchsorted(starts, end))] - begin
        return Stretch(text[begin:end], line + text.count(b"\n", 0, begin), some, right, rest)

    error: DerivlangError | None = None
    while left:
        try:
            text = next(blocks, None)
        except DerivlangError as raised:
            text, error = None, raised
        if text is None:
            break
        ended = text if text.endswith(b"\n") else text + b"\n"
        starts = np.concatenate([starts, finder.starts(np.frombuffer(ended, np.uint8)) + size])
        held.append(text)
        size += len(text)
        if not (len(starts) or finder.quoted or finder.broken):  # blank lines
            line, held, size = line + newlines(text), [], 0
        # Outside of a field, the last record is whole, too.
        while left and len(starts) - first - finder.quoted >= (most := min(rows, left)):
            whole = b"".join(held)
            end = int(starts[first + most]) if len(starts) > first + most else size
            yield stretch(whole, end)
            line += newlines(whole[:end])
            held, size, starts, first = [whole[end:]], size - end, starts[first + most :] - end, 0
            left -= most
        if left and len(starts) > first and (finder.broken or size > LONG * min(rows, left)):
            yield stretch(b"".join(held), size, right=False, rest=blocks)
            return
    if left and len(starts) > first:
        if error is None:
            yield stretch(b"".join(held), size, right=not finder.quoted)
        elif (end := int(starts[-1]) if finder.quoted else size) > starts[first]:
            yield stretch(b"".join(held), end)
    if error is not None:
        raise error
