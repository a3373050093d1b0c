"""Enumeration: all orders of a small family, in lexicographic order, and the score of any given order."""

from __future__ import annotations

from functools import cache
from itertools import permutations

import numpy as np
from numpy.typing import NDArray

from derivlang.core.arrays import Int64
from derivlang.grammar.scores import Local
from derivlang.grammar.weights import Float

MOST_MEMBERS = 9  # 362,880 orders; ten would be a table of 36 MB and minutes for a file of heads


@cache
def all_orders(n: int) -> NDArray[np.int8]:
    """int8[n!, n]: all orders of n members, in lexicographic order. Read-only."""
    out = np.array(list(permutations(range(n))), np.int8).reshape(-1, n)
    out.flags.writeable = False
    return out


def to_dependents(orders: NDArray[np.int8], head_places: Int64) -> NDArray[np.int8]:
    """Orders of members int8[q, n] -> of dependents 0 … n - 2 and n - 1 for the head; head_places: int64[q] or [1]."""
    n = orders.shape[1]
    place = head_places[:, None]
    return np.where(orders == place, n - 1, orders - (orders > place)).astype(np.int8)


def to_members(orders: NDArray[np.int8], head_places: Int64) -> NDArray[np.int8]:
    """The way back from `to_dependents`."""
    n = orders.shape[1]
    place = head_places[:, None]
    return np.where(orders == n - 1, place, orders + (orders >= place)).astype(np.int8)


def score(local: Local, rows: Int64, orders: NDArray[np.int8]) -> Float:
    """float64[q]: the score of orders int8[q, n] (as `to_dependents` gives them) of families `rows` int64[q]."""
    n, d = orders.shape[1], local.n_dependents
    b = local.before.shape[-1]
    tables = np.zeros((3, n, n, b))  # both left, both right, across; pairs with the head are alike in each
    tables[:, :d, :d] = local.left, local.right, local.across
    tables[:, :d, d], tables[:, d, :d] = local.before, local.after
    following = np.zeros((n, n, b))
    following[:d, :d], following[:d, d], following[d, :d] = local.next, local.to_head, local.from_head
    first = np.concatenate([local.first, local.bare[:1]])
    last = np.concatenate([local.last, local.bare[1:]])
    head = orders.argmax(axis=1)
    places = orders.T.astype(np.int64)
    out = first[places[0], rows] + last[places[-1], rows]
    for q in range(1, n):
        out += following[places[q - 1], places[q], rows]
        for p in range(q):
            side = np.where(head > q, 0, np.where(head < p, 1, 2))
            out += tables[side, places[p], places[q], rows]
    return np.asarray(out)
