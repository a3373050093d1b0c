"""flip: neighbours change places with a probability.

From left to right a word is held. With probability p the next word goes before it; otherwise the held word is written,
and the next one is held. So a word may be carried over several others:

    flip:0.5    one two three four five six .   ->   one three four five six two .

Here `two` was carried over four words.

Source: Clouatre et al. 2022 (arXiv 2107.13955), neighbour flip; their ρ is p.
"""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np

from derivlang.core.arrays import Int32, Int64, expand_ranges
from derivlang.core.batch import Batch
from derivlang.core.keys import Draws, fractions
from derivlang.core.spec import param
from derivlang.transforms.base import Dial
from derivlang.transforms.bodies import BodyTransform, Final, Unit, final_param, unit_param


@dataclass(frozen=True, kw_only=True)
class Flip(BodyTransform):
    """Flip: each word changes places with the next one with a probability."""

    name = "flip"
    dial = Dial("p", near=0.0, far=0.5)
    p: float = param(
        0.5, "probability that a word goes before the one that is held", positional=True, draws=False, low=0, high=1
    )
    final: Final = final_param()
    unit: Unit = unit_param()
    seed: int = param(1, "seed of the draws: each seed gives another language", low=0)

    def permute(self, index: Int32, batch: Batch, draws: Draws, start: Int64, length: Int64) -> None:
        """Write the new order; see `BodyTransform.permute`."""
        words = expand_ranges(start, length)
        place = words - np.repeat(start, length)
        goes_before = fractions(draws.draw(np.repeat(batch.keys, length), place)) < self.p
        # A held word and those that went before it are a run, which begins where a word does not go before another
        # one: "one two three | four five". A run is written from its second word on, its first word last.
        begins = np.flatnonzero((place == 0) | ~goes_before)
        sizes = np.diff(np.append(begins, len(words)))
        moved = np.empty(len(words), np.int32)
        moved[:-1] = words[1:]
        moved[begins + sizes - 1] = words[begins]
        index[words] = moved
