"""Plain text, a paragraph a line: tokenised (`.tokens`) or raw (`.txt`); gz, zst and other encodings too.

A document is a non-empty line; what is white around it belongs to it (the blank lines that follow included),
so that a file cut before any non-empty line is read as if it had not been cut, and `undo` gives it back byte
for byte. Lines end at "\\n" only. Words of tokenised text are divided by ASCII white space only: U+FEFF and
U+00A0 are parts of words.
"""

from __future__ import annotations

import codecs
import io
import sys
from collections.abc import Iterator
from dataclasses import dataclass, field
from pathlib import Path
from typing import BinaryIO

import numpy as np

from derivlang.core.arrays import Int32, Int64, UInt8, offsets_of
from derivlang.core.batch import Batch, build, used_types
from derivlang.core.errors import DataError
from derivlang.core.layers.gaps import Gaps
from derivlang.formats.opening import open_bytes
from derivlang.formats.pieces import UNICODE_SPACES, Edges, Split, Splitting, find
from derivlang.formats.words import Splitter

PIECE = 1 << 20  # bytes read at once: larger pieces leave the cache (8 MB costs 2.4 times as much in `find`)
WORDS_PER_BATCH = 1 << 20  # words in a batch and in a Parquet row group
_WORDS_A_TYPE = 16  # from so many words a type on, a batch takes the whole type table, and nothing is recoded
_BOM = b"\xef\xbb\xbf"
_NEWLINE = 10


@dataclass(frozen=True, slots=True)
class Piece:
    """A stretch of a plain file: bytes [begin, end), end None for the whole; lines before it."""

    begin: int = 0
    end: int | None = None
    line: int = 0


def read(
    path: Path,
    splitter: Splitter,
    piece: Piece = Piece(),
    *,
    encoding: str = "utf-8",
    limit: int | None = None,
    first_document: int = 0,
    batch_words: int = WORDS_PER_BATCH,
) -> Iterator[Batch]:
    """Batches of whole lines, each line a unit still to be split into sentences.

    limit: at most so many documents. first_document: the number of the piece's first document.
    Raises DataError: unreadable encoding and NUL bytes with line and byte, damaged compression, no words.
    """
    reader = _Reader(path, splitter, encoding)
    pending = _Pending(reader.splitting, first_document)
    left = limit
    for split in reader.splits(piece):
        if left is not None:
            split = _first_units(split, left)
            left -= len(split.lead)
        pending.add(split)
        while pending.n_words >= batch_words:
            yield pending.batch()
        if left == 0:
            break
    if pending.n_words:
        yield pending.batch()


@dataclass(frozen=True, slots=True)
class _Chunk:
    """Whole lines at the head of a buffer: bytes [0, size), from `offset` on in the file, after `lines` lines.

    edges: of its pieces. cuts: int64[U + 1], piece offsets of the non-empty lines. begins: int64[U], their first
    bytes; what is white between them belongs to the line before.
    """

    buffer: UInt8
    size: int
    offset: int
    lines: int
    edges: Edges
    cuts: Int64
    begins: Int64


