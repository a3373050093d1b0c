"""zipf: rows of independent words; word r of V has a probability in proportion to r^-a, Zipf's law.

    source:zipf=500:a=1     w1 w7 w2 w1 …     with w1 twice as frequent as w2

a=0 is the uniform distribution. `length` is the mean number of words: of a geometric distribution from 1 on, or all
rows have it (`lengths=fixed`). Papadimitriou and Jurafsky (2020; 2023) train on such text, in rows of 512 words.
"""

from __future__ import annotations

from dataclasses import dataclass
from functools import cache
from typing import ClassVar, Literal

import numpy as np
import pyarrow as pa

from derivlang.core.arrays import Float64, Int64, offsets_of, positions
from derivlang.core.arrow import string_array
from derivlang.core.keys import Draws, fractions
from derivlang.core.spec import param
from derivlang.sources.generated.base import RowGenerator, numbered, rows_param, seed_param, word_lists

CITATION = (
    "Papadimitriou, Jurafsky (2020): Learning Music Helps You Read. EMNLP 2020; "
    "Papadimitriou, Jurafsky (2023): Injecting structural hints. Findings of EMNLP 2023."
)
MOST_WORDS = 1_000_000  # of a vocabulary: a tenth of a second to draw it up


@dataclass(frozen=True, kw_only=True)
class Zipf(RowGenerator):
    """Independent words of a Zipf or uniform vocabulary."""

    name: ClassVar[str] = "zipf"
    citation: ClassVar[str] = CITATION

    words: int = param(50_000, "words of the vocabulary", positional=True, low=1, high=MOST_WORDS)
    a: float = param(1.0, "exponent of the word frequencies; 0: all words are equally frequent", low=0)
    length: int = param(20, "mean words of a row", low=1, high=1_000_000)
    lengths: Literal["geometric", "fixed"] = param("geometric", "distribution of the words of a row")
    n: int = rows_param()
    seed: int = seed_param()

    def columns(self, draws: Draws, split: str, rows: Int64) -> dict[str, pa.Array]:
        """Return the words of some rows. Draw 0 of a row is its length, draw i + 1 its word i."""
        lengths = np.full(len(rows), self.length, np.int64)
        if self.lengths == "geometric" and self.length > 1:
            drawn = fractions(draws.draw(rows.astype(np.uint64), np.zeros_like(rows)))
            lengths = 1 + np.floor(np.log1p(-drawn) / np.log1p(-1 / self.length)).astype(np.int64)
        offsets = offsets_of(lengths)
        drawn = fractions(numbered(draws, rows, lengths, positions(offsets) + 1))
        return {"tokens": word_lists(offsets, choose(frequencies(self.words, self.a), drawn), _names(self.words))}


@cache
def frequencies(n: int, a: float) -> Float64:
    """Return float64[n]: the probability that a word has a rank up to 1 … n under Zipf's law."""
    return np.cumsum(np.arange(1, n + 1, dtype=np.float64) ** -a)


def choose(cumulated: Float64, drawn: Float64) -> Int64:
    """Return int64[m]: the word of each draw from 0 to below 1. cumulated: running sums of weights, float64[n]."""
    found = np.searchsorted(cumulated, drawn * cumulated[-1], side="right")
    return np.asarray(np.minimum(found, len(cumulated) - 1))  # a product may be rounded up to the sum


@cache
def _names(n: int) -> pa.Array:
    return string_array(f"w{rank}" for rank in range(1, n + 1))
