"""exchange: two places of each sentence exchange their words.

    exchange:0-3    one two three four five .   ->   four two three one five .

Places count from 0, in the words before the final punctuation. A sentence that lacks one of the places stays as it is.
Source: Ziv et al. 2026 (arXiv 2510.07178), `switch-indices`, which also repairs capitals; here words stay as they are.
"""

from __future__ import annotations

import re
from dataclasses import dataclass

from derivlang.core.arrays import Int32, Int64
from derivlang.core.batch import Batch
from derivlang.core.errors import UsageError
from derivlang.core.keys import Draws
from derivlang.core.spec import param
from derivlang.transforms.bodies import BodyTransform, Final, Unit, final_param, unit_param


@dataclass(frozen=True, kw_only=True)
class ExchangePlaces(BodyTransform):
    """Exchange: two places of each sentence exchange their words."""

    name = "exchange"
    places: str = param("0-3", "two different places, from 0", positional=True, file=False)
    final: Final = final_param()
    unit: Unit = unit_param()

    def validate(self) -> None:
        """Raise UsageError unless two different places are given."""
        one, other = self._pair()
        if one == other:
            raise UsageError(f"exchange: places={self.places!r} must name two different places", id="bad-value")

    def _pair(self) -> tuple[int, int]:
        """Return the two places, the smaller one first."""
        found = re.fullmatch(r"(\d{1,9})-(\d{1,9})", self.places, re.ASCII)
        if found is None:
            raise UsageError(
                f"exchange: places={self.places!r} must be two whole numbers with a hyphen between them, as 0-3",
                id="bad-value",
            )
        one, other = sorted(map(int, found.groups()))
        return one, other

    def permute(self, index: Int32, batch: Batch, draws: Draws, start: Int64, length: Int64) -> None:
        """Write the new order; see `BodyTransform.permute`."""
        one, other = self._pair()
        first = start[length > other]
        index[first + one], index[first + other] = first + other, first + one
