"""The places of IBM model 2 by a log-linear prior about the diagonal (Dyer, Chahuneau, Smith 2013).

    p(i | j, I, J) = (1 - null) exp(-tension |(i + 1/2) / I - (j + 1/2) / J|) / its sum over i

Differs in two things. `mirrored` measures from the other diagonal, which is where the links of an inverted
language lie; whichever diagonal lies nearer to the links is taken. The tension may fall to 0, where every place is
alike (a permuted language).
"""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np

from derivlang.align.jumps import Floats
from derivlang.core.arrays import Int64

MOST = 30.0


@dataclass(frozen=True, slots=True)
class Diagonal:
    tension: float = 0.0
    mirrored: bool = False
    null: float = 0.2

    def prior(self, n_steps: int, n: int, lengths: Int64, ends: Int64, dtype: type) -> Floats:
        """[J, S, I]: p(link to i), 0 at padding; sums to 1 - null."""
        weights = np.exp(distance(n_steps, n, lengths, ends, dtype, mirrored=self.mirrored) * dtype(-self.tension))
        weights *= (np.arange(n) < lengths[:, None]).astype(dtype)
        weights *= dtype(1 - self.null) / weights.sum(2, keepdims=True)
        return weights


def distance(n_steps: int, n: int, lengths: Int64, ends: Int64, dtype: type, *, mirrored: bool) -> Floats:
    """[J, S, I]: how far each cell lies from the diagonal, 0 to 1."""
    source = ((np.arange(n) + 0.5) / lengths[:, None]).astype(dtype)
    target = ((np.arange(n_steps)[:, None] + 0.5) / ends).astype(dtype)
    if mirrored:
        target = 1 - target
    out = source - target[:, :, None]
    return np.abs(out, out=out)
