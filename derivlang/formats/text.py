"""Plain text, a paragraph per line: tokenised (`.tokens`) or raw (`.txt`), also compressed or in another encoding.

A document is a non-empty line. The white space around it belongs to it, with the blank lines that follow. So a file
that is cut before any non-empty line is read as if it were whole, and `undo` restores it byte for byte. Lines end at
"\\n" only. In tokenised text only ASCII white space divides words: U+FEFF and U+00A0 are parts of words.
"""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Sequence
from dataclasses import dataclass, field
from functools import partial
from pathlib import Path

import numpy as np

from derivlang.core.arrays import offsets_of
from derivlang.core.batch import Batch, build, used_types
from derivlang.core.errors import DataError
from derivlang.core.gaps import Gaps
from derivlang.core.schema import TEXT
from derivlang.formats.base import Format, Look, ReadOptions
from derivlang.formats.file_piece import WHOLE, FilePiece, Piece
from derivlang.formats.line_chunks import LineChunk, chunks_of_files, followed_by
from derivlang.formats.line_cuts import count_full, count_lines, cut_lines, has_words
from derivlang.formats.opening import suffix_of
from derivlang.formats.pieces import Split, Splitting
from derivlang.formats.words import Splitter

WORDS_PER_BATCH = 1 << 20  # words in a batch and in a Parquet row group
_WORDS_A_TYPE = 16  # from this many words per type on, a batch takes the whole type table, without recoding


def read(
    files: Iterable[FilePiece],
    splitter: Splitter,
    *,
    encoding: str = "utf-8",
    first_document: int = 0,
    batch_words: int = WORDS_PER_BATCH,
) -> Iterator[Batch]:
    """Yield batches of whole lines, from one file after another. A batch may hold lines of several files.

    Each line is a unit, which is not yet split into sentences.
    first_document: number of the first document.
    Raises DataError: encoding and nul-byte with line and byte, truncated, empty-file.
    """
    splitting = Splitting(splitter)
    pending = _Pending(splitting, first_document)
    for chunks, left in chunks_of_files(files, encoding, unicode_spaces=splitting.raw):
        for chunk in chunks:
            split = _split(splitting, chunk)
            if left is not None:
                split = split.first(left)
                left -= len(split.lead)
            pending.add(split)
            while pending.n_words >= batch_words:
                yield pending.batch()
            if left == 0:
                break
    if pending.n_words:
        yield pending.batch()


def _split(splitting: Splitting, chunk: LineChunk) -> Split:
    """Return the words and gaps of a chunk. Raises DataError encoding, undivided-text."""
    buffer, size = chunk.buffer, chunk.size

    def place(unit: int) -> str:
        byte = int(chunk.edges.starts[chunk.cuts[unit]])
        return chunk.origin(byte).place(buffer, byte)

    stops = np.append(chunk.begins[1:], size)
    try:
        with followed_by(buffer, size, bytes(9)):
            return splitting.units(buffer, chunk.edges, chunk.cuts, chunk.begins, stops, place)
    except UnicodeDecodeError:
        raise _undecodable(chunk) from None


def _undecodable(chunk: LineChunk) -> DataError:
    text = bytes(chunk.buffer[: chunk.size])
    try:
        text.decode()
    except UnicodeDecodeError as error:
        origin = chunk.origin(error.start)
        return DataError(
            f"byte {origin.offset + error.start - origin.at} (0x{text[error.start]:02X}) is not UTF-8",
            where=origin.place(chunk.buffer, error.start),
            fix="pass --encoding NAME (latin-1, cp1252 …), or correct the file",
            id="encoding",
        )
    raise AssertionError("a word of valid text is not UTF-8")


@dataclass
class _Pending:
    """Splits that wait until they fill a batch."""

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
        if len(words) >= _WORDS_A_TYPE * len(vocabulary):  # nearly all types occur
            types, hashes = vocabulary.types(), vocabulary.hashes()
        else:
            used, words = used_types(words, len(vocabulary))
            types, hashes = vocabulary.subset(used), vocabulary.hashes(used)
        shifts = offsets_of(np.array([len(part.words) for part in parts]))[:-1]  # words before each part
        units = np.concatenate(
            [np.zeros(1, np.int64), *(part.units[1:] + s for part, s in zip(parts, shifts, strict=True))]
        )
        gaps = Gaps(
            self.splitting.gaps.types(),
            np.concatenate([part.lead for part in parts]),
            np.concatenate([part.trail for part in parts]),
            np.concatenate([part.at + s for part, s in zip(parts, shifts, strict=True)]),
            np.concatenate([part.inner for part in parts]),
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
            keys=np.zeros(0, np.uint64),  # the keys of sentences are made when the lines are split into sentences
        )


def cut(path: Path, size: int, target: int, *, raw: bool = False) -> list[int]:
    """Return where the pieces of a file begin: at non-empty lines. raw: whether its text must be split into words."""
    return cut_lines(path, size, target, lambda before, line: has_words(line, raw=raw))


def count(path: Path, encoding: str = "utf-8", *, piece: Piece = WHOLE, raw: bool = False) -> tuple[int, int]:
    """Return the number of non-empty lines, and of lines; raw: as for `cut`."""
    return count_lines(path, piece, encoding, partial(count_full, raw=raw))


def _look(paths: Sequence[Path], asked: ReadOptions) -> Look:
    return Look(TEXT, words="space" if suffix_of(paths[0]) == ".tokens" else "spacy")


FORMAT = Format(name="text", suffixes=(".txt", ".tokens"), what="text", look=_look, running=read, cut=cut, count=count)
