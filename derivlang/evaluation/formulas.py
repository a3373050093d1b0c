"""Formulas of scores: from the sums of counts to a number. A closed list, so that a table is read without its plug-in.

    percent      100 · a / b                                                  accuracies, shares, means in percent
    mean         a / b                                                        bits per word
    exp          exp(a / b)                                                   perplexity
    f1           200 · right / (found + gold)                                 entities
    precision    100 · right / found                                          of the same counts
    recall       100 · right / gold
    aer          100 · (1 - (sure right + possible right) / (found + sure))   Och and Ney 2003, section 3.4
    macro_f1:17  the mean F1 of the classes (of 17) that occur; counts are right, found and gold of each class

A mean of fractions is kept in whole numbers: `fixed` gives both sides the same scale, which cancels out. As in
seqeval, 0 / 0 is 0; `exp` and `mean` of nothing are NaN.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping
from typing import Any, TypeAlias

import numpy as np
from numpy.typing import NDArray

from derivlang.core.arrays import Int64

Float64: TypeAlias = NDArray[np.float64]
Formula: TypeAlias = Callable[[Int64 | Float64], Float64]

LARGEST = 1e14  # a diverged model's perplexity would be too large to add up and to print
SCALE = 10_000  # of `fixed`
LARGEST_COUNT = 2**31 - 1  # tables keep counts as 32-bit integers


def percent(totals: Int64 | Float64) -> Float64:
    """Return 100 · part / whole. totals: [..., 2 or more], the part and the whole first."""
    return _share(totals[..., 0], totals[..., 1])


def mean(totals: Int64 | Float64) -> Float64:
    """Return the mean, NaN of nothing. totals: [..., 2], the sum and the number."""
    with np.errstate(invalid="ignore", divide="ignore"):
        return np.asarray(np.where(totals[..., 1] == 0, np.nan, totals[..., 0] / totals[..., 1]), np.float64)


def exp(totals: Int64 | Float64) -> Float64:
    """Return exp of the mean, at most 1e14, NaN of nothing. totals: [..., 2], the sum and the number."""
    return np.exp(np.minimum(mean(totals), np.log(LARGEST)))


def f1(totals: Int64 | Float64) -> Float64:
    """Return the F1 in percent. totals: [..., 3], right, found and gold."""
    return _share(2 * totals[..., 0], totals[..., 1] + totals[..., 2])


def recall(totals: Int64 | Float64) -> Float64:
    """Return the recall in percent. totals: [..., 3], right, found and gold."""
    return _share(totals[..., 0], totals[..., 2])


def aer(totals: Int64 | Float64) -> Float64:
    """Return the alignment error rate in percent.

    totals: [..., 4], found links that are sure, found links that are possible, found links, sure links.
    """
    right, all_of_both = totals[..., 0] + totals[..., 1], totals[..., 2] + totals[..., 3]
    return _share(all_of_both - right, all_of_both)


def macro_f1(totals: Int64 | Float64) -> Float64:
    """Return the mean F1 of the classes that occur, in percent. totals: [..., 3 * C]: right, found and gold of each."""
    right, found, gold = np.moveaxis(totals.reshape(*totals.shape[:-1], 3, totals.shape[-1] // 3), -2, 0)
    there = found + gold > 0
    return _share(_share(2 * right, found + gold).sum(axis=-1), 100 * there.sum(axis=-1))


# Name -> (function, number of counts of a unit, or of a class of it)
FORMULAS: Mapping[str, tuple[Formula, int]] = {
    "percent": (percent, 2), "mean": (mean, 2), "exp": (exp, 2), "f1": (f1, 3), "precision": (percent, 3),
    "recall": (recall, 3), "aer": (aer, 4), "macro_f1": (macro_f1, 3),
}  # fmt: skip


def formula_of(name: str) -> tuple[Formula, int]:
    """Return (function, number of counts of a unit) of a formula. Raise ValueError for an unknown name."""
    stem, colon, classes = name.partition(":")
    if stem not in FORMULAS or bool(colon) != (stem == "macro_f1") or (colon and not classes.isdecimal()):
        raise ValueError(f"{name!r} is not one of the formulas {', '.join(FORMULAS)}")
    function, width = FORMULAS[stem]
    return function, width * int(classes or 1)


def value_of(formula: str, counts: Int64) -> float:
    """Return the score of all units together. counts: int64[U, k]."""
    return float(formula_of(formula)[0](counts.sum(axis=0)))


def fixed(sums: Any, numbers: Any) -> Int64:
    """Return int64[U, 2]: sums and numbers as counts of `percent`, `mean` or `exp`, in ten-thousandths.

    sums: float[U], numbers: int[U]. A sum that is too large, of a diverged model, is cut.

    [0.5, 2.25], [1, 3]   ->   [[5000, 10000], [22500, 30000]]
    """
    scaled = np.stack([np.asarray(sums, np.float64) * SCALE, np.asarray(numbers, np.float64) * SCALE], axis=-1)
    return np.rint(np.clip(np.nan_to_num(scaled, nan=0.0), -LARGEST_COUNT, LARGEST_COUNT)).astype(np.int64)


def _share(part: Int64 | Float64, whole: Int64 | Float64) -> Float64:
    """Return the ratio in percent, 0 if the whole is 0."""
    return np.asarray(100.0 * part / np.where(whole == 0, 1, whole), np.float64)
