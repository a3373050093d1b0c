"""The encoded corpus of a trainer: the sub-words of each language in pieces, and the rows that are made of them.

A *piece* is a sentence, or a part of one that fits into a row: a range of slots (`languages/readers.py`), so all
languages have the same pieces. An *instance* is a row of whole pieces. A piece may have another number of sub-words in
each language, so each is packed into rows of its own.

    DIR/data.json                            source, settings, sizes of the files and fingerprint
    DIR/begins.bin                           [K] 1: the slot begins a word
    DIR/sentences.bin, keys.bin              int64[S + 1] slot offsets, uint64[S] content keys
    DIR/pieces.bin                           int64[P + 1] slot offsets
    DIR/ids.bin, slots.bin                   [M] id and slot (in its piece) of each sub-word, language by language in a
                                             piece; ids uint16, or int32 above 65,536
    DIR/shared.bin                           [M] 1: all languages have the same id in its slot; only with a twin
    DIR/starts.bin                           int64[P * L + 1] where the sub-words of each piece and language begin
    DIR/instances-0.bin, instances-1.bin     int64[I + 1] piece offsets, of each language

A sub-word takes some 11 bytes in two languages.

Sentences are packed into instances in the same way for every objective and for all languages (methods, section 4):

    <s> s1 </s> s2 </s> s3 </s> <pad> <pad>        whole sentences in source order, H sub-words

An instance ends when the next sentence does not fit or, with --packing single, after each. A sentence of more than
H - 2 sub-words is cut into consecutive pieces, before words if possible (a longer word is cut inside). The derived
instance holds the same sub-words: the order of a sentence is restricted to each of its pieces.
"""

from __future__ import annotations

import json
from dataclasses import dataclass
from functools import cached_property
from pathlib import Path
from typing import Any

import numpy as np

from derivlang.core.arrays import (
    Bool,
    Int32,
    Int64,
    Ints,
    UInt64,
    expand_ranges,
    lengths_of,
    offsets_of,
    owners,
)
from derivlang.core.errors import DataError
from derivlang.training.batch import Pieces, SubwordRows
from derivlang.training.languages import DERIVED, SOURCE, Languages, SpecialIds
from derivlang.training.settings import LONGEST

FORMAT = 3
NAME = "data.json"
_AT_ONCE = 1 << 22  # number of sub-words that are looked at together


