"""The encoded corpus of a trainer: a source's sub-words and their derived order, in flat files that are memory-mapped.

    DATA/data.json            what it is of, its counts and its fingerprint
    DATA/ids.bin              [M] the source's id of each sub-word           uint16, or int32 above 65,536 entries
    DATA/order.bin            [M] place in its piece of the source sub-word that stands here in the derived language
    DATA/begins.bin           [M] 1: begins a word
    DATA/kept.bin             [M] 1: the overlap keeps its id; only where there is an overlap
    DATA/sentences.bin        int64[S + 1] sub-word offsets;  DATA/keys.bin uint64[S], content keys
    DATA/pieces.bin           int64[P + 1] sub-word offsets;  DATA/instances.bin int64[I + 1] piece offsets

No derived text is kept: the derived language's ids are the source's, reordered and sent through the twin's table. Five
bytes a sub-word and 24 a sentence, so WikiText-103 takes some 700 MB on disk and next to nothing in memory.
"""

from __future__ import annotations

import json
from dataclasses import dataclass, fields
from pathlib import Path
from typing import Any, Literal

import numpy as np

from derivlang.core.arrays import Bool, Int32, Int64, Ints, UInt64, lengths_of, offsets_of, owners, places, spread
from derivlang.core.errors import StoreError
from derivlang.training.languages import DERIVED, Languages

FORMAT = 2
NAME = "data.json"
LONGEST = 1 << 15  # sub-words in an instance: places are kept in 16 bits
Packing = Literal["sentences", "stream"]


@dataclass(frozen=True, slots=True, eq=False)
class Rows:
    """B rows of at most H sub-words. ids: int64[B, H], `<pad>` after the end. groups: int32[B, H], the word of each
    sub-word, -1 for marks and padding. language: int8[B, H]. positions: int32[B, H]. lengths: int64[B]. shared:
    bool[B, H], sub-words that are the same in both languages: of an overlap, or special tokens of the text."""

    ids: Int64
    groups: Int32
    language: Ints
    positions: Int32
    lengths: Int64
    shared: Bool

    @property
    def shape(self) -> tuple[int, int]:
        return self.ids.shape[0], self.ids.shape[1]

    def take(self, which: Ints | slice) -> Rows:
        return Rows(*(getattr(self, field.name)[which] for field in fields(self)))


@dataclass(frozen=True, slots=True)
class Marks:
    """The ids of the marks that stand in every vocabulary."""

    begin: int
    pad: int
    end: int
    mask: int

    @classmethod
    def of(cls, languages: Languages) -> Marks:
        ids = {entry: i for i, entry in enumerate(languages.tokenizer.bpe.entries[: languages.tokenizer.n_special])}
        return cls(ids["<s>"], ids["<pad>"], ids["</s>"], ids["<mask>"])


