"""echo: rows of one word twice, drawn among `words`."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import ClassVar

import numpy as np
import pyarrow as pa

from derivlang.core.arrays import Int64
from derivlang.core.arrow import string_array
from derivlang.core.keys import Draws, uniform
from derivlang.core.spec import param
from derivlang.sources.generated.base import Generator, Made, rows_of, rows_param, seed_param, word_lists


@dataclass(frozen=True, kw_only=True)
class Echo(Generator):
    """One word, said twice."""

    name: ClassVar[str] = "echo"

    words: int = param(5, "number of words to draw from", positional=True, low=1)
    n: int = rows_param()
    seed: int = seed_param()

    def opened(self, folders: Sequence[Path]) -> Made:
        return self.made(self.columns, rows_of(self.n), words=2)

    def columns(self, draws: Draws, split: str, rows: Int64) -> dict[str, pa.Array]:
        first = np.zeros_like(rows)
        drawn = uniform(draws.draw(rows.astype(np.uint64), first), first + self.words)
        names = string_array(f"e{number}" for number in range(self.words))
        return {"tokens": word_lists(2 * np.arange(len(rows) + 1), np.repeat(drawn, 2), names)}
