"""Held-out sentences of a run's source, in both languages and parallel word by word.

They come from the validation split, else test, unless the run was trained on it; else from the first. The distinct
sentences that have at least three words and fit into a row are ranked by key, so a larger sample contains a smaller
one.

The text that a run was trained on has the sub-words that its model predicts, in pieces of sentences as in the rows of
the training, each with its closing </s>. The source is read again, as its encoded data may be elsewhere; the hashes of
its files are compared before.

    we low er </s> it </s>
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass
from typing import Any, TypeAlias

import numpy as np
import pyarrow as pa

from derivlang.align.lexical import Floats
from derivlang.core.arrays import Bool, Int32, Int64, Ints, UInt64, lengths_of, offsets_of, owners, take_rows
from derivlang.core.arrow import to_arrow
from derivlang.core.batch import Batch
from derivlang.core.errors import DataError, StoreError
from derivlang.core.keys import Draws, sequence_keys
from derivlang.core.messages import counted, warn
from derivlang.core.ngrams import Sentences
from derivlang.engine.batches import Source
from derivlang.evaluation.columns import SIDES
from derivlang.training.data import cut
from derivlang.training.encode import SHORTEST
from derivlang.training.languages import Languages, LanguageSide

_MUCH = 0.05  # share of the sentences from which on it is said that they are left out


# The text of both languages that a run was trained on; None for one that it was not trained on.
TrainingText: TypeAlias = tuple[Sentences | None, Sentences | None]


class SpokenWords:
    """The W words of S sentences in one language, in its order, also those that only this language has.

    offsets: int64[S + 1]. slots: int64[W], the slot at which each word begins. of_subwords: int64[M], the word of
    each sub-word. inserted: bool[W]. With an order of sub-words, the place of a word is the place of its first one.

        slots of the words 0 1 1 2, sub-words in the slots 3 1 0 2   ->   slots [3, 1, 0], of_subwords [0, 1, 2, 1]
    """

    def __init__(self, text: Heldout, side: LanguageSide):
        begins = text.begins
        number, slots = np.cumsum(begins) - 1, side.words
        if slots is None:  # by the place of their first sub-word
            slots = side.slots[np.sort(np.unique(number[side.slots], return_index=True)[1])]
        place = np.zeros(int(begins.sum()), np.int64)
        place[number[slots]] = np.arange(len(slots))
        self.offsets, self.slots, self.of_subwords = text._offsets(slots), slots, place[number[side.slots]]
        self.inserted = text.inserted[np.flatnonzero(begins)][number[slots]]

    def sums(self, values: Floats) -> Floats:
        """Return float64[W]: the sum over the sub-words of each word. values: float64[M]."""
        return np.asarray(np.bincount(self.of_subwords, values, len(self.slots)), np.float64)


@dataclass(frozen=True, slots=True, eq=False)
class Heldout:
    """S sentences in both languages. keys: uint64[S]. offsets: int64[S + 1], the slots of each.

    words: int32[K], the source word (in its sentence) of each slot. inserted: bool[K], the slots that begin an inserted
    word. source, derived: sub-words and their slots (`training/languages/readers.py`). split: their split. forms,
    derived_forms: Arrow strings [K], the source word of each slot, and the derived word that begins there; None for
    sub-words without text.
    """

    keys: UInt64
    offsets: Int64
    words: Int32
    inserted: Bool
    source: LanguageSide
    derived: LanguageSide
    split: str
    forms: pa.Array | None = None
    derived_forms: pa.Array | None = None

    @property
    def n_sentences(self) -> int:
        return len(self.keys)

    @property
    def begins(self) -> Bool:
        """bool[K]: the slots that begin a word, of the source or inserted."""
        begins = np.ones(len(self.words), bool)
        begins[1:] = (np.diff(self.rows) | np.diff(self.words)) != 0
        return begins | self.inserted

    @property
    def n_words(self) -> Int64:
        """int64[S]: the number of source words of each sentence. An inserted word is not one, a deleted word is."""
        return np.bincount(self.rows[self.begins & ~self.inserted], minlength=self.n_sentences)

    @property
    def rows(self) -> Int32:
        """int32[K]: the sentence of each slot."""
        return owners(self.offsets)

    @property
    def spoken(self) -> tuple[SpokenWords, SpokenWords]:
        """The words of both languages."""
        return SpokenWords(self, self.source), SpokenWords(self, self.derived)

    def offsets_in(self, side: LanguageSide) -> Int64:
        """Return int64[S + 1]: the sub-word offsets of the sentences in a language."""
        return self._offsets(side.slots)

    def _offsets(self, slots: Int64) -> Int64:
        return offsets_of(np.bincount(self.rows[slots], minlength=self.n_sentences))

    def first(self, n: int) -> Heldout:
        """Return at most the first n of a keyed ranking, in text order."""
        draws = Draws("heldout").draw(self.keys, np.zeros(len(self.keys), np.int64))
        return self.take(np.sort(np.lexsort((self.keys, draws))[:n]))

    @classmethod
    def read(cls, source: Source, split: str, languages: Languages, n: int, max_length: int, after: int = 0) -> Heldout:
        """Read at most n distinct sentences of a split, of the documents from number `after` on, counted from 0.

        Raise DataError if there is none.
        """
        # The first n of a split are among the first n of its batches.
        parts: list[Heldout] = []
        read = too_long = 0
        for batch in source.batches(split):
            part, n_long, n_read = _fitting(languages, batch, max_length, split, after)
            parts.append(part.distinct().first(n))
            too_long, read = too_long + n_long, read + n_read
        if too_long and too_long >= _MUCH * read:
            warn(
                f"{too_long:,} of {counted(read, 'held-out sentence')} are left out, as they have more than "
                f"{max_length - 2} sub-words in one of the languages"
            )
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
            np.concatenate([part.inserted for part in parts]),
            _joined([part.source for part in parts], starts),
            _joined([part.derived for part in parts], starts),
            split,
            pa.concat_arrays([part.forms for part in parts]),
            pa.concat_arrays([part.derived_forms for part in parts]),
        )
        return every.distinct().first(n)

    def distinct(self) -> Heldout:
        """Return each sentence once, where it first occurs."""
        _, rows = np.unique(self.keys, return_index=True)
        return self.take(np.sort(rows))

    def take(self, rows: Int64) -> Heldout:
        """Return these sentences, in this order."""
        at, offsets = take_rows(self.offsets, rows)
        shift = np.zeros(self.n_sentences, np.int64)
        shift[rows] = offsets[:-1] - self.offsets[rows]
        forms = (None if some is None else some.take(to_arrow(at)) for some in (self.forms, self.derived_forms))
        source, derived = (self._side(side, rows, shift) for side in (self.source, self.derived))
        words = self.words[at], self.inserted[at]
        return Heldout(self.keys[rows], offsets, *words, source, derived, self.split, *forms)

    def _side(self, side: LanguageSide, rows: Int64, shift: Int64) -> LanguageSide:
        """Return a side of these sentences. shift: int64[S], what is added to the slots of a sentence."""

        def moved(slots: Int64) -> tuple[Int64, Int64]:
            at, within = take_rows(self._offsets(slots), rows)
            return at, slots[at] + np.repeat(shift[rows], lengths_of(within))

        at, slots = moved(side.slots)
        return LanguageSide(side.ids[at], slots, None if side.words is None else moved(side.words)[1])


def _joined(parts: list[LanguageSide], starts: Int64) -> LanguageSide:
    """Return the sub-words of several texts as if they were one text. starts: the first slot of each text."""
    pairs = list(zip(parts, starts.tolist(), strict=False))
    slots = np.concatenate([part.slots + start for part, start in pairs])
    words = [part.words + start for part, start in pairs if part.words is not None]
    return LanguageSide(np.concatenate([part.ids for part in parts]), slots, np.concatenate(words) if words else None)


def _fitting(languages: Languages, batch: Batch, max_length: int, split: str, after: int) -> tuple[Heldout, int, int]:
    """Return (the sentences of a batch with enough words that fit into a row in both languages, n_long, n_enough).

    after: as of `read`. n_long: the number of sentences with enough words that are too long for a row. n_enough:
    of all with enough words.
    """
    both = languages.parallel(batch)
    # An order moves words across the sentences that one tree spans, so these count as one.
    stays = np.isin(both.offsets[batch.sentences], both.blocks)
    sentences = batch.sentences[stays]
    keys = batch.keys if stays.all() else sequence_keys(batch.type_hashes[batch.words], sentences)
    offsets = both.offsets[sentences]
    word = owners(both.offsets)
    words = word - np.repeat(sentences[:-1], lengths_of(offsets))
    inserted = np.zeros(len(word), bool)
    inserted[both.inserted] = True
    forms = batch.strings().take(to_arrow(word)), languages.spelt(batch, both)
    every = Heldout(keys, offsets, words.astype(np.int32), inserted, both.source, both.derived, split, *forms)
    unit = np.searchsorted(batch.unit_words, sentences[:-1], "right") - 1
    document = batch.documents[np.searchsorted(batch.records[:, 0], unit, "right") - 1]
    enough = (np.diff(sentences) >= SHORTEST) & (document >= after)
    lengths = np.stack([lengths_of(every.offsets_in(side)) for side in both.sides])
    too_long = (lengths > max_length - 2).any(axis=0)
    some = enough & ~too_long & (lengths > 0).all(axis=0)
    return every.take(np.flatnonzero(some)), int((enough & too_long).sum()), int(enough.sum())


def check_files(told: list[dict[str, Any]] | None, files: list[dict[str, Any]], what: str, where: str) -> None:
    """Raise StoreError other-data unless the source has the files of a text that a run recorded.

    told: the run's record, None for a run without its source. files: the files that exist now.
    Both as of `source_files`. what: the text, for the message.
    """
    if told is None:
        return
    was, now = (sorted((file["split"], file["sha256"]) for file in some) for some in (told, files))
    if was == now:
        return
    before, there = (", ".join(f"{file['name']} ({file['split']})" for file in some) for some in (told, files))
    raise StoreError(
        f"{what} was {before}, and is now {there}"
        if before != there
        else f"{what} has changed since the run was trained: {there}",
        where=where,
        fix="restore the source, or name its folder with --data-dir",
        id="other-data",
    )


def training_text(source: Source, languages: Languages, n: int, settings: Mapping[str, Any]) -> TrainingText:
    """Read the first n sentences of the source's first split. settings: of the training, as in run.json."""
    asked, split = settings.get("languages", "both"), source.corpus.splits[0]
    parts: dict[str, list[tuple[Int64, Int64]]] = {name: [] for name in SIDES if asked in ("both", name)}
    left = n
    for batch in source.batches(split, settings.get("limit")):
        both = languages.parallel(batch)
        blocks = both.blocks[: left + 1]
        pieces = cut(blocks, np.cumsum(both.begins(), dtype=np.int64), settings["seq_len"] - 2)
        for name, side in zip(SIDES, both.sides, strict=True):
            if name in parts:
                parts[name].append(_pieces(side, pieces))
        left -= len(blocks) - 1
        if not left:
            break

    def text(parts: list[tuple[Int64, Int64]]) -> Sentences:
        ids, lengths = (np.concatenate(each) for each in zip(*parts, strict=True))
        return closed(ids, offsets_of(lengths), languages.special_ids.end)

    source_text, derived_text = (text(parts[name]) if name in parts else None for name in SIDES)
    return source_text, derived_text


def closed(ids: Ints, offsets: Int64, end: int) -> Sentences:
    """Return rows of sub-words, each with its closing `</s>`. ids: [M], at offsets int64[R + 1]; end: its id."""
    return Sentences(np.insert(ids.astype(np.int64), offsets[1:], end), offsets + np.arange(len(offsets)))


def _pieces(side: LanguageSide, pieces: Int64) -> tuple[Int64, Int64]:
    """Return (the sub-words of a language by piece, int64[M], the number of each piece, int64[P]).

    pieces: int64[P + 1], slot offsets; later slots are left out.
    """
    some = np.flatnonzero(side.slots < pieces[-1])
    piece = owners(pieces)[side.slots[some]]
    ids = side.ids[some][np.argsort(piece, kind="stable")].astype(np.int64)
    return ids, np.bincount(piece, minlength=len(pieces) - 1)
