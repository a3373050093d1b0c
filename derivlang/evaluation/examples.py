"""Labelled examples in both languages, as flat arrays of ids and label positions.

    we lower it   PRON VERB PRON      <s> we low er it </s>      labels at we, low, it
    --trans,inv-->                    <s> it' low' er' we' </s>  labels at it', low', we': PRON VERB PRON

`rows.py` makes them from batches of a source; `tasks/` says what the labels are.

A document is a group of examples that an interval over a test set takes as one: its sentences are alike, so intervals
over sentences are too narrow.

    CoNLL-U            the sentences from one comment `# newdoc` to the next
    a set of two sides the rows with the same first side: the premise of XNLI, the context of SQuAD
    any other set      a row

The units of a set are its documents, or its rows if every row is one.
"""

from __future__ import annotations

import re
from collections.abc import Iterable, Iterator, Sequence
from dataclasses import dataclass, field, replace
from typing import TYPE_CHECKING, Any, Self

import numpy as np
import pyarrow as pa

from derivlang.core.arrays import (
    Bool,
    Int32,
    Int64,
    Ints,
    UInt64,
    expand_ranges,
    lengths_of,
    offsets_of,
    owners,
    take_rows,
)
from derivlang.core.batch import Batch
from derivlang.core.keys import Draws
from derivlang.core.layers.words import Values
from derivlang.training.languages import SpecialIds

if TYPE_CHECKING:
    import torch


def framed(ids: Int32, offsets: Int64, special_ids: SpecialIds, n_sides: int = 1) -> tuple[Int32, Int64]:
    """Return sub-words [M] with special ids: one that begins each row, one that ends each segment; and new offsets.

    offsets: int64[R * n_sides + 1], of segments in ids, int32[M], n_sides for a row. The id that begins a row belongs
    to its first segment.
    """
    lengths = lengths_of(offsets)
    first = np.arange(len(lengths)) % n_sides == 0
    ends = offsets_of(lengths + 1 + first)
    out = np.full(int(ends[-1]), special_ids.end, np.int32)
    out[ends[:-1][first]] = special_ids.begin
    out[expand_ranges(ends[:-1] + first, lengths)] = ids
    return out, ends


def padded(ids: Ints, offsets: Int64, rows: Int64, fill: int = 0) -> tuple[Int64, Bool]:
    """Return (ids int64[B, T], mask bool[B, T]) of rows of ids [M] at offsets [R + 1]; `fill` after the end of a row.

    A model gets its own id for padding (`training/encoder.py`).
    """
    lengths = lengths_of(offsets)[rows]
    out = np.full((len(rows), int(lengths.max(initial=1))), fill, np.int64)
    mask = np.arange(out.shape[1]) < lengths[:, None]
    out[mask] = ids[take_rows(offsets, rows)[0]]
    return out, mask


def tokens_on(device: torch.device) -> int:
    """Return the number of padded sub-words in a batch without gradients. On a CPU, few fit into the cache."""
    return 1 << 11 if device.type == "cpu" else 1 << 14


def by_length(lengths: Int64, tokens: int) -> Iterator[Int64]:
    """Yield batches of rows, shortest first, of at most `tokens` padded sub-words; a longer row is its own batch."""
    rows = np.argsort(lengths, kind="stable")
    start = 0
    while start < len(rows):
        stop = start + 1
        while stop < len(rows) and int(lengths[rows[stop]]) * (stop + 1 - start) <= tokens:
            stop += 1
        yield rows[start:stop]
        start = stop


NO_TEXTS = pa.nulls(0, pa.string())  # `pa.array` would load pandas


