"""Enumeration: all orders of a small family, in lexicographic order, and the score of any given order.

`Local` has what pairs and neighbours of members add to that score, for some families of one size.

HI features: weights of sequences of three to five labels, for families of up to seven members.

The members stand between m - 1 BOS and m - 1 EOS, m = min(5, n). Every sequence of 3 … m labels counts that ends at a
member or at an EOS (data listing of the published models):

    n = 3, members a b c:  BOS BOS a b c EOS EOS    counts  BOS BOS a, BOS a b, a b c, b c EOS, c EOS EOS

No dynamic programme covers them, so all orders are enumerated, and larger families ignore HI.
"""

from __future__ import annotations

from dataclasses import dataclass, replace
from functools import cache
from itertools import permutations

import numpy as np
from numpy.typing import NDArray

from derivlang.core.arrays import Int32, Int64
from derivlang.grammar.weights import BOS, EOS, LONGEST_SEQUENCE, Float

_TIE = 1e-7  # score of a pair that keeps its surface order, under argmax


@dataclass(frozen=True, slots=True, eq=False)
class Local:
    """Scores of b families with d dependents each (in surface order) and a head; families are the last axis.

    left, right, across: [d, d, b]. before, after: [d, b], PRE with the head after and before the dependent. next:
    [d + 3, d + 3, b], neighbours: the dependents, the head, BOS and EOS.
    """

    left: Float
    right: Float
    across: Float
    before: Float
    after: Float
    next: Float

    @property
    def n_dependents(self) -> int:
        """d."""
        return len(self.before)

    def take(self, which: NDArray[np.intp] | list[int] | int) -> Local:
        """Return the scores of some of the families, of one of them without the last axis."""
        return Local(*(getattr(self, name)[..., which] for name in Local.__slots__))

    def with_ties_broken(self, heads: Int64) -> Local:
        """Return the scores plus a little for each pair in surface order, so that equal orders change nothing.

        heads: int64[b], position of the head among the members. Each pair gets a slightly different amount, so no two
        orders tie. With two dependents and the head between them (heads = 1):

            dependent 0 before 1    1e-7 · (1 + 1 / 4096)
            dependent 0 before the head    1e-7;    dependent 1 after the head    1e-7 · (1 + 1 / 5000)
        """
        d = self.n_dependents
        index = np.arange(d)
        pair = np.where(index[:, None] < index, _TIE * (1 + (index[:, None] * (d + 1) + index) / 4096), 0.0)[..., None]
        before = np.where(index[:, None] < heads, _TIE * (1 + index[:, None] / 5000), 0.0)
        after = np.where(index[:, None] >= heads, _TIE * (1 + index[:, None] / 5000), 0.0)
        return replace(
            self,
            left=self.left + pair,
            right=self.right + pair,
            across=self.across + pair,
            before=self.before + before,
            after=self.after + after,
        )


MOST_MEMBERS = 9  # 362,880 orders; ten would need a table of 36 MB, and minutes for a file of heads


@cache
def all_orders(n: int) -> NDArray[np.int8]:
    """Return int8[n!, n]: all orders of n members, in lexicographic order. Read-only."""
    out = np.array(list(permutations(range(n))), np.int8).reshape(-1, n)
    out.flags.writeable = False
    return out


def order_numbers(orders: NDArray[np.integer]) -> Int64:
    """Return int64[q]: the number of each order, [q, n], in `all_orders`."""
    n = orders.shape[1]
    digits = n ** np.arange(n - 1, -1, -1)  # an order as a number in base n, which ascends: [2, 0, 1] -> 201
    return np.asarray(np.searchsorted(all_orders(n) @ digits, orders @ digits))


def to_dependents(orders: NDArray[np.int8], head_places: Int64) -> NDArray[np.int8]:
    """Return orders of dependents 0 … n - 2, with n - 1 for the head, from orders of members int8[q, n].

    head_places: int64[q] or [1]. Head at 1: members [1, 2, 0] -> [2, 1, 0] (the head, dependent 1, dependent 0).
    """
    n = orders.shape[1]
    place = head_places[:, None]
    return np.where(orders == place, n - 1, orders - (orders > place)).astype(np.int8)


def to_members(orders: NDArray[np.int8], head_places: Int64) -> NDArray[np.int8]:
    """Return orders of members from orders of dependents and head: the inverse of `to_dependents`."""
    n = orders.shape[1]
    place = head_places[:, None]
    return np.where(orders == n - 1, place, orders + (orders >= place)).astype(np.int8)


def score(local: Local, rows: Int64, orders: NDArray[np.int8]) -> Float:
    """Return float64[q]: the scores of orders int8[q, n] (see `to_dependents`) of families `rows` int64[q]."""
    n, d = orders.shape[1], local.n_dependents
    b = local.before.shape[-1]
    tables = np.zeros((3, n, n, b))  # both left, both right, across; pairs with the head are the same in each
    tables[:, :d, :d] = local.left, local.right, local.across
    tables[:, :d, d], tables[:, d, :d] = local.before, local.after
    # The place of n - 1, the head.
    head = orders.argmax(axis=1)
    places = orders.T.astype(np.int64)
    following, bos, eos = local.next, d + 1, d + 2
    out = following[bos, places[0], rows] + following[places[-1], eos, rows]
    for q in range(1, n):
        out += following[places[q - 1], places[q], rows]
        for p in range(q):
            # p < q. Head behind q: both stand left of it; before p: both right; else it is between them, or one of the
            # two.
            side = np.where(head > q, 0, np.where(head < p, 1, 2))
            out += tables[side, places[p], places[q], rows]
    return np.asarray(out)