@dataclass(frozen=True, eq=False, kw_only=True)
class Data:
    """Encoded data: the arrays of the files, the large ones memory-mapped.

    instances: by language, the first piece of each row, and the end of the last one. numbers: the languages in their
    run. mapped: bool[L], those that have one sub-word in each slot. stream: whether rows are cut from a stream, and not
    of whole pieces. recipe: the content of data.json.
    """

    begins: Ints
    sentences: Int64
    keys: UInt64
    pieces: Int64
    ids: Ints
    slots: Ints
    shared: Ints
    starts: Int64
    instances: tuple[Int64, ...]
    special_ids: SpecialIds
    seq_len: int
    numbers: tuple[int, ...] = (SOURCE, DERIVED)
    mapped: Bool
    stream: bool = False
    recipe: dict[str, Any]

    @classmethod
    def open(cls, folder: Path, languages: Languages) -> Data:
        """Open the data of a folder that was checked. Raise DataError if a stream is shorter than a row."""
        recipe = json.loads((folder / NAME).read_text("utf-8"))
        arrays = {name: _array(folder, name, recipe) for name in ("begins", "sentences", "ids", "slots", "shared")}
        # What is read for every row is held in memory.
        pieces, starts, *instances = (
            np.array(_array(folder, name, recipe)) for name in ("pieces", "starts", *instance_files(languages))
        )
        data = cls(
            **arrays,
            keys=_array(folder, "keys", recipe).view(np.uint64),
            pieces=pieces,
            starts=starts,
            instances=tuple(instances),
            special_ids=languages.special_ids,
            seq_len=recipe["seq_len"],
            numbers=languages.numbers,
            mapped=np.array([reader.lexicon is None for reader in languages.readers]),
            stream=recipe["packing"] == "stream",
            recipe=recipe,
        )
        if not data.n_instances(data.numbers[0]):
            raise DataError(
                f"the source has fewer sub-words than a row of a stream, {data.seq_len}",
                where="--seq-len",
                fix="lower it, or give --packing sentences",
                id="empty-split",
            )
        return data

    @cached_property
    def column(self) -> Int64:
        """int64[N]: the column of each language of the run; -1 for a language of another text."""
        column = np.full(max(self.numbers) + 1, -1)
        column[list(self.numbers)] = np.arange(len(self.numbers))
        return column

    @property
    def fingerprint(self) -> str:
        fingerprint: str = self.recipe["fingerprint"]
        return fingerprint

    @property
    def n_subwords(self) -> int:
        """The number of sub-words of the first language."""
        return int(self.sizes(np.arange(len(self.pieces) - 1), self.numbers[0]).sum())

    def n_instances(self, language: int) -> int:
        """Return the number of rows of a language in an epoch."""
        if self.stream:
            return int(np.diff(self._stream[:: len(self.pieces) - 1])[self.column[language]]) // self.seq_len
        return len(self.first_pieces(language)) - 1

    def first_pieces(self, language: int) -> Int64:
        """Return the first piece of each row of a language, and the end of the last one."""
        first: Int64 = self.instances[int(self.column[language])]
        return first

    def filled(self, language: int, instances: tuple[int, int] | None = None) -> int:
        """Return the number of positions that are not padding in rows of a language.

        instances: the first of them, and the last + 1; None for all.
        """
        first, last = instances or (0, self.n_instances(language))
        if self.stream:
            return (last - first) * self.seq_len
        begin, end = map(int, self.first_pieces(language)[[first, last]])
        # each piece has </s>, each row <s>
        return int(self.sizes(np.arange(begin, end), language).sum()) + end - begin + last - first

    def seen(self, language: int) -> Int32:
        """Return the ids that occur in the text of a language, sorted."""
        found = np.zeros(int(self.ids.max(initial=0)) + 1, bool)
        for pieces in np.array_split(np.arange(len(self.pieces) - 1), 1 + len(self.ids) // _AT_ONCE):
            starts = self.starts[self._cells(pieces, language)]
            found[self.ids[expand_ranges(starts, self.sizes(pieces, language))]] = True
        return np.flatnonzero(found).astype(np.int32)

    def sizes(self, pieces: Int64, language: Ints | int) -> Int64:
        """Return int64[P]: the number of sub-words of pieces [P], each in a language [P], or all in one."""
        cell = self._cells(pieces, language)
        return self.starts[cell + 1] - self.starts[cell]

    def tokens(self, pieces: Int64, language: Ints) -> Pieces:
        """Return the sub-words of pieces [P], each in a language [P].

        The slots 0 1 2 of a piece belong to its words 0 0 1, so sub-words in the slots 2 0 are of the words 1 0.
        """
        sizes = self.sizes(pieces, language)
        at = expand_ranges(self.starts[self._cells(pieces, language)], sizes)
        words, begins = self.words(pieces)
        word = words[np.repeat(begins[:-1], sizes) + self.slots[at]]
        spoken = np.repeat(np.asarray(language, np.int8), sizes)
        return Pieces(self.ids[at].astype(np.int64), word, spoken, self.shared[at].astype(bool))

    def links(self, pieces: Int64, left: Ints, right: Ints) -> Int64:
        """Return int64[2, L]: linked positions in the tokens of pieces [P] in two languages, `left` and `right` [P].

        A sub-word is linked to the other one of its slot; if words have different numbers of them, to all of its word's
        image.

        words of the source tokens 0 1 1, of the derived ones 1 0 0  ->  [[0, 0, 1, 2], [1, 2, 0, 0]]
        """
        by_slot = self.mapped[self.column[left]] & self.mapped[self.column[right]]
        source, derived = (self._numbered(pieces, language, by_slot) for language in (left, right))
        order = np.argsort(source, kind="stable")  # the partners of a derived sub-word are neighbours then
        first, last = (np.searchsorted(source[order], derived, side) for side in ("left", "right"))
        one, two = order[expand_ranges(first, last - first)], np.repeat(np.arange(len(derived)), last - first)
        order = np.lexsort((two, one))
        return np.stack([one[order], two[order]])

    def _numbered(self, pieces: Int64, language: Ints, by_slot: Bool) -> Int64:
        """Return int64[M]: the slot or the word of each sub-word of pieces, other numbers in other pieces."""
        sizes = self.sizes(pieces, language)
        at = expand_ranges(self.starts[self._cells(pieces, language)], sizes)
        number = self.slots[at]
        if not by_slot.all():
            number = np.where(np.repeat(by_slot, sizes), number, self.tokens(pieces, language).words)
        return (np.repeat(np.arange(len(pieces)), sizes) << 20) + number

    def _cells(self, pieces: Int64, language: Ints | int) -> Int64:
        """Return int64[P]: the places of pieces [P] in `starts`, each in a language [P]."""
        return np.asarray(pieces) * len(self.instances) + self.column[np.asarray(language, np.int64)]

    def rows(self, instances: Ints, language: Ints) -> SubwordRows:
        """Return the rows of instances [B], each in a language [B]."""
        language = np.asarray(language)
        if self.stream:
            return self._cut_from_stream(np.asarray(instances, np.int64), language)
        ends = np.zeros((2, len(instances)), np.int64)
        for number, first in zip(self.numbers, self.instances, strict=True):
            some = language == number
            ends[:, some] = first[instances[some] + [[0], [1]]]
        sizes = ends[1] - ends[0]
        return self.rows_of(expand_ranges(ends[0], sizes), offsets_of(sizes), language, self.seq_len)

    @cached_property
    def _stream(self) -> Int64:
        """int64[L * P + 1]: the offset of each piece in the streams of all languages, one after the other."""
        pieces = np.arange(len(self.pieces) - 1)
        return offsets_of(np.concatenate([self.sizes(pieces, n) + 2 for n in self.numbers]))

    def _cut_from_stream(self, instances: Int64, language: Ints) -> SubwordRows:
        """Return rows of the stream `<s> p1 </s> <s> p2 </s> …`, cut every H positions, as the released code does.

        two pieces, "a b" and "c d e", H 5: stream [0, 4, 9]
        instance 0  <s> a b </s> <s>      piece 0 0 0 0 1    place in the piece  -1 0 1 2 -1    (-1 <s>, size </s>)
        """
        width, before = self.seq_len, self.column[language][:, None] * (len(self.pieces) - 1)
        at = self._stream[before] + instances[:, None] * width + np.arange(width)
        piece = np.searchsorted(self._stream, at, "right") - 1
        place = at - self._stream[piece] - 1
        piece -= before
        sizes = self.sizes(piece, language[:, None])
        inside = (place >= 0) & (place < sizes)
        flat = np.where(inside, self.starts[self._cells(piece, language[:, None])] + place, 0)
        ids = self.ids[flat].astype(np.int64)
        ids[place == -1], ids[place == sizes] = self.special_ids.begin, self.special_ids.end
        # word ids, numbered from 0 in each row
        some, which = np.unique(piece, return_inverse=True)
        words, begins = self.words(some)
        in_piece = words[np.where(inside, begins[which.reshape(at.shape)] + self.slots[flat], 0)]
        number = piece - piece[:, :1]
        _, word = np.unique((np.arange(len(at))[:, None] << 40) + number * LONGEST * 2 + in_piece, return_inverse=True)
        word = word.reshape(at.shape)
        word -= word.min(axis=1, keepdims=True)
        return SubwordRows(
            clean_ids=ids,
            word_ids=np.where(inside, word, -1).astype(np.int32),
            sentence_ids=np.where(inside, number, -1).astype(np.int32),
            language=np.repeat(language.astype(np.int8)[:, None], width, axis=1),
            side=np.zeros(at.shape, np.int8),
            positions=None,
            lengths=np.full(len(at), width, np.int64),
            shared=self.shared[flat].astype(bool) & inside,
        )

    def words(self, pieces: Int64) -> tuple[Int64, Int64]:
        """Return (int64[K]: the word of each slot of pieces, counted in its piece; int64[P + 1]: offsets of pieces)."""
        starts, offsets = self.pieces[pieces], offsets_of(self.pieces[pieces + 1] - self.pieces[pieces])
        count = np.cumsum(self.begins[expand_ranges(starts, lengths_of(offsets))], dtype=np.int64)
        return count - np.repeat(np.append(count, 0)[offsets[:-1]], lengths_of(offsets)), offsets

    def rows_of(self, pieces: Int64, offsets: Int64, language: Ints, length: int) -> SubwordRows:
        """Return rows of the pieces `pieces[offsets[b]:offsets[b + 1]]`, each row in a language [B]."""
        language = np.asarray(language)
        spoken = language[owners(offsets)]
        sizes = self.sizes(pieces, spoken)
        lengths = 1 + lengths_of(offsets_of(sizes + 1)[offsets])  # <s>, then each piece followed by </s>
        rows = SubwordRows.blank(language[:, None], length, lengths, self.special_ids)
        rows.write(self.tokens(pieces, spoken), sizes, offsets, spoken, np.zeros_like(lengths), self.special_ids)
        return rows


def instance_files(languages: Languages) -> list[str]:
    """Return the names of the files of instances, by language."""
    return [f"instances-{number}" for number in range(len(languages.own))]


def _array(folder: Path, name: str, recipe: dict[str, Any]) -> Any:
    """Return the array of a file, memory-mapped."""
    dtype, n = recipe["files"][name]
    return np.memmap(folder / f"{name}.bin", dtype, "r", shape=(n,))


def cut(sentences: Int64, words: Ints, most: int) -> Int64:
    """Return int64[P + 1]: the sub-word offsets of non-empty pieces.

    sentences: int64[S + 1] sub-word offsets. words: [M], the word of each sub-word, ascending. most: maximum number of
    sub-words in a piece.

        sentences [0, 5], words [0 0 1 1 2], most 3  ->  [0, 2, 5]: position 3 is inside word 1, which begins at 2
    """
    lengths = np.diff(sentences)
    starts = [sentences[:-1][lengths > 0]]
    for s in np.flatnonzero(lengths > most):
        begin, end = int(sentences[s]), int(sentences[s + 1])
        extra = []
        while end - begin > most:
            at = begin + most
            word = int(np.searchsorted(words[begin:end], words[at], "left")) + begin  # where the word at the cut begins
            begin = word if word > begin else at
            extra.append(begin)
        starts.append(np.array(extra, np.int64))
    return np.append(np.sort(np.concatenate(starts)), sentences[-1])


def pack(lengths: Int64, room: int, *, single: bool = False) -> Int64:
    """Return int64[I + 1]: the piece offsets of instances, filled greedily, or of a single piece each.

    lengths: int64[P], each with its `</s>`, at most `room`. room: H - 1.

        lengths [3, 2, 4, 1], room 5  ->  [0, 2, 4]: pieces of 3 + 2 and of 4 + 1 sub-words
    """
    if single:
        return np.arange(len(lengths) + 1)
    ends = np.concatenate([[0], np.cumsum(lengths)])
    cuts = [0]
    while cuts[-1] < len(lengths):
        # the last piece that ends at most `room` sub-words after the last cut
        cuts.append(int(np.searchsorted(ends, ends[cuts[-1]] + room, "right")) - 1)
    return np.array(cuts, np.int64)
