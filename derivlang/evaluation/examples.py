"""Labelled examples in both languages: from batches of a source to flat arrays of ids and label positions.

    we lower it   PRON VERB PRON      <s> we low er it </s>      labels at we, low, it
    --trans,inv-->                    <s> it' low' er' we' </s>  labels at it', low', we': PRON VERB PRON

A word's label is on its first sub-word and moves with it. Entities move as spans, as in a derived set; an entity that
the order splits becomes several. A pair is `<s> premise </s> hypothesis </s>`, each side derived separately. A row that
is too long is cut between words of the *source*, the longer side of a pair first, and the order is restricted to the
rest. So rows of both languages hold the same sub-words.
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import Self

import numpy as np

from derivlang.core.arrays import Bool, Int32, Int64, Ints, UInt64, expand_ranges, lengths_of, offsets_of, owners
from derivlang.core.arrow import to_numpy
from derivlang.core.batch import Batch
from derivlang.core.errors import DataError
from derivlang.core.keys import Draws
from derivlang.core.layers.base import Move
from derivlang.core.layers.spans import Spans
from derivlang.core.layers.values import Values
from derivlang.core.layers.words import Words
from derivlang.core.order import Order
from derivlang.core.policies import Policies
from derivlang.evaluation.tasks import Task
from derivlang.lexical.bpe import SPECIAL_TOKENS
from derivlang.training.languages import Both, Languages

BEGIN, PAD, END, MASK = (SPECIAL_TOKENS.index(mark) for mark in ("<s>", "<pad>", "</s>", "<mask>"))


@dataclass(frozen=True, slots=True, eq=False)
class Instances:
    """R rows of one language. ids: int32[M], with special ids; offsets: int64[R + 1].

    at: int64[G], position of each label in its row; gold: int64[G], classes; label_offsets: int64[R + 1].
    """

    ids: Int32
    offsets: Int64
    at: Int64
    gold: Int64
    label_offsets: Int64

    @property
    def n_rows(self) -> int:
        return len(self.offsets) - 1

    @property
    def lengths(self) -> Int64:
        return lengths_of(self.offsets)

    def take(self, rows: Ints) -> Instances:
        """Return these rows, in this order."""
        lengths, labels = self.lengths[rows], lengths_of(self.label_offsets)[rows]
        flat, marked = expand_ranges(self.offsets[rows], lengths), expand_ranges(self.label_offsets[rows], labels)
        return Instances(self.ids[flat], offsets_of(lengths), self.at[marked], self.gold[marked], offsets_of(labels))

    @classmethod
    def joined(cls, parts: list[Self]) -> Instances:
        return Instances(
            np.concatenate([part.ids for part in parts]),
            offsets_of(np.concatenate([part.lengths for part in parts])),
            np.concatenate([part.at for part in parts]),
            np.concatenate([part.gold for part in parts]),
            offsets_of(np.concatenate([lengths_of(part.label_offsets) for part in parts])),
        )


@dataclass(frozen=True, slots=True, eq=False)
class Examples:
    """The same R examples in both languages. keys: uint64[R], content keys; classes: names of the labels.

    truncated: bool[R], rows that were cut. unscored: number of labelled words in no row, cut off or without sub-words.
    """

    source: Instances
    derived: Instances
    keys: UInt64
    classes: tuple[str, ...]
    truncated: Bool
    unscored: int

    @property
    def n_rows(self) -> int:
        return len(self.keys)

    def first(self, n: int) -> Examples:
        """Return the first n of a keyed ranking, in text order. A larger n contains a smaller one."""
        draws = Draws("examples").draw(self.keys, np.zeros(self.n_rows, np.int64))
        rows = np.sort(np.lexsort((np.arange(self.n_rows), draws))[:n])
        both = self.source.take(rows), self.derived.take(rows)
        return Examples(*both, self.keys[rows], self.classes, self.truncated[rows], self.unscored)

    @classmethod
    def joined(cls, parts: list[Examples]) -> Examples:
        return Examples(
            Instances.joined([part.source for part in parts]),
            Instances.joined([part.derived for part in parts]),
            np.concatenate([part.keys for part in parts]),
            parts[0].classes,
            np.concatenate([part.truncated for part in parts]),
            sum(part.unscored for part in parts),
        )


def examples(
    batch: Batch, languages: Languages, task: Task, classes: tuple[str, ...], policies: Policies | None = None
) -> Examples:
    """Return the examples of a batch that is split into sentences. classes: names of the labels.

    A missing label (`_`, -1) leaves its word unlabelled, or drops its pair. Raise DataError if the layer is missing.
    """
    both = languages.both(batch, policies)
    rows = SegmentRows.of(batch, both, task.settings.max_length)
    if task.pairs:
        return _pairs(batch, both, rows, task, classes)
    return _tagged(batch, both, rows, task, classes, policies or Policies())


@dataclass(frozen=True, slots=True, eq=False)
class SegmentRows:
    """The sub-words of R rows with K sides, one segment a side.

    units: int64[R * K], the unit of each segment. kept: int64[R * K], number of the unit's first source sub-words in
    the row. unit_offsets: int64[U + 1], sub-word offsets.
    """

    units: Int64
    kept: Int64
    unit_offsets: Int64
    n_sides: int

    @classmethod
    def of(cls, batch: Batch, both: Both, max_length: int) -> SegmentRows:
        """Return rows of at most max_length sub-words, with special ids. A word longer than its row is cut inside.

        pair of 9 + 4 sub-words, max_length 13: room 10, the shorter side keeps min(4, 10 // 2), the longer 10 - 4
        """
        unit_offsets = both.source.offsets[batch.unit_words]
        n_sides = batch.records.shape[1]
        units = batch.records.astype(np.int64)
        lengths = lengths_of(unit_offsets)[units]
        room = max_length - 1 - n_sides
        limits = lengths.copy()
        if n_sides == 1:
            limits = np.minimum(lengths, room)
        else:
            long = lengths.sum(axis=1) > room
            short = np.minimum(lengths.min(axis=1), room // 2)[:, None]
            first = lengths[:, :1] <= lengths[:, 1:]  # whether the first side is the shorter one
            cut = np.where(first ^ np.array([False, True]), short, room - short)
            limits = np.where(long[:, None], np.minimum(lengths, cut), lengths)
        flat, starts, limit = units.ravel(), unit_offsets[units.ravel()], limits.ravel()
        edge = both.source.offsets[np.searchsorted(both.source.offsets, starts + limit, "right") - 1] - starts
        kept = np.where(limit == lengths.ravel(), limit, np.where(edge > 0, edge, limit))
        return cls(flat, kept, unit_offsets, n_sides)

    @property
    def cut(self) -> Bool:
        """bool[R]: rows that were cut."""
        short = self.kept < lengths_of(self.unit_offsets)[self.units]
        return np.asarray(short.reshape(-1, self.n_sides).any(axis=1))

    def gather(self, order: Ints) -> Int64:
        """Return int64[M]: the source sub-words of all segments, in an order of the batch's sub-words."""
        starts = self.unit_offsets[self.units]
        lengths = lengths_of(self.unit_offsets)[self.units]
        found = np.asarray(order, np.int64)[expand_ranges(starts, lengths)]
        return found[found < np.repeat(starts + self.kept, lengths)]

    def framed(self, ids: Int32) -> tuple[Int32, Int64, Int64]:
        """Return (ids with special ids, int64[R + 1] offsets of rows, int64[M] position of each of `ids` in its row).

        ids: int32[M], in the order of `gather`.
        """
        first = np.arange(len(self.kept)) % self.n_sides == 0
        ends = offsets_of(self.kept + 1 + first)
        begins = ends[:-1] + first
        places = expand_ranges(begins, self.kept)
        out = np.full(int(ends[-1]), END, np.int32)
        out[ends[:-1][first]] = BEGIN
        out[places] = ids
        offsets = ends[:: self.n_sides]
        return out, offsets, places - np.repeat(np.repeat(offsets[:-1], self.n_sides), self.kept)


def _tagged(
    batch: Batch, both: Both, rows: SegmentRows, task: Task, classes: tuple[str, ...], policies: Policies
) -> Examples:
    layer = batch.layers.get(task.layer)
    if not isinstance(layer, Words | Spans):
        raise _no_labels(task)
    words, first = both.source.words(), np.zeros(both.source.n_subwords, bool)
    first[both.source.firsts()] = True
    sentence_of = owners(batch.sentences)
    numbers = None
    if isinstance(layer, Words):
        known = {name: i for i, name in enumerate(classes) if name != "_"}
        numbers = np.array([known.get(value, -1) for value in layer.values.to_pylist()] + [-1], np.int64)

    def labels(order: Ints) -> Int64:
        """Return the class of each of these words. The order may lack words of the batch."""
        counts = np.bincount(sentence_of[order], minlength=len(batch.tails))
        moved = Order(order.astype(np.int32), offsets_of(counts), np.zeros_like(batch.tails), batch.n_words)
        found = layer.realign(Move(batch, moved, policies))
        if isinstance(found, Spans):
            return found.tags(len(order)).astype(np.int64)
        assert numbers is not None
        return numbers[found.codes]

    def instances(order: Ints, table: Int32) -> Instances:
        flat = rows.gather(order)
        ids, offsets, places = rows.framed(table[flat])
        marked = first[flat]
        gold = labels(words[flat[marked]])
        row = np.repeat(np.arange(len(rows.kept)), rows.kept)[marked]
        some = gold >= 0
        counts = np.bincount(row[some], minlength=len(rows.kept))
        return Instances(ids, offsets, places[marked][some], gold[some], offsets_of(counts))

    source = instances(np.arange(both.source.n_subwords), both.source.ids)
    derived = instances(both.order.index, both.joint)
    labelled = batch.n_words if numbers is None else int((numbers[layer.codes] >= 0).sum())  # type: ignore[union-attr]
    keys = batch.record_keys
    return Examples(source, derived, keys, classes, rows.cut, labelled - len(source.gold))


def _pairs(batch: Batch, both: Both, rows: SegmentRows, task: Task, classes: tuple[str, ...]) -> Examples:
    layer = batch.layers.get(task.layer)
    if not isinstance(layer, Values) or rows.n_sides != 2:
        raise _no_labels(task)
    gold = to_numpy(layer.values.fill_null(-1)).astype(np.int64)
    some = np.flatnonzero(gold >= 0)

    def instances(order: Ints, table: Int32) -> Instances:
        ids, offsets, _ = rows.framed(table[rows.gather(order)])
        n = len(offsets) - 1
        return Instances(ids, offsets, np.zeros(n, np.int64), gold, np.arange(n + 1)).take(some)

    source = instances(np.arange(both.source.n_subwords), both.source.ids)
    derived = instances(both.order.index, both.joint)
    return Examples(source, derived, batch.record_keys[some], classes, rows.cut[some], 0)


def _no_labels(task: Task) -> DataError:
    what = "a label for each of its pairs" if task.pairs else "a label for each of its words"
    return DataError(f"{task.name} has no column {task.layer}, but needs {what}", where="--task", id="no-labels")
