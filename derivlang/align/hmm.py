"""Forward and backward of an HMM aligner with an empty word, over a block of sentence pairs at once.

The states of a target word are the source words, and for each source word an empty word that remembers it
(Och and Ney 2003, §2.1.2): a word without a link does not forget where the last link was. Before the first link
one more state remembers nothing. Probabilities are scaled to sum 1 at each word, so that float32 does.
"""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np

from derivlang.align.jumps import Floats, JumpCounts, Jumps
from derivlang.core.arrays import Int64


@dataclass(frozen=True, slots=True)
class Posterior:
    """links [J, S, I]: p(word j is linked to i | pair); what is missing to 1 is p(no link). log_likelihood [S]."""

    links: Floats
    log_likelihood: Floats


def posterior(emission: Floats, null: Floats, lengths: Int64, ends: Int64, model: Jumps, counts: JumpCounts | None = None) -> Posterior:
    """Posteriors of a block, and its expected jumps added to counts.

    emission [J, S, I]: p(target word j | source word i), 0 at padding. null [J, S]: p(target word j | no word).
    lengths int64[S]: source words; ends int64[S]: target words. What lies behind a pair's last target word is
    passed over.
    """
    n_steps, n_pairs, n = emission.shape
    dtype = emission.dtype.type
    inside = (np.arange(n) < lengths[:, None]).astype(dtype)
    matrix = model.matrix(n, dtype)
    starts = model.starts(lengths, n, dtype)
    norm = inside @ matrix.T  # [S, I]: sum of the weights of the possible jumps from each place
    inverse = (1.0 / norm).astype(dtype)
    some, none = dtype(1 - model.null), dtype(model.null)
    emission = emission * some
    null = null * none
    over = np.arange(n_steps)[:, None] >= ends
    if over.any():
        j, s = np.nonzero(over)
        emission[j, s] = some * inside[s]
        null[j, s] = none

    real = np.empty_like(emission)  # scaled forward probabilities of the links
    state = np.empty_like(emission)  # the same of links and empty words at each place, over the normaliser
    scales = np.empty((n_steps, n_pairs), dtype)
    at = np.zeros((n_pairs, n), dtype)
    unset = np.ones(n_pairs, dtype)
    before = np.empty((n_steps, n_pairs), dtype)  # p(no link yet) before each word
    for j in range(n_steps):
        before[j] = unset
        ahead = starts * unset[:, None]
        if j:
            np.multiply(at, inverse, out=state[j - 1])
            ahead += state[j - 1] @ matrix
        np.multiply(ahead, emission[j], out=real[j])
        at *= null[j][:, None]
        at += real[j]
        unset = unset * null[j]
        scale = at.sum(1) + unset
        scales[j] = scale
        factor = (1 / scale)[:, None]
        at *= factor
        real[j] *= factor
        unset = unset / scale

    beta = np.ones((n_pairs, n), dtype)
    unset_beta = np.ones(n_pairs, dtype)
    departures = np.zeros((n_pairs, n), dtype)
    firsts = np.zeros((n_pairs, n), dtype)
    arrivals = emission  # overwritten, step by step: what a jump to each place is worth
    for j in range(n_steps - 1, -1, -1):
        real[j] *= beta
        arrivals[j] *= beta
        arrivals[j] *= (1 / scales[j])[:, None]
        begin = starts * arrivals[j]
        firsts += begin * (before[j] * ~over[j])[:, None]
        keep = null[j] / scales[j]
        unset_beta = unset_beta * keep + begin.sum(1)
        if j:
            beta *= keep[:, None]
            back = arrivals[j] @ matrix.T
            departures += state[j - 1] * back * ~over[j][:, None]
            back *= inverse
            beta += back
    if over.any():
        real[over] = 0
    if counts is not None:
        if over.any():
            arrivals[over] = 0
        expected = state[:-1].reshape(-1, n).T @ arrivals[1:].reshape(-1, n)
        counts.add_jumps(expected * matrix, departures * inverse, lengths)
        counts.add_firsts(firsts, lengths, model.first)
    scales[over] = 1
    return Posterior(real, np.log(scales, dtype=np.float64).sum(0))
