"""The layout of a batch: sentences packed step by step, without padding, as in torch's packed sequences.

Sentences are sorted by length, the longest first. Step t has a row for word t of each sentence that is longer than t.
For sentences a, b and c of 3, 2 and 1 words:

    step 0  a0 b0 c0      rows 0, 1, 2
    step 1  a1 b1         rows 3, 4
    step 2  a2            row 5

A backward layer takes the steps in the opposite order. So a sentence joins at the step of its last word, where its
state is still zero.
"""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np

from derivlang.core.arrays import Bool, Int64, offsets_of


@dataclass(frozen=True, slots=True, eq=False)
class PackedSentences:
    """The layout of B sentences, the longest first, with N words in all and L words in the longest.

    For sentences of 3, 2 and 1 words:

        lengths   int64[B]        [3, 2, 1]
        active    int64[L]        [3, 2, 1]                             number of sentences longer than each step
        starts    int64[L + 1]    [0, 3, 5, 6]                          the first row of each step
        row       int64[B, L]     [[0, 3, 5], [1, 4, 0], [2, 0, 0]]     the row of each word; 0 past the end
        inside    bool[B, L]      [[1, 1, 1], [1, 1, 0], [1, 0, 0]]     whether there is a word
    """

    lengths: Int64
    active: Int64
    starts: Int64
    row: Int64
    inside: Bool

    @classmethod
    def of(cls, lengths: Int64) -> PackedSentences:
        """Return the layout of sentences of these lengths, int64[B], at least 1 and in falling order."""
        longest = int(lengths[0])
        steps = np.arange(longest)
        # searchsorted needs rising numbers: lengths [3, 2, 1] read as [1, 2, 3] have 0, 1, 2 not above the steps 0, 1,
        # 2.
        active = len(lengths) - np.searchsorted(lengths[::-1], steps, "right")
        starts = offsets_of(active)
        inside = steps[None, :] < lengths[:, None]
        row = np.where(inside, starts[None, :-1] + np.arange(len(lengths))[:, None], 0)
        return cls(lengths, active, starts, row, inside)
