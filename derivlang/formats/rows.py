"""What every reader of labelled files yields: some rows, and where in the file they stand.

A reader is a function `read(path, *, encoding="utf-8", limit=None) -> Iterator[Rows]`; the columns of
its tables are the columns of the source set as its users know them (`tokens`, `ner_tags`, `premise` …).
"""

from __future__ import annotations

from dataclasses import dataclass
from pathlib import Path

import numpy as np
import pyarrow as pa

ROWS_PER_TABLE = 4096  # some 100,000 words of labelled text: large enough for numpy, small in memory


@dataclass(frozen=True, slots=True)
class Rows:
    """Consecutive rows of one file.

    table: R rows. lines: int64[R], the 1-based line at which a row starts (0 where a format has no lines).
    documents: int64[R], counted from 0 in the file. word_lines: list<int32> of R rows, the line of each
    word, where a word has a line of its own.
    """

    path: Path
    table: pa.Table
    lines: np.ndarray
    documents: np.ndarray
    word_lines: pa.ListArray | None = None

    def where(self, row: int, word: int | None = None) -> str:
        """`file:line` of a row, or of one of its words (0-based)."""
        if word is not None and self.word_lines is not None:
            return f"{self.path}:{self.word_lines[row][word].as_py()}"
        if self.lines[row] > 0:
            return f"{self.path}:{self.lines[row]}"
        return f"{self.path}: row {row}"
