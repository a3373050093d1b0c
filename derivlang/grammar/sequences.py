"""HI features: weights of sequences of three to five labels, for families of up to seven members.

The members stand between m - 1 BOS and m - 1 EOS, m = min(5, n). Every sequence of 3 … m labels counts that ends at a
member or at an EOS (data listing of the published models):

    n = 3, members a b c:  BOS BOS a b c EOS EOS    counts  BOS BOS a, BOS a b, a b c, b c EOS, c EOS EOS

No dynamic programme covers them, so all orders are enumerated, and larger families ignore HI.
"""

from __future__ import annotations

from functools import cache

import numpy as np
from numpy.typing import NDArray

from derivlang.core.arrays import Int32, Int64
from derivlang.grammar.enumerate_orders import all_orders
from derivlang.grammar.weights import BOS, EOS, LONGEST_SEQUENCE, Float

MOST_MEMBERS = 7
SHORTEST = 3


class Sequences:
    """The HI weights of one model, looked up by prefix. Codes: 0 BOS, 1 EOS, then the labels that occur."""

    def __init__(self, weights: dict[tuple[str, ...], float]) -> None:
        names = sorted({token for tokens in weights for token in tokens} - {BOS, EOS})
        self.codes = {token: code for code, token in enumerate((BOS, EOS, *names))}
        self._base = len(self.codes) + 1  # the last code stands for all other labels
        self._features: dict[int, tuple[Int64, Float]] = {}
        self._prefixes: dict[int, Int64] = {}
        keys = {tokens: [self.codes[token] for token in tokens] for tokens in weights}
        for length in range(SHORTEST, LONGEST_SEQUENCE + 1):
            entries = sorted(
                (self._key(codes), weights[tokens]) for tokens, codes in keys.items() if len(tokens) == length
            )
            self._features[length] = (np.array([k for k, _ in entries], np.int64), np.array([w for _, w in entries]))
            longer = {self._key(codes[: length - 1]) for codes in keys.values() if len(codes) >= length}
            self._prefixes[length - 1] = np.array(sorted(longer), np.int64)
        self._prefixes[LONGEST_SEQUENCE] = np.zeros(0, np.int64)

    def _key(self, codes: list[int]) -> int:
        key = 0
        for code in codes:
            key = key * self._base + code
        return key

    def score(self, labels: Int32) -> Float:
        """Return float64[b, n!]: the HI scores of all orders of b families.

        labels: codes int32[b, n], -1 for labels in no sequence.
        """
        b, n = labels.shape
        out = np.zeros((b, len(all_orders(n))))
        if n < SHORTEST or not any(len(known) for known, _ in self._features.values()):
            return out
        size = n + 2  # the members, BOS, EOS
        codes = np.concatenate(
            [np.where(labels < 0, self._base - 1, labels), np.zeros((b, 1), np.int64), np.ones((b, 1), np.int64)],
            axis=1,
        )
        family = np.repeat(np.arange(b), size)
        place = np.tile(np.arange(size), b)
        key = codes.reshape(-1).astype(np.int64)
        spot = np.arange(size)
        for length in range(2, min(LONGEST_SEQUENCE, n) + 1):
            # each known prefix followed by each label; key: codes in base `_base`, place: members in base n + 2
            key = (key[:, None] * self._base + codes[family]).reshape(-1)
            place = (place[:, None] * size + spot).reshape(-1)
            family = np.repeat(family, size)
            if length >= SHORTEST:
                known, weights = self._features[length]
                at, hit = _lookup(known, key)
                if hit.size:
                    table = np.zeros((b, size**length))
                    table[family[hit], place[hit]] = weights[at]
                    for ending in _endings(n, length):
                        out += table[:, ending]
            # Only what begins some longer sequence goes on, so that few of the size^length combinations are ever made.
            _, more = _lookup(self._prefixes[length], key)
            key, place, family = key[more], place[more], family[more]
        return out


def _lookup(known: Int64, keys: Int64) -> tuple[NDArray[np.intp], NDArray[np.intp]]:
    """Return (index in `known`, index in `keys`) of the keys that are known; `known` is sorted."""
    if not len(known):
        return np.zeros(0, np.intp), np.zeros(0, np.intp)
    at = np.minimum(np.searchsorted(known, keys), len(known) - 1)
    hit = np.flatnonzero(known[at] == keys)
    return at[hit], hit


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
