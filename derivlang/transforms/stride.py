"""stride: every k-th word, from each of the first k words on.

    stride:2     one two three four five .   ->   one three five two four .

Here these are the even places, then the odd ones.

`final=move` orders the final punctuation as any word, as in the published rows.
Source: Kallini et al. 2024 (arXiv 2401.06416), table 1, `shuffle_even_odd`.
"""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np

from derivlang.core.arrays import Int32, Int64, expand_ranges
from derivlang.core.batch import Batch
from derivlang.core.keys import Draws
from derivlang.core.spec import param
from derivlang.transforms.bodies import BodyTransform, Final, Unit, final_param, unit_param


@dataclass(frozen=True, kw_only=True)
class Stride(BodyTransform):
    """Stride: the words at even places, then those at odd places; or every k-th word."""

    name = "stride"
    k: int = param(2, "distance of two words that become neighbours", positional=True, low=1, high=2**31 - 1)
    final: Final = final_param()
    unit: Unit = unit_param()

    def permute(self, index: Int32, batch: Batch, draws: Draws, start: Int64, length: Int64) -> None:
        """Write the new order; see `BodyTransform.permute`."""
        # Words with the same remainder form a run. 7 words, k = 3: the runs 0 3 6 | 1 4 | 2 5 have 3 2 2 words.
        runs = np.minimum(length, self.k)
        rest = expand_ranges(np.zeros_like(runs), runs)
        sizes = (np.repeat(length, runs) - rest + self.k - 1) // self.k
        index[expand_ranges(start, length)] = np.repeat(np.repeat(start, runs) + rest, sizes) + self.k * expand_ranges(
            np.zeros_like(sizes), sizes
        )
