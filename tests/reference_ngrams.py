"""Interpolated Kneser-Ney smoothing, written plainly: the reference of `derivlang/core/ngrams.py`."""

from __future__ import annotations

import math
from collections import Counter, defaultdict
from collections.abc import Sequence

SIGN = "<s>"


def cross_entropy(train: Sequence[Sequence[str]], held_out: Sequence[Sequence[str]], m: int, signs: int) -> float:
    """Bits a word of held-out sentences under an m-gram model; `signs` times <s> stands before each sentence."""
    padded = [[SIGN] * signs + list(sentence) for sentence in train]

    def grams(n: int) -> Counter[tuple[str, ...]]:
        """The n-grams that end in a word of a sentence."""
        return Counter(tuple(s[i - n + 1 : i + 1]) for s in padded for i in range(signs, len(s)))

    counts: dict[int, Counter[tuple[str, ...]]] = {m: grams(m)}
    for n in range(1, m):
        counts[n] = Counter(longer[1:] for longer in grams(n + 1))  # of different ones
    totals: dict[tuple[str, ...], int] = defaultdict(int)
    types: dict[tuple[str, ...], int] = defaultdict(int)
    for n in counts:
        for gram, count in counts[n].items():
            totals[n, *gram[:-1]] += count  # type: ignore[index]
            types[n, *gram[:-1]] += 1  # type: ignore[index]
    discounts = {}
    for n, found in counts.items():
        once, twice = (sum(count == k for count in found.values()) for k in (1, 2))
        discounts[n] = once / (once + 2 * twice) if once else 0.5
    vocabulary = {word for sentence in train for word in sentence}

    def probability(n: int, gram: tuple[str, ...]) -> float:
        if n == 0:
            return 1 / (len(vocabulary) + 1)
        shorter = probability(n - 1, gram[1:])
        context = (n, *gram[:-1])
        if not totals[context]:  # type: ignore[index]
            return shorter
        count, total = counts[n][gram], totals[context]  # type: ignore[index]
        return max(count - discounts[n], 0) / total + discounts[n] * types[context] / total * shorter  # type: ignore[index]

    bits, number = 0.0, 0
    for sentence in held_out:
        s = [SIGN] * signs + list(sentence)
        for i in range(signs, len(s)):
            bits -= math.log2(probability(m, tuple(s[i - m + 1 : i + 1])))
            number += 1
    return bits / number
