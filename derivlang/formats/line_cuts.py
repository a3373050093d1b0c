"""Cutting a plain file before lines, and counting the lines of a piece, both without reading its rows.

{"n": 1}\\n{"n": 2}\\n\\n{"n": 3}\\n, pieces of about 10 bytes    ->    begins 0, 19; 2 documents in 3 lines, 1 in 1
"""

from __future__ import annotations

import sys
from collections.abc import Callable, Iterator
from pathlib import Path

import numpy as np

from derivlang.core.arrays import Int64, UInt8
from derivlang.formats.file_piece import WHOLE, Piece
from derivlang.formats.opening import BOM, open_utf8
from derivlang.formats.pieces import ASCII_SPACES, WIDE_SPACES

BLOCK = 1 << 20  # bytes read at once
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
    for _, text in blocks_of_lines(path, piece, encoding):
        n_documents += documents(text)
        n_lines += int(np.count_nonzero(text == NEWLINE))
    return n_documents, n_lines


def blocks_of_lines(path: Path, piece: Piece = WHOLE, encoding: str = "utf-8") -> Iterator[tuple[int, UInt8]]:
    """Yield the lines of a piece of a file in blocks: the first byte, and the text in UTF-8, which ends with a newline.

    A last line without a newline gets one. A byte-order mark at the head of the file is left out.
    """
    at, todo = piece.begin, sys.maxsize if piece.end is None else piece.end - piece.begin
    held: list[bytes] = []  # the parts of a line that the next block continues

    def lines(text: bytes) -> Iterator[tuple[int, UInt8]]:
        nonlocal at
        offset, at = at, at + len(text)
        if not offset and text.startswith(BOM):
            offset, text = len(BOM), text[len(BOM) :]
        if text:
            yield offset, np.frombuffer(text if text.endswith(b"\n") else text + b"\n", np.uint8)

    with open_utf8(path, encoding) as stream:
        if piece.begin:
            stream.seek(piece.begin)
        while block := stream.read(min(BLOCK, todo)):
            todo -= len(block)
            if stop := block.rfind(b"\n") + 1:
                yield from lines(b"".join([*held, block[:stop]]))
                held = []
            held.append(block[stop:])
    yield from lines(b"".join(held))


def bounds_of_lines(text: UInt8) -> tuple[Int64, Int64]:
    """Return the first byte and the newline of each line, int64[L]; the last byte of the text is a newline."""
    ends = np.flatnonzero(text == NEWLINE)
    return np.append(0, ends[:-1] + 1), ends


def has_words(line: bytes, *, raw: bool) -> bool:
    """Return whether a line holds anything but white space. raw: whether white space beyond ASCII counts as such."""
    return bool(line.decode(errors="replace").strip(ASCII_SPACES + WIDE_SPACES if raw else ASCII_SPACES))


def count_full(text: UInt8, *, raw: bool) -> int:
    """Count the lines that hold a word."""
    return len(full_lines(text, raw=raw))


def full_lines(text: UInt8, *, raw: bool) -> Int64:
    """Return the first byte of each line that holds a word, int64[D]; the last byte of the text is a newline.

    Most lines are known by their first byte. Each round looks at one more byte of the lines that are still open. For
    `ab\\n`, `  c\\n` and `\\n`: the first round finds line 0 and drops line 2 (its byte is the newline), the second
    looks at byte 1 of line 1, the third finds it.
    """
    begins, ends = bounds_of_lines(text)
    heads, full = _HEADS[raw], np.zeros(len(begins), bool)
    lines, at = np.arange(len(begins)), begins
    for _ in range(_FEW):
        if not len(at):
            break
        head = heads[text[at]]
        full[lines[head == _WORD]] = True
        unsure = lines[head == _UNSURE]
        full[unsure] = [has_words(text[begins[i] : ends[i]].tobytes(), raw=raw) for i in unsure.tolist()]
        lines = lines[head == _WHITE]
        at = at[head == _WHITE] + 1
    full[lines] = [has_words(text[begins[i] : ends[i]].tobytes(), raw=raw) for i in lines.tolist()]
    return begins[full]


_FEW = 32  # bytes of white space at the head of a line before the whole line is looked at
_END, _WHITE, _WORD, _UNSURE = range(4)


def _head_table(raw: bool) -> UInt8:
    """Return uint8[256]: what the first byte of a line says of the line."""
    table = np.full(256, _WORD, np.uint8)
    table[:32] = _UNSURE  # control characters: some divide words, some are parts of words
    table[[9, 32]] = _WHITE
    table[NEWLINE] = _END
    if raw:
        table[[space.encode()[0] for space in WIDE_SPACES]] = _UNSURE
    return table


_HEADS = (_head_table(False), _head_table(True))
