"""The order in which the rows of a stream come: another permutation in every epoch, a function of the seed.

The permutation sorts a draw of each row, and is kept for the epoch: 8 bytes per row, and 24 while it is sorted, which
takes two seconds for 8 million rows.

Several languages may have shares of every step, which may change: never a row more or less than its share.

    shares 1/2 1/3 1/6, 4 rows in a step      due after 1, 2, 3 steps   2 1.33 0.67    4 2.67 1.33    6 4 2
                                              rows of them              2 1 1          4 3 1          6 4 2

After each step, every language has had what is due to it, rounded down or up. Whose number is rounded up follows from
who needs another row first (earliest deadline). Such a schedule always exists (Tijdeman 1980, "The chairman assignment
problem"), and depends on nothing but the step, so a run goes on at any step.
"""

from __future__ import annotations

from collections.abc import Sequence
from fractions import Fraction
from functools import lru_cache
from math import inf, lcm

import numpy as np

from derivlang.core.arrays import Int64
from derivlang.core.keys import draw, text_key

Phases = tuple[tuple[int, tuple[Fraction, ...]], ...]


def row_numbers(what: str, seed: int, n: int, begin: int, end: int) -> Int64:
    """Return int64[end - begin]: part of an endless list of 0 … n - 1, permuted anew in every epoch.

    n 3, permutations [2 0 1], [1 2 0]: the list is 2 0 1 1 2 0 …, and positions 2 … 4 are [1, 1, 2]
    """
    at = np.arange(begin, end)
    out = np.empty(len(at), np.int64)
    for epoch in range(begin // n, (end - 1) // n + 1):
        here = at // n == epoch
        out[here] = _sorted(what, seed, n, epoch)[at[here] % n]
    return out


@lru_cache(maxsize=128)  # of every language of a step: 8 bytes of a row, whose sub-words have some 256
def _sorted(what: str, seed: int, n: int, epoch: int) -> Int64:
    draws = draw(text_key(f"{what}|seed={seed}"), np.full(n, epoch, np.uint64), np.arange(n))
    return np.argsort(draws, kind="stable")


def rows_before(phases: Phases, rows: int, steps: int) -> Int64:
    """Return int64[steps + 1, L]: the rows of each language before each step. rows: of all languages in a step."""
    made = 1 << max(steps, 64).bit_length()  # a power of two, so that few tables are made
    return _table(phases, rows, made)[: steps + 1]


@lru_cache(maxsize=4)
def _table(phases: Phases, rows: int, steps: int) -> Int64:
    unit = lcm(*(share.denominator for _, shares in phases for share in shares))
    rates = [[int(rows * share * unit) for share in shares] for _, shares in phases]  # in units of a row / unit
    begins = [begin for begin, _ in phases]
    table = np.zeros((steps + 1, len(rates[0])), np.int64)
    due, had = [0] * len(rates[0]), [0] * len(rates[0])
    phase = 0
    for step in range(steps):
        phase += phase + 1 < len(begins) and begins[phase + 1] <= step
        due = [before + rate for before, rate in zip(due, rates[phase], strict=True)]
        had = [max(n, now // unit) for n, now in zip(had, due, strict=True)]
        missing = rows * (step + 1) - sum(had)
        urgent = []
        for one, rate in enumerate(zip(*rates, strict=True)):
            if had[one] * unit < due[one]:
                urgent.append((_deadline(step, (had[one] + 1) * unit - due[one], begins, rate), one))
        for _, one in sorted(urgent)[:missing]:
            had[one] += 1
        table[step + 1] = had
    return table


def _deadline(step: int, needed: int, begins: Sequence[int], rates: Sequence[int]) -> float:
    """Return the step after which a language must have one more row. needed: units until it is due, after `step`."""
    for place, (begin, rate) in enumerate(zip(begins, rates, strict=True)):
        last = begins[place + 1] if place + 1 < len(begins) else None
        first = max(begin, step + 1)
        if last is not None and (last <= first or rate * (last - first) < needed):
            needed -= rate * max(last - first, 0)
        elif rate:
            return first + -(-needed // rate)
    return inf
