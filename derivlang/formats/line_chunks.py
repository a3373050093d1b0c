r"""Running text in chunks of whole lines, read through one reused buffer, with the edges of its words.

A chunk leaves its last non-empty line to the next one, because blank lines that belong to it may follow. For the buffer
`a b\n\n c\nd`, with more to come:

    complete lines    a b\n, \n, _c\n (_ a space)   8 bytes; `d` waits for its newline
    edges             starts [0, 2, 6], ends [1, 3, 7]
    line ends         [4, 5, 8]; pieces before each [2, 2, 3], so that lines 0 and 2 hold pieces
    non-empty lines   begins [0, 5], cuts [0, 2, 3]
    the chunk         size 5, begins [0], cuts [0, 2]; `_c\nd` moves to the head of the buffer

Small files that follow each other share a chunk, since a chunk costs a millisecond whatever its size.
"""

from __future__ import annotations

from bisect import bisect_right
from collections.abc import Iterable, Iterator, Sequence
from contextlib import contextmanager
from dataclasses import dataclass
from pathlib import Path
from typing import BinaryIO

import numpy as np

from derivlang.core.arrays import Int64, UInt8
from derivlang.core.errors import DataError
from derivlang.formats.file_piece import WHOLE, FilePiece, Piece
from derivlang.formats.opening import BOM, LONGEST_LINE, open_utf8, packing_of, too_large
from derivlang.formats.pieces import Edges, find
from derivlang.formats.places import size_of

BLOCK = 1 << 20  # bytes read at once: larger blocks leave the cache (8 MB costs 2.4 times as much in `find`)
NEWLINE = 10
_SPARE = 16  # bytes of the buffer that are not read into
_SMALL = BLOCK // 4  # bytes of a file that shares a chunk


@dataclass(frozen=True, slots=True)
class FileStart:
    """The file of the bytes of a buffer from `at` on, which begin at `offset` in the file, after `lines` lines."""

    path: Path
    at: int = 0
    offset: int = 0
    lines: int = 0

    def place(self, buffer: UInt8, byte: int) -> str:
        """Return `file:line` of a byte of the buffer."""
        return f"{self.path}:{self.lines + int(np.count_nonzero(buffer[self.at : byte] == NEWLINE)) + 1}"


@dataclass(frozen=True, slots=True)
class LineChunk:
    """Whole lines at the head of a buffer, bytes [0, size), of one file or of several small ones.

    origins: the files, by their first byte. edges: of the pieces, the stretches without white space. cuts:
    int64[U + 1], piece offsets of the U non-empty lines. begins: int64[U], the first byte of each; the white space
    between two of them belongs to the line before.
    """

    buffer: UInt8
    size: int
    origins: Sequence[FileStart]
    edges: Edges
    cuts: Int64
    begins: Int64

    def origin(self, byte: int) -> FileStart:
        """Return the file that a byte of the buffer is from."""
        return _origin(self.origins, byte)


def _origin(origins: Sequence[FileStart], byte: int) -> FileStart:
    return origins[bisect_right(origins, byte, key=lambda origin: origin.at) - 1]


def chunks_of_files(
    files: Iterable[FilePiece], encoding: str, *, unicode_spaces: bool
) -> Iterator[tuple[Iterator[LineChunk], int | None]]:
    """Yield the chunks of each file, or of small files together, with the greatest number of their documents.

    Small files are put together if they are whole, begin with a word and end with a line end. So their lines and the
    white space around them are the same as if each file were read by itself.
    """
    block, origins = bytearray(), list[FileStart]()

    def held() -> Iterator[tuple[Iterator[LineChunk], None]]:
        if origins:
            buffer = np.frombuffer(bytes(block) + bytes(_SPARE), np.uint8).copy()
            chunk = _chunk(buffer, len(block), tuple(origins), unicode_spaces, final=True)
            yield iter([chunk] if chunk is not None else []), None
            block.clear()
            origins.clear()

    for path, piece, limit in files:
        text = _small(path, encoding) if piece == WHOLE and limit is None else b""
        if len(block) + len(text) > BLOCK or not text:
            yield from held()
        if text:
            origins.append(FileStart(path, len(block)))
            block += text
        else:
            yield line_chunks(path, piece, encoding, unicode_spaces=unicode_spaces), limit
    yield from held()


def _small(path: Path, encoding: str) -> bytes:
    """Return the text of a small file in UTF-8; nothing if it is read by itself."""
    if packing_of(path) or not path.is_file() or size_of(path) > _SMALL:
        return b""
    with open_utf8(path, encoding) as stream:
        text = stream.read(_SMALL + 1)
    first = text.lstrip(b" ")[:1]
    return text if len(text) <= _SMALL and text.endswith(b"\n") and b" " < first < b"\x7f" else b""