@dataclass(frozen=True, slots=True, eq=False)
class Instances:
    """R rows of one language. ids: int32[M], with special ids; offsets: int64[R + 1].

    at: int64[G], position of each label in its row; gold: int64[G, k], classes or positions, negative for a label that
    was cut off and that no prediction equals; label_offsets: int64[R + 1]. words: int32[M], at least 0 where a label
    may name the position, -1 elsewhere. languages: int64[M], the number of the language of each position, in mixed
    rows; None: the rows' language. texts: Arrow strings that `words` numbers, if labels need them.
    """

    ids: Int32
    offsets: Int64
    at: Int64
    gold: Int64
    label_offsets: Int64
    words: Int32
    languages: Int64 | None = None
    texts: pa.Array = field(default_factory=lambda: NO_TEXTS)

    @property
    def n_rows(self) -> int:
        return len(self.offsets) - 1

    @property
    def lengths(self) -> Int64:
        return lengths_of(self.offsets)

    def by_row(self, labels: list[Any]) -> list[list[Any]]:
        """Return one list per row of a list of G labels."""
        offsets = self.label_offsets
        return [labels[a:b] for a, b in zip(offsets[:-1].tolist(), offsets[1:].tolist(), strict=True)]

    def take(self, rows: Ints) -> Instances:
        """Return these rows, in this order."""
        (flat, offsets), (marked, label_offsets) = (take_rows(one, rows) for one in (self.offsets, self.label_offsets))
        return Instances(
            self.ids[flat],
            offsets,
            self.at[marked],
            self.gold[marked],
            label_offsets,
            self.words[flat],
            None if self.languages is None else self.languages[flat],
            self.texts,
        )

    @classmethod
    def joined(cls, parts: list[Self]) -> Instances:
        first = offsets_of(np.array([len(part.texts) for part in parts], np.int64))
        words = [
            np.where(part.words < 0, -1, part.words + n).astype(np.int32)
            for part, n in zip(parts, first.tolist(), strict=False)
        ]
        languages = [part.languages for part in parts if part.languages is not None]
        return Instances(
            np.concatenate([part.ids for part in parts]),
            offsets_of(np.concatenate([part.lengths for part in parts])),
            np.concatenate([part.at for part in parts]),
            np.concatenate([part.gold for part in parts]),
            offsets_of(np.concatenate([lengths_of(part.label_offsets) for part in parts])),
            np.concatenate(words),
            np.concatenate(languages) if languages else None,
            pa.concat_arrays([part.texts for part in parts]),
        )


@dataclass(frozen=True, slots=True, eq=False)
class Examples:
    """The same R examples in both languages. keys: uint64[R], content keys; classes: names of the labels.

    truncated: bool[R], rows that were cut. documents: int64[R], equal for rows of one document (see above).
    unscored: number of labels in no row: cut off, or of words without sub-words. Labels of rows that are `wrong` are
    cut off, too, but count as wrong. origin: the `ParallelRows` that they are of, and int64[R], the number of each
    there; None of several batches.
    """

    source: Instances
    derived: Instances
    keys: UInt64
    classes: tuple[str, ...]
    truncated: Bool
    documents: Int64
    unscored: int = 0
    origin: tuple[Any, Int64] | None = None

    @property
    def n_rows(self) -> int:
        return len(self.keys)

    def side(self, language: int) -> Instances:
        """Return the rows of a language, by its number."""
        return (self.source, self.derived)[language]

    def take(self, rows: Ints) -> Examples:
        """Return these rows, in this order, with the same number of unscored labels."""
        return replace(
            self,
            source=self.source.take(rows),
            derived=self.derived.take(rows),
            keys=self.keys[rows],
            truncated=self.truncated[rows],
            documents=self.documents[rows],
            origin=None if self.origin is None else (self.origin[0], self.origin[1][rows]),
        )

    def labelled(self) -> Examples:
        """Return the rows with a label in both languages. The others are unscored, one label each."""
        some = np.minimum(lengths_of(self.source.label_offsets), lengths_of(self.derived.label_offsets)) > 0
        return replace(self.take(np.flatnonzero(some)), unscored=self.unscored + int((~some).sum()))

    @property
    def wrong(self) -> Bool:
        """bool[R]: rows with a label that was cut off and counts as wrong."""
        wrong = np.zeros(self.n_rows, bool)
        wrong[owners(self.source.label_offsets)[(self.source.gold < 0).any(axis=1)]] = True
        return wrong

    def learnable(self) -> Examples:
        """Return the rows to train on: those without a label that was cut off."""
        return self.take(np.flatnonzero(~self.wrong)) if self.wrong.any() else self

    def interleaved(self) -> Instances:
        """Return the rows of both, 2R: rows 2i and 2i + 1 are example i."""
        n = self.n_rows
        return Instances.joined([self.source, self.derived]).take(np.arange(2 * n).reshape(2, n).T.ravel())

    def first(self, n: int | None) -> Examples:
        """Return the first n of a keyed ranking, in text order; None: all. A larger n contains a smaller one."""
        if n is None:
            return self
        draws = Draws("examples").draw(self.keys, np.zeros(self.n_rows, np.int64))
        return self.take(np.sort(np.lexsort((np.arange(self.n_rows), draws))[:n]))

    @classmethod
    def joined(cls, parts: Sequence[Examples]) -> Examples:
        return Examples(
            Instances.joined([part.source for part in parts]),
            Instances.joined([part.derived for part in parts]),
            np.concatenate([part.keys for part in parts]),
            parts[0].classes,
            np.concatenate([part.truncated for part in parts]),
            np.concatenate([part.documents for part in parts]),
            sum(part.unscored for part in parts),
        )


