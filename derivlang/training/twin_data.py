"""Encoded data of a tokenizer and its twin: the source's sub-words and their derived order.

    DATA/ids.bin          [M] the source's id of each sub-word           uint16, or int32 above 65,536 entries
    DATA/order.bin        [M] position in its piece of the source sub-word that stands here in the derived language
    DATA/kept.bin         [M] 1: the overlap keeps its id; only with an overlap
    DATA/instances.bin    int64[I + 1] piece offsets

A slot is a sub-word. The files hold no derived text: the derived language's ids are the source's, reordered and mapped
by the twin's table. A sub-word takes 5 bytes and a sentence 24, so WikiText-103 takes some 650 MB on disk and almost no
memory.
"""

from __future__ import annotations

from dataclasses import dataclass
from pathlib import Path
from typing import Any

import numpy as np

from derivlang.core.arrays import Bool, Int32, Int64, Ints, expand_ranges, lengths_of, offsets_of
from derivlang.core.batch import Batch
from derivlang.training.batch import Pieces, SubwordRows
from derivlang.training.data import Data, DataWriter, common, mapped, read_offsets
from derivlang.training.languages import DERIVED, ParallelBatch, TwinLanguages
from derivlang.training.packing import pack, restrict
from derivlang.training.settings import LONGEST, Packing


@dataclass(frozen=True, eq=False)
class TwinData(Data):
    """Encoded data of a tokenizer and its twin.

    table: int32[V], the joint id of each id of the twin. stream: int64[P + 1], offset of each piece in the stream of
    all, with its <s> and </s>.
    """

    ids: Ints
    order: Ints
    kept: Ints | None
    instances: Int64
    table: Int32
    stream: Int64

    @classmethod
    def open(cls, folder: Path, recipe: dict[str, Any], languages: TwinLanguages) -> TwinData:
        """Open the data of a folder. Raise StoreError if a file is cut off or changed."""
        shared = common(folder, recipe)
        return cls(
            **shared,
            special_ids=languages.special_ids,
            seq_len=recipe["seq_len"],
            recipe=recipe,
            ids=mapped(folder, "ids", recipe),
            order=mapped(folder, "order", recipe),
            kept=mapped(folder, "kept", recipe) if recipe["kept"] else None,
            instances=read_offsets(folder, "instances", recipe, len(shared["pieces"]) - 1),
            table=languages.twin.joint.table(),
            stream=offsets_of(np.diff(shared["pieces"]) + 2),
        )

    @property
    def packing(self) -> Packing:
        packing: Packing = self.recipe.get("packing", "sentences")
        return packing

    @property
    def n_subwords(self) -> int:
        return len(self.ids)

    def n_instances(self, language: int) -> int:
        return self._epoch[0]

    def first_pieces(self, language: int) -> Int64:
        return self.instances

    def filled(self, language: int, instances: tuple[int, int] | None = None) -> int:
        if self.packing == "stream":  # its rows are full, but the last one of an epoch
            return self._epoch[1]
        return super().filled(language, instances)

    @property
    def _epoch(self) -> tuple[int, int]:
        return _epoch(self.pieces, len(self.instances) - 1, self.seq_len, self.packing)

    def sizes(self, pieces: Int64, language: Ints) -> Int64:
        return self.pieces[pieces + 1] - self.pieces[pieces]

    def tokens(self, pieces: Int64, language: Ints) -> Pieces:
        """Return the sub-words of pieces [P], each in a language [P] (SOURCE or DERIVED).

        a piece "a b c" with order [2, 0, 1], derived  ->  the ids of c' a' b', words [2, 0, 1]
        """
        starts = self.pieces[pieces]
        sizes = self.pieces[pieces + 1] - starts
        flat, base = expand_ranges(starts, sizes), np.repeat(starts, sizes)
        spoken = np.repeat(np.asarray(language, np.int8), sizes)
        at = np.where(spoken == DERIVED, base + self.order[flat], flat)
        words, begins = self.words(pieces)
        ids, shared = self._in_language(at, spoken == DERIVED)
        return Pieces(ids, words[np.repeat(begins[:-1], sizes) + at - base], spoken, shared)

    def links(self, pieces: Int64) -> Int64:
        """Return int64[2, L]: each derived sub-word stands for one source sub-word.

        a piece with order [2, 0, 1]  ->  [[2, 0, 1], [0, 1, 2]]
        """
        starts = self.pieces[pieces]
        sizes = self.pieces[pieces + 1] - starts
        order = np.asarray(self.order[expand_ranges(starts, sizes)], np.int64)
        return np.stack([np.repeat(offsets_of(sizes)[:-1], sizes) + order, np.arange(len(order))])

    def rows(self, instances: Ints, language: Ints) -> SubwordRows:
        if self.packing == "stream":
            return self._cut_from_stream(np.asarray(instances, np.int64), np.asarray(language))
        first, last = self.instances[instances], self.instances[np.asarray(instances) + 1]
        pieces = expand_ranges(first, last - first)
        return self.rows_of(pieces, offsets_of(last - first), language, self.seq_len)

    def _cut_from_stream(self, instances: Int64, language: Ints) -> SubwordRows:
        """Return rows of the stream `<s> p1 </s> <s> p2 </s> …`, cut every H positions, as the released code does.

        two pieces, "a b" and "c d e", H 5: stream [0, 4, 9]
        instance 0  <s> a b </s> <s>      piece 0 0 0 0 1    place in the piece  -1 0 1 2 -1    (-1 <s>, size </s>)
        """
        width = self.seq_len
        at = instances[:, None] * width + np.arange(width)
        piece = np.searchsorted(self.stream, at, "right") - 1
        place = at - self.stream[piece] - 1
        sizes = self.pieces[piece + 1] - self.pieces[piece]
        inside = (place >= 0) & (place < sizes)
        flat = np.where(inside, self.pieces[piece] + place, 0)
        derived = np.asarray(language)[:, None] == DERIVED
        flat = np.where(derived & inside, self.pieces[piece] + self.order[flat], flat)
        ids, shared = self._in_language(flat, derived)
        ids[place == -1], ids[place == sizes] = self.special_ids.begin, self.special_ids.end
        # word ids, numbered from 0 in each row
        some, which = np.unique(piece, return_inverse=True)
        words, begins = self.words(some)
        in_piece = words[np.where(inside, begins[which.reshape(at.shape)] + flat - self.pieces[piece], 0)]
        number = piece - piece[:, :1]
        _, word = np.unique((np.arange(len(at))[:, None] << 40) + number * LONGEST * 2 + in_piece, return_inverse=True)
        word = word.reshape(at.shape)
        word -= word.min(axis=1, keepdims=True)
        return SubwordRows(
            clean_ids=ids,
            word_ids=np.where(inside, word, -1).astype(np.int32),
            sentence_ids=np.where(inside, number, -1).astype(np.int32),
            language=np.repeat(np.asarray(language, np.int8)[:, None], width, axis=1),
            side=np.zeros(at.shape, np.int8),
            positions=None,
            lengths=np.full(len(at), width, np.int64),
            shared=shared & inside,
        )

    def _in_language(self, at: Int64, derived: Bool) -> tuple[Int64, Bool]:
        """Return (ids of the sub-words at these positions, whether both languages have the same id).

        derived: which ids belong to the derived language.
        """
        ids = self.ids[at].astype(np.int64)
        joint = self.table[ids].astype(np.int64)
        if self.kept is not None:
            joint = np.where(self.kept[at].astype(bool), ids, joint)
        return np.where(derived, joint, ids), joint == ids


