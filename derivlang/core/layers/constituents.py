"""Constituents: trees in brackets over the words of a unit. The words of a derived set's trees are the derived ones.

    (S (NP big Ann) (VP sleeps))   --inv-->   (S (VP sleeps) (NP Ann big))

A constituent whose words are still adjacent in the derived order stays, with its children in the order of the derived
words. One whose words are separated is left out and counted, and its children move up, so that each constituent that
remains holds the words that it held in the source. Unlike the two at the top, the third keeps no NP:

    big sleeps Ann   ->   (S big (VP sleeps) Ann)

An inserted word belongs to the smallest constituent that holds the words on both sides of it; before the first word or
after the last one, to the outermost constituent there.

`read_brackets` and `write_brackets` turn texts into constituents as arrays, and back. The first part behind a bracket
that opens is the label, as in nltk. The text of a row may hold several trees, and words outside of any. Brackets in
words are written -LRB- and -RRB-, white space in words as U+00A0.
"""

from __future__ import annotations

import re
from collections.abc import Iterable, Mapping
from dataclasses import dataclass, replace
from typing import ClassVar, Self

import numpy as np
import pyarrow as pa
import pyarrow.compute as pc

from derivlang.core.arrays import Bool, Int32, Int64, offsets_of
from derivlang.core.arrow import differs, scalar, string_array, to_arrow, to_numpy
from derivlang.core.bare_batch import BareBatch
from derivlang.core.errors import LayerError
from derivlang.core.keys import string_buffers, strings_from
from derivlang.core.layers.base import Labels, Layer, Realignment
from derivlang.core.order import Order
from derivlang.core.schema import Field

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


PARSE = "parse"  # the column of trees in files and generated sources


@dataclass(frozen=True, slots=True, eq=False)
class ConstituentTrees(Layer):
    """name: the column. found: the constituents, counted in the batch.

    inserted: bool[N], words that an order inserted, which have no part of speech; None if there are none.
    """

    losses: ClassVar[Mapping[str, str]] = {
        "{}-split": "constituent[|s] of {} [was|were] left out, since the reordering splits [it|them]",
        "{}-deleted": "constituent[|s] of {} [was|were] deleted with all [its|their] words",
    }

    name: str
    found: Constituents
    inserted: Bool | None = None

    @classmethod
    def read(cls, field: Field, labels: Labels) -> Self:
        """Return the trees of a table. Raises as `restore`, and LayerError brackets for another spelling of a tree."""
        layer = cls.restore(field, labels)
        texts = layer.columns(labels.batch)[field.column]
        wrong = np.flatnonzero(differs(labels.typed(field.column, pa.string()), texts))
        if wrong.size:
            row = int(wrong[0])
            raise LayerError(
                f"a tree of {field.column} does not have the words of its row, or not one space between its parts",
                where=labels.row(row),
                fix=f"write {texts[row].as_py()[:200]}",
                id="brackets",
            )
        return layer

    @classmethod
    def restore(cls, field: Field, labels: Labels) -> Self:
        """Return the trees of a derived set.

        Raises LayerError: null-value, brackets (they do not match), label-length (more or fewer words than the row).
        """
        name, column = field.column, labels.typed(field.column, pa.string())
        if column.null_count:
            row = int(np.flatnonzero(to_numpy(column.is_null()))[0])
            what = f"{name} has no value (null) in a row"
            raise LayerError(what, where=labels.row(row), fix="give every row a tree", id="null-value")
        try:
            found, _, offsets = read_brackets(column.to_pylist())
        except BracketFault as fault:
            fix = "write trees as (S (NP Ann) (VP sleeps))"
            raise LayerError(f"{name}: {fault}", where=labels.row(fault.row), fix=fix, id="brackets") from None
        _check_lengths(name, np.diff(offsets), labels)
        return cls(name, found)

    def realign(self, move: Realignment) -> ConstituentTrees:
        """Return the trees in the derived order. Counts the constituents that are left out."""
        found, split, deleted = in_order(self.found, move.order, move.positions)
        for how, count in (("split", split), ("deleted", deleted)):
            if count:
                move.counts[f"{self.name}-{how}"] += count
        if move.order.n_inserted:
            found = _to_the_edges(found, move)
        inserted = self.inserted
        if move.order.n_inserted or inserted is not None:
            index = move.order.index
            inserted = (index < 0) | (False if inserted is None else inserted[index])
        return replace(self, found=found, inserted=inserted)

    def contracted(self, group: Int64) -> Self:
        """Return the trees of groups of words. group: int64[G + 1]. A constituent that splits a group is left out."""
        start, end = (np.searchsorted(group, edge) for edge in (self.found.start, self.found.end))
        outside = (group[start] != self.found.start) | (group[end] != self.found.end)
        found = replace(self.found, start=start, end=end).without(outside)
        inserted = None if self.inserted is None else self.inserted[group[:-1]]
        return replace(self, found=found, inserted=inserted)

    def columns(self, batch: BareBatch) -> dict[str, pa.Array]:
        """Return the column of trees, with the words of the batch."""
        units = write_brackets(self.found, batch.words, batch.types, batch.unit_words)
        return {self.name: units.take(to_arrow(batch.records[:, 0]))}


