"""IBM models 1 and 2 over a block: links are independent; their positions follow a prior around the diagonal.

    p(i | j, I, J) = (1 - null) exp(-tension d(i, j)) / its sum over i,    d = |(i + 1/2) / I - (j + 1/2) / J|

Source: Dyer, Chahuneau and Smith 2013, with two differences. `mirrored` measures the distance from the other diagonal,
where the links of an inverted language lie; the diagonal nearer to the links is used. The tension may fall to 0, which
makes all positions equally likely (IBM model 1, and permuted languages).

The HMM aligner: forward-backward, and the weights of jumps.

Forward-backward of an HMM aligner with an empty word, over a block of sentence pairs at once.

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

Jumps of an HMM aligner: from the source word of one target word to the source word of the next.

    from the source word i'  to i      weight  c(i - i') + [i = I - 1] last(i')
                             to the end        end(i')
    first source word i                weight  first(i)

Probabilities are weights over their sum. Jumps share weights in bins: one bin each up to 8 words, then wider and wider
bins, so that long jumps are not counted one by one. The positions `first`, `last` and `end` have bins too, one for each
pair of distances from the two ends of the source sentence: an inverted language begins near the end.

    bins of the jumps -2 -1 0 1 2 within three words:   [[0, 2, 4], [1, 0, 2], [3, 1, 0]]    rows from, columns to

`last` is a way to the last source word from anywhere. After a reordering the final mark is far from the word before it,
and no bin of jumps could single it out among all distant positions. Without `last` and `end`, final marks often stay
unlinked.

Source: Vogel, Ney and Tillmann 1996; bins and the normaliser by sentence length: Och and Ney 2003, §2.1.2; a jump to
the end: Östling and Tiedemann 2016. The weights are fitted in another way: the relative frequencies of Och and Ney are
not the maximum where the normaliser differs between sentences. Here c(d) = n(d) / sum over departures of
[d is possible] / normaliser, one minorise-maximise step: the likelihood never falls, and orders without any pattern
give equal weights.
"""

from __future__ import annotations

from dataclasses import dataclass, replace
from functools import lru_cache

import numpy as np

from derivlang.align.bitext import mask
from derivlang.align.lexical import Floats
from derivlang.core.arrays import Int64

_MOST = 30.0  # largest tension
_STEP = 4.0  # largest change of the tension in one step


@dataclass(frozen=True, slots=True)
class Diagonal:
    """tension: at least 0. mirrored: measure from the other diagonal. null: probability that a word has no link."""

    tension: float = 0.0
    mirrored: bool = False
    null: float = 0.2

    def prior(self, lengths: Int64, ends: Int64, shape: tuple[int, ...], dtype: np.dtype[np.floating]) -> Floats:
        """Return p(link to i) [J, S, I] for source lengths and target lengths [S]; 0 at padding of the source."""
        inside = mask(lengths, shape[2]).astype(dtype)
        if self.tension == 0:
            return np.broadcast_to(inside * ((1 - self.null) / lengths[:, None]).astype(dtype), shape)
        weights = distance(lengths, ends, shape, dtype, mirrored=self.mirrored)
        weights *= dtype.type(-self.tension)
        np.exp(weights, out=weights)
        weights *= inside
        weights *= (1 - self.null) / weights.sum(2, keepdims=True)
        return weights


def distance(
    lengths: Int64, ends: Int64, shape: tuple[int, ...], dtype: np.dtype[np.floating], *, mirrored: bool
) -> Floats:
    """Return the distance [J, S, I] of each cell from the diagonal.

    Two source and two target words: [[0, ½], [½, 0]], mirrored [[½, 0], [0, ½]].
    """
    source = ((np.arange(shape[2]) + 0.5) / lengths[:, None]).astype(dtype)
    # padded words are placed at the end of the sentence: further on, every weight would underflow
    target = np.minimum((np.arange(shape[0])[:, None] + 0.5) / ends, 1).astype(dtype)
    out = source - (1 - target if mirrored else target)[:, :, None]
    return np.asarray(np.abs(out, out=out))


class DiagonalCounts:
    """Expected distances of the links of some blocks, for one Newton step on the tension."""

    def __init__(self) -> None:
        self.links = self.near = self.mirror_near = self.expected = self.variance = 0.0

    def add(self, links: Floats, model: Diagonal, lengths: Int64, ends: Int64) -> None:
        """Add the posteriors of a block, links [J, S, I]."""
        prior = model.prior(lengths, ends, links.shape, links.dtype)
        straight = distance(lengths, ends, links.shape, links.dtype, mirrored=model.mirrored)
        mirrored = distance(lengths, ends, links.shape, links.dtype, mirrored=not model.mirrored)
        # The prior sums to 1 - null over i. Divided by it here, `mean` is the expected distance times the number of
        # links.
        linked = links.sum(2) / (1 - model.null)
        mean = np.einsum("jsi,jsi->js", prior, straight) * linked
        straight_squared = np.einsum("jsi,jsi,jsi->js", prior, straight, straight) * linked
        self.links += float(linked.sum()) * (1 - model.null)
        self.near += float(np.vdot(links, straight))
        self.mirror_near += float(np.vdot(links, mirrored))
        self.expected += float(mean.sum())
        self.variance += float((straight_squared - mean**2 / np.maximum(linked * (1 - model.null), 1e-9)).sum())

    def fit(self, old: Diagonal) -> Diagonal:
        """Return the model after one Newton step towards the tension that gives the expected distance of the links."""
        # With tension 0 both diagonals give the same prior, so the nearer one can be taken without loss.
        if old.tension == 0 and self.mirror_near < self.near:
            return replace(old, mirrored=not old.mirrored, tension=1.0)
        if self.variance <= 0:
            return old
        step = (self.expected - self.near) / self.variance
        return replace(old, tension=float(np.clip(old.tension + np.clip(step, -_STEP, _STEP), 0.0, _MOST)))


