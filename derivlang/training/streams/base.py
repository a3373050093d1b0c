"""The base classes of streams: a declaration, the rows that it opens, and what it opens them from.

Stream ──open(StreamInputs)──▶ RowSource ──rows(numbers)──▶ SubwordRows ──Objective.mask──▶ SubwordRows
"""

from __future__ import annotations

from abc import ABC, abstractmethod
from collections.abc import Collection, Mapping, Sequence, Set
from dataclasses import dataclass
from fractions import Fraction
from pathlib import Path
from typing import Any, ClassVar

from derivlang.core.arrays import Int64, Ints
from derivlang.core.errors import UsageError
from derivlang.training.batch import SubwordRows
from derivlang.training.data import Data
from derivlang.training.data_folder import Make
from derivlang.training.language import by_text, named_pairs, only_file
from derivlang.training.languages import DERIVED, SOURCE, Languages
from derivlang.training.masking import Keys
from derivlang.training.row_order import row_numbers
from derivlang.training.settings import CHOSEN, TrainingSettings

GOLD, ALIGNERS = "gold", ("hmm", "eflomal")  # kinds of links


@dataclass(frozen=True, slots=True, eq=False)
class StreamInputs:
    """What streams are opened from.

    encoded: the texts in pieces for rows of a length. pairs: where sentence pairs come from. dictionary:
    `Translations`, for an objective that reads one. make: makes a folder of data, as `Prepared.made`.
    """

    settings: TrainingSettings
    languages: Languages
    encoded: Mapping[int, tuple[Data, ...]]
    pairs: tuple[PairedLanguages, ...] = ()
    dictionary: Any = None
    make: Make | None = None

    def text(self, length: int, language: int) -> Data:
        """Return the text of a language, in pieces for rows of a length."""
        return next(data for data, numbers in self.texts(length) if language in numbers)

    def texts(self, length: int) -> list[tuple[Data, tuple[int, ...]]]:
        """Return the texts in pieces for rows of a length, and the languages that read them."""
        return list(zip(self.encoded.get(length, ()), by_text(self.settings.asked), strict=False))

    @property
    def has_pair_file(self) -> bool:
        return any(pair.path is not None for pair in self.pairs)


@dataclass(frozen=True, slots=True)
class PairedLanguages:
    """Sentence pairs of two languages of a run, by number. path: of a file; None: of the text that both have."""

    left: int
    right: int
    path: Path | None = None

    @property
    def sides(self) -> tuple[int, int]:
        return self.left, self.right


def paired_languages(settings: TrainingSettings, files: Sequence[Path]) -> tuple[PairedLanguages, ...]:
    """Return where sentence pairs come from: of each text its first language with the others, or of files.

    files: of --pairs; with --language each has its languages, en-fr=FILE. Raise UsageError for others.
    """
    asked = settings.asked
    if files and not settings.language:
        return (PairedLanguages(SOURCE, DERIVED, only_file(files, "--pairs")),)
    found = {
        (numbers[0], other): PairedLanguages(numbers[0], other) for numbers in by_text(asked) for other in numbers[1:]
    }
    for (left, right), path in named_pairs(files, asked, "--pairs").items():
        found.pop((right, left), None)
        found[left, right] = PairedLanguages(left, right, path)
    return tuple(found.values())


def are_of_files(settings: TrainingSettings, files: Sequence[Path]) -> bool:
    """Return whether all sentence pairs are of files, so that a stream of pairs reads no text. files: of --pairs."""
    return bool(files) and all(pairs.path is not None for pairs in paired_languages(settings, files))


class RowSource(ABC):
    """The rows of a stream, numbered from 0.

    n: number of rows in an epoch. length: maximum number of sub-words in a row. mean_subwords: average number of
    sub-words in a row, without padding.
    """

    n: int
    length: int
    mean_subwords: float

    def numbers(self, name: str, seed: int, step: int, begin: int, end: int) -> Int64:
        """Return the numbers of the rows of a step.

        name: of the stream. begin, end: number of rows before the step, and before the next one.
        """
        return row_numbers(name, seed, self.n, begin, end)

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
        return CHOSEN

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
    def open(self, material: StreamInputs) -> RowSource:
        """Return the rows. Raise DerivlangError if something is missing."""

    def kinds(self, rows: SubwordRows) -> Mapping[str, Any]:
        """Return which of some rows, as bool[B] or a slice of all, are counted under which name.

        By default all are counted under the stream's name.
        """
        return {self.name: slice(None)}

    def names(self) -> tuple[str, ...]:
        """Return the names of the stream's batches, one for each view."""
        return (self.name, *(f"{self.name}:{view}" for view in range(2, self.views + 1)))