class _Reader:
    """Chunks of whole lines through one reused buffer."""

    def __init__(self, path: Path, splitter: Splitter, encoding: str):
        self.path, self.encoding = path, encoding
        self.splitting = Splitting(splitter)

    def splits(self, piece: Piece) -> Iterator[Split]:
        for chunk in self.chunks(piece):
            yield self._split(chunk)

    def chunks(self, piece: Piece) -> Iterator[_Chunk]:
        """All lines of a piece. A chunk ends before its last non-empty line, whose blank lines may still come."""
        buffer = np.zeros(PIECE + 16, np.uint8)
        have, done, lines = 0, piece.begin, piece.line
        with self.open() as stream:
            if piece.begin:
                stream.seek(piece.begin)
            while True:
                room = len(buffer) - 16 - have
                if piece.end is not None:
                    room = min(room, piece.end - done - have)
                got = _read_into(stream, buffer[have : have + room]) if room > 0 else 0
                have += got
                chunk = self._chunk(buffer, have, done, lines, final=not got)
                if chunk is not None:
                    yield chunk
                    use = chunk.size
                    lines += int(np.count_nonzero(buffer[:use] == _NEWLINE))
                    buffer[: have - use] = buffer[use:have]
                    have -= use
                    done += use
                elif have >= len(buffer) - 16:  # a line longer than the buffer
                    buffer = np.concatenate([buffer, np.zeros(len(buffer), np.uint8)])
                if not got:
                    return

    def _chunk(self, buffer: UInt8, have: int, done: int, lines: int, *, final: bool) -> _Chunk | None:
        """What is complete of the buffer's first `have` bytes; None if nothing is."""
        size = have if final else have - _after_last_newline(buffer[:have])
        if not size:
            return None
        last = buffer[size : size + 9].copy()
        buffer[size] = _NEWLINE  # `find` wants white space last, and eight spare bytes
        buffer[size + 1 : size + 9] = 0
        skip = 3 if done == 0 and bytes(buffer[:3]) == _BOM else 0
        edges = find(buffer, size + 1, unicode_spaces=self.splitting.raw, skip=skip)
        buffer[size : size + 9] = last
        if not edges.plain and (buffer[:size] == 0).any():
            self._nul(buffer, size, lines)
        ends = np.flatnonzero(buffer[:size] == _NEWLINE) + 1  # bytes after each newline
        if buffer[size - 1] != _NEWLINE:
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
        return _Chunk(buffer, size, done, lines, edges, cuts, begins)

    def open(self) -> BinaryIO:
        if codecs.lookup(self.encoding).name == "utf-8":
            return open_bytes(self.path)
        stream = open_bytes(self.path)
        return io.BufferedReader(_Recoded(stream, self.path, self.encoding), 1 << 16)

    def _split(self, chunk: _Chunk) -> Split:
        buffer, size = chunk.buffer, chunk.size
        before = len(self.splitting._pieces)
        last = buffer[size : size + 9].copy()
        buffer[size : size + 9] = 0
        try:
            stops = np.append(chunk.begins[1:], size)
            split = self.splitting.units(buffer, chunk.edges, chunk.cuts, chunk.begins, stops)
            invalid = self.splitting._pieces.first_invalid(before)
        except UnicodeDecodeError as error:
            invalid = error.object
        finally:
            buffer[size : size + 9] = last
        if invalid is not None:
            self._undecodable(buffer, size, chunk.lines, chunk.offset)
        return split

    def _nul(self, buffer: UInt8, use: int, lines: int) -> None:
        at = int(np.flatnonzero(buffer[:use] == 0)[0])
        line = lines + int(np.count_nonzero(buffer[:at] == _NEWLINE)) + 1
        raise DataError(
            "a NUL byte; this is no text, or text in UTF-16",
            where=f"{self.path}:{line}",
            fix="pass --encoding utf-16 if it is, or remove the byte",
            id="nul-byte",
        )

    def _undecodable(self, buffer: UInt8, use: int, lines: int, done: int) -> None:
        text = bytes(buffer[:use])
        try:
            text.decode()
        except UnicodeDecodeError as error:
            line = lines + text.count(b"\n", 0, error.start) + 1
            raise DataError(
                f"byte {done + error.start} (0x{text[error.start]:02X}) is not UTF-8",
                where=f"{self.path}:{line}",
                fix="pass --encoding NAME (latin-1, cp1252 …), or correct the file",
                id="encoding",
            ) from None


def _read_into(stream: BinaryIO, target: UInt8) -> int:
    """Bytes read into an array."""
    return int(stream.readinto(target.data) or 0)  # type: ignore[attr-defined]


def _after_last_newline(text: UInt8) -> int:
    """How many bytes follow the last newline; all, where there is none."""
    step = 1 << 12
    for high in range(len(text), 0, -step):
        found = np.flatnonzero(text[max(0, high - step) : high] == _NEWLINE)
        if found.size:
            return len(text) - (max(0, high - step) + int(found[-1]) + 1)
    return len(text)


class _Recoded(io.RawIOBase):
    """A byte stream in another encoding, as UTF-8."""

    def __init__(self, stream: BinaryIO, path: Path, encoding: str):
        self._stream, self._path, self._encoding = stream, path, encoding
        self._decoder = codecs.getincrementaldecoder(encoding)()
        self._left = b""
        self._lines = self._read = 0

    def readable(self) -> bool:
        return True

    def readinto(self, target: memoryview) -> int:  # type: ignore[override]
        while not self._left:
            raw = self._stream.read(1 << 16)
            try:
                text = self._decoder.decode(raw, final=not raw)
            except UnicodeDecodeError as error:
                good = error.object[: error.start].decode(self._encoding, "replace")
                line = self._lines + good.count("\n") + 1
                raise DataError(
                    f"byte {self._read + error.start} (0x{error.object[error.start]:02X}) is not {self._encoding}",
                    where=f"{self._path}:{line}",
                    fix="pass the right --encoding, or correct the file",
                    id="encoding",
                ) from None
            self._lines += text.count("\n")
            self._read += len(raw)
            self._left = text.encode()
            if not raw:
                break
        n = min(len(target), len(self._left))
        target[:n] = self._left[:n]
        self._left = self._left[n:]
        return n

    def close(self) -> None:
        self._stream.close()
        super().close()


