"""sort: the words of each sentence by their frequency.

    One of the old ferries crossed the lake .   ->   the the of One old crossed lake ferries .

with the counts the 9, of 7, One 5, old 4, crossed 3, lake 3, ferries 2. Words with the same count keep their order, and
words without a count come last. `first=rare` begins with the rarest word, and then with words without a count. Final
punctuation stays last (`final=move`: it is sorted, too).

    sort                          the counts of the source's train split, or of its first one; lexicon.tsv keeps them
    sort:freq, sort:freq=asc      other spellings of sort and of sort:first=rare
    sort:counts.tsv               a file with a word and its count in each line (formats/dictionary.py)
    sort:dictionary.tsv           a dictionary that `derivlang dict` wrote: it holds the counts of the words of a split

Of the order of a sentence nothing is left but for words with the same count.
Source: Clark et al. 2023 (TACL 11, 1048–1065), SORT-FREQ and SORT-FREQ-REV.
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass
from hashlib import sha256
from pathlib import Path
from typing import Literal, Self

import numpy as np
import pyarrow as pa

from derivlang.core.arrays import Int64, expand_ranges
from derivlang.core.arrow import places_of, string_array, to_arrow
from derivlang.core.batch import Batch
from derivlang.core.errors import UsageError
from derivlang.core.keys import Draws, hash_types
from derivlang.core.order import Order
from derivlang.core.spec import Named, param
from derivlang.formats.dictionary import parse_counts, read_counts, write_counts
from derivlang.formats.places import once_per_version
from derivlang.transforms.base import Transform
from derivlang.transforms.fitting import needs_lexicon
from derivlang.transforms.word_order import Final, bodies_of, final_param

FREQ = "freq"  # the value of `counts` that names no file
_FIRST = {"asc": "rare", "desc": "frequent"}


@dataclass(frozen=True, kw_only=True)
class Sort(Transform):
    """Sort: the words of a sentence by frequency, the most frequent first."""

    name = "sort"
    fits_order = True

    counts: str = param(
        FREQ,
        "file of words and their counts; freq: counts of the source",
        positional=True,
        draws=False,
        file=Named(lambda: (FREQ,)),
    )
    first: Literal["frequent", "rare"] = param("frequent", "words to begin with; freq=asc is first=rare", draws=False)
    final: Final = final_param()

    def validate(self) -> None:
        """Raise DataError for a broken file, before any source is read."""
        if not self.needs_reference:
            _read(self.counts)

    @classmethod
    def from_values(cls, values: list[str], keyed: dict[str, str]) -> Self:
        """Return the transform of a parsed spec. `freq=asc` and `freq=desc` set `first`."""
        if FREQ not in keyed:
            return super().from_values(values, keyed)
        others = {key: value for key, value in keyed.items() if key != FREQ}
        if keyed[FREQ] not in _FIRST or "first" in others:
            raise UsageError(
                f"sort: freq={keyed[FREQ]!r} must be {' or '.join(_FIRST)}, without first", where="--t", id="bad-value"
            )
        return super().from_values([FREQ, *values], {**others, "first": _FIRST[keyed[FREQ]]})

    @property
    def needs_reference(self) -> bool:
        """Whether no file has the counts."""
        return self.counts == FREQ

    @property
    def resources(self) -> tuple[str, ...]:
        """The fingerprint of the counts of a file."""
        return () if self.needs_reference else (f"word counts {_read(self.counts)[2]}",)

    def fit(self, types: pa.Array, counts: Int64, draws: Draws) -> FittedSort:
        """Return the order by the counts of a vocabulary."""
        by = np.lexsort((hash_types(types), -counts))  # so lexicon.tsv does not depend on the order of the types
        return FittedSort(self, types.take(to_arrow(by)), counts[by])

    def load(self, state: str, draws: Draws) -> FittedSort:
        """Return the order by saved counts. Raise ValueError or DataError if they are damaged."""
        if not state.endswith("\n"):
            raise ValueError("its last row is cut off")
        return FittedSort(self, *_columns(parse_counts(state, "lexicon")))

    def order(self, batch: Batch, draws: Draws) -> Order:
        """Return the order by the counts of a file."""
        if self.needs_reference:
            raise needs_lexicon(self)
        return FittedSort(self, *_read(self.counts)[:2]).order(batch, draws)


@dataclass(frozen=True, eq=False)
class FittedSort:
    """A sort by the counts of a vocabulary: Arrow strings [T], int64[T]."""

    sort: Sort
    types: pa.Array
    counts: Int64

    def order(self, batch: Batch, draws: Draws) -> Order:
        """Return the order of a batch."""
        start, length, tails = bodies_of(self.sort, batch, "word", self.sort.final)
        count = np.append(self.counts, 0)[places_of(batch.types, self.types)]
        # Ranks of the types, equal for equal counts: the counts 9 7 0 7 have the ranks 0 1 2 1.
        rank = np.unique(count if self.sort.first == "rare" else -count, return_inverse=True)[1]
        words = expand_ranges(start, length)
        sentence = np.repeat(np.arange(len(length)), length)
        index = np.arange(batch.n_words, dtype=np.int32)
        by = np.argsort(sentence * (len(rank) + 1) + rank[batch.words[words]], kind="stable")
        index[words] = words[by]
        return Order(index, batch.sentences, tails, batch.n_words)

    def state(self) -> str:
        """Return the section of `lexicon.tsv`: word and count."""
        return write_counts(self.types.to_pylist(), self.counts.tolist())


def _columns(counts: Mapping[str, int]) -> tuple[pa.Array, Int64]:
    """Return the words and their counts."""
    return string_array(list(counts)), np.fromiter(counts.values(), np.int64)


@once_per_version
def _read(file: Path) -> tuple[pa.Array, Int64, str]:
    """Return the words of a file, their counts and the fingerprint of both."""
    counts = read_counts(file)
    fingerprint = sha256(repr(sorted(counts.items())).encode("utf-8", "surrogatepass")).hexdigest()
    return *_columns(counts), fingerprint