def are_trees(texts: pa.Array, tokens: pa.Array) -> list[bool]:
    """Return whether each text is a tree over its list of words, list<string>, as derivlang writes them."""
    out = []
    for text, given in zip(texts.to_pylist(), tokens.to_pylist(), strict=True):
        words = given or []
        try:
            found, leaves, _ = read_brackets([text or ""])
        except BracketFault:
            out.append(False)
            continue
        n = len(words)
        fits = text is not None and None not in words and n == len(leaves)
        units = np.array([0, n])
        out.append(
            fits and write_brackets(found, np.arange(n, dtype=np.int32), string_array(words), units)[0].as_py() == text
        )
    return out


def in_order(found: Constituents, order: Order, places: Int32) -> tuple[Constituents, int, int]:
    """Return (the constituents in another order, how many it splits, how many lost their words).

    places: `order.positions()`.
    """
    kept = offsets_of(places >= 0)
    n_kept = kept[found.end] - kept[found.start]
    low, high = _extremes(found, places)
    span = high - low + 1
    if order.n_inserted:  # inserted words separate nothing
        rank = offsets_of(order.index >= 0)
        span = rank[high + 1] - rank[low]
    deleted = n_kept == 0
    split = ~deleted & (span != n_kept)
    stays = replace(found, start=low, end=high + 1).without(split | deleted)
    # By the first word, the longest ones first. Of constituents with the same words, such as (S (VP go)), the outer one
    # came first and does so again.
    by = np.argsort(-stays.end, kind="stable")
    by = by[np.argsort(stays.start[by], kind="stable")]
    return gathered(stays, by), int(split.sum()), int(deleted.sum())


def _to_the_edges(found: Constituents, move: Realignment) -> Constituents:
    """Return derived constituents, the outermost ones with the words inserted before or behind them in their unit.

    (S a b) +   ->   (S a b +)
    """
    if not len(found):
        return found
    rank = offsets_of(move.order.index >= 0)
    unit = move.derived_unit_of[found.start]
    first, end = move.derived_units[unit], move.derived_units[unit + 1]
    is_top = found.parent < 0
    return replace(
        found,
        start=np.where(is_top & (rank[first] == rank[found.start]), first, found.start),
        end=np.where(is_top & (rank[found.end] == rank[end]), end, found.end),
    )


def _extremes(found: Constituents, places: Int32) -> tuple[Int64, Int64]:
    """Return int64[K] each: the first and the last place of the words of each constituent; any for deleted words."""
    if not len(found):
        return np.zeros(0, np.int64), np.zeros(0, np.int64)
    # `reduceat` takes the edges of ranges in pairs; a last word without a place makes every end an index.
    edges = np.stack([found.start, found.end], axis=1).ravel()
    known = np.append(places, -1).astype(np.int64)
    high = np.maximum.reduceat(known, edges)[::2]
    known[known < 0] = np.iinfo(np.int64).max  # places may be far beyond the number of words, as many are inserted
    low = np.minimum.reduceat(known, edges)[::2]
    return np.minimum(low, high), np.maximum(high, 0)


def _check_lengths(name: str, n_leaves: Int64, labels: Labels) -> None:
    """Raise LayerError label-length for a row whose tree has more or fewer words than the row. n_leaves: int64[R]."""
    batch = labels.batch
    words = np.diff(batch.unit_words)[batch.records[:, 0]]
    wrong = np.flatnonzero(words != n_leaves)
    if wrong.size:
        row = int(wrong[0])
        raise LayerError(
            f"{words[row]} words but {n_leaves[row]} in the tree of {name}",
            where=labels.row(row),
            fix="write a tree over the words of the row",
            id="label-length",
        )
