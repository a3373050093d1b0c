"""Local: what pairs and neighbours of members add to the score of an order, for some families of one size."""

from __future__ import annotations

from dataclasses import dataclass

from derivlang.grammar.weights import Float


@dataclass(frozen=True, slots=True, eq=False)
class Local:
    """Scores of b families with d dependents each (in surface order) and a head, families on the last axis.

    left, right, across, next: [d, d, b]. before, after: [d, b], PRE with the head after and before it.
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
        return len(self.before)
