"""Encoded data of languages that are tokenized as text: the sub-words of both.

    DATA/ids.bin, slots.bin     [M] id and slot (in its piece) of each sub-word of both languages, batch by batch
    DATA/starts.bin             int64[P, 2] position of each piece's first sub-word in these files, by language
    DATA/counts.bin             int64[P, 2] number of its sub-words
    DATA/instances.bin, derived_instances.bin       int64[I + 1] piece offsets, of each language

A piece has the same words in both languages, but not the same number of sub-words. So each language is packed into rows
of its own.
"""

from __future__ import annotations

from dataclasses import dataclass
from pathlib import Path
from typing import Any

import numpy as np

from derivlang.core.arrays import Bool, Int64, Ints, expand_ranges, offsets_of, owners
from derivlang.core.batch import Batch
from derivlang.core.errors import StoreError
from derivlang.training.batch import Pieces, SubwordRows
from derivlang.training.data import Data, DataWriter, common, mapped, read_offsets
from derivlang.training.languages import DERIVED, SOURCE, ParallelBatch, TextLanguages
from derivlang.training.packing import pack
from derivlang.training.settings import Packing

_INSTANCES = ("instances", "derived_instances")


@dataclass(frozen=True, eq=False)
class TextData(Data):
    """Encoded data of languages that are tokenized as text.

    starts, counts: int64[P, 2], by piece and language. instances: piece offsets, by language.
    """

    ids: Ints
    slots: Ints
    starts: Int64
    counts: Int64
    instances: tuple[Int64, Int64]

    @classmethod
    def open(cls, folder: Path, recipe: dict[str, Any], languages: TextLanguages) -> TextData:
        """Open the data of a folder. Raise StoreError if a file is cut off or changed."""
        shared = common(folder, recipe)
        n_pieces = len(shared["pieces"]) - 1
        starts, counts = (np.array(mapped(folder, name, recipe)).reshape(-1, 2) for name in ("starts", "counts"))
        ids = mapped(folder, "ids", recipe)
        if len(starts) != n_pieces or (counts < 0).any() or (starts < 0).any() or (starts + counts > len(ids)).any():
            raise StoreError(
                "its positions do not fit the other files",
                where=str(folder / "starts.bin"),
                fix="remove the folder and run again",
                id="data",
            )
        source, derived = (read_offsets(folder, name, recipe, n_pieces) for name in _INSTANCES)
        return cls(
            **shared,
            special_ids=languages.special_ids,
            seq_len=recipe["seq_len"],
            recipe=recipe,
            ids=ids,
            slots=mapped(folder, "slots", recipe),
            starts=starts,
            counts=counts,
            instances=(source, derived),
        )

    @property
    def n_subwords(self) -> int:
        return int(self.counts[:, SOURCE].sum())

    def n_instances(self, language: int) -> int:
        return len(self.instances[language]) - 1

    def first_pieces(self, language: int) -> Int64:
        return self.instances[language]

    def sizes(self, pieces: Int64, language: Ints) -> Int64:
        return self.counts[pieces, language]

    def tokens(self, pieces: Int64, language: Ints) -> Pieces:
        """Return the sub-words of pieces [P], each in a language [P] (SOURCE or DERIVED).

        The slots 0 1 2 of a piece belong to its words 0 0 1, so sub-words in the slots 2 0 are of the words 1 0.
        """
        language = np.asarray(language)
        sizes = self.counts[pieces, language]
        at = expand_ranges(self.starts[pieces, language], sizes)
        words, begins = self.words(pieces)
        spoken = np.repeat(language.astype(np.int8), sizes)
        ids = self.ids[at].astype(np.int64)
        return Pieces(ids, words[np.repeat(begins[:-1], sizes) + self.slots[at]], spoken, np.zeros(len(at), bool))

    def links(self, pieces: Int64) -> Int64:
        """Return int64[2, L]: each sub-word of a word is linked to all sub-words of its image.

        words of the source tokens 0 1 1, of the derived ones 1 0 0  ->  [[0, 0, 1, 2], [1, 2, 0, 0]]
        """
        source, derived = (self._numbered(pieces, language) for language in (SOURCE, DERIVED))
        # the source's numbers ascend, so the partners of a derived sub-word are neighbours
        first, last = np.searchsorted(source, derived, "left"), np.searchsorted(source, derived, "right")
        left, right = expand_ranges(first, last - first), np.repeat(np.arange(len(derived)), last - first)
        order = np.lexsort((right, left))
        return np.stack([left[order], right[order]])

    def _numbered(self, pieces: Int64, language: int) -> Int64:
        """Return int64[M]: the word of each sub-word of pieces, with different numbers in different pieces."""
        tokens = self.tokens(pieces, np.full(len(pieces), language))
        piece = np.repeat(np.arange(len(pieces)), self.counts[pieces, language])
        return (piece << 20) + tokens.words

    def rows(self, instances: Ints, language: Ints) -> SubwordRows:
        numbers, language = np.asarray(instances), np.asarray(language)
        derived = language == DERIVED
        ends = [
            np.where(derived, self.instances[DERIVED].take(numbers + k, mode="clip"),
                     self.instances[SOURCE].take(numbers + k, mode="clip"))
            for k in (0, 1)
        ]  # fmt: skip
        sizes = ends[1] - ends[0]
        return self.rows_of(expand_ranges(ends[0], sizes), offsets_of(sizes), language, self.seq_len)


