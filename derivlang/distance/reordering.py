"""How far a derived language is from its source: how far words moved, and what that did to trees and entities.

    counts = Reordering()
    counts.add(source, derived, order)     for each batch
    counts.result()["kendall_tau"]

A unit is a word sequence: a sentence of running text, a labelled sentence, one side of a pair. Only kept words count as
moved or not; a word moved if its rank among the kept words of its unit changed.

kendall_tau        mean over units of 1 - 4 I / (n (n - 1)), I inversions among n >= 2 kept words (Kendall 1938); 1: the
                   same order, -1: reversed
order_bits         entropy of the orders of sentences with equally many kept words, by their frequencies, mean over
                   sentences; 0: one order for each length
dependency_length  mean |position of a word - position of its head|, roots left out, in both languages
changed            percentage of the kept words that are written differently
overlap            percentage of the running derived words that are words of the source's vocabulary, too
type_overlap       percentage of the derived types that are types of the source, too
entities_split     entities whose kept words are no longer adjacent
"""

from __future__ import annotations

from bisect import bisect_left, insort
from collections import Counter
from collections.abc import Mapping, Sequence
from itertools import pairwise
from typing import Any

import numpy as np
import pyarrow.compute as pc
from numpy.typing import NDArray

from derivlang.core.arrays import Int32, Int64, lengths_of, offsets_of, owners
from derivlang.core.arrow import to_arrow, to_numpy
from derivlang.core.batch import Batch
from derivlang.core.keys import mix, sequence_keys
from derivlang.core.layers.spans import Spans
from derivlang.core.layers.tree import Tree
from derivlang.core.order import Order, runs_of_ranges

# What a name of `result` means, for tables; in its order.
MEANINGS = {
    "units": "Units (sentences or texts)",
    "source_words": "Source words",
    "derived_words": "Derived words",
    "inserted_percent": "Derived words that were inserted, %",
    "deleted_percent": "Source words that were deleted, %",
    "changed_percent": "Words written differently, %",
    "moved_percent": "Words moved, %",
    "kendall_tau": "Kendall's tau, mean of units",
    "order_bits": "Entropy of orders given the length, bits",
    "source_dependency_length": "Dependency length, source",
    "derived_dependency_length": "Dependency length, derived",
    "overlap_percent": "Derived words that are source words, too, %",
    "type_overlap_percent": "Derived types that are source types, too, %",
    "entities": "Entities",
    "entities_split_percent": "Entities split, %",
}


def kendall_tau(ranks: Sequence[int]) -> float:
    """Return Kendall's tau of a permutation and the identity. ranks: n >= 2 distinct numbers.

    >>> kendall_tau([0, 1, 2]), kendall_tau([2, 1, 0])
    (1.0, -1.0)
    """
    seen: list[int] = []
    inversions = 0
    for number, rank in enumerate(ranks):
        inversions += number - bisect_left(seen, rank)
        insort(seen, rank)
    n = len(ranks)
    return 1 - 4 * inversions / (n * (n - 1))