def line_chunks(path: Path, piece: Piece, encoding: str, *, unicode_spaces: bool) -> Iterator[LineChunk]:
    """Yield all lines of a piece of a file. A chunk is valid until the next one is asked for.

    unicode_spaces: as for `find`. Raises DataError nul-byte, too-large (as `open_lines`), and as `open_utf8`.
    """
    buffer = np.zeros(BLOCK + _SPARE, np.uint8)
    have, done, lines = 0, piece.begin, piece.line
    with open_utf8(path, encoding) as stream:
        if piece.begin:
            stream.seek(piece.begin)
        while True:
            room = len(buffer) - _SPARE - have
            if piece.end is not None:
                room = min(room, piece.end - done - have)
            got = _read_into(stream, buffer[have : have + room]) if room > 0 else 0
            have += got
            size = have if not got else have - _after_last_newline(buffer[:have])
            origins = (FileStart(path, 0, done, lines),)
            chunk = _chunk(buffer, size, origins, unicode_spaces, final=not got) if size else None
            if chunk is not None:
                yield chunk
                used = chunk.size
                lines += int(np.count_nonzero(buffer[:used] == NEWLINE))
                buffer[: have - used] = buffer[used:have]
                have -= used
                done += used
            elif have >= len(buffer) - _SPARE:  # a line longer than the buffer
                if have >= LONGEST_LINE and packing_of(path):
                    line = lines + int(np.count_nonzero(buffer[:have] == NEWLINE)) + 1
                    raise too_large(f"{path}:{line}", "the line of a compressed file has", LONGEST_LINE)
                buffer = np.concatenate([buffer, np.zeros(len(buffer), np.uint8)])
            if not got:
                return


@contextmanager
def followed_by(buffer: UInt8, size: int, end: bytes) -> Iterator[None]:
    """Put `end` after the first `size` bytes of a buffer, within the block."""
    last = buffer[size : size + len(end)].copy()
    buffer[size : size + len(end)] = np.frombuffer(end, np.uint8)
    try:
        yield
    finally:
        buffer[size : size + len(end)] = last


def _chunk(
    buffer: UInt8, size: int, origins: Sequence[FileStart], unicode_spaces: bool, *, final: bool
) -> LineChunk | None:
    """Return the chunk in the first `size` bytes, which are whole lines; None if it needs more of the file."""
    skip = len(BOM) if origins[0].offset == 0 and bytes(buffer[: len(BOM)]) == BOM else 0
    with followed_by(buffer, size, b"\n" + bytes(8)):  # `find` needs white space at the end, and eight spare bytes
        edges = find(buffer, size + 1, unicode_spaces=unicode_spaces, skip=skip)
    if not edges.plain and (buffer[:size] == 0).any():
        raise _nul(buffer, size, origins)
    ends = np.flatnonzero(buffer[:size] == NEWLINE) + 1  # the byte after each newline
    if buffer[size - 1] != NEWLINE:
        ends = np.append(ends, size)
    cuts = np.searchsorted(edges.starts, ends)
    full = np.flatnonzero(np.diff(cuts, prepend=0) > 0)
    begins = np.concatenate([np.zeros(1, np.int64), ends])[full]
    cuts = np.concatenate([np.zeros(1, np.int64), cuts[full]])
    if not final:
        if len(full) < 2:
            return None
        size, begins, cuts = int(begins[-1]), begins[:-1], cuts[:-1]
        edges = Edges(edges.starts[: cuts[-1]], edges.ends[: cuts[-1]], edges.plain)
    begins[:1] = 0  # blank lines at the head of a file belong to its first line
    return LineChunk(buffer, size, origins, edges, cuts, begins)


def _read_into(stream: BinaryIO, target: UInt8) -> int:
    """Fill an array with bytes; return how many there were."""
    return int(stream.readinto(target.data) or 0)  # type: ignore[attr-defined]


def _after_last_newline(text: UInt8) -> int:
    """Return how many bytes follow the last newline; all of them if there is none."""
    step = 1 << 12
    for high in range(len(text), 0, -step):
        newlines = np.flatnonzero(text[max(0, high - step) : high] == NEWLINE)
        if newlines.size:
            return len(text) - (max(0, high - step) + int(newlines[-1]) + 1)
    return len(text)


def _nul(buffer: UInt8, size: int, origins: Sequence[FileStart]) -> DataError:
    at = int(np.flatnonzero(buffer[:size] == 0)[0])
    return DataError(
        "the line holds a NUL byte: the file is binary, or text in UTF-16",
        where=_origin(origins, at).place(buffer, at),
        fix="pass --encoding utf-16 if it is UTF-16, or remove the byte",
        id="nul-byte",
    )
