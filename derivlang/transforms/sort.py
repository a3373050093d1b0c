"""sort: the words of each sentence by their frequency in a list of counts.

    One of the old ferries crossed the lake .   ->   the the of One old crossed lake ferries .

with the counts the 9, of 7, One 5, old 4, crossed 3, lake 3, ferries 2. Words with the same count keep their order, and
words that the list lacks count as 0. `first=rare` begins with the rarest word. Final punctuation stays last
(`final=move`: it is sorted, too).

    sort:counts.tsv               a file with a word and its count in each line (formats/word_counts.py)
    sort:dictionary.tsv           a dictionary that `derivlang dict` wrote: it holds the counts of the words of a split

Of the order of a sentence nothing is left but for words with the same count.
Source: Clark et al. 2023 (TACL 11, 1048–1065), SORT-FREQ and SORT-FREQ-REV.
"""

from __future__ import annotations

from dataclasses import dataclass
from functools import lru_cache
from hashlib import sha256
from pathlib import Path
from typing import Literal, NamedTuple

import numpy as np

from derivlang.core.arrays import Int64, expand_ranges
from derivlang.core.arrow import string_array
from derivlang.core.batch import Batch
from derivlang.core.errors import UsageError
from derivlang.core.keys import Draws
from derivlang.core.order import Order
from derivlang.core.spec import param
from derivlang.core.spec_files import Named
from derivlang.core.type_index import TypeIndex
from derivlang.formats.paths import stamp_of
from derivlang.formats.word_counts import read_counts
from derivlang.transforms.base import Transform
from derivlang.transforms.bodies import Final, bodies_of, final_param


@dataclass(frozen=True, kw_only=True)
class Sort(Transform):
    """Sort: the words of a sentence by frequency, the most frequent first."""

    name = "sort"

    counts: str = param("", "file of words and their counts", positional=True, draws=False, file=Named())
    first: Literal["frequent", "rare"] = param("frequent", "words to begin with", draws=False)
    final: Final = final_param()

    def __post_init__(self) -> None:
        Transform.__post_init__(self)
        if not self.counts:
            raise UsageError(
                "sort needs the counts of words",
                where="--t",
                fix="name a file with a word and its count in each line, or a .tsv of `derivlang dict`: "
                "sort:counts.tsv",
                id="bad-spec",
            )
        self._table()  # raise for a broken file before any source is read

    def _table(self) -> _Table:
        return _read(str(self.counts), *stamp_of(self.counts))

    @property
    def resources(self) -> tuple[str, ...]:
        """The fingerprint of the counts."""
        return (f"word counts {self._table().fingerprint}",)

    def order(self, batch: Batch, draws: Draws) -> Order:
        """Return the order."""
        start, length, tails = bodies_of(self, batch, "word", self.final)
        table = self._table()
        count = np.append(table.counts, 0)[table.places.find(batch.type_hashes)]
        # Ranks of the types, equal for equal counts: the counts 9 7 0 7 have the ranks 0 1 2 1.
        rank = np.unique(count if self.first == "rare" else -count, return_inverse=True)[1]
        words = expand_ranges(start, length)
        sentence = np.repeat(np.arange(len(length)), length)
        index = np.arange(batch.n_words, dtype=np.int32)
        by = np.argsort(sentence * (len(rank) + 1) + rank[batch.words[words]], kind="stable")
        index[words] = words[by]
        return Order(index, batch.sentences, tails, batch.n_words)


class _Table(NamedTuple):
    """Counts of words: where a word stands in the list, and int64[T]."""

    places: TypeIndex
    counts: Int64
    fingerprint: str


@lru_cache(maxsize=4)
def _read(file: str, *stamp: int) -> _Table:
    """Read counts, once per process and version of their file."""
    counts = read_counts(Path(file))
    fingerprint = sha256(repr(sorted(counts.items())).encode("utf-8", "surrogatepass")).hexdigest()
    return _Table(TypeIndex.of(string_array(list(counts))), np.fromiter(counts.values(), np.int64), fingerprint)
