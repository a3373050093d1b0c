"""Constituents: trees in brackets over the words of a unit. The words of a derived set's trees are the derived ones.

    (S (NP big Ann) (VP sleeps))   --inv-->   (S (VP sleeps) (NP Ann big))

A constituent whose words are still adjacent in the derived order stays, with its children in the order of the derived
words. One whose words are separated is left out and counted, and its children move up, so that each constituent that
remains holds the words that it held in the source. Unlike the two at the top, the third keeps no NP:

    big sleeps Ann   ->   (S big (VP sleeps) Ann)

An inserted word belongs to the smallest constituent that holds the words on both sides of it; before the first word or
after the last one, to the outermost constituent there.
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, replace
from typing import ClassVar, Self

import numpy as np
import pyarrow as pa

from derivlang.core.arrays import Bool, Int32, Int64, offsets_of
from derivlang.core.arrow import differs, to_arrow, to_numpy
from derivlang.core.bare_batch import BareBatch
from derivlang.core.brackets import BracketFault, Constituents, Leaves, gathered, read_brackets, write_brackets
from derivlang.core.errors import LayerError
from derivlang.core.keys import string_buffers
from derivlang.core.layers.base import Labels, Layer, Realignment
from derivlang.core.order import Order
from derivlang.core.schema import Field

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
        """Return the trees.

        Raises LayerError: null-value, brackets (they do not match; in a labelled table, another spelling of a tree),
        label-length (more or fewer words than the row).
        """
        name, column = field.column, labels.typed(field.column, pa.string())
        if column.null_count:
            row = int(np.flatnonzero(to_numpy(column.is_null()))[0])
            what = f"{name} has no value (null) in a row"
            raise LayerError(what, where=labels.row(row), fix="give every row a tree", id="null-value")
        read = read_brackets(*string_buffers(column))
        if isinstance(read, BracketFault):
            fix = "write trees as (S (NP Ann) (VP sleeps))"
            raise LayerError(f"{name}: {read.what}", where=labels.row(read.row), fix=fix, id="brackets")
        found, leaves = read
        _check_lengths(name, leaves, labels)
        layer = cls(name, found)
        texts = column if labels.stored else layer.columns(labels.batch)[name]
        wrong = np.flatnonzero(differs(column, texts))
        if wrong.size:
            row = int(wrong[0])
            raise LayerError(
                f"a tree of {name} does not have the words of its row, or not one space between its parts",
                where=labels.row(row),
                fix=f"write {texts[row].as_py()[:200]}",
                id="brackets",
            )
        return layer

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
    return [_is_tree(texts.slice(row, 1), tokens.slice(row, 1)) for row in range(len(texts))]


def _is_tree(text: pa.Array, tokens: pa.Array) -> bool:
    words = tokens.flatten().dictionary_encode()
    if text.null_count or words.null_count:
        return False
    read = read_brackets(*string_buffers(text))
    if isinstance(read, BracketFault) or read[1].offsets[-1] != len(words):
        return False
    units = np.array([0, len(words)])
    written = write_brackets(read[0], to_numpy(words.indices).astype(np.int32), words.dictionary, units)
    return bool(written[0].as_py() == text[0].as_py())


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


def _check_lengths(name: str, leaves: Leaves, labels: Labels) -> None:
    """Raise LayerError label-length for a row whose tree has more or fewer words than the row."""
    batch = labels.batch
    words = np.diff(batch.unit_words)[batch.records[:, 0]]
    n_leaves = np.diff(leaves.offsets)
    wrong = np.flatnonzero(words != n_leaves)
    if wrong.size:
        row = int(wrong[0])
        raise LayerError(
            f"{words[row]} words but {n_leaves[row]} in the tree of {name}",
            where=labels.row(row),
            fix="write a tree over the words of the row",
            id="label-length",
        )
