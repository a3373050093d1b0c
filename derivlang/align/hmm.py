"""Forward-backward of an HMM aligner with an empty word, over a block of sentence pairs at once.

A target word has a state for each source word, and for each source word an empty word that remembers it: a word
without a link keeps the position of the last link. One more state stands for "no link so far". After the last target
word the model moves to an end state. Probabilities are scaled to sum to 1 at each word, so single precision suffices.

Shapes: [J, S, I] = [target words, sentence pairs, source words]. The two states of a source word share what follows,
so only their sum `at` is kept. Step j for one pair of two source words, before it is scaled to sum to 1:

    links[j, i] = (sum over i' of at[i'] · jump(i' -> i)  +  none · start(i)) · emission[j, i]
    at[i]       = links[j, i] + at[i] · null[j]         the word is linked to i, or is empty and i stays the last link
    none        = none · null[j]                        still no link

    at = [.6, .2], none = .2, jump = [[.1, .7], [.4, .4]], start = [.4, .4], emission[j] = [.5, .1], null[j] = .02:
    links[j] = [(.06 + .08 + .08) · .5, (.42 + .08 + .08) · .1] = [.11, .058],  at = [.122, .062],  none = .004

Source: Vogel, Ney and Tillmann 1996; the empty word: Och and Ney 2003, §2.1.2.
"""

from __future__ import annotations

import numpy as np

from derivlang.align.blocks import mask
from derivlang.align.jumps import JumpCounts, Jumps
from derivlang.align.lexical import Floats
from derivlang.core.arrays import Int64

_NEVER = 1e-30  # probabilities below this count as 0


def posterior(
    emission: Floats, null: Floats, lengths: Int64, ends: Int64, model: Jumps, counts: JumpCounts | None = None
) -> tuple[Floats, Floats]:
    """Return (links [J, S, I]: p(word j is linked to i | pair), log likelihood float64[S]).

    emission [J, S, I]: p(target word j | source word i), 0 at padding; overwritten. null [J, S]: p(target word j | no
    word). lengths int64[S]: numbers of source words; ends int64[S]: numbers of target words. counts: receives the
    expected jumps. 1 less the sum of links[j, s] is p(no link).
    """
    n_steps, n_pairs, n = emission.shape
    dtype = emission.dtype.type
    inside = mask(lengths, n).astype(dtype)
    matrix, starts = model.matrix(n, emission.dtype), model.starts(lengths, n, emission.dtype)
    last, end = model.last(lengths, n, emission.dtype), model.end(lengths, n, emission.dtype)
    # [S, I]: 1 over the sum of the weights of everything that may follow
    inverse = dtype(1 - model.null) / (inside @ matrix.T + last + end)
    end *= inverse * inside
    end_unset = end.sum(1) / inside.sum(1)  # without any link: the mean over all source words
    rows, last_word = np.arange(n_pairs), lengths - 1
    starts *= dtype(1 - model.null)
    within = mask(ends, n_steps).T  # [J, S]
    null = null * dtype(model.null)
    if ragged := not within.all():  # padded words carry no information: every source word is equally likely
        padded = np.nonzero(~within)
        emission[padded] = inside[padded[1]]
        null[padded] = model.null

    links = np.empty_like(emission)  # forward probabilities of links, unscaled; then posteriors
    leaving = np.empty_like(emission)  # forward probabilities of each source word, linked or empty, times inverse
    scales, unset = np.empty_like(null), np.zeros_like(null)
    none = np.ones(n_pairs, dtype)  # p(no link yet)
    at, ahead = np.zeros((n_pairs, n), dtype), np.zeros((n_pairs, n), dtype)
    final, total = np.zeros((n_pairs, n), dtype), np.ones(n_pairs, dtype)  # forward probabilities at the end; their sum
    n_open = 0  # number of steps in which the state "no link so far" still has a probability above _NEVER
    for j in range(n_steps):
        if j:
            np.multiply(at, inverse, out=leaving[j - 1])
            np.matmul(leaving[j - 1], matrix, out=ahead)
            ahead[rows, last_word] += np.einsum("si,si->s", leaving[j - 1], last)
        # n_open == j: once the state "no link so far" has died out, it stays closed.
        if n_open == j and none.max() > _NEVER:
            unset[j] = none
            ahead += starts * none[:, None]
            n_open += 1
        np.multiply(ahead, emission[j], out=links[j])
        none = none * null[j]
        at *= null[j][:, None]
        at += links[j]
        scale = np.divide(1, at.sum(1) + none, out=scales[j])
        at *= scale[:, None]
        none *= scale
        if len(over := np.flatnonzero(ends == j + 1)):
            final[over] = at[over] * end[over]
            total[over] = final[over].sum(1) + none[over] * end_unset[over]

    arriving = emission  # reused in place: the backward probability of arriving at each source word
    beta = np.ones((n_pairs, n), dtype)
    back = ahead
    departures, firsts = np.zeros((n_pairs, n), dtype), np.zeros((n_pairs, n), dtype)
    for j in range(n_steps - 1, -1, -1):
        if len(over := np.flatnonzero(ends == j + 1)):
            beta[over] = end[over] / total[over, None]
        beta *= scales[j][:, None]
        # links[j] has not been scaled (only `at` was), so beta takes the scale of step j first: forward · backward =
        # posterior.
        links[j] *= beta
        # From here on the emission of step j is needed only together with what follows it.
        arriving[j] *= beta
        if counts is not None and j < n_open:
            firsts += arriving[j] * (unset[j] * within[j])[:, None]
        if not j:
            break
        beta *= null[j][:, None]
        np.matmul(arriving[j], matrix.T, out=back)
        back += last * arriving[j, rows, last_word][:, None]
        back *= inverse
        beta += back
        if counts is not None:
            back *= leaving[j - 1]
            if ragged:
                back *= within[j][:, None]
            departures += back
    if ragged:
        links[~within] = 0
        scales[~within] = 1
    if counts is not None:
        if ragged:
            arriving[~within] = 0
        # [i', i]: the sum over steps and pairs of leaving i' at j - 1 and arriving at i at j, as one product for the
        # whole block.
        expected = leaving[:-1].reshape(-1, n).T @ arriving[1:].reshape(-1, n)
        lasts = last * np.einsum("jsi,js->si", leaving[:-1], arriving[1:, rows, last_word])
        final /= total[:, None]
        departures += final * inverse
        counts.add_next(expected * matrix, lasts, final, departures / dtype(1 - model.null), lengths)
        counts.add_firsts(firsts * starts, lengths, model.first)
    return links, np.log(total, dtype=np.float64) - np.log(scales, dtype=np.float64).sum(0)
