"""mallows: permutations that are near the source, or near its reversal, by one number.

A permutation has a probability proportional to exp(-theta · d), where d is the number of pairs of words that it puts in
the other order (Kendall's tau distance). theta = 0 is a uniform shuffle, large theta the source, large negative theta
the reversal. With by=length, the default and the published form, all sentences of a length share one permutation.

    mallows:0.5     one two three four five six .   ->   four one two six three five .
    mallows:-0.5    one two three four five six .   ->   five three six two one four .

The sampler is exact (repeated insertion, Doignon et al. 2004): word i, from 0, is put before the last k words of the
list so far, where k = 0 … i has a probability proportional to exp(-theta · k). Negative theta: the reversal of a sample
for -theta.

    the words a b c and k = 0 1 1   ->   a | b a | b c a

Source: Mayer Martins et al. 2026 (arXiv 2603.19427).
"""

from __future__ import annotations

from dataclasses import dataclass
from itertools import pairwise
from typing import Literal

import numpy as np

from derivlang.core.arrays import Float64, Int32, Int64, UInt64, expand_ranges, offsets_of
from derivlang.core.batch import Batch
from derivlang.core.keys import Draws, fractions
from derivlang.core.spec import param
from derivlang.transforms.base import Dial
from derivlang.transforms.word_order import (
    BodyTransform,
    Final,
    Unit,
    final_param,
    key_of_length,
    unit_param,
)

_CERTAIN = 800.0  # exp(-800) is 0, so that k is 0
_NO_MOVE = 37.0  # exp(-37) is below 2^-53, the least fraction that is drawn


@dataclass(frozen=True, kw_only=True)
class Mallows(BodyTransform):
    """Mallows: random permutations whose distance from the source is set by theta."""

    name = "mallows"
    dial = Dial("theta", near=8.0, far=-8.0)
    # The draws do not depend on theta, so that a word pair that is kept for one theta is kept for each larger one.
    theta: float = param(
        1.0, "0: uniform; large: the source; large and negative: the reversal", positional=True, draws=False
    )
    by: Literal["length", "sentence"] = param("length", "what has a permutation of its own: each length, each sentence")
    final: Final = final_param()
    unit: Unit = unit_param()
    seed: int = param(1, "seed of the draws: each seed gives another language", low=0)

    def misfits(self, language: str) -> list[str]:
        return [f"{self}: theta is so large that no word moves: this is the source"] if self.theta >= _NO_MOVE else []

    def permute(self, index: Int32, batch: Batch, draws: Draws, start: Int64, length: Int64) -> None:
        """Write the new order; see `BodyTransform.permute`."""
        if self.by == "sentence":
            moved = self._sampled(draws, batch.keys, length)
        else:
            sizes, which = np.unique(length, return_inverse=True)
            once = self._sampled(draws, key_of_length(sizes), sizes)
            moved = once[expand_ranges(offsets_of(sizes)[:-1][which], length)]
        index[expand_ranges(start, length)] = moved + np.repeat(start, length)

    def _sampled(self, draws: Draws, keys: UInt64, length: Int64) -> Int32:
        """Return int32[sum(length)]: for each group, the place of the word that comes first, second, …

        keys: uint64[G], of the draws of each group.
        """
        groups = offsets_of(length)
        place = expand_ranges(np.zeros_like(length), length)
        code = _insertions(fractions(draws.draw(np.repeat(keys, length), place)), place, abs(self.theta))
        counts = code.tolist()
        places = [place for begin, end in pairwise(groups.tolist()) for place in _inserted(counts[begin:end])]
        out = np.array(places, np.int32)
        if self.theta < 0:  # each list from its end
            out = out[np.repeat(groups[:-1] + groups[1:] - 1, length) - np.arange(len(out))]
        return out


def _insertions(fraction: Float64, place: Int64, theta: float) -> Int64:
    """Return int64[n]: k = 0 … place with probability proportional to exp(-theta · k), by inversion.

    The share of 0 … k is (1 - exp(-theta (k + 1))) / (1 - exp(-theta (place + 1))).
    """
    count = place + 1
    theta = min(theta, _CERTAIN)
    if theta * float(count.max(initial=1)) < 1e-9:  # the limit: uniform
        drawn = fraction * count
    else:
        drawn = -np.log1p(fraction * np.expm1(-theta * count)) / theta
    out: Int64 = np.minimum(drawn.astype(np.int64), place)
    return out


def _inserted(counts: list[int]) -> list[int]:
    """Return the words of a list after all insertions, each before the last k words: k = 0 1 1 -> 1 2 0."""
    words: list[int] = []
    for i, k in enumerate(counts):
        words.insert(i - k, i)
    return words
