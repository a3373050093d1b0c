"""Local: what pairs and neighbours of members add to the score of an order, for some families of one size."""

from __future__ import annotations

from dataclasses import dataclass, replace

import numpy as np
from numpy.typing import NDArray

from derivlang.core.arrays import Int64
from derivlang.grammar.weights import Float

_TIE = 1e-7  # score of a pair that keeps its surface order, under argmax


@dataclass(frozen=True, slots=True, eq=False)
class Local:
    """Scores of b families with d dependents each (in surface order) and a head; families are the last axis.

    left, right, across, next: [d, d, b]. before, after: [d, b], PRE with the head after and before the dependent.
    first, last: [d, b], next to BOS and EOS. to_head, from_head: [d, b], next to the head. bare: [2, b], BOS next
    to the head and the head next to EOS.
    """

    left: Float
    right: Float
    across: Float
    next: Float
    before: Float
    after: Float
    first: Float
    last: Float
    to_head: Float
    from_head: Float
    bare: Float

    @property
    def n_dependents(self) -> int:
        """d."""
        return len(self.before)

    def take(self, which: NDArray[np.intp] | list[int]) -> Local:
        """Return the scores of some of the families."""
        return Local(*(getattr(self, name)[..., which] for name in Local.__slots__))

    def with_ties_broken(self, heads: Int64) -> Local:
        """Return the scores plus a little for each pair in surface order, so that equal orders change nothing.

        heads: int64[b], position of the head among the members. Each pair gets a slightly different amount, so no two
        orders tie. With two dependents and the head between them (heads = 1):

            dependent 0 before 1    1e-7 · (1 + 1 / 4096)
            dependent 0 before the head    1e-7;    dependent 1 after the head    1e-7 · (1 + 1 / 5000)
        """
        d = self.n_dependents
        index = np.arange(d)
        pair = np.where(index[:, None] < index, _TIE * (1 + (index[:, None] * (d + 1) + index) / 4096), 0.0)[..., None]
        before = np.where(index[:, None] < heads, _TIE * (1 + index[:, None] / 5000), 0.0)
        after = np.where(index[:, None] >= heads, _TIE * (1 + index[:, None] / 5000), 0.0)
        return replace(
            self,
            left=self.left + pair,
            right=self.right + pair,
            across=self.across + pair,
            before=self.before + before,
            after=self.after + after,
        )
