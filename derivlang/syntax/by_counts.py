"""Orders by counts of a treebank: of the sides of relations, and of pairs of relations.

Side: dependents on the side of their head where their relation nearly always stands in a treebank.

    She gave him apples      Hindi: 0 % of iobj stand right of their head, of obj 25.3 %     at 0.75:
    She him gave apples      iobj moves to the left; obj, over the cut of 25 %, stays

A relation is right if more than `threshold` of its words stand right of their head, left if more than that stand left.
Dependents with such a relation move to that side, others stay on theirs; each side is in source order. Only the
relations in `MOVED` move, so case, det, mark, cc and conj never do.
Source: Rasooli and Collins 2019 (NAACL, N19-1385); the list of relations is from OfirArviv/ud-based-word-reordering
(`rasoolini_ud_reorder`). That program looks relations up without subtypes, but counts each subtype by itself; here both
are without.

Pairwise: the relations below each head in the order that agrees with most pairs of a treebank.

    She gave him apples      Korean below a root: nsubj before root, iobj before root, obj before root, … at 0.7:
    She him apples gave

The members of a family are sorted by their relation; the head is a member with its own relation. Two relations are
decided if at least the share `threshold` of their pairs below this head relation have one order: that order is worth
10^5, the other one nothing. For other pairs, the source order (of the first word of each) is worth 1. The order of
relations with the largest sum is taken; of equal sums, the one that has the earlier relation first. Members with equal
relations are in source order. A family without a decided pair keeps its order.

The sum is the largest for up to `MOST` relations, by dynamic programming over sets: the best order of a set begins with
one of its relations and goes on with the best order of the others. In larger families one relation after the other, in
source order, is put where it gains most, at the last of equal places.
Source: Arviv et al. 2023 (Findings of EMNLP, arXiv 2310.13583). Their program puts the head last where nothing is
decided, has a relation `neg` for negation, and puts punctuation next to the head.
"""

from __future__ import annotations

from dataclasses import dataclass, field
from itertools import pairwise

import numpy as np

from derivlang.core.arrays import Int64, offsets_of
from derivlang.grammar.counts import Counts
from derivlang.syntax.layout import Members
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


MOST = 12
DECIDED = 10**5


@dataclass(frozen=True, eq=False)
class ByPairs:
    """Orders by the counts of treebanks. threshold: the share of a pair's orders that decides it, above 0.5."""

    counts: Counts
    threshold: float
    # By head relation and different relations, in source order: the rank of each; {} where no pair is decided.
    _known: dict[tuple[str, ...], dict[str, int]] = field(default_factory=dict, init=False, repr=False)

    def slots(self, members: Members, seen: WordKinds) -> Int64:
        """Return int64[E]: the rank of each member's relation in its family; 0 in families without a decided pair."""
        names = [relation.partition(":")[0] for relation in seen.relations]
        relations = [names[code] for code in seen.relation[members.word].tolist()]
        heads = members.head[members.listing.offsets[:-1]].tolist()
        out: list[int] = []
        for (begin, end), head in zip(pairwise(members.listing.offsets.tolist()), heads, strict=True):
            family = relations[begin:end]
            ranks = self._ranks(names[seen.relation[head]], *dict.fromkeys(family)) if head >= 0 else {}
            out += [ranks.get(relation, 0) for relation in family]
        return np.array(out, np.int64)

    def _ranks(self, head: str, *relations: str) -> dict[str, int]:
        """Return the rank of each relation below a head relation, {} if no pair of them is decided."""
        if (head, *relations) not in self._known:
            worth = [[self._worth(head, a, b, i < j) for j, b in enumerate(relations)] for i, a in enumerate(relations)]
            decided = any(DECIDED in row for row in worth)
            ranks = {relations[i]: rank for rank, i in enumerate(best_order(worth))} if decided else {}
            self._known[head, *relations] = ranks
        return self._known[head, *relations]

    def _worth(self, head: str, first: str, second: str, in_source: bool) -> int:
        """Return what it is worth that one relation stands before another. in_source: whether it does there."""
        count, other = (self.counts.pairs.get(key, 0) for key in ((head, first, second), (head, second, first)))
        if count + other and max(count, other) / (count + other) >= self.threshold:
            return DECIDED if count > other else 0
        return int(in_source)


def best_order(worth: list[list[int]]) -> list[int]:
    """Return the order with the largest sum, or above MOST relations one with a large sum."""
    return _best(worth) if len(worth) <= MOST else _inserted(np.array(worth)).tolist()


def _best(worth: list[list[int]]) -> list[int]:
    """Return the order with the largest sum of the pairs in it, by dynamic programming.

    best[set] = max over i in set of (worth of i before the others) + best[set without i]; sets are bits.
    """
    k = len(worth)
    best, begins = [0] * (1 << k), [0] * (1 << k)
    for members in range(1, 1 << k):
        inside = [i for i in range(k) if members >> i & 1]
        sums = [sum(worth[i][j] for j in inside if j != i) + best[members ^ (1 << i)] for i in inside]
        best[members] = max(sums)
        begins[members] = inside[sums.index(best[members])]  # of equals the first, which is the earliest in the source
    order, left = [], (1 << k) - 1
    while left:
        order.append(begins[left])
        left ^= 1 << begins[left]
    return order


def _inserted(worth: Int64) -> Int64:
    """Return int64[k]: an order with a large sum, for too many relations to find the best. worth: int64[k, k]."""
    order: list[int] = []
    for i in range(len(worth)):
        behind, before = worth[order, i], worth[i, order]
        gains = offsets_of(behind) + offsets_of(before[::-1])[::-1]
        order.insert(len(order) - int(gains[::-1].argmax()), i)
    return np.array(order)