def diagonal_posterior(
    emission: Floats, null: Floats, lengths: Int64, ends: Int64, model: Diagonal
) -> tuple[Floats, Floats]:
    """Return (links [J, S, I], log likelihood float64[S]) under IBM 2; arguments as for `posterior`."""
    links = model.prior(lengths, ends, emission.shape, emission.dtype) * emission
    total = links.sum(2) + null * emission.dtype.type(model.null)
    over = np.arange(len(emission))[:, None] >= ends
    total[over] = 1
    links *= (1 / total)[:, :, None]
    links[over] = 0
    return links, np.log(total, dtype=np.float64).sum(0)


_EXACT = 8  # longest jump with a bin of its own, in words
_PLACES = 6  # bins of the distance from one end


def _widening(distance: Int64, exact: int) -> Int64:
    """Return the bins of distances >= 0: one each up to `exact`, then two an octave.

    exact=2: distances 0 1 2 3 4 5 6 -> bins 0 1 2 4 4 5 6.
    """
    far = np.maximum(distance, exact) / exact
    return np.where(distance <= exact, distance, exact + np.ceil(2 * np.log2(far)).astype(np.int64)).astype(np.int64)


@lru_cache(maxsize=256)
def jump_bins(n: int) -> Int64:
    """Return int64[n, n]: the bin of each jump, rows from, columns to. Bin 0: no jump; odd: back; even: ahead."""
    jump = np.arange(n)[None, :] - np.arange(n)[:, None]
    return np.where(jump < 0, 2 * _widening(-jump, _EXACT) - 1, 2 * _widening(jump, _EXACT))


def place_bins(lengths: Int64, n: int) -> Int64:
    """Return int64[S, n]: the bin of each position in sentences of these lengths.

    Length 2: bins [0 · 6 + 1, 1 · 6 + 0], by the distances (0, 1) and (1, 0) from both ends.
    """
    front = np.broadcast_to(np.arange(n), (len(lengths), n))
    back = np.maximum(lengths[:, None] - 1 - front, 0)
    return np.minimum(_widening(front, 2), _PLACES - 1) * _PLACES + np.minimum(_widening(back, 2), _PLACES - 1)


N_JUMPS = 2 * int(_widening(np.array([1 << 20]), _EXACT)[0]) + 2
N_PLACES = _PLACES * _PLACES
LAST, END = N_JUMPS, N_JUMPS + N_PLACES  # offsets of their weights in `next`, after the weights of jumps
N_NEXT = N_JUMPS + 2 * N_PLACES


@dataclass(frozen=True, slots=True)
class Jumps:
    """Weights above 0. next float64[N_NEXT]: of jumps, the last word and the end; first float64[N_PLACES].

    null: probability that a word has no link.
    """

    next: Floats
    first: Floats
    null: float = 0.2

    def starts(self, lengths: Int64, n: int, dtype: np.dtype[np.floating]) -> Floats:
        """Return the probabilities [S, n] of the first linked source word, 0 beyond the sentence."""
        weights = self.first[place_bins(lengths, n)] * mask(lengths, n)
        return np.asarray(weights / weights.sum(1, keepdims=True), dtype)


def uniform(null: float) -> Jumps:
    """Return jumps that are all equally likely."""
    return Jumps(np.ones(N_NEXT), np.ones(N_PLACES), null)


class JumpCounts:
    """Expected jumps, added up block by block."""

    def __init__(self) -> None:
        self.next, self.chances = np.zeros(N_NEXT), np.zeros(N_NEXT)
        self.firsts, self.first_chances = np.zeros(N_PLACES), np.zeros(N_PLACES)

    def add_next(self, jumps: Floats, lasts: Floats, ends: Floats, departures: Floats, lengths: Int64) -> None:
        """Add expected counts: jumps [I, I], from and to; lasts and ends [S, I], ways to the last word and to the end.

        departures [S, I]: everything that leaves a source word, over its normaliser.
        """
        n = len(jumps)
        departures = departures.astype(np.float64)
        # possible[i', i]: departures from i' in the sentences that have a word i.
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
        """Add expected first links [S, I]. weights: `first` of the model that gave them."""
        n = expected.shape[1]
        bins, inside = place_bins(lengths, n), mask(lengths, n)
        norm = (weights[bins] * inside).sum(1)
        possible = inside * (expected.sum(1) / norm)[:, None]
        self.firsts += np.bincount(bins.ravel(), expected.ravel().astype(np.float64), N_PLACES)
        self.first_chances += np.bincount(bins.ravel(), possible.ravel(), N_PLACES)

    def fit(self, old: Jumps, prior: float) -> Jumps:
        """Return the jumps of the next iteration. prior: counts added to each bin, as under equal weights."""
        return Jumps(
            _fit(self.next, self.chances, old.next, prior),
            _fit(self.firsts, self.first_chances, old.first, prior),
            old.null,
        )


