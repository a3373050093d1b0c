"""Sentence pairs as word codes.

A line is a sentence, its words divided by spaces; line n of one side belongs to line n of the other.

    encode(["the cat", ""], ["le chat", "x"])  ->  source [0, 1], source_offsets [0, 2, 2], target [0, 1, 2] …
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass

import numpy as np

from derivlang.core.arrays import Int32, Int64
from derivlang.core.errors import DataError
from derivlang.core.vocabulary import Vocabulary

_SPACES = np.zeros(256, bool)
_SPACES[[9, 10, 11, 12, 13, 32]] = True
_NEWLINE = 10


@dataclass(frozen=True, slots=True)
class Bitext:
    """source int32[N], target int32[M]: word codes of each side; offsets int64[S + 1]; types: the codes' words."""

    source: Int32
    source_offsets: Int64
    source_types: list[str]
    target: Int32
    target_offsets: Int64
    target_types: list[str]

    def __len__(self) -> int:
        return len(self.source_offsets) - 1

    @property
    def n_words(self) -> int:
        """Words of both sides."""
        return len(self.source) + len(self.target)


def encode(source: Sequence[str], target: Sequence[str], *, lower: bool = False) -> Bitext:
    """The sentence pairs of two lists of lines.

    Raises DataError: `lengths` where one has more lines than the other, `empty-side` where a side has no word.
    """
    if len(source) != len(target):
        raise DataError(
            f"the source has {len(source):,} lines, but the target has {len(target):,}",
            fix="line n of one file must be the translation of line n of the other",
            id="lengths",
        )
    sides = []
    for name, lines in (("source", source), ("target", target)):
        codes, offsets, types = encode_lines(lines, lower=lower)
        if not len(codes):
            raise DataError(f"the {name} side holds no word", fix="check that it is the right file", id="empty-side")
        sides.append((codes, offsets, types))
    return Bitext(*sides[0], *sides[1])


def encode_lines(lines: Sequence[str], *, lower: bool = False) -> tuple[Int32, Int64, list[str]]:
    """(codes int32[N], offsets int64[S + 1], types) of lines; ValueError where one holds a line end."""
    text = "\n".join(lines)
    if lower:
        text = text.lower()
    buffer = np.frombuffer((text + "\n" + " " * 8).encode(), np.uint8)
    space = _SPACES[buffer]
    edges = np.flatnonzero(space[1:] != space[:-1]) + 1
    if not space[0]:
        edges = np.concatenate([[0], edges])
    starts, ends = edges[::2], edges[1::2]  # the text ends in white space: every word has an end
    vocabulary = Vocabulary()
    codes = vocabulary.encode(buffer, starts, ends - starts)
    newlines = np.flatnonzero(buffer == _NEWLINE)
    if lines and len(newlines) != len(lines):
        raise ValueError("a line holds a line end")
    newlines = newlines[: len(lines)]
    offsets = np.concatenate([[0], np.searchsorted(starts, newlines)])
    return codes, offsets, [str(word) for word in vocabulary.types().to_pylist()]
