"""The base classes of streams: a declaration, and the rows that it opens.

Stream ──open(Prepared)──▶ RowSource ──rows(numbers)──▶ SubwordRows ──Objective.mask──▶ SubwordRows
"""

from __future__ import annotations

from abc import ABC, abstractmethod
from collections.abc import Collection, Mapping, Set
from dataclasses import dataclass
from fractions import Fraction
from typing import Any, ClassVar

from derivlang.core.arrays import Int64, Ints
from derivlang.core.errors import UsageError
from derivlang.training.batch import SubwordRows
from derivlang.training.masking import Keys
from derivlang.training.prepare import Prepared
from derivlang.training.row_order import row_numbers
from derivlang.training.settings import CHOSEN, TrainingSettings

GOLD, ALIGNERS = "gold", ("hmm", "eflomal")  # kinds of links


class RowSource(ABC):
    """The rows of a stream, numbered from 0.

    n: number of rows in an epoch. length: maximum number of sub-words in a row. mean_subwords: average number of
    sub-words in a row, without padding.
    """

    n: int
    length: int
    mean_subwords: float

    def numbers(self, name: str, seed: int, steps: range, begin: int, offsets: Int64) -> Int64:
        """Return the numbers of the rows of some steps.

        name: of the stream. begin: number of rows before these steps. offsets: int64[n + 1], where each step begins.
        """
        return row_numbers(name, seed, self.n, begin, begin + int(offsets[-1]))

    @abstractmethod
    def rows(self, numbers: Ints, keys: Keys) -> SubwordRows:
        """Return the rows of these numbers [B]. keys: of the rows, for draws that differ between steps."""

    def facts(self) -> dict[str, Any]:
        """Return what run.json and the report say of the stream; {} for nothing beyond its size."""
        return {}


@dataclass(frozen=True, kw_only=True)
class Stream(ABC):
    """One kind of rows in a step.

    name: by which a loss finds its batch. of_one_language: whether each row is in one language, so that the rows of one
    language are enough (--languages). pair_kinds: the kinds of its rows that are sentence pairs. share: of the step's
    positions, compared with `batch_size` rows of `seq_len` sub-words. reset: whether positions begin again within its
    rows. views: number of times that the rows are masked, each time by other draws; the second view is the batch
    `NAME:2`. masked: False for rows without masks.
    """

    name: ClassVar[str]
    of_one_language: ClassVar[bool] = False
    pair_kinds: ClassVar[Set[str]] = frozenset()
    share: float = 1.0
    reset: bool = False
    views: int = 1
    masked: bool = True

    def reads(self, files: Collection[str]) -> Set[str]:
        """Return which settings of CHOSEN it reads: all, unless a stream says otherwise.

        files: which of "dictionary" and "pairs" are given as files, and not made.
        """
        return CHOSEN.keys()

    def reads_text(self, files: Collection[str]) -> bool:
        """Return whether its rows are of the corpus: they are, unless a stream says otherwise. files: as of `reads`."""
        return True

    def keeps_apart(self, files: Collection[str]) -> bool:
        """Return whether its rows of a language are only of that language's text, as --halves and --derived-source ask.

        files: as of `reads`.
        """
        return not self.reads_text(files)

    def length(self, settings: TrainingSettings) -> int:
        """Return the number of sub-words in a row."""
        return settings.seq_len

    def piece_lengths(self, settings: TrainingSettings) -> Set[int]:
        """Return the row lengths for which the corpus is encoded; none if the stream does not read the corpus."""
        return {self.length(settings)}

    def n_rows(self, settings: TrainingSettings) -> int | Fraction:
        """Return the number of rows in a step, which may be one on average. Raise UsageError if it is below 1.

        share 0.3, 16 rows of 32 sub-words, rows of pairs of 64: 2.4 rows per step, that is 2, 2, 3, 2, 3 …
        """
        positions, length = settings.batch_size * settings.seq_len, self.length(settings)
        n_rows = Fraction(self.share).limit_denominator(10**6) * positions / length
        if n_rows < 1:
            least = -(-length * 10_000 // positions) / 10_000  # rounded up, so that the user can give it
            raise UsageError(
                f"a share of {self.share:g} of a step's {positions:,} sub-words is less than a row of {length} in the "
                f"stream {self.name!r}",
                where="--objective",
                fix=f"give a share of {least:g} or more, shorter rows (--pair-length) or a higher --batch-size",
                id="bad-value",
            )
        return int(n_rows) if n_rows.denominator == 1 else n_rows

    @abstractmethod
    def open(self, prepared: Prepared) -> RowSource:
        """Return the rows. Raise DerivlangError if something is missing."""

    def kinds(self, rows: SubwordRows) -> Mapping[str, Any]:
        """Return which of some rows, as bool[B] or a slice of all, are counted under which name.

        By default all are counted under the stream's name. The rows may be of several steps.
        """
        return {self.name: slice(None)}

    def names(self) -> tuple[str, ...]:
        """Return the names of the stream's batches, one for each view."""
        return (self.name, *(f"{self.name}:{view}" for view in range(2, self.views + 1)))