@dataclass(frozen=True, slots=True, eq=False)
class Data:
    """Encoded data: the arrays of the files, memory-mapped where they are large.

    table: int32[V], the joint id of each of the twin's. recipe: of data.json.
    """

    ids: Ints
    order: Ints
    begins: Ints
    sentences: Int64
    keys: UInt64
    pieces: Int64
    instances: Int64
    kept: Ints | None
    table: Int32
    marks: Marks
    seq_len: int
    recipe: dict[str, Any]
    stream: Int64  # int64[P + 1]: where each piece begins in the stream of all, its two marks counted

    @classmethod
    def open(cls, folder: Path, languages: Languages) -> Data:
        """The data of a folder; StoreError where it is none, or was cut off."""
        recipe = read_recipe(folder)
        large = {name: _mapped(folder, name, recipe) for name in ("ids", "order", "begins", "sentences", "keys")}
        # Offsets are gone through in every batch: in memory.
        small = {name: np.array(_mapped(folder, name, recipe)) for name in ("pieces", "instances")}
        large["keys"] = large["keys"].view(np.uint64)
        kept = _mapped(folder, "kept", recipe) if recipe["kept"] else None
        stream = offsets_of(np.diff(small["pieces"]) + 2)
        table, marks = languages.twin.joint.table(), Marks.of(languages)
        return cls(
            **large,
            **small,
            kept=kept,
            table=table,
            marks=marks,
            seq_len=recipe["seq_len"],
            recipe=recipe,
            stream=stream,
        )

    @property
    def fingerprint(self) -> str:
        found: str = self.recipe["fingerprint"]
        return found

    @property
    def n_instances(self) -> int:
        if self.packing == "stream":
            return int(self.stream[-1]) // self.seq_len
        return len(self.instances) - 1

    @property
    def packing(self) -> Packing:
        found: Packing = self.recipe.get("packing", "sentences")
        return found

    @property
    def n_subwords(self) -> int:
        return len(self.ids)

    def rows(self, instances: Ints, language: Ints, length: int | None = None) -> Rows:
        """Instances [B], each in a language [B] (SOURCE or DERIVED)."""
        if self.packing == "stream":
            return self._cut_from_stream(np.asarray(instances, np.int64), np.asarray(language))
        first, last = self.instances[instances], self.instances[np.asarray(instances) + 1]
        pieces = spread(first, last - first)
        return self.rows_of(pieces, offsets_of(last - first), language, length or self.seq_len)

    def _cut_from_stream(self, instances: Int64, language: Ints) -> Rows:
        """Rows of the stream `<s> p1 </s> <s> p2 </s> …`, cut every H places, as the released MLM and ALIGN runs do."""
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
        ids[place == -1], ids[place == sizes] = self.marks.begin, self.marks.end
        # words, counted in their row
        some, which = np.unique(piece, return_inverse=True)
        words, begins = self._words(some)
        in_piece = words[np.where(inside, begins[which.reshape(at.shape)] + flat - self.pieces[piece], 0)]
        word = (piece - piece[:, :1]) * LONGEST * 2 + in_piece
        _, number = np.unique((np.arange(len(at))[:, None] << 40) + word, return_inverse=True)
        number = number.reshape(at.shape)
        groups = np.where(inside, number - number.min(axis=1, keepdims=True), -1)
        return Rows(
            ids,
            groups.astype(np.int32),
            np.repeat(np.asarray(language, np.int8)[:, None], width, axis=1),
            np.repeat(np.arange(width, dtype=np.int32)[None], len(at), axis=0),
            np.full(len(at), width, np.int64),
            shared & inside,
        )

    def _words(self, pieces: Int64) -> tuple[Int64, Int64]:
        """(int64[M] the word of each sub-word of these pieces, counted in its piece; int64[P + 1] their offsets)."""
        starts, offsets = self.pieces[pieces], offsets_of(self.pieces[pieces + 1] - self.pieces[pieces])
        count = np.cumsum(self.begins[spread(starts, lengths_of(offsets))], dtype=np.int64)
        return count - np.repeat(np.append(count, 0)[offsets[:-1]], lengths_of(offsets)), offsets

    def _in_language(self, at: Int64, derived: Bool) -> tuple[Int64, Bool]:
        """The ids of sub-words, by their places; of the derived language where `derived` says so. Are both the same?"""
        ids = self.ids[at].astype(np.int64)
        joint = self.table[ids].astype(np.int64)
        if self.kept is not None:
            joint = np.where(self.kept[at].astype(bool), ids, joint)
        return np.where(derived, joint, ids), joint == ids

    def rows_of(self, pieces: Int64, offsets: Int64, language: Ints, length: int) -> Rows:
        """Rows of the pieces `pieces[offsets[b]:offsets[b + 1]]`, each row in a language [B]."""
        n_rows = len(offsets) - 1
        starts = self.pieces[pieces]
        sizes = self.pieces[pieces + 1] - starts
        flat = spread(starts, sizes)
        piece = np.repeat(np.arange(len(pieces)), sizes)
        row_of_piece = owners(offsets)
        derived = np.asarray(language)[row_of_piece][piece] == DERIVED
        base = np.repeat(starts, sizes)
        at = np.where(derived, base + self.order[flat], flat)
        words, begins = self._words(pieces)
        ids, shared = self._in_language(at, derived)
        # a row is <s>, then each piece and its </s>
        with_mark = sizes + 1
        ends = np.cumsum(with_mark)
        row_start = np.concatenate([[0], ends])[offsets[:-1]]
        piece_column = 1 + ends - with_mark - row_start[row_of_piece]
        column = np.repeat(piece_column, sizes) + places(offsets_of(sizes))
        row = row_of_piece[piece]
        lengths = 1 + np.concatenate([[0], ends])[offsets[1:]] - row_start
        out = Rows(
            np.full((n_rows, length), self.marks.pad, np.int64),
            np.full((n_rows, length), -1, np.int32),
            np.repeat(np.asarray(language, np.int8)[:, None], length, axis=1),
            np.repeat(np.arange(length, dtype=np.int32)[None], n_rows, axis=0),
            lengths,
            np.zeros((n_rows, length), bool),
        )
        out.ids[:, 0] = self.marks.begin
        out.ids[row, column] = ids
        out.shared[row, column] = shared
        out.ids[row_of_piece, piece_column + sizes] = self.marks.end
        out.groups[row, column] = piece_column[piece] + words[begins[piece] + at - base]
        return out


def read_recipe(folder: Path) -> dict[str, Any]:
    """`data.json`; StoreError where it is missing, damaged or of another format."""
    path = folder / NAME
    try:
        recipe: dict[str, Any] = json.loads(path.read_text("utf-8"))
        if recipe["format"] != FORMAT:
            raise ValueError(f"format {recipe['format']}, but this version reads {FORMAT}")
        _ = recipe["files"], recipe["fingerprint"], recipe["seq_len"], recipe["kept"]
    except (OSError, ValueError, KeyError, TypeError) as error:
        raise StoreError(
            f"no encoded data: {error}", where=str(path), fix="remove the folder, and run pretrain again", id="data"
        ) from None
    return recipe


def _mapped(folder: Path, name: str, recipe: dict[str, Any]) -> Any:
    path, (dtype, n) = folder / f"{name}.bin", recipe["files"][name]
    if not path.exists() or path.stat().st_size != n * np.dtype(dtype).itemsize:
        raise StoreError("is missing or was cut off", where=str(path), fix="remove the folder and run again", id="data")
    return np.memmap(path, dtype, "r", shape=(n,))