_BEGIN = re.compile(r"#\s*newdoc\b")
_SIDES = {"premise": "premise", "context": "context"}  # other first sides are sentences


def with_documents(batches: Iterable[Batch]) -> Iterator[Batch]:
    """Yield the batches of a split with the documents above as `documents`; the numbers are not consecutive.

    A set without `# newdoc` has one document, 0, which stands for every row (`numbered`).
    """
    begun = 0
    for batch in batches:
        if len(batch.sides) > 1:
            yield replace(batch, documents=batch.unit_keys[batch.records[:, 0]].astype(np.int64))
        else:
            numbers = begun + np.cumsum(_begins(batch), dtype=np.int64)
            begun = int(numbers[-1]) if len(numbers) else begun
            yield replace(batch, documents=numbers)


def numbered(documents: Int64) -> Int64 | None:
    """Return int64[S], documents numbered from 0 in the order of their first rows; None if every row is a document.

    A single document has no variance, so its rows are taken instead.

    5 5 9 5 2   ->   0 0 1 0 2
    """
    _, first, number = np.unique(documents, return_index=True, return_inverse=True)
    if len(first) in (1, len(documents)):
        return None
    return np.asarray(np.argsort(np.argsort(first))[number], np.int64)


def unit_of(sides: tuple[str, ...], documents: Int64 | None) -> str:
    """Return what a unit of a set is called; sentence or pair if every row is one."""
    if len(sides) > 1:
        return "pair" if documents is None else _SIDES.get(sides[0], "first sentence")
    return "sentence" if documents is None else "document"


def by_unit(counts: Int64, documents: Int64 | None) -> Int64:
    """Return int64[U, k]: the sums of int64[S, k] by document, numbered from 0; unchanged if documents are None."""
    if documents is None:
        return counts
    out = np.zeros((int(documents.max(initial=-1)) + 1, counts.shape[1]), np.int64)
    np.add.at(out, documents, counts)
    return out


def _begins(batch: Batch) -> Bool:
    """Return bool[R]: the rows of CoNLL-U that begin a document."""
    layer = batch.layers.get("comments")
    if not isinstance(layer, Values):
        return np.zeros(batch.n_records, bool)
    comments = (values if isinstance(values, list) else [] for values in layer.values.to_pylist())
    return np.array([any(_BEGIN.match(str(line)) for line in lines) for lines in comments], bool)
