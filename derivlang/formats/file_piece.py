"""A piece of a file: the bytes that one task reads of a large plain file, and where its lines are counted from."""

from __future__ import annotations

from dataclasses import dataclass


@dataclass(frozen=True, slots=True)
class Piece:
    """Bytes [begin, end) of a plain file; end None: to the end. line: the number of lines before it."""

    begin: int = 0
    end: int | None = None
    line: int = 0


WHOLE = Piece()
