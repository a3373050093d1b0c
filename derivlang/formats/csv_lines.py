r"""Which lines of a CSV file begin a record, found from the quotation marks, without reading the fields.

A mark opens a field only at its beginning, and is a character like others elsewhere outside of quotes, as `csv.reader`
has it. In a quoted field, two marks are one character, and a single one closes the field.

    text,label\n"a\n""b"" c",1\nd"e,2\n    ->    lines 0, 1 and 3 begin records; line 2 is within a field
"""

from __future__ import annotations

from pathlib import Path

import numpy as np

from derivlang.core.arrays import Bool, Int64, UInt8
from derivlang.formats.line_cuts import blocks_of_lines, bounds_of_lines

_MARK, _NEWLINE, _RETURN = 34, 10, 13


def cut_records(path: Path, size: int, target: int, delimiter: str) -> list[int]:
    """Return where pieces of about `target` bytes begin in a plain file of `size` bytes: 0, and first bytes of records.

    The first record, which may be a header, belongs to the first piece. Nothing behind wrong quoting is cut: where it
    stands, reading stops.
    """
    found, at = [0], 0
    records = RecordStarts(delimiter)
    for offset, text in blocks_of_lines(path):
        if offset + len(text) <= at:
            records.skip(text)
            continue
        starts = records.starts(text) + offset
        if not at and len(starts):
            at = max(target, int(starts[0]))
        elif not at:
            continue
        while at < size and (i := int(np.searchsorted(starts, at, "right"))) < len(starts):
            found.append(int(starts[i]))
            at = found[-1] + target
        if at >= size:
            break
    return found


class RecordStarts:
    """The lines that begin records, of the blocks of a file in turn."""

    def __init__(self, delimiter: str):
        self._delimiter = np.frombuffer(delimiter.encode(), np.uint8)
        self.quoted = False  # whether the last block ended within a quoted field
        self.broken = False  # whether the quoting was wrong: nothing is known of the lines behind it

    def skip(self, text: UInt8) -> None:
        """Pass over a block of lines."""
        self._marks(text)

    def starts(self, text: UInt8) -> Int64:
        """Return the first bytes of the lines of a block that begin a record, int64[R]; blank lines begin none.

        Nor do lines behind wrong quoting.
        """
        quoted = self.quoted
        marks, broken = self._marks(text)
        starts, ends = bounds_of_lines(text)
        inside = (np.searchsorted(marks, starts) + quoted) & 1 == 1
        begins: Int64 = starts[~inside & (starts <= broken) & ~_are_blank(text, starts, ends)]
        return begins

    def _marks(self, text: UInt8) -> tuple[Int64, int]:
        """Return the marks between which a field is quoted, and the byte at which the quoting is wrong.

        That byte is -1 if it is wrong before the block, and the size of the block if it is right.
        """
        if self.broken:
            return np.zeros(0, np.int64), -1
        marks, broken = np.flatnonzero(text == _MARK), len(text)
        if len(marks):
            marks, broken = self._toggles(text, marks)
            self.quoted ^= bool(len(marks) & 1)
            self.broken = broken < len(text)
        return marks, broken

    def _toggles(self, text: UInt8, marks: Int64) -> tuple[Int64, int]:
        """Return the marks that open or close a field, or stand for a mark in one (two of them), and where it breaks.

        If each mark is one of these, every second opens a field. This is so in most files, and a check of all marks
        at once; else they are taken one by one.
        """
        opens = self._at_field_start(text, marks)
        closes = self._at_field_end(text, marks)
        doubled = np.append(False, np.diff(marks) == 1)  # whether the mark before it is its neighbour
        opening = (np.arange(len(marks)) + self.quoted) & 1 == 0
        if (np.where(opening, opens | doubled, closes | np.append(doubled[1:], False))).all():
            return marks, len(text)
        toggles, quoted, i = [], self.quoted, 0
        where = marks.tolist()
        while i < len(where):
            if not quoted:
                if opens[i]:
                    toggles.append(where[i])
                    quoted = True
                i += 1
            elif i + 1 < len(where) and where[i + 1] == where[i] + 1:
                i += 2
            elif closes[i]:
                toggles.append(where[i])
                quoted = False
                i += 1
            else:
                return np.array(toggles, np.int64), where[i]
        return np.array(toggles, np.int64), len(text)

    def _at_field_start(self, text: UInt8, marks: Int64) -> Bool:
        """Return which marks follow a delimiter or a line end, or begin the block, whose last byte is a newline."""
        found = text[marks - 1] == _NEWLINE
        size = len(self._delimiter)
        at = marks >= size
        for i, byte in enumerate(self._delimiter):
            at[at] &= text[marks[at] - size + i] == byte
        return np.asarray(found | at)

    def _at_field_end(self, text: UInt8, marks: Int64) -> Bool:
        """Return which marks stand before a delimiter or a line end."""
        after = text[marks + 1]  # a block ends with a newline
        at = marks + len(self._delimiter) < len(text)
        for i, byte in enumerate(self._delimiter):
            at[at] &= text[marks[at] + 1 + i] == byte
        return np.asarray((after == _NEWLINE) | (after == _RETURN) | at)


def _are_blank(text: UInt8, starts: Int64, ends: Int64) -> Bool:
    """Return which lines hold nothing but carriage returns."""
    blank = starts == ends
    for line in np.flatnonzero(text[starts] == _RETURN).tolist():
        blank[line] = (text[starts[line] : ends[line]] == _RETURN).all()
    return np.asarray(blank)