class Reordering:
    """Sums over batches of a set.

    taus: Kendall's tau of each unit of two kept words or more, by batch. source_words, derived_words: types and their
    counts.
    """

    def __init__(self) -> None:
        names = ("units", "source_words", "derived_words", "inserted", "kept", "moved", "changed")
        self._counts = dict.fromkeys(names, 0)
        self.taus: list[NDArray[np.float64]] = []
        self._orders: Counter[tuple[int, int]] = Counter()  # by number of words and hash of the order
        self._lengths = {"source": [0, 0], "derived": [0, 0]}  # sum, number of edges
        self._entities = [0, 0]  # all, split
        self.source_words: Counter[str] = Counter()
        self.derived_words: Counter[str] = Counter()

    def add(self, source: Batch, derived: Batch, order: Order) -> None:
        """Add a batch in both languages, with the order between them."""
        counts = self._counts
        counts["units"] += source.n_units
        counts["source_words"] += source.n_words
        counts["derived_words"] += derived.n_words
        counts["inserted"] += order.n_inserted
        is_kept = order.index >= 0
        kept = order.index[is_kept]
        unit = owners(derived.unit_words)[is_kept]
        offsets = offsets_of(np.bincount(unit, minlength=source.n_units))
        place = np.arange(len(kept)) - offsets[unit]
        # The rank of each kept word in its unit: units stay in order, so sorting by word sorts by unit.
        ranks = np.empty(len(kept), np.int32)
        ranks[np.argsort(kept)] = place
        counts["kept"] += len(kept)
        counts["moved"] += int((ranks != place).sum())
        counts["changed"] += _changed(source, derived, kept, np.flatnonzero(is_kept))
        every, edges = ranks.tolist(), offsets.tolist()
        self.taus.append(np.array([kendall_tau(every[a:b]) for a, b in pairwise(edges) if b - a > 1], float))
        # a b | c d -> b a | d c has the ranks 1 0 3 2 in the unit, and 1 0 | 1 0 in its sentences. A unit with a word
        # that left its sentence counts as one.
        sentence = owners(source.sentences)[kept]
        merged = np.isin(unit, unit[1:][np.diff(sentence) < 0])
        sentence = np.where(merged, source.units[unit], sentence)
        begins = np.append(np.flatnonzero(np.diff(sentence, prepend=-1)), len(kept))
        in_sentence = ranks + offsets[unit] - begins[owners(begins)]
        hashes = sequence_keys(mix(in_sentence.astype(np.uint64)), begins)
        self._orders.update(zip(lengths_of(begins).tolist(), hashes.tolist(), strict=True))
        for name, batch in (("source", source), ("derived", derived)):
            tree = batch.layers.get("head")
            if isinstance(tree, Tree):
                unit_of = owners(batch.unit_words)
                place = np.arange(batch.n_words) - batch.unit_words[unit_of] + 1
                edges = tree.head > 0
                self._lengths[name][0] += int(np.abs(tree.head - place)[edges].sum())
                self._lengths[name][1] += int(edges.sum())
        for layer in source.layers.values():
            if isinstance(layer, Spans):
                self._add_entities(layer, order)
        _count_words(self.source_words, source)
        _count_words(self.derived_words, derived)

    def _add_entities(self, layer: Spans, order: Order) -> None:
        entity, _, _, whole = runs_of_ranges(order, layer.start, layer.end, order.positions())
        self._entities[0] += len(layer.start)
        self._entities[1] += len(np.unique(entity[~whole]))

    def _order_bits(self) -> float | None:
        """Return the entropy of the orders of sentences with equally many words, in bits per sentence."""
        of_length: Counter[int] = Counter()
        for (length, _), times in self._orders.items():
            of_length[length] += times
        bits = sum(times * np.log2(of_length[length] / times) for (length, _), times in self._orders.items())
        return _ratio(float(bits), self._orders.total())

    def result(self) -> dict[str, float | int | None]:
        """Return the statistics by the names of MEANINGS; None where nothing was to be counted."""
        counts = self._counts
        shared = [times for word, times in self.derived_words.items() if word in self.source_words]
        taus = np.concatenate([np.zeros(0), *self.taus])
        return {
            "units": counts["units"],
            "source_words": counts["source_words"],
            "derived_words": counts["derived_words"],
            "inserted_percent": _ratio(100 * counts["inserted"], counts["derived_words"]),
            "deleted_percent": _ratio(100 * (counts["source_words"] - counts["kept"]), counts["source_words"]),
            "changed_percent": _ratio(100 * counts["changed"], counts["kept"]),
            "moved_percent": _ratio(100 * counts["moved"], counts["kept"]),
            "kendall_tau": _ratio(float(taus.sum()), len(taus)),
            "order_bits": self._order_bits(),
            "source_dependency_length": _ratio(*self._lengths["source"]),
            "derived_dependency_length": _ratio(*self._lengths["derived"]),
            "overlap_percent": _ratio(100 * sum(shared), counts["derived_words"]),
            "type_overlap_percent": _ratio(100 * len(shared), len(self.derived_words)),
            "entities": self._entities[0] or None,
            "entities_split_percent": _ratio(100 * self._entities[1], self._entities[0]),
        }


def _count_words(counts: Counter[str], batch: Batch) -> None:
    times = np.bincount(batch.words, minlength=len(batch.types))
    used = np.flatnonzero(times)
    for word, number in zip(batch.types.take(to_arrow(used)).to_pylist(), times[used].tolist(), strict=True):
        counts[word] += number


def _changed(source: Batch, derived: Batch, before: Int32, after: Int64) -> int:
    """Return how many words are written differently. before, after: [n], the places of a word in both batches."""
    n_types = len(derived.types)
    pairs, times = np.unique(source.words[before].astype(np.int64) * n_types + derived.words[after], return_counts=True)
    ours, theirs = source.types.take(to_arrow(pairs // n_types)), derived.types.take(to_arrow(pairs % n_types))
    return int(times[to_numpy(pc.not_equal(ours, theirs))].sum())


def table_of(figures: Mapping[str, Any]) -> list[tuple[str, str]]:
    """Return the statistics that are there as (meaning, value), for people; other figures are left out."""
    shown = [(what, value) for name, what in MEANINGS.items() if (value := figures.get(name)) is not None]
    return [(what, f"{value:,}" if isinstance(value, int) else f"{value:,.2f}") for what, value in shown]


def _ratio(total: float, number: int) -> float | None:
    return total / number if number else None
