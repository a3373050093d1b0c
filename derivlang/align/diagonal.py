"""IBM models 1 and 2 over a block: links are independent; their positions follow a prior around the diagonal.

    p(i | j, I, J) = (1 - null) exp(-tension d(i, j)) / its sum over i,    d = |(i + 1/2) / I - (j + 1/2) / J|

Source: Dyer, Chahuneau and Smith 2013, with two differences. `mirrored` measures the distance from the other diagonal,
where the links of an inverted language lie; the diagonal nearer to the links is used. The tension may fall to 0, which
makes all positions equally likely (IBM model 1, and permuted languages).
"""

from __future__ import annotations

from dataclasses import dataclass, replace

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


def posterior(emission: Floats, null: Floats, lengths: Int64, ends: Int64, model: Diagonal) -> tuple[Floats, Floats]:
    """Return (links [J, S, I], log likelihood float64[S]) under IBM 2; arguments as for `hmm.posterior`."""
    links = model.prior(lengths, ends, emission.shape, emission.dtype) * emission
    total = links.sum(2) + null * emission.dtype.type(model.null)
    over = np.arange(len(emission))[:, None] >= ends
    total[over] = 1
    links *= (1 / total)[:, :, None]
    links[over] = 0
    return links, np.log(total, dtype=np.float64).sum(0)
