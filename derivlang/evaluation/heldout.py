"""Held-out sentences of a run's source, in both languages and parallel word by word.

They come from the validation split (else test, else the first). The distinct sentences that have at least three words
and fit into a row are ranked by key, so a larger sample contains a smaller one.
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any

import numpy as np
import pyarrow as pa

from derivlang.core.arrays import Bool, Int32, Int64, UInt64, expand_ranges, lengths_of, offsets_of, owners
from derivlang.core.arrow import to_arrow
from derivlang.core.batch import Batch
from derivlang.core.errors import DataError, StoreError
from derivlang.core.keys import Draws, sequence_keys
from derivlang.engine.batches import Source
from derivlang.training.derived_text import SHORTEST
from derivlang.training.languages import Languages, LanguageSide


@dataclass(frozen=True, slots=True, eq=False)
class Heldout:
    """S sentences in both languages. keys: uint64[S]. offsets: int64[S + 1], the slots of each.

    words: int32[K], the word (in its sentence) of each slot. source, derived: sub-words and their slots
    (`training/languages/base.py`). split: their split. forms: Arrow strings [K], the text of each
    slot's word; None for sub-words without text.
    """

    keys: UInt64
    offsets: Int64
    words: Int32
    source: LanguageSide
    derived: LanguageSide
    split: str
    forms: pa.Array | None = None

    @property
    def n_sentences(self) -> int:
        return len(self.keys)

    @property
    def begins(self) -> Bool:
        """bool[K]: the slots that begin a word; words that have no sub-words in either language have none."""
        begins = np.ones(len(self.words), bool)
        begins[1:] = (np.diff(self.rows) | np.diff(self.words)) != 0
        return begins

    @property
    def rows(self) -> Int32:
        """int32[K]: the sentence of each slot."""
        return owners(self.offsets)

    def offsets_in(self, side: LanguageSide) -> Int64:
        """Return int64[S + 1]: the sub-word offsets of the sentences in a language."""
        return offsets_of(np.bincount(self.rows[side.slots], minlength=self.n_sentences))

    def first(self, n: int) -> Heldout:
        """Return at most the first n of a keyed ranking, in text order."""
        draws = Draws("heldout").draw(self.keys, np.zeros(len(self.keys), np.int64))
        return self.take(np.sort(np.lexsort((self.keys, draws))[:n]))

    @classmethod
    def read(cls, source: Source, split: str, languages: Languages, n: int, max_length: int) -> Heldout:
        """Read at most n distinct sentences of a split. Raise DataError if there is none."""
        # The first n of a split are among the first n of its batches.
        parts = [_fitting(languages, batch, max_length, split).distinct().first(n) for batch in source.batches(split)]
        if not sum(part.n_sentences for part in parts):
            raise DataError(
                f"no sentence of the split {split} has {SHORTEST} words and fits {max_length} sub-words",
                where=source.corpus.name,
                id="no-sentences",
            )
        offsets = offsets_of(np.concatenate([lengths_of(part.offsets) for part in parts]))
        starts = offsets_of(np.array([len(part.words) for part in parts]))
        every = cls(
            np.concatenate([part.keys for part in parts]),
            offsets,
            np.concatenate([part.words for part in parts]),
            _joined([part.source for part in parts], starts),
            _joined([part.derived for part in parts], starts),
            split,
            pa.concat_arrays([part.forms for part in parts]),
        )
        return every.distinct().first(n)

    def distinct(self) -> Heldout:
        """Return each sentence once, where it first occurs."""
        _, rows = np.unique(self.keys, return_index=True)
        return self.take(np.sort(rows))

    def take(self, rows: Int64) -> Heldout:
        """Return these sentences, in this order."""
        lengths = lengths_of(self.offsets)[rows]
        at, offsets = expand_ranges(self.offsets[rows], lengths), offsets_of(lengths)
        shift = np.zeros(self.n_sentences, np.int64)
        shift[rows] = offsets[:-1] - self.offsets[rows]
        forms = None if self.forms is None else self.forms.take(to_arrow(at))
        source, derived = (self._side(side, rows, shift) for side in (self.source, self.derived))
        return Heldout(self.keys[rows], offsets, self.words[at], source, derived, self.split, forms)

    def _side(self, side: LanguageSide, rows: Int64, shift: Int64) -> LanguageSide:
        """Return a side of these sentences. shift: int64[S], what is added to the slots of a sentence."""
        within = self.offsets_in(side)
        lengths = lengths_of(within)[rows]
        at = expand_ranges(within[rows], lengths)
        return LanguageSide(side.ids[at], side.slots[at] + np.repeat(shift[rows], lengths))


def _joined(parts: list[LanguageSide], starts: Int64) -> LanguageSide:
    """Return the sub-words of several texts as if they were one text. starts: the first slot of each text."""
    slots = [part.slots + start for part, start in zip(parts, starts.tolist(), strict=False)]
    return LanguageSide(np.concatenate([part.ids for part in parts]), np.concatenate(slots))


def _fitting(languages: Languages, batch: Batch, max_length: int, split: str) -> Heldout:
    """Return the sentences of a batch that are long enough, and fit into a row in both languages."""
    both = languages.both(batch)
    # An order moves words across the sentences that one tree spans, so these count as one.
    stays = np.isin(both.offsets[batch.sentences], both.blocks)
    sentences = batch.sentences[stays]
    keys = batch.keys if stays.all() else sequence_keys(batch.type_hashes[batch.words], sentences)
    offsets = both.offsets[sentences]
    word = owners(both.offsets)
    words = word - np.repeat(sentences[:-1], lengths_of(offsets))
    forms = batch.strings().take(to_arrow(word))
    every = Heldout(keys, offsets, words.astype(np.int32), both.source, both.derived, split, forms)
    some = np.diff(sentences) >= SHORTEST
    for side in both.sides:
        lengths = lengths_of(every.offsets_in(side))
        some &= (lengths <= max_length - 2) & (lengths > 0)
    return every.take(np.flatnonzero(some))


def check_files(told: list[dict[str, Any]] | None, files: list[dict[str, Any]], where: str) -> None:
    """Raise StoreError other-data unless the source has the files of held-out text that a run recorded.

    told: the run's record, None for an earlier version or a run without its source. files: the files that exist now.
    Both as of `source_files`.
    """
    if told is None:
        return
    was, now = (sorted((file["split"], file["sha256"]) for file in some) for some in (told, files))
    if was == now:
        return
    before, there = (", ".join(f"{file['name']} ({file['split']})" for file in some) for some in (told, files))
    raise StoreError(
        f"held-out text was {before}, and is now {there}"
        if before != there
        else f"held-out text has changed since the run was trained: {there}",
        where=where,
        fix="restore the source, or name its folder with --data-dir",
        id="other-data",
    )
