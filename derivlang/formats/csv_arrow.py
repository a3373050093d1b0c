"""Records of a CSV file by Arrow's reader, where it gives the fields that Python's `csv.reader` gives.

Where records begin follows from the quotation marks (`csv_lines.py`). So a text is cut into stretches of whole records,
and what Arrow refuses in one of them is read by `csv.reader`, which writes the message. Arrow is not asked where it
reads otherwise: where a carriage return stands by itself, a byte-order mark begins a field, or the quoting is wrong.
"""

from __future__ import annotations

import codecs
import io
import sys
from collections.abc import Iterable, Iterator, Sequence
from dataclasses import dataclass
from itertools import chain

import numpy as np
import pyarrow as pa

from derivlang.core.arrays import Int64
from derivlang.core.errors import DerivlangError
from derivlang.formats.csv_lines import RecordStarts
from derivlang.formats.json_arrow import LONG


@dataclass(frozen=True, slots=True)
class Stretch:
    """Whole records, one after the other.

    text: of them, UTF-8. line: its first line. starts: int64[R], where each begins. right: whether these are all; else
    the quoting is wrong or the records are long, and `rest` has the blocks of text that follow.
    """

    text: bytes
    line: int
    starts: Int64
    right: bool = True
    rest: Iterable[str] = ()

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
        if len(self.text) > LONG * len(self.starts):
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
    blocks: Iterator[str], line: int, delimiter: str, *, header: bool, rows: int, limit: int | None
) -> Iterator[Stretch]:
    """Yield blocks of whole lines as stretches of `rows` records; the last one may have fewer.

    line: the first. header: leave out the first record. limit: records at most, behind which nothing is read. Where the
    quoting is wrong or records are long, all that follows is one stretch. An error in reading the blocks is raised
    behind the records before it.
    """
    finder, held, size = RecordStarts(delimiter), list[bytes](), 0
    starts, first, left = np.zeros(0, np.int64), int(header), sys.maxsize if limit is None else limit

    def stretch(text: bytes, end: int, *, right: bool = True, rest: Iterable[str] = ()) -> Stretch:
        begin = int(starts[first]) if len(starts) > first else end
        some = starts[first : int(np.searchsorted(starts, end))] - begin
        return Stretch(text[begin:end], line + text.count(b"\n", 0, begin), some, right, rest)

    error: DerivlangError | None = None
    while left:
        try:
            block = next(blocks, None)
        except DerivlangError as raised:
            block, error = None, raised
        if block is None:
            break
        text = block.encode()
        ended = text if text.endswith(b"\n") else text + b"\n"
        starts = np.concatenate([starts, finder.starts(np.frombuffer(ended, np.uint8)) + size])
        held.append(text)
        size += len(text)
        # Outside of a field, the last record is whole, too.
        while left and len(starts) - first - finder.quoted >= (most := min(rows, left)):
            whole = b"".join(held)
            end = int(starts[first + most]) if len(starts) > first + most else size
            yield stretch(whole, end)
            line += whole.count(b"\n", 0, end)
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