class TextWriter(DataWriter):
    """Writes the sub-words of both languages, and remembers the sizes of pieces."""

    def __init__(self, languages: TextLanguages):
        self.types = {"ids": "<u2" if languages.size <= 1 << 16 else "<i4", "slots": "<u2", "begins": "|u1"}
        self._unknown_id, self._unknown = languages.unknown_id, np.zeros((2, 2), np.int64)
        self._done = 0
        self._starts: list[Int64] = []
        self._counts: list[Int64] = []

    def arrays(self, batch: Batch, both: ParallelBatch, pieces: Int64, begins: Bool) -> dict[str, Any]:
        """Return the sub-words of both languages, the sub-words of a piece together.

        pieces [0, 2, 4], derived slots [3, 0, 2, 1]  ->  slots [0, 1, 1, 0] in their pieces, of the ids 1 3 0 2
        """
        self._unknown += [(int(np.count_nonzero(side.ids == self._unknown_id)), len(side.ids)) for side in both.sides]
        piece_of_slot = owners(pieces)
        ids, slots, counts = [], [], []
        for side in both.sides:
            piece = piece_of_slot[side.slots]
            order = np.argsort(piece, kind="stable")
            ids.append(side.ids[order])
            slots.append((side.slots - pieces[piece])[order])
            counts.append(np.bincount(piece, minlength=len(pieces) - 1))
        table = np.stack(counts, axis=1)
        before = np.cumsum(table, axis=0) - table
        self._starts.append(before + self._done + np.array([0, len(ids[SOURCE])]))
        self._counts.append(table)
        self._done += len(ids[SOURCE]) + len(ids[DERIVED])
        return {"ids": np.concatenate(ids), "slots": np.concatenate(slots), "begins": begins}

    def facts(self) -> dict[str, Any]:
        """Return {"unknown_percent"}: the share of unknown sub-words in the source and in the derived language."""
        return {"unknown_percent": [round(100 * int(n) / max(int(of), 1), 2) for n, of in self._unknown]}

    def last(self, pieces: Int64, seq_len: int, packing: Packing) -> dict[str, Int64]:
        starts, counts = np.concatenate(self._starts), np.concatenate(self._counts)
        arrays = {"starts": starts.ravel(), "counts": counts.ravel()}
        for language, name in enumerate(_INSTANCES):
            arrays[name] = pack(counts[:, language] + 1, seq_len - 1, single=packing == "single")
        return arrays

    def sizes(
        self, pieces: Int64, last: dict[str, Int64], seq_len: int, packing: Packing
    ) -> tuple[int, list[tuple[int, int]]]:
        subwords = last["counts"].reshape(-1, 2).sum(axis=0).tolist()
        rows = [len(last[name]) - 1 for name in _INSTANCES]
        filled = [own + len(pieces) - 1 + n for own, n in zip(subwords, rows, strict=True)]
        return subwords[SOURCE], list(zip(rows, filled, strict=True))
