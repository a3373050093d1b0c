"""Translation probabilities of one direction, from expected counts.

    t(f|e) = (n(e,f) - own + a) / (n(e) - own + A)         own: the cell's own expected count; A: the sum of a over f

This is the zero-order approximation of collapsed variational Bayes: parameters are integrated out as in a Gibbs
sampler, but nothing is sampled. A cell does not vote for itself, so a rare word does not stay with the word it was
first linked to. On a few hundred sentences this explains the lead of samplers over EM. The priors a, in counts, may
differ by pair of types.

    n(the, le) = 1.6, n(the) = 2, a = 0.1, A = 0.4, and this cell of (the, le) contributed own = 0.9:
    t = (1.6 - 0.9 + 0.1) / (2 - 0.9 + 0.4) = 0.53 for this cell; with own = 0 it would be 0.71

Source: Brown et al. 1993 (the model); Asuncion, Welling, Smyth and Teh 2009, eq. 13 (CVB0).

Pairs of types that are spelled alike have prior counts. Names, numbers and punctuation are the same in many pairs of
languages, and cognates often begin alike. A pair of equal types of four letters or more gets `WEIGHT` prior counts; a
pair of shorter equal types, or with the same first four letters, gets half of that. Languages without common letters
get none.
"""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np
from numpy.typing import NDArray

from derivlang.align.bitext import TypePairs
from derivlang.core.arrays import Int32, Int64

Floats = NDArray[np.floating]
_FLOOR = 1e-10  # rounding may leave a count less its own share just below 0


@dataclass(slots=True)
class Lexical:
    """Counts of one direction: words are `made` by words that are `given`.

    prior [E + 1]: prior counts of each pair (0 at padding); prior_of [T + 1]: their sums, over all types that can
    be made, by given type. counts [E + 1], totals [T + 1]: prior plus expected counts. null_prior: prior count of each
    type made by no word; null [M + 1], null_total: its prior plus expected counts, and their sum.
    """

    prior: Floats
    prior_of: Floats
    null_prior: float
    counts: Floats
    totals: Floats
    null: Floats
    null_total: float

    @classmethod
    def start(cls, table: TypePairs, prior: Floats, prior_of: Floats, null_prior: float, *, reverse: bool) -> Lexical:
        """Return the counts before training: only the priors. reverse: source words are made by target words."""
        n_made = table.n_source if reverse else table.n_target
        null = np.full(n_made + 1, null_prior, prior.dtype)
        return cls(prior, prior_of, null_prior, prior, prior_of, null, float(null[:-1].sum()))

    def fit(self, counts: Floats, totals: Floats, null: Floats) -> None:
        """Take the counts [E + 1], their sums by given type [T + 1], and counts of words without a link [M + 1]."""
        dtype = self.prior.dtype
        counts[-1] = 0
        totals = totals + self.prior_of
        null = null + self.null_prior
        null[-1] = 0
        self.counts, self.totals = (counts + self.prior).astype(dtype, copy=False), totals.astype(dtype)
        self.null, self.null_total = null.astype(dtype), float(null.sum())
        self.totals[self.totals <= 0] = 1  # types that are never given: their counts are 0 as well

    def emission(self, counts: Floats, given: Int32, own: Floats | None) -> Floats:
        """Return the probabilities [.., S, I] of cells with these counts; 0 at padding.

        given int32[S, I]. own: each cell's expected count in the last iteration; None in the first.
        """
        totals = self.totals[given]
        if own is None:
            return counts / totals
        top = np.subtract(counts, own)
        np.maximum(top, 0, out=top)
        below = np.subtract(totals, own)
        np.maximum(below, _FLOOR, out=below)
        top /= below
        return top

    def null_emission(self, made: Int32, own: Floats | None) -> Floats:
        """Return p(word | no word) [J, S]; made int32[J, S]; own as for `emission`."""
        counts = self.null[made]
        if own is None:
            return np.asarray(counts / counts.dtype.type(self.null_total))
        return np.asarray(np.maximum(counts - own, _FLOOR) / np.maximum(self.null_total - own, _FLOOR), counts.dtype)


WEIGHT = 1.0
_LETTERS = 4


def prior_counts(table: TypePairs, source_types: list[str], target_types: list[str]) -> Floats:
    """Return float64[E + 1]: the extra prior counts of each pair of types."""
    out = np.zeros(len(table))
    for weight, length in ((0.5, _LETTERS), (0.5, None)):
        source, target = _classes(source_types, target_types, length)
        same = source[table.source_of[:-1]] == target[table.target_of[:-1]]
        out[:-1] += weight * WEIGHT * same
    return out


def _classes(source: list[str], target: list[str], length: int | None) -> tuple[Int64, Int64]:
    """Return a number for each type; two are equal if the words, or their first `length` letters, are equal.

    Words shorter than `length` equal no word of the other side (-1 and -2).
    """
    numbers: dict[str, int] = {}
    sides = []
    for types, alone in ((source, -1), (target, -2)):
        codes = [
            numbers.setdefault(word[:length], len(numbers)) if length is None or len(word) >= length else alone
            for word in types
        ]
        sides.append(np.array(codes, np.int64))
    return sides[0], sides[1]
