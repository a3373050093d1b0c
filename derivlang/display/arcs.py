"""Arcs of a dependency tree, at levels at which no two of them overlap.

arcs_of((2, 0, 2))  ->  [Arc(head=1, word=0, level=1), Arc(head=1, word=2, level=1)]
"""

from __future__ import annotations

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
    highest = [0] * len(head)  # of the arcs over the stretch between a word and the next one, so far
    out = []
    for governor, word in ends:
        first, last = sorted((governor, word))
        level = 1 + max(highest[first:last], default=0)
        highest[first:last] = [level] * (last - first)
        out.append(Arc(governor, word, level))
    return out
