"""Translation probabilities of one direction, from expected counts.

    em         t(f|e) = n(e,f) / n(e)
    vb         t(f|e) = exp ψ(n(e,f) + a) / exp ψ(n(e) + A)           variational Bayes, A = sum of a over f
    collapsed  t(f|e) = (n(e,f) - own + a) / (n(e) - own + A)         own: what this very cell has given

`collapsed` is the zero-order approximation of collapsed variational Bayes (Asuncion et al. 2009): parameters are
integrated out as in a Gibbs sampler, without sampling. A cell does not vote for itself, so that a rare word is not
taken by whatever it was first linked to; on a few hundred sentences this, and not the form of the model, is what
brings a sampler's lead. Priors a, in counts, may differ by pair of types (`spelling.py`).

Source: Brown et al. 1993 (EM); Riley and Gildea 2012 (VB); Asuncion, Welling, Smyth, Teh 2009, eq. 13 (CVB0).
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import Literal, get_args

import numpy as np
from numpy.typing import NDArray

from derivlang.align.blocks import Block, Table
from derivlang.core.arrays import Int32

Floats = NDArray[np.floating]
Estimator = Literal["em", "vb", "collapsed"]
ESTIMATORS = get_args(Estimator)
_FLOOR = 1e-10  # a small prior underflows under exp ψ; and rounding may leave a collapsed count just below 0


@dataclass(slots=True)
class Lexical:
    """Counts of one direction: words are `made` by words that are `given`.

    prior [E + 1]: prior counts of each pair (0 at padding); prior_of [T + 1]: their sums, over all types that can
    be made, by given type. counts [E + 1], totals [T + 1]: prior and expected counts. null_prior: of each type made by
    no word; null [M + 1], null_total: likewise.
    """

    estimator: Estimator
    prior: Floats
    prior_of: Floats
    null_prior: float
    counts: Floats
    totals: Floats
    null: Floats
    null_total: float

    @classmethod
    def start(
        cls, table: Table, estimator: Estimator, prior: Floats, prior_of: Floats, null_prior: float, *, reverse: bool
    ) -> Lexical:
        """Every pair alike, or as the priors say. reverse: source words are made by target words."""
        n_made = table.n_source if reverse else table.n_target
        dtype = prior.dtype
        counts, totals = (
            (np.ones_like(prior), np.full_like(prior_of, n_made)) if estimator == "em" else (prior, prior_of)
        )
        counts[-1] = 0
        null = np.full(n_made + 1, max(null_prior, 1.0 if estimator == "em" else 0.0), dtype)
        return cls(estimator, prior, prior_of, null_prior, counts, totals, null, float(null[:-1].sum()))

    def fit(self, counts: Floats, totals: Floats, null: Floats) -> None:
        """Take expected counts [E + 1], their sums by given type [T + 1], and those of words without a link [M + 1]."""
        dtype = self.prior.dtype
        counts[-1] = 0
        totals = totals + self.prior_of
        null = null + self.null_prior
        null[-1] = 0
        self.counts, self.totals = (counts + self.prior).astype(dtype, copy=False), totals.astype(dtype)
        self.null, self.null_total = null.astype(dtype), float(null.sum())
        if self.estimator == "vb":
            self.counts = np.maximum(exp_digamma(self.counts), _FLOOR).astype(dtype)
            self.counts[-1] = 0
            self.totals = np.maximum(exp_digamma(self.totals), _FLOOR).astype(dtype)
            self.null = np.maximum(exp_digamma(self.null), _FLOOR).astype(dtype)
            self.null_total = max(float(exp_digamma(np.array([self.null_total]))[0]), _FLOOR)
        self.totals[self.totals <= 0] = 1  # types that are never given: their counts are 0 as well

    def emission(self, counts: Floats, given: Int32, own: Floats | None) -> Floats:
        """[.., S, I] probabilities, from counts of cells of that shape; given int32[S, I]. Padding has 0."""
        totals = self.totals[given]
        if own is None or self.estimator != "collapsed":
            return counts / totals
        top = np.subtract(counts, own)
        np.maximum(top, 0, out=top)
        below = np.subtract(totals, own)
        np.maximum(below, _FLOOR, out=below)
        top /= below
        return top

    def null_emission(self, made: Int32, own: Floats | None) -> Floats:
        """[J, S]: p(word | no word); made int32[J, S]."""
        counts = self.null[made]
        if own is None or self.estimator != "collapsed":
            return np.asarray(counts / counts.dtype.type(self.null_total))
        return np.asarray(np.maximum(counts - own, _FLOOR) / np.maximum(self.null_total - own, _FLOOR), counts.dtype)


def local_counts(lexical: Lexical, block: Block) -> Floats:
    """[J, S, I]: the counts of a block's cells."""
    return lexical.counts[block.entries].take(block.cells, mode="clip")


def exp_digamma(x: Floats) -> Floats:
    """exp ψ(x) for x > 0, float64: recurrence up to 6, then the asymptotic series (error below 1e-10)."""
    x = np.asarray(x, np.float64)
    y = np.maximum(x, 1e-300)
    shift = np.zeros_like(y)
    for _ in range(6):
        small = y < 6
        shift -= np.where(small, 1 / y, 0)
        y = np.where(small, y + 1, y)
    inverse = 1 / (y * y)
    series = inverse * (1 / 12 - inverse * (1 / 120 - inverse * (1 / 252 - inverse * (1 / 240 - inverse / 132))))
    return np.asarray(np.exp(np.log(y) - 0.5 / y - series + shift))
