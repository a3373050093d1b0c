"""The jumps of an HMM aligner: from the source word of one target word to that of the next (Vogel et al. 1996).

    after the source word i' comes   i,   by weight  c(i - i') + [i = I - 1] last(i')
                                     the end,        end(i')
    p(first i | I)  by weights of its own

and chances are weights over their sum. Jumps have weights by bins: single ones up to 8 words, then ever wider ones, so
that far jumps are not counted one by one. Places (`first`, `last`, `end`) have bins that are pairs, of the distances
from both ends of the source sentence: an inverted language begins near the end. `last` is a way to the last word from
anywhere: after a reordering the final mark is far from the word before it, and no bin of jumps would say that of all
far places this one is meant. Without it, and without the end, final marks are rather left unlinked.

Source: Vogel, Ney, Tillmann 1996; bins and the normaliser by sentence length: Och and Ney 2003, §2.1.2; a jump to the
end: Östling and Tiedemann 2016. Differs in
how the weights are fitted: Och and Ney take relative frequencies, which is not the maximum where the normaliser
differs by sentence. Here c(d) = n(d) / sum over departures of [d is possible] / normaliser (one step of a
minorise-maximise scheme): the likelihood never falls, and orders without any pattern give equal weights.
"""

from __future__ import annotations

from dataclasses import dataclass
from functools import lru_cache

import numpy as np

from derivlang.align.blocks import mask
from derivlang.align.lexical import Floats
from derivlang.core.arrays import Int64

_EXACT = 8  # jumps of up to so many words have a bin each
_PLACES = 6  # bins of the distance from one end


def _widening(distance: Int64, exact: int) -> Int64:
    """Bins of distances >= 0: one each up to `exact`, then four an octave."""
    far = np.maximum(distance, exact) / exact
    return np.where(distance <= exact, distance, exact + np.ceil(2 * np.log2(far)).astype(np.int64)).astype(np.int64)


@lru_cache(maxsize=256)
def jump_bins(n: int) -> Int64:
    """int64[n, n]: the bin of each jump, rows from, columns to."""
    jump = np.arange(n)[None, :] - np.arange(n)[:, None]
    return np.where(jump < 0, 2 * _widening(-jump, _EXACT) - 1, 2 * _widening(jump, _EXACT))


def place_bins(lengths: Int64, n: int) -> Int64:
    """int64[S, n]: the bin of each place in sentences of these lengths; beyond the length: the last's."""
    front = np.broadcast_to(np.arange(n), (len(lengths), n))
    back = np.maximum(lengths[:, None] - 1 - front, 0)
    return np.minimum(_widening(front, 2), _PLACES - 1) * _PLACES + np.minimum(_widening(back, 2), _PLACES - 1)


N_JUMPS = 2 * int(_widening(np.array([1 << 20]), _EXACT)[0]) + 2
N_PLACES = _PLACES * _PLACES
LAST, END = N_JUMPS, N_JUMPS + N_PLACES  # where their weights begin, behind those of jumps
N_NEXT = N_JUMPS + 2 * N_PLACES


@dataclass(frozen=True, slots=True)
class Jumps:
    """next float64[N_NEXT]: of jumps, of the last word, of the end; first float64[N_PLACES]. Weights above zero.
    null: the chance of a word without a link."""

    next: Floats
    first: Floats
    null: float = 0.2

    def matrix(self, n: int, dtype: np.dtype[np.floating]) -> Floats:
        """[n, n]: weights of the jumps between n places."""
        return self.next[jump_bins(n)].astype(dtype)

    def last(self, lengths: Int64, n: int, dtype: np.dtype[np.floating]) -> Floats:
        """[S, n]: weights of the way to the last word, from each place."""
        return self.next[LAST + place_bins(lengths, n)].astype(dtype)

    def end(self, lengths: Int64, n: int, dtype: np.dtype[np.floating]) -> Floats:
        """[S, n]: weights of the end, after each place."""
        return self.next[END + place_bins(lengths, n)].astype(dtype)

    def starts(self, lengths: Int64, n: int, dtype: np.dtype[np.floating]) -> Floats:
        """[S, n]: chances of the first place, 0 beyond the sentence."""
        weights = self.first[place_bins(lengths, n)] * mask(lengths, n)
        return np.asarray(weights / weights.sum(1, keepdims=True), dtype)


def uniform(null: float) -> Jumps:
    return Jumps(np.ones(N_NEXT), np.ones(N_PLACES), null)


class JumpCounts:
    """Expected jumps, gathered block by block."""

    def __init__(self) -> None:
        self.next, self.chances = np.zeros(N_NEXT), np.zeros(N_NEXT)
        self.firsts, self.first_chances = np.zeros(N_PLACES), np.zeros(N_PLACES)

    def add_next(self, jumps: Floats, lasts: Floats, ends: Floats, departures: Floats, lengths: Int64) -> None:
        """Expected counts. jumps [I, I]: from, to. lasts, ends [S, I]: ways to the last word, to the end, from.
        departures [S, I]: all of them from a place, over their normaliser."""
        n = len(jumps)
        departures = departures.astype(np.float64)
        possible = departures.T @ mask(lengths, n).astype(np.float64)
        places = place_bins(lengths, n)
        for bins, counts, chances in (
            (jump_bins(n), jumps, possible),
            (LAST + places, lasts, departures),
            (END + places, ends, departures),
        ):
            self.next += np.bincount(bins.ravel(), counts.ravel().astype(np.float64), N_NEXT)
            self.chances += np.bincount(bins.ravel(), chances.ravel(), N_NEXT)

    def add_firsts(self, expected: Floats, lengths: Int64, weights: Floats) -> None:
        """expected [S, I]: first places; weights: those of the model that gave them."""
        n = expected.shape[1]
        bins, inside = place_bins(lengths, n), mask(lengths, n)
        norm = (weights[bins] * inside).sum(1)
        possible = inside * (expected.sum(1) / norm)[:, None]
        self.firsts += np.bincount(bins.ravel(), expected.ravel().astype(np.float64), N_PLACES)
        self.first_chances += np.bincount(bins.ravel(), possible.ravel(), N_PLACES)

    def fit(self, old: Jumps, prior: float) -> Jumps:
        """The weights of the next iteration; prior: counts added to each bin, in the model of equal weights."""
        return Jumps(
            _fit(self.next, self.chances, old.next, prior),
            _fit(self.firsts, self.first_chances, old.first, prior),
            old.null,
        )


def _fit(counts: Floats, chances: Floats, old: Floats, prior: float) -> Floats:
    """Weights of mean 1 over the possible bins. Bins that no sentence has keep the weight that they had."""
    seen = chances > 0
    if not seen.any() or counts.sum() <= 0:
        return old
    scale = counts.sum() / chances.sum()  # the weight of a bin, where all are equal
    weights = np.full(len(counts), scale)
    weights[seen] = (counts[seen] + prior) / (chances[seen] + prior / scale)
    floor = 1e-6 * scale  # a jump never seen stays possible
    return np.asarray(np.maximum(weights, floor) / scale)