class TwinWriter(DataWriter):
    """Writes the sub-words of the source and their order."""

    def __init__(self, languages: TwinLanguages):
        self.languages = languages
        wide = "<u2" if languages.tokenizer.size <= 1 << 16 else "<i4"
        self.types = {"ids": wide, "order": "<u2", "begins": "|u1"} | ({"kept": "|u1"} if self._keeps else {})
        self._unknown = self._done = 0

    @property
    def _keeps(self) -> bool:
        return bool(self.languages.twin.map.overlap)

    def arrays(self, batch: Batch, both: ParallelBatch, pieces: Int64, begins: Bool) -> dict[str, Any]:
        self._unknown += int(np.count_nonzero(both.source.ids == self.languages.unknown_id))
        self._done += len(both.source.ids)
        start = np.repeat(pieces[:-1], np.diff(pieces))
        arrays = {"ids": both.source.ids, "order": restrict(both.derived.slots, pieces) - start, "begins": begins}
        if self._keeps:
            words: Bool = self.languages.twin.kept(batch.types)[batch.words]
            arrays["kept"] = np.repeat(words, lengths_of(both.offsets))
        return arrays

    def facts(self) -> dict[str, Any]:
        """Return {"unknown_percent"}: the share of unknown sub-words, which is the same in both languages."""
        return {"unknown_percent": [round(100 * self._unknown / max(self._done, 1), 2)] * 2}

    def last(self, pieces: Int64, seq_len: int, packing: Packing) -> dict[str, Int64]:
        return {"instances": pack(np.diff(pieces) + 1, seq_len - 1, single=packing == "single")}

    def sizes(
        self, pieces: Int64, last: dict[str, Int64], seq_len: int, packing: Packing
    ) -> tuple[int, list[tuple[int, int]]]:
        return int(pieces[-1]), [_epoch(pieces, len(last["instances"]) - 1, seq_len, packing)] * 2


def _epoch(pieces: Int64, n_instances: int, seq_len: int, packing: Packing) -> tuple[int, int]:
    """Return (rows of a language in an epoch, their positions that are not padding)."""
    n_pieces, subwords = len(pieces) - 1, int(pieces[-1])
    if packing == "stream":  # each piece has <s> and </s>, and rows have no padding
        rows = (subwords + 2 * n_pieces) // seq_len
        return rows, rows * seq_len
    return n_instances, subwords + n_pieces + n_instances  # each piece has </s>, each row <s>
