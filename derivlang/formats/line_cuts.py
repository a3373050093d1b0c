"""Cutting a plain file before lines, and counting the lines of a piece, both without reading its rows.

{"n": 1}\\n{"n": 2}\\n\\n{"n": 3}\\n, pieces of about 10 bytes    ->    begins 0, 19; 2 documents in 3 lines, 1 in 1
"""

from __future__ import annotations

from collections.abc import Callable
from pathlib import Path

import numpy as np
import pyarrow.compute as pc

from derivlang.core.arrays import Int64, UInt8
from derivlang.core.arrow import to_numpy
from derivlang.core.keys import strings_from
from derivlang.formats.file_piece import Piece
from derivlang.formats.opening import BOM, whole_lines
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
