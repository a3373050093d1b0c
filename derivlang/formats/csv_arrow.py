"""Records of a CSV file by Arrow's reader, where it gives the fields that Python's `csv.reader` gives.

Where records begin follows from the quotation marks (`csv_lines.py`). So a text is cut into stretches of whole records,
and what Arrow refuses in one of them is read by `csv.reader`, which writes the message. Arrow is not asked where it
reads otherwise: where a carriage return stands by itself, a byte-order mark begins a field, or the quoting is wrong.
"""

from __future__ import annotations

import codecs
import io
from collections.abc import Iterable, Iterator, Sequence
from dataclasses import dataclass
from itertools import chain

import numpy as np
import pyarrow as pa

from derivlang.core.arrays import Int64
from derivlang.formats.csv_lines import RecordStarts


@dataclass(frozen=True, slots=True)
class Stretch:
    """Whole records, one after the other.

    text: of them, UTF-8. line: its first line. starts: int64[R], where each begins. right: whether the quoting is;
    else the starts are not of all records. rest: the blocks of text behind a place where it is wrong.
    """

    text: bytes
    line: int
    starts: Int64
    right: bool = True
    rest: Iterable[str] = ()

    def first(self, count: int) -> Stretch:
        """Return the first records, at most `count`."""
        if not self.right or count >= len(self.starts):
            return self
        return Stretch(self.text[: self.starts[count]], self.line, self.starts[:count])

    def texts(self) -> Iterator[str]:
        """Yield the lines, with their ends."""
        for text in chain([self.text.decode()], self.rest):
            yield from io.StringIO(text, newline="\n")  # lines end there only

    @property
    def lines(self) -> Int64:
        """int64[R]: the line at which each record begins."""
        ends = np.flatnonzero(np.frombuffer(self.text, np.uint8) == ord("\n"))
        return np.asarray(self.line + np.searchsorted(ends, self.starts), np.int64)

    def table(self, columns: Sequence[str], delimiter: str) -> pa.Table | None:
        """Return the records as a table of strings, or None if they have to be read by `csv.reader`."""
        if not self.right or len(delimiter) > 1 or not delimiter.isascii():
            return None
        if self.text.count(b"\r") != self.text.count(b"\r\n") or self.text.startswith(codecs.BOM_UTF8):
            return None
        from pyarrow import csv

        names = [str(i) for i in range(len(columns))]
        try:
            table = csv.read_csv(
                pa.BufferReader(self.text),
                read_options=csv.ReadOptions(use_threads=False, block_size=len(self.text) + 1, column_names=names),
                parse_options=csv.ParseOptions(delimiter=delimiter, newlines_in_values=True),
                convert_options=csv.ConvertOptions(
                    column_types=dict.fromkeys(names, pa.string()), strings_can_be_null=False, check_utf8=False
                ),
            )
        except pa.ArrowInvalid:
            return None
        return table.combine_chunks().rename_columns(list(columns)) if table.num_rows == len(self.starts) else None


def stretches(
    blocks: Iterator[str], line: int, delimiter: str, *, header: bool, rows: int, longest: int
) -> Iterator[Stretch]:
    """Yield blocks of whole lines as stretches of `rows` records; the last one may have fewer.

    line: the first. header: leave out the first record. longest: characters of a record, from which on `csv.reader`
    shall decide what is wrong.
    """
    finder, held, starts, first = RecordStarts(delimiter), b"", np.zeros(0, np.int64), int(header)

    def stretch(begin: int, end: int, some: Int64, *, right: bool = True, rest: Iterable[str] = ()) -> Stretch:
        return Stretch(held[begin:end], line + held.count(b"\n", 0, begin), some - begin, right, rest)

    for block in blocks:
        text = block.encode()
        ended = text if text.endswith(b"\n") else text + b"\n"
        starts = np.concatenate([starts, finder.starts(np.frombuffer(ended, np.uint8)) + len(held)])
        held += text
        if finder.broken or (len(starts) and len(held) - starts[-1] > longest):
            yield stretch(int(starts[first]), len(held), starts[first:], right=False, rest=blocks)
            return
        while len(starts) > first + rows:
            end = int(starts[first + rows])
            yield stretch(int(starts[first]), end, starts[first : first + rows])
            line += held.count(b"\n", 0, end)
            held, starts, first = held[end:], starts[first + rows :] - end, 0
    if len(starts) > first:
        yield stretch(int(starts[first]), len(held), starts[first:], right=not finder.quoted)