@cache
def indicators(n: int) -> Float:
    """Return float64[P, n!]: 1 where an order adds a number of `flat` to its score. Read-only.

    The orders come from `all_orders`; the last member is the head. For n = 2, one dependent and the head, there are
    no pairs of dependents, and the columns are [dependent, head] and [head, dependent]:

        before [1, 0]  after [0, 1]  first [1, 0]  last [0, 1]  to_head [1, 0]  from_head [0, 1]  bare [0, 1], [1, 0]
    """
    d = n - 1
    orders = all_orders(n)
    place = orders.argsort(axis=1)
    first, second = ordered_pairs(d)
    is_left = place[:, d] > place[:, :d].T
    ahead = (place[:, first] < place[:, second]).T
    near = (place[:, first] + 1 == place[:, second]).T
    a, b = is_left[first], is_left[second]
    rows: list[NDArray[np.bool_]] = [ahead & a & b, ahead & ~a & ~b, ahead & a & ~b]
    rows += [near, is_left, ~is_left, place[:, :d].T == 0, np.int64(d) == place[:, :d].T]
    rows += [place[:, d] == place[:, :d].T + 1, place[:, d] == place[:, :d].T - 1]
    rows += [place[None, :, d] == 0, place[None, :, d] == d]
    out = np.concatenate(rows).astype(np.float64)
    out.flags.writeable = False
    return out


def flat(local: Local) -> Float:
    """Return float64[P, b]: all numbers that an order of these families may add up, as the rows of `indicators`."""
    d, following = local.n_dependents, local.next
    first, second = ordered_pairs(d)
    pairs = [table[first, second] for table in (local.left, local.right, local.across, following)]
    head, bos, eos = d, d + 1, d + 2
    edges = [following[bos, :d], following[:d, eos], following[:d, head], following[head, :d]]
    bare = [following[None, bos, head], following[None, head, eos]]
    return np.concatenate([*pairs, local.before, local.after, *edges, *bare])


def ordered_pairs(d: int) -> tuple[Int64, Int64]:
    """Return all ordered pairs of different dependents."""
    first, second = np.divmod(np.arange(d * d), d) if d else (np.zeros(0, np.int64),) * 2
    return first[first != second], second[first != second]


MOST_WITH_HI = 7  # members
SHORTEST = 3


class Sequences:
    """The HI weights of one model. Codes: 0 BOS, 1 EOS, then the labels that occur."""

    def __init__(self, weights: dict[tuple[str, ...], float]) -> None:
        names = sorted({token for tokens in weights for token in tokens} - {BOS, EOS})
        self.codes = {token: code for code, token in enumerate((BOS, EOS, *names))}
        self._weights = {tuple(self.codes[token] for token in tokens): weight for tokens, weight in weights.items()}
        self._begins = {codes[:n] for codes in self._weights for n in range(1, len(codes) + 1)}

    def score(self, labels: Int32) -> Float:
        """Return float64[b, n!]: the HI scores of all orders of b families.

        labels: codes int32[b, n], -1 for labels in no sequence.
        """
        n, n_weights = labels.shape[1], len(self._weights)
        out = np.zeros((len(labels), len(all_orders(n))))
        for family, scores in zip(labels.tolist() if n_weights else [], out, strict=False):
            line = list(enumerate((*family, 0, 1)))  # the members, BOS, EOS
            found: list[tuple[tuple[int, ...], int]] = [((), 0)]  # codes, and their places as a number in base n + 2
            for length in range(1, min(LONGEST_SEQUENCE, n) + 1):
                found = [
                    (longer, number * len(line) + place)
                    for codes, number in found
                    for place, code in line
                    if (longer := (*codes, code)) in self._begins
                ]
                if length >= SHORTEST:
                    table = np.zeros(len(line) ** length)
                    for codes, number in found:
                        table[number] = self._weights.get(codes, 0.0)
                    for ending in _endings(n, length):
                        scores += table[ending]
        return out


@cache
def _endings(n: int, length: int) -> list[Int32]:
    """Return for each position where a sequence of `length` may end int32[n!]: its number in base n + 2 in each order.

    n = 3 (BOS 3, EOS 4), order a b c, length 3: BOS BOS a is 3 · 25 + 3 · 5 + 0 = 90.
    """
    pad = min(LONGEST_SEQUENCE, n) - 1
    orders = all_orders(n).astype(np.int32)
    ends = np.ones((len(orders), pad), np.int32)
    line = np.concatenate([ends * n, orders, ends * (n + 1)], axis=1)
    out = []
    for last in range(pad, pad + n + pad):
        number = np.zeros(len(orders), np.int32)
        for place in range(last - length + 1, last + 1):
            number = number * np.int32(n + 2) + line[:, place]
        out.append(number)
    return out
