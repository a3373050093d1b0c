"""Plain text, a paragraph per line: tokenised (`.tokens`) or raw (`.txt`), also compressed or in another encoding.

A document is a non-empty line. The white space around it belongs to it, with the blank lines that follow. So a file
that is cut before any non-empty line is read as if it were whole, and `undo` restores it byte for byte. Lines end at
"\\n" only. In tokenised text only ASCII white space divides words: U+FEFF and U+00A0 are parts of words.
"""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from pathlib import Path

import numpy as np
import pyarrow as pa

from derivlang.core.arrays import Int64
from derivlang.core.keys import strings_from
from derivlang.core.schema import TEXT
from derivlang.formats.base import Format, Look, ReadOptions
from derivlang.formats.lines import count_lines, cut_lines, full_lines
from derivlang.formats.opening import BOM, WHOLE, Piece, suffix_of, whole_lines
from derivlang.formats.rows import Rows


def read(
    path: Path, *, encoding: str = "utf-8", limit: int | None = None, piece: Piece = WHOLE, raw: bool = False
) -> Iterator[Rows]:
    """Yield documents as rows of one column, `text`, with their white space. raw: as for `cut`.

    The byte-order mark of the file is part of the first document. Raise DataError as `whole_lines`.
    """
    line, done = piece.line + 1, 0
    for text, bounds in _documents(whole_lines(path, encoding, piece, mark=True), not piece.begin, raw):
        if limit is not None:
            bounds = bounds[: limit - done + 1]
        buffer = np.frombuffer(text, np.uint8)
        ends = np.flatnonzero(buffer == ord("\n"))
        column = strings_from(buffer, bounds)
        yield Rows.of_documents(path, pa.table([column], ["text"]), line + np.searchsorted(ends, bounds[:-1]), done)
        line, done = line + len(ends), done + len(column)
        if done == limit:
            return


def _documents(blocks: Iterator[bytes], head: bool, raw: bool) -> Iterator[tuple[bytes, Int64]]:
    r"""Yield whole documents: their text, and where each begins and the last ends, int64[D + 1].

    A block leaves its last document to the next one, because blank lines that belong to it may follow:

        block \na b\n\n c\nd\n    full lines begin at 1, 6, 9; documents \na b\n\n and _c\n (_ a space); d\n is held

    head: whether these blocks begin the file.
    """
    held, size, begun = list[bytes](), 0, False  # size: of `held`; begun: whether it has a document
    for block in blocks:
        if head and block.startswith(BOM):
            held, size, block = [BOM], len(BOM), block[len(BOM) :]
        head = False
        begins = full_lines(block, raw=raw)
        if begins:
            bounds = np.array([0, *begins[not begun :]], np.int64)
            bounds[1:] += size
            begun = True
            if len(bounds) > 1:
                yield b"".join([*held, block[: begins[-1]]]), bounds
                held, size, block = [], 0, block[begins[-1] :]
        held.append(block)
        size += len(block)
    if begun:
        yield b"".join(held), np.array([0, size])


def cut(path: Path, size: int, target: int, *, raw: bool = False) -> list[int]:
    """Return where the pieces of a file begin: at non-empty lines. raw: whether its text must be split into words."""
    return cut_lines(path, size, target, lambda before, line: bool(full_lines(line, raw=raw)))


def count(path: Path, encoding: str = "utf-8", *, piece: Piece = WHOLE, raw: bool = False) -> tuple[int, int]:
    """Return the number of non-empty lines, and of lines; raw: as for `cut`."""
    return count_lines(path, piece, encoding, lambda block: len(full_lines(block, raw=raw)))


def _look(paths: Sequence[Path], asked: ReadOptions) -> Look:
    return Look(TEXT, words="space" if suffix_of(paths[0]) == ".tokens" else "spacy")


FORMAT = Format(
    name="text", suffixes=(".txt", ".tokens"), what="text", read=read, count=count, cut=cut, look=_look, running=True
)