@dataclass
class _Pending:
    """Chunks gathered until they make a batch."""

    splitting: Splitting
    document: int
    parts: list[Split] = field(default_factory=list)
    n_words: int = 0

    def add(self, split: Split) -> None:
        if len(split.words):
            self.parts.append(split)
            self.n_words += len(split.words)

    def batch(self) -> Batch:
        parts, self.parts, self.n_words = self.parts, [], 0
        words = np.concatenate([part.words for part in parts])
        vocabulary = self.splitting.words
        if len(words) >= _WORDS_A_TYPE * len(vocabulary):  # nearly all types occur: the table serves as it is
            types, hashes = vocabulary.types(), vocabulary.hashes()
        else:
            used, words = used_types(words, len(vocabulary))
            types, hashes = vocabulary.subset(used), vocabulary.hashes(used)
        shifts = offsets_of(np.array([len(part.words) for part in parts]))[:-1]
        units = np.concatenate(
            [np.zeros(1, np.int64), *(part.units[1:] + s for part, s in zip(parts, shifts, strict=True))]
        )
        gaps = Gaps(
            self.splitting.gaps.types(),
            _joined([part.lead for part in parts]),
            _joined([part.trail for part in parts]),
            np.concatenate([part.at + s for part, s in zip(parts, shifts, strict=True)]),
            _joined([part.inner for part in parts]),
        )
        n = len(units) - 1
        documents = np.arange(self.document, self.document + n, dtype=np.int64)
        self.document += n
        return build(
            words,
            types,
            units,
            np.arange(n, dtype=np.int32)[:, None],
            documents,
            hashes=hashes,
            gaps=gaps,
            running=True,
            keys=np.zeros(0, np.uint64),  # lines: their sentences' keys follow when they are split
        )


def _joined(arrays: list[Int32]) -> Int32:
    return np.concatenate(arrays)


def _first_units(split: Split, count: int) -> Split:
    """The first units of a split."""
    if len(split.lead) <= count:
        return split
    words = int(split.units[count])
    inner = split.at < words
    return Split(
        split.words[:words],
        split.units[: count + 1],
        split.lead[:count],
        split.trail[:count],
        split.at[inner],
        split.inner[inner],
    )


def cut(path: Path, splitter: Splitter, size: int, target: int) -> list[Piece]:
    """Pieces of some `target` bytes of a plain UTF-8 file of `size` bytes, each beginning at a non-empty line."""
    begins = [0]
    raw = splitter.mode != "space"
    with path.open("rb") as stream:
        head = stream.readline()
        text = head.removeprefix(_BOM)
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


def _has_words(line: bytes, raw: bool) -> bool:
    buffer = np.frombuffer(line + b"\n" + bytes(8), np.uint8)
    return bool(len(find(buffer, len(line) + 1, unicode_spaces=raw).starts))


def count_documents(path: Path, splitter: Splitter, piece: Piece = Piece(), encoding: str = "utf-8") -> tuple[int, int]:
    """(non-empty lines, lines) of a piece of a file, from the heads of its lines: four times as fast as from words."""
    raw = splitter.mode != "space"
    documents = lines = 0
    todo = sys.maxsize if piece.end is None else piece.end - piece.begin
    left = b""  # of the line that goes on in the next block
    with _Reader(path, splitter, encoding).open() as stream:
        if piece.begin:
            stream.seek(piece.begin)
        else:
            head = stream.read(min(len(_BOM), todo))
            todo -= len(head)
            left = head.removeprefix(_BOM)
        read = True
        while read:
            block = stream.read(min(PIECE, todo))
            read, todo = bool(block), todo - len(block)
            block = left + block
            text = np.frombuffer(block, np.uint8)
            ends = np.flatnonzero(text == _NEWLINE)
            lines += len(ends)
            documents += _count_full(text, ends, raw)
            left = block[ends[-1] + 1 :] if len(ends) else block
    return documents + _has_words(left, raw), lines


def _count_full(text: UInt8, ends: Int64, raw: bool) -> int:
    """How many of the lines that end at `ends` hold a word."""
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


_FEW = 32  # white bytes at the head of a line before the whole line is looked at
_END, _WHITE, _WORD, _UNSURE = range(4)


def _head_table(raw: bool) -> UInt8:
    """uint8[256]: what the first byte of a line says."""
    table = np.full(256, _WORD, np.uint8)
    table[:32] = _UNSURE  # control characters: some divide words, some are words
    table[[9, 32]] = _WHITE
    table[_NEWLINE] = _END
    if raw:
        table[list(UNICODE_SPACES)] = _UNSURE
    return table


_HEADS = (_head_table(False), _head_table(True))