def _fit(counts: Floats, chances: Floats, old: Floats, prior: float) -> Floats:
    """Return weights of mean 1 over the possible bins; bins that no sentence can use get weight 1."""
    seen = chances > 0
    if not seen.any() or counts.sum() <= 0:
        return old
    scale = counts.sum() / chances.sum()  # the weight of every bin if all were equal
    weights = np.full(len(counts), scale)
    # The prior adds counts and chances in the ratio of equal weights, so that it draws a weight towards `scale`.
    weights[seen] = (counts[seen] + prior) / (chances[seen] + prior / scale)
    floor = 1e-6 * scale  # unseen jumps stay possible
    return np.asarray(np.maximum(weights, floor) / scale)


_NEVER = 1e-30  # probabilities below this count as 0


def posterior(
    emission: Floats, null: Floats, lengths: Int64, ends: Int64, model: Jumps, counts: JumpCounts
) -> tuple[Floats, Floats]:
    """Return (links [J, S, I]: p(word j is linked to i | pair), log likelihood float64[S]).

    emission [J, S, I]: p(target word j | source word i), 0 at padding; overwritten. null [J, S]: p(target word j | no
    word). lengths int64[S]: numbers of source words; ends int64[S]: numbers of target words. counts: receives the
    expected jumps. 1 less the sum of links[j, s] is p(no link).
    """
    n_steps, n_pairs, n = emission.shape
    dtype = emission.dtype.type
    inside = mask(lengths, n).astype(dtype)
    places, starts = place_bins(lengths, n), model.starts(lengths, n, emission.dtype)
    # Weights of the jumps [I, I], and of the way to the last word and to the end from each source word, [S, I].
    matrix, last, end = (model.next[bins].astype(dtype) for bins in (jump_bins(n), LAST + places, END + places))
    # [S, I]: 1 over the sum of the weights of everything that may follow
    inverse = dtype(1 - model.null) / (inside @ matrix.T + last + end)
    end *= inverse * inside
    end_unset = end.sum(1) / inside.sum(1)  # without any link: the mean over all source words
    rows, last_word = np.arange(n_pairs), lengths - 1
    starts *= dtype(1 - model.null)
    within = mask(ends, n_steps).T  # [J, S]
    null = null * dtype(model.null)
    padded = np.nonzero(~within)  # padded words carry no information: every source word is equally likely
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
        over = np.flatnonzero(ends == j + 1)
        final[over] = at[over] * end[over]
        total[over] = final[over].sum(1) + none[over] * end_unset[over]

    arriving = emission  # reused in place: the backward probability of arriving at each source word
    beta = np.ones((n_pairs, n), dtype)
    back = ahead
    departures, firsts = np.zeros((n_pairs, n), dtype), np.zeros((n_pairs, n), dtype)
    for j in range(n_steps - 1, -1, -1):
        over = np.flatnonzero(ends == j + 1)
        beta[over] = end[over] / total[over, None]
        beta *= scales[j][:, None]
        # links[j] has not been scaled (only `at` was), so beta takes the scale of step j first: forward · backward =
        # posterior.
        links[j] *= beta
        # From here on the emission of step j is needed only together with what follows it.
        arriving[j] *= beta
        if j < n_open:
            firsts += arriving[j] * (unset[j] * within[j])[:, None]
        if not j:
            break
        beta *= null[j][:, None]
        np.matmul(arriving[j], matrix.T, out=back)
        back += last * arriving[j, rows, last_word][:, None]
        back *= inverse
        beta += back
        back *= leaving[j - 1]
        back *= within[j][:, None]
        departures += back
    links[padded] = 0
    scales[padded] = 1
    arriving[padded] = 0
    # [i', i]: the sum over steps and pairs of leaving i' at j - 1 and arriving at i at j, as one product for the
    # whole block.
    expected = leaving[:-1].reshape(-1, n).T @ arriving[1:].reshape(-1, n)
    lasts = last * np.einsum("jsi,js->si", leaving[:-1], arriving[1:, rows, last_word])
    final /= total[:, None]
    departures += final * inverse
    counts.add_next(expected * matrix, lasts, final, departures / dtype(1 - model.null), lengths)
    counts.add_firsts(firsts * starts, lengths, model.first)
    return links, np.log(total, dtype=np.float64) - np.log(scales, dtype=np.float64).sum(0)
