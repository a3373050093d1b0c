"""Arcs of a dependency tree, at levels at which no two of them overlap.

arcs_of((2, 0, 2))  ->  [Arc(head=1, word=0, level=1), Arc(head=1, word=2, level=1)]
"""

from __future__ import annotations

from bisect import bisect_left, bisect_right
from collections.abc import Sequence
from dataclasses import dataclass


@dataclass(frozen=True, slots=True)
class Arc:
    """The edge from a head to a word, positions from 0. level: from 1, above all arcs that it spans."""

    head: int
    word: int
    level: int

    @property
    def first(self) -> int:
        """The left end."""
        return min(self.head, self.word)

    @property
    def last(self) -> int:
        """The right end."""
        return max(self.head, self.word)


def arcs_of(head: Sequence[int]) -> list[Arc]:
    """Return the arcs of heads (from 1, 0 = root), short ones first. Roots have no arc.

    An arc is one level above the highest arc that shares a stretch between two words with it, crossing ones included.
    """
    ends = sorted(((h - 1, w) for w, h in enumerate(head) if h > 0), key=lambda arc: (abs(arc[0] - arc[1]), arc[1]))
    # The highest level so far over each stretch between two words, as runs of equal levels: run r begins at starts[r].
    # An arc replaces the runs below it by one, so that a head with thousands of dependents has a few runs.
    starts, levels = [0], [0]
    out = []
    for governor, word in ends:
        first, last = sorted((governor, word))
        begin, end = bisect_right(starts, first) - 1, bisect_left(starts, last)  # the runs that the arc overlaps
        level = 1 + max(levels[begin:end])
        fresh = [(first, level)]
        if starts[begin] < first:
            fresh.insert(0, (starts[begin], levels[begin]))
        if end == len(starts) or starts[end] > last:
            fresh.append((last, levels[end - 1]))
        starts[begin:end], levels[begin:end] = zip(*fresh, strict=True)
        out.append(Arc(governor, word, level))
    return out
