"""What a plan needs to know of running text before it is read: where to cut a file, and how many documents it holds."""

from __future__ import annotations

import sys
from pathlib import Path

import numpy as np

from derivlang.core.arrays import Int64, UInt8
from derivlang.formats.base import WHOLE, Piece
from derivlang.formats.line_chunks import BLOCK, NEWLINE
from derivlang.formats.pieces import UNICODE_SPACES, find
from derivlang.formats.utf8 import BOM, open_utf8
from derivlang.formats.words import Splitter


def cut(path: Path, splitter: Splitter, size: int, target: int) -> list[Piece]:
    """Cut a plain UTF-8 file of `size` bytes into pieces of about `target` bytes; each begins at a non-empty line."""
    begins = [0]
    raw = splitter.mode != "space"
    with path.open("rb") as stream:
        head = stream.readline()
        text = head.removeprefix(BOM)
        while head and not _has_words(text, raw):
            head = text = stream.readline()
        at = max(target, stream.tell() - 1)  # blank lines at the head of a file belong to its first line
        while at < size:
            stream.seek(at)
            stream.readline()
            start = stream.tell()
            while (line := stream.readline()) and not _has_words(line, raw):
                start = stream.tell()
            if not line:
                break
            begins.append(start)
            at = max(start, at) + target
    ends = [*begins[1:], size]
    return [Piece(begin, end) for begin, end in zip(begins, ends, strict=True)]


def count_documents(path: Path, splitter: Splitter, piece: Piece = WHOLE, encoding: str = "utf-8") -> tuple[int, int]:
    """Return (non-empty lines, lines) of a piece of a file.

    Most lines are known by their first byte, which is four times as fast as finding their words.
    """
    raw = splitter.mode != "space"
    documents = lines = 0
    todo = sys.maxsize if piece.end is None else piece.end - piece.begin
    held: list[bytes] = []  # the parts of a line that the next block continues
    block = b""
    with open_utf8(path, encoding) as stream:
        if piece.begin:
            stream.seek(piece.begin)
        else:
            head = stream.read(min(len(BOM), todo))
            todo -= len(head)
            block = head.removeprefix(BOM)
        while True:
            if stop := block.rfind(b"\n") + 1:
                text = np.frombuffer(b"".join([*held, block[:stop]]), np.uint8)
                held = []
                ends = np.flatnonzero(text == NEWLINE)
                lines += len(ends)
                documents += _count_full(text, ends, raw)
            held.append(block[stop:])
            block = stream.read(min(BLOCK, todo))
            if not block:
                break
            todo -= len(block)
    return documents + _has_words(b"".join(held), raw), lines


def _has_words(line: bytes, raw: bool) -> bool:
    buffer = np.frombuffer(line + b"\n" + bytes(8), np.uint8)
    return bool(len(find(buffer, len(line) + 1, unicode_spaces=raw).starts))


def _count_full(text: UInt8, ends: Int64, raw: bool) -> int:
    """Count the lines that hold a word; ends: int64[L], the newline of each line.

    Each round looks at one more byte of the lines that are still open. For `ab\\n`, `  c\\n` and `\\n`: the first round
    counts line 0 and drops line 2 (its byte is the newline), the second looks at byte 1 of line 1, the third counts it.
    """
    full, at = 0, np.concatenate([np.zeros(1, np.int64), ends + 1])[:-1]
    heads = _HEADS[raw]
    for _ in range(_FEW):
        if not len(at):
            return full
        head = heads[text[at]]
        full += int(np.count_nonzero(head == _WORD))
        unsure = head == _UNSURE
        full += sum(_has_words(text[a:b].tobytes(), raw) for a, b in zip(at[unsure], ends[unsure], strict=True))
        white = head == _WHITE
        at, ends = at[white] + 1, ends[white]
    return full + sum(_has_words(text[a:b].tobytes(), raw) for a, b in zip(at, ends, strict=True))


_FEW = 32  # bytes of white space at the head of a line before the whole line is looked at
_END, _WHITE, _WORD, _UNSURE = range(4)


def _head_table(raw: bool) -> UInt8:
    """Return uint8[256]: what the first byte of a line says of the line."""
    table = np.full(256, _WORD, np.uint8)
    table[:32] = _UNSURE  # control characters: some divide words, some are parts of words
    table[[9, 32]] = _WHITE
    table[NEWLINE] = _END
    if raw:
        table[list(UNICODE_SPACES)] = _UNSURE
    return table


_HEADS = (_head_table(False), _head_table(True))
