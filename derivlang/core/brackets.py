"""Trees in brackets as arrays: `(S (NP big (NP Ann)) (VP sleeps))`.

    read_brackets     texts  ->  constituents, and the words
    write_brackets    constituents and words  ->  texts with one space between two parts

The first part behind a bracket that opens is the label, as in nltk. The text of a row may hold several trees, and words
outside of any. Brackets in words are written -LRB- and -RRB-, white space in words as U+00A0.
"""

from __future__ import annotations

import re
from collections.abc import Iterable
from dataclasses import dataclass, replace

import numpy as np
import pyarrow as pa
import pyarrow.compute as pc

from derivlang.core.arrays import Bool, Int32, Int64, offsets_of
from derivlang.core.arrow import scalar, string_array, to_arrow
from derivlang.core.keys import string_buffers, strings_from

_TOKEN = re.compile(r"[()]|[^()\t\n\v\f\r ]+")  # a bracket, a label or a word


@dataclass(frozen=True, slots=True, eq=False)
class Constituents:
    """K constituents over N words, none of them empty, as they open: parents before children, left before right.

    label: int32[K], codes into names (Arrow strings). start, end: int64[K], the words start … end - 1 of each. parent:
    int64[K], the constituent that it stands in, -1 for a tree.

    (S (NP big (NP Ann)) (VP sleeps))   ->   S NP NP VP, start [0, 0, 1, 2], end [3, 2, 2, 3], parent [-1, 0, 1, 0]
    """

    label: Int32
    names: pa.Array
    start: Int64
    end: Int64
    parent: Int64

    def __len__(self) -> int:
        return len(self.label)

    def opened(self, n_words: int) -> Int64:
        """Return int64[N + 1]: how many constituents begin before each word; those that begin at it count for the next.

        start [0, 0, 1, 2] of 3 words   ->   [0, 2, 3, 4]
        """
        return offsets_of(np.bincount(self.start, minlength=n_words))

    def holders(self, n_words: int) -> Int64:
        """Return int64[N]: the smallest constituent that each word stands in, -1 for a word outside of trees."""
        words = np.arange(n_words)
        holder = self.opened(n_words)[1:] - 1  # the last one that opens before the word
        closed = np.flatnonzero((holder >= 0) & (np.append(self.end, 0)[holder] <= words))
        while len(closed):
            holder[closed] = up = self.parent[holder[closed]]
            closed = closed[(up >= 0) & (self.end[up] <= closed)]
        return holder

    def without(self, gone: Bool) -> Constituents:
        """Return the constituents without some of them, whose children move up. gone: bool[K]."""
        if not gone.any():
            return self
        parent, lost = self.parent.copy(), np.append(gone, False)  # for parent -1
        while len(at := np.flatnonzero(lost[parent])):
            parent[at] = self.parent[parent[at]]
        number = np.append(offsets_of(~gone)[:-1], -1)
        kept = ~gone
        return Constituents(self.label[kept], self.names, self.start[kept], self.end[kept], number[parent[kept]])

    def over(self, kept: Bool) -> Constituents:
        """Return the constituents over some of the words only, without those that have none of them. kept: bool[N]."""
        number = offsets_of(kept)
        moved = replace(self, start=number[self.start], end=number[self.end])
        return moved.without(moved.start == moved.end)


class BracketFault(Exception):
    """A text whose brackets do not match. row: its number. at: the character where the fault is seen."""

    def __init__(self, row: int, at: int, what: str) -> None:
        super().__init__(what)
        self.row, self.at = row, at


def read_brackets(texts: Iterable[str]) -> tuple[Constituents, pa.Array, Int64]:
    """Return the constituents of R texts, their words, Arrow strings [N], and word offsets int64[R + 1].

    Brackets without a label or words are left out. Raises BracketFault for the first bracket that closes nothing, or
    that is never closed.
    """
    names: dict[str, int] = {}
    label, start, end, parent = list[int](), list[int](), list[int](), list[int]()
    words, offsets = list[str](), [0]
    for row, text in enumerate(texts):
        inside: list[tuple[int, int]] = []  # the open constituents, and where they open
        before = ""
        for token in _TOKEN.finditer(text):
            part = token[0]
            if part == "(":
                parent.append(inside[-1][0] if inside else -1)
                inside.append((len(label), token.start()))
                label.append(-1)
                start.append(len(words))
                end.append(-1)
            elif part == ")":
                if not inside:
                    raise BracketFault(row, token.start(), "a bracket closes, but none is open")
                end[inside.pop()[0]] = len(words)
            elif before == "(":
                label[-1] = names.setdefault(part, len(names))
            else:
                words.append(part)
            before = part
        if inside:
            raise BracketFault(row, inside[-1][1], "a bracket opens, but never closes")
        offsets.append(len(words))
    arrays = (np.array(values, np.int64) for values in (start, end, parent))
    found = Constituents(np.array(label, np.int32), string_array(names), *arrays)
    return found.without((found.label < 0) | (found.start == found.end)), string_array(words), np.array(offsets)


def escaped(types: pa.Array) -> pa.Array:
    """Return words as they stand in trees, Arrow strings."""
    for letter, written in (("(", "-LRB-"), (")", "-RRB-")):
        types = pc.replace_substring(types, letter, written)
    return pc.replace_substring_regex(types, r"[\t\n\v\f\r ]", "\u00a0")


def write_brackets(found: Constituents, words: Int32, types: pa.Array, units: Int64) -> pa.Array:
    """Return Arrow strings [U], the trees of units. words: int32[N], codes into types. units: int64[U + 1].

    The parts of a text are the constituents, `(NP`, and the words with the brackets that close behind them, `Ann))`.
    """
    n, k = len(words), len(found)
    shown = [string_array(f"({name}" for name in found.names.to_pylist()), escaped(types).cast(pa.string())]
    first = pa.concat_arrays([*shown, string_array([")"])])  # the first part of a text; all others follow a space
    table = pa.concat_arrays([first, pc.binary_join_element_wise(scalar(""), first, scalar(" "))])
    part = np.empty(n + k, np.int64)
    part[np.arange(k) + found.start] = found.label
    opened = found.opened(n)
    at = np.arange(n) + opened[1:]
    part[at] = len(found.names) + words.astype(np.int64)
    part += len(first)
    parts = units + opened[units]  # int64[U + 1], of each unit
    begins = parts[:-1][parts[:-1] < parts[1:]]
    part[begins] -= len(first)
    # The parts with the brackets that close behind each of them, one string each.
    closing = np.zeros(n + k, np.int64)
    closing[at] = np.bincount(found.end, minlength=n + 1)[1:]
    closed = offsets_of(closing)
    codes = np.full(n + k + int(closed[-1]), len(first) - 1)
    codes[np.arange(n + k) + closed[:-1]] = part
    letters, offsets = string_buffers(table.take(to_arrow(codes)))
    return strings_from(letters, offsets[parts + closed[parts]])


def gathered(found: Constituents, which: Int64) -> Constituents:
    """Return the constituents in another order, with their parents renumbered. which: int64[K], a permutation."""
    number = np.empty(len(which) + 1, np.int64)
    number[which], number[-1] = np.arange(len(which)), -1
    return Constituents(
        found.label[which], found.names, found.start[which], found.end[which], number[found.parent[which]]
    )
