"""Statistics of a derived set: how far its words moved, and what that did to trees and entities.

    counts = Reordering()
    counts.add(source, derived, order)     for each batch
    counts.result()["kendall_tau"]

A unit is a word sequence: a sentence of running text, a labelled sentence, one side of a pair. Only kept words count as
moved or not; a word moved if its rank among the kept words of its unit changed.

kendall_tau        mean over units of 1 - 4 I / (n (n - 1)), I inversions among n >= 2 kept words (Kendall 1938); 1: the
                   same order, -1: reversed
dependency_length  mean |position of a word - position of its head|, roots left out, in both languages
overlap            percentage of the running derived words that are words of the source's vocabulary, too
entities_split     entities whose kept words are no longer adjacent
"""

from __future__ import annotations

from bisect import bisect_left, insort
from collections.abc import Sequence

import numpy as np

from derivlang.core.arrays import owners
from derivlang.core.arrow import to_arrow
from derivlang.core.batch import Batch
from derivlang.core.layers.spans import Spans
from derivlang.core.layers.tree import Tree
from derivlang.core.order import Order, runs_of_ranges

# What a name of `result` means, for tables; in its order.
MEANINGS = {
    "units": "Units (sentences or texts)",
    "source_words": "Source words",
    "derived_words": "Derived words",
    "moved_percent": "Words moved, %",
    "kendall_tau": "Kendall's tau, mean of units",
    "source_dependency_length": "Dependency length, source",
    "derived_dependency_length": "Dependency length, derived",
    "overlap_percent": "Derived words that are source words, too, %",
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
    """Sums over batches of a set."""

    def __init__(self) -> None:
        self._counts = dict.fromkeys(("units", "source_words", "derived_words", "kept", "moved", "taus"), 0)
        self._tau = 0.0
        self._lengths = {"source": [0, 0], "derived": [0, 0]}  # sum, number of edges
        self._entities = [0, 0]  # all, split
        self._source_types: set[str] = set()
        self._derived_words: dict[str, int] = {}

    def add(self, source: Batch, derived: Batch, order: Order) -> None:
        """Add a batch in both languages, with the order between them."""
        counts = self._counts
        counts["units"] += source.n_units
        counts["source_words"] += source.n_words
        counts["derived_words"] += derived.n_words
        for unit in range(source.n_units):
            begin, end = derived.unit_words[unit], derived.unit_words[unit + 1]
            kept = order.index[begin:end]
            kept = kept[kept >= 0]
            ranks = np.argsort(np.argsort(kept))
            counts["kept"] += len(ranks)
            counts["moved"] += int((ranks != np.arange(len(ranks))).sum())
            if len(ranks) > 1:
                self._tau += kendall_tau(ranks.tolist())
                counts["taus"] += 1
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
        self._source_types.update(source.types.take(to_arrow(np.unique(source.words))).to_pylist())
        number = np.bincount(derived.words, minlength=len(derived.types))
        for word, times in zip(derived.types.to_pylist(), number.tolist(), strict=True):
            self._derived_words[word] = self._derived_words.get(word, 0) + times

    def _add_entities(self, layer: Spans, order: Order) -> None:
        entity, _, _, whole = runs_of_ranges(order, layer.start, layer.end, order.positions())
        self._entities[0] += len(layer.start)
        self._entities[1] += len(np.unique(entity[~whole]))

    def result(self) -> dict[str, float | int | None]:
        """Return the statistics by the names of MEANINGS; None where nothing was to be counted."""
        counts = self._counts
        shared = sum(times for word, times in self._derived_words.items() if word in self._source_types)
        return {
            "units": counts["units"],
            "source_words": counts["source_words"],
            "derived_words": counts["derived_words"],
            "moved_percent": _ratio(100 * counts["moved"], counts["kept"]),
            "kendall_tau": _ratio(self._tau, counts["taus"]),
            "source_dependency_length": _ratio(*self._lengths["source"]),
            "derived_dependency_length": _ratio(*self._lengths["derived"]),
            "overlap_percent": _ratio(100 * shared, counts["derived_words"]),
            "entities": self._entities[0] or None,
            "entities_split_percent": _ratio(100 * self._entities[1], self._entities[0]),
        }


def table_of(result: dict[str, float | int | None]) -> list[tuple[str, str]]:
    """Return the statistics that are there as (meaning, value), for people."""
    shown = [(MEANINGS[name], value) for name, value in result.items() if value is not None]
    return [(what, f"{value:,}" if isinstance(value, int) else f"{value:,.2f}") for what, value in shown]


def _ratio(total: float, number: int) -> float | None:
    return total / number if number else None
