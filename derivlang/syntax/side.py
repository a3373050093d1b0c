"""Side: dependents on the side of their head where their relation nearly always stands in a treebank.

    She gave him apples      Hindi: 0 % of iobj stand right of their head, of obj 25.3 %     at 0.75:
    She him gave apples      iobj moves to the left; obj, over the cut of 25 %, stays

A relation is right if more than `threshold` of its words stand right of their head, left if more than that stand left.
Dependents with such a relation move to that side, others stay on theirs; each side is in source order. Only the
relations in `MOVED` move, so case, det, mark, cc and conj never do.
Source: Rasooli and Collins 2019 (NAACL, N19-1385); the list of relations is from OfirArviv/ud-based-word-reordering
(`rasoolini_ud_reorder`). That program looks relations up without subtypes, but counts each subtype by itself; here both
are without.
"""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np

from derivlang.core.arrays import Int64
from derivlang.grammar.counts import Counts
from derivlang.syntax.slots import Members
from derivlang.syntax.words import WordKinds

_CLAUSE = "nsubj csubj obj iobj ccomp xcomp obl vocative expl dislocated advcl advmod aux cop"
_NOMINAL = "nmod appos nummod acl amod"
MOVED = frozenset(f"{_CLAUSE} {_NOMINAL}".split())


@dataclass(frozen=True, eq=False)
class BySide:
    """Sides by the counts of a treebank. threshold: the share of a relation's words above which it has a side."""

    counts: Counts
    threshold: float

    def slots(self, members: Members, seen: WordKinds) -> Int64:
        """Return int64[E]: 0 for dependents left of their head, 1 for heads, 2 for dependents right of it."""
        sides = np.array([self._side(relation.partition(":")[0]) for relation in seen.relations])
        side = sides[seen.relation[members.word]]
        side[members.listing.itself] = 0
        return 1 + np.where(side == 0, members.after * 1 - members.before, side)

    def _side(self, relation: str) -> int:
        """Return 1 for right, -1 for left, 0 for relations that stay."""
        left, right = (self.counts.sides.get((relation, after), 0) for after in (False, True))
        if relation not in MOVED or not left + right:
            return 0
        return (right / (left + right) > self.threshold) - (left / (left + right) > self.threshold)
