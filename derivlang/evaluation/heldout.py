"""Held-out sentences of a run's source, in both languages and parallel word by word.

They come from the validation split (else test, else the first). The distinct sentences that have at least three words
and fit into a row are ranked by key, so a larger sample contains a smaller one.
"""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np
import pyarrow as pa

from derivlang.core.arrays import Int32, Int64, UInt64, expand_ranges, lengths_of, offsets_of, owners
from derivlang.core.arrow import to_arrow
from derivlang.core.batch import Batch
from derivlang.core.errors import DataError
from derivlang.core.keys import Draws
from derivlang.engine.batches import Source
from derivlang.training.languages import Languages

_SHORTEST = 3  # words


@dataclass(frozen=True, slots=True, eq=False)
class Heldout:
    """S sentences of M sub-words. keys: uint64[S]. offsets: int64[S + 1]. source, derived: int32[M] ids.

    words: int32[M], the word (in its sentence) of each source sub-word. index: int64[M], the source sub-word at each
    derived position. split: their split. forms: Arrow strings [M], the text of each source sub-word's word; None for
    sub-words without text.
    """

    keys: UInt64
    offsets: Int64
    source: Int32
    derived: Int32
    words: Int32
    index: Int64
    split: str
    forms: pa.Array | None = None

    @property
    def n_sentences(self) -> int:
        return len(self.keys)

    @property
    def n_words(self) -> int:
        """The number of words that have sub-words, in either language."""
        return int(np.count_nonzero(np.diff(self.rows) | np.diff(self.words))) + (len(self.source) > 0)

    @property
    def rows(self) -> Int32:
        """int32[M]: the sentence of each sub-word."""
        return owners(self.offsets)

    def first(self, n: int) -> Heldout:
        """Return at most the first n of a keyed ranking, in text order."""
        draws = Draws("heldout").draw(self.keys, np.zeros(len(self.keys), np.int64))
        return self._take(np.sort(np.lexsort((self.keys, draws))[:n]))

    @classmethod
    def read(cls, source: Source, split: str, languages: Languages, n: int, max_length: int) -> Heldout:
        """Read at most n distinct sentences of a split. Raise DataError if there is none."""
        # The first n of a split are among the first n of its batches.
        parts = [_fitting(languages, batch, max_length, split).distinct().first(n) for batch in source.batches(split)]
        if not sum(part.n_sentences for part in parts):
            raise DataError(
                f"no sentence of the split {split} has {_SHORTEST} words and fits {max_length} sub-words",
                where=source.corpus.name,
                id="no-sentences",
            )
        offsets = offsets_of(np.concatenate([lengths_of(part.offsets) for part in parts]))
        starts = offsets_of(np.array([len(part.source) for part in parts]))
        every = cls(
            np.concatenate([part.keys for part in parts]),
            offsets,
            np.concatenate([part.source for part in parts]),
            np.concatenate([part.derived for part in parts]),
            np.concatenate([part.words for part in parts]),
            np.concatenate([part.index + start for part, start in zip(parts, starts, strict=False)]),
            split,
            pa.concat_arrays([part.forms for part in parts]),
        )
        return every.distinct().first(n)

    def distinct(self) -> Heldout:
        """Return each sentence once, where it first occurs."""
        _, rows = np.unique(self.keys, return_index=True)
        return self._take(np.sort(rows))

    def _take(self, rows: Int64) -> Heldout:
        lengths = lengths_of(self.offsets)[rows]
        at, offsets = expand_ranges(self.offsets[rows], lengths), offsets_of(lengths)
        index = self.index[at] + np.repeat(offsets[:-1] - self.offsets[rows], lengths)
        ids = self.source[at], self.derived[at]
        forms = None if self.forms is None else self.forms.take(to_arrow(at))
        return Heldout(self.keys[rows], offsets, *ids, self.words[at], index, self.split, forms)


def _fitting(languages: Languages, batch: Batch, max_length: int, split: str) -> Heldout:
    """Return the sentences of a batch that fit into a row and are long enough."""
    both = languages.both(batch)
    offsets = both.source.offsets[batch.sentences]
    words = both.source.words() - np.repeat(batch.sentences[:-1], lengths_of(offsets))
    index = both.order.index.astype(np.int64)
    forms = batch.strings().take(to_arrow(both.source.words()))
    every = Heldout(batch.keys, offsets, both.source.ids, both.derived, words.astype(np.int32), index, split, forms)
    lengths = lengths_of(offsets)
    some = (np.diff(batch.sentences) >= _SHORTEST) & (lengths <= max_length - 2) & (lengths > 0)
    return every._take(np.flatnonzero(some))
