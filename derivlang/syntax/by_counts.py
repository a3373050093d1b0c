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

from dataclasses import dataclass
from functools import cached_property

import numpy as np

from derivlang.core.arrays import Int64, lengths_of, offsets_of
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
_BITS = 21  # of the number of a relation: three of them are a key


@dataclass(frozen=True, eq=False)
class ByPairs:
    """Orders by the counts of treebanks. threshold: the share of a pair's orders that decides it, above 0.5."""

    counts: Counts
    threshold: float

    def slots(self, members: Members, seen: WordKinds) -> Int64:
        """Return int64[E]: the rank of each member's relation in its family; 0 in families without a decided pair."""
        codes = dict(self._numbers)
        plain = [codes.setdefault(relation.partition(":")[0], len(codes)) for relation in seen.relations]
        code_of = np.array(plain, np.int64)
        relation = code_of[seen.relation[members.word]]
        _, first, which = np.unique(members.family * len(codes) + relation, return_index=True, return_inverse=True)
        by = np.argsort(first)
        # `types`: the different relations of each family, in source order. a b a | c  ->  a b | c
        types = relation[first[by]]
        offsets = offsets_of(np.bincount(members.family[first], minlength=len(members.listing.heads)))
        head = code_of[seen.relation[members.head[members.listing.offsets[:-1]]]]
        # Families of roots have no head.
        sizes = np.where(members.listing.heads < len(members.forest), lengths_of(offsets), 0)
        ranks = np.zeros(len(types), np.int64)
        for size in np.unique(sizes[sizes > 1]).tolist():
            families = np.flatnonzero(sizes == size)
            at = offsets[families][:, None] + np.arange(size)
            rows = np.column_stack([head[families], types[at]])
            kinds, kind = np.unique(rows, axis=0, return_inverse=True)
            ranks[at] = _ranks(self._worths(kinds))[kind.reshape(-1)]
        place = np.empty(len(by), np.int64)
        place[by] = np.arange(len(by))
        return ranks[place[which]]

    @cached_property
    def _numbers(self) -> dict[str, int]:
        """The numbers of the relations that were counted."""
        return {name: number for number, name in enumerate(sorted({name for key in self.counts.pairs for name in key}))}

    @cached_property
    def _decided(self) -> Int64:
        """int64[D]: the keys of (head relation, first, second) that are decided, ascending, and a larger number."""
        pairs, number = self.counts.pairs, self._numbers
        decided = [
            (number[head], number[first], number[second])
            for (head, first, second), count in pairs.items()
            if count and count / (count + pairs.get((head, second, first), 0)) >= self.threshold
        ]
        keys = _key(*np.array(decided, np.int64).reshape(-1, 3).T)
        return np.append(np.sort(keys), np.iinfo(np.int64).max)

    def _worths(self, rows: Int64) -> Int64:
        """Return int64[s, k, k]: what it is worth that relation i stands before relation j.

        rows: int64[s, k + 1], the head relation, then k relations in source order.
        """
        key = _key(rows[:, :1, None], rows[:, 1:, None], rows[:, None, 1:])
        decided = self._decided[np.searchsorted(self._decided, key)] == key
        undecided = ~(decided | decided.transpose(0, 2, 1))
        return np.where(decided, DECIDED, np.triu(undecided, 1))


def _key(head: Int64, first: Int64, second: Int64) -> Int64:
    """Return one number for each head relation with two relations."""
    return np.asarray((head << 2 * _BITS) + (first << _BITS) + second)


def _ranks(worths: Int64) -> Int64:
    """Return int64[s, k]: the rank of each relation in the best order; 0 where no pair is decided.

    worths: int64[s, k, k], as of `_worths`, for s families with k relations each.
    """
    out = np.zeros(worths.shape[:2], np.int64)
    for at in np.flatnonzero((worths == DECIDED).any(axis=(1, 2))).tolist():
        order = _best(worths[at].tolist()) if worths.shape[1] <= MOST else _inserted(worths[at])
        out[at, order] = np.arange(len(order))
    return out


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
