"""Sentence pairs as word codes.

A line is a sentence, its words separated by white space; line n of one side belongs to line n of the other.

    encode(["the cat", ""], ["le chat", "x"])  ->  source: codes [0, 1], offsets [0, 2, 2]; target: codes [0, 1, 2] …
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass

import numpy as np
import pyarrow as pa
import pyarrow.compute as pc

from derivlang.core.arrays import Int32, Int64, offsets_of
from derivlang.core.arrow import string_array, to_arrow, to_numpy
from derivlang.core.errors import DataError
from derivlang.core.messages import counted
from derivlang.formats.progress import rows_done, stage

_AT_ONCE = 1 << 14  # lines


@dataclass(frozen=True, slots=True, eq=False)
class WordLists:
    """S sentences as word codes: types, Arrow strings; codes int32[N]; offsets int64[S + 1]."""

    types: pa.Array
    codes: Int32
    offsets: Int64

    @classmethod
    def of(cls, words: pa.Array, offsets: Int64) -> WordLists:
        """Return sentences of Arrow strings [N] at offsets int64[S + 1]."""
        coded = words.dictionary_encode()
        return cls(coded.dictionary, to_numpy(coded.indices).astype(np.int32), offsets)


@dataclass(frozen=True, slots=True, eq=False)
class Bitext:
    """S sentence pairs."""

    source: WordLists
    target: WordLists

    def __len__(self) -> int:
        return len(self.source.offsets) - 1

    @property
    def n_words(self) -> int:
        """Number of words of both sides."""
        return len(self.source.codes) + len(self.target.codes)


def encode(source: Sequence[str], target: Sequence[str], *, lower: bool = False) -> Bitext:
    """Return the sentence pairs of two lists of lines.

    Raises DataError `lengths` if one has more lines than the other, `empty-side` if a side has no words.
    """
    if len(source) != len(target):
        raise DataError(
            f"the source has {counted(len(source), 'line')}, but the target has {len(target):,}",
            fix="line n of one file must be the translation of line n of the other",
            id="lengths",
        )
    sides = []
    for name, lines in (("source", source), ("target", target)):
        with stage(f"numbering the words of the {name}", "rows", len(lines)):
            side = encode_lines(lines, lower=lower)
        if not len(side.codes):
            raise DataError(f"the {name} side has no words", fix="check that it is the right file", id="empty-side")
        sides.append(side)
    return Bitext(*sides)


def encode_lines(lines: Sequence[str], *, lower: bool = False) -> WordLists:
    """Return the sentences of lines. Raises ValueError for a line break in a line."""
    parts = [_words(lines[begin : begin + _AT_ONCE], lower) for begin in range(0, len(lines), _AT_ONCE)]
    coded = pa.chunked_array([words for words, _ in parts], pa.string()).dictionary_encode().unify_dictionaries()
    codes = np.concatenate([np.zeros(0, np.int32), *(to_numpy(chunk.indices) for chunk in coded.chunks)])
    lengths = np.concatenate([np.zeros(0, np.int64), *(lengths for _, lengths in parts)])
    types = coded.chunk(0).dictionary if coded.num_chunks else pa.array([], pa.string())
    return WordLists(types, codes, offsets_of(lengths))


def _words(lines: Sequence[str], lower: bool) -> tuple[pa.Array, Int64]:
    """Return (the words of some lines, Arrow strings [N]; their number in each line, int64[S])."""
    if any("\n" in line for line in lines):
        raise ValueError("a line contains a line break")
    lists = pc.ascii_split_whitespace(string_array(line.lower() if lower else line for line in lines))
    words = lists.flatten()
    is_word = to_numpy(pc.binary_length(words)) > 0  # white space at an end of a line leaves an empty string
    rows_done(len(lines))
    return words.filter(to_arrow(is_word)), np.diff(offsets_of(is_word)[to_numpy(lists.offsets)])
