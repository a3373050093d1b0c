"""Trees in brackets as arrays: `(S (NP big (NP Ann)) (VP sleeps))`.

    read_brackets     texts  ->  constituents, and the leaves as strings
    write_brackets    constituents and words  ->  texts with one space between two parts

The first part behind a bracket that opens is the label, as in nltk. The text of a row may hold several trees, and words
outside of any. Brackets in words are written -LRB- and -RRB-, white space in words as U+00A0.
"""

from __future__ import annotations

from dataclasses import dataclass, replace
from typing import NamedTuple

import numpy as np
import pyarrow as pa
import pyarrow.compute as pc

from derivlang.core.arrays import Bool, Int32, Int64, Ints, UInt8, offsets_of
from derivlang.core.arrow import scalar, string_array, to_arrow, to_numpy
from derivlang.core.keys import string_buffers, strings_from

_TEXT, _SPACE, _OPEN, _CLOSE = range(4)
_KINDS = np.full(256, _TEXT, np.uint8)
_KINDS[[9, 10, 11, 12, 13, 32]] = _SPACE
_KINDS[[ord("("), ord(")")]] = _OPEN, _CLOSE
_STEPS = np.array([0, 0, 1, -1], np.int8)  # by kind: how many more brackets are open


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


class BracketFault(NamedTuple):
    """A text whose brackets do not match. row: its number. byte: where the fault is seen. what: the message."""

    row: int
    byte: int
    what: str


class Leaves(NamedTuple):
    """The words of R texts with trees. offsets: int64[R + 1], words. parts: Arrow strings. at: int64[N], into parts."""

    offsets: Int64
    parts: pa.Array
    at: Int64

    def words(self) -> pa.Array:
        """Return Arrow strings [N]."""
        return self.parts.take(to_arrow(self.at))


def read_brackets(letters: UInt8, offsets: Ints) -> tuple[Constituents, Leaves] | BracketFault:
    """Return the constituents and words of R texts, or the first fault. Brackets without a label or words are left out.

    letters: uint8[B], the texts in UTF-8. offsets: int64[R + 1], their bytes.

    The events of a text are brackets and the beginnings of labels and words. At each depth, brackets open and close in
    turn, so sorting them by depth brings the two of a pair together:

        ( S ( NP a ) b )     depths of the brackets 1 2 2 1     sorted: 1 1 2 2, which are the pairs
    """
    kind = _KINDS.take(letters)
    is_text = kind == _TEXT
    begins, ends = is_text.copy(), is_text.copy()
    begins[1:] &= ~is_text[:-1]
    ends[:-1] &= ~is_text[1:]
    edges = offsets[1:-1][(offsets[1:-1] > 0) & (offsets[1:-1] < len(letters))]
    begins[edges] = is_text[edges]  # no word goes on into the next text
    ends[edges - 1] = is_text[edges - 1]
    event = np.flatnonzero(begins | (kind >= _OPEN))
    what = kind[event]
    opens, closes = what == _OPEN, what == _CLOSE
    depth = np.cumsum(_STEPS[what], dtype=np.int64)
    if (fault := _first_fault(event, depth, opens, offsets)) is not None:
        return fault
    is_label = np.zeros(len(event), bool)
    is_label[1:] = (what[1:] == _TEXT) & opens[:-1]
    is_word = (what == _TEXT) & ~is_label
    # The letters between two edges are a string: string 1 is the first label or word, 2 what follows it, and so on.
    edges = np.stack([event[what == _TEXT], np.flatnonzero(ends) + 1], axis=1).ravel()
    parts = strings_from(letters, np.concatenate([[0], edges, [len(letters)]]))
    number = 2 * np.cumsum(what == _TEXT) - 1
    before = offsets_of(is_word)  # int64[events + 1]: the words before each event
    brackets = np.flatnonzero(what != _TEXT)
    level = depth[brackets] + closes[brackets]
    by = brackets[np.argsort(level, kind="stable")]
    first, last = by[0::2], by[1::2]
    end = np.empty(len(event), np.int64)
    end[first] = before[last]
    at = np.flatnonzero(opens)
    labelled = np.append(is_label, False)[at + 1]
    names = parts.take(to_arrow(number[is_label])).dictionary_encode()
    label = np.zeros(len(at), np.int32)
    label[labelled] = to_numpy(names.indices)
    found = Constituents(label, names.dictionary, before[at], end[at], _parents(depth[at]))
    leaves = Leaves(np.searchsorted(event[is_word], offsets), parts, number[is_word])
    return found.without(~labelled | (found.start == found.end)), leaves


def depths(letters: UInt8) -> tuple[Int32, Bool]:
    """Return int32[B], the brackets that are open after each byte, and bool[B], whether it is part of a word or label.

    (S a) b   ->   1 1 1 1 0 0 0
    """
    kind = _KINDS[letters]
    return np.cumsum(_STEPS[kind], dtype=np.int32), kind == _TEXT


def _first_fault(event: Int64, depth: Int64, opens: Bool, offsets: Ints) -> BracketFault | None:
    """Return the first bracket that closes nothing, or the first that is never closed."""
    ends = np.searchsorted(event, offsets)
    left = np.append(0, depth)[ends]  # the depth at the end of each text
    low = np.flatnonzero(depth < 0)[:1]
    open_rows = np.flatnonzero(left[1:] > 0)[:1]
    if len(low) and (not len(open_rows) or event[low[0]] < offsets[open_rows[0] + 1]):
        byte = int(event[low[0]])
        row = int(np.searchsorted(offsets, byte, "right")) - 1
        return BracketFault(row, byte, "a bracket closes, but none is open")
    if not len(open_rows):
        return None
    row = int(open_rows[0])
    inside = slice(int(ends[row]), int(ends[row + 1]))
    # The last bracket that opens at the lowest depth that is left: nothing after it closes it.
    at = np.flatnonzero(opens[inside] & (depth[inside] == left[row + 1]))[-1] + inside.start
    return BracketFault(row, int(event[at]), "a bracket opens, but never closes")


def _parents(depth: Int64) -> Int64:
    """Return int64[K]: the parent of each constituent. depth: int64[K], from 1.

    The first constituent in another one opens directly after it, and its siblings follow at the same depth:

        depths 1 2 3 2   ->   parents -1 0 1 0
    """
    by = np.argsort(depth, kind="stable")
    is_first = np.diff(depth, prepend=0)[by] == 1
    parent = np.empty(len(depth), np.int64)
    # In the order of depths, a sibling follows the first child of its parent, which opens directly after the parent.
    parent[by] = by[np.maximum.accumulate(np.where(is_first, np.arange(len(by)), 0))] - 1
    parent[depth == 1] = -1
    return parent


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
