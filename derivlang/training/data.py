"""The encoded corpus of a trainer: a source's sub-words and their derived order, in flat memory-mapped files.

    DATA/data.json            source, settings, counts and fingerprint
    DATA/ids.bin              [M] the source's id of each sub-word           uint16, or int32 above 65,536 entries
    DATA/order.bin            [M] position in its piece of the source sub-word that stands here in the derived language
    DATA/begins.bin           [M] 1: begins a word
    DATA/kept.bin             [M] 1: the overlap keeps its id; only with an overlap
    DATA/sentences.bin        int64[S + 1] sub-word offsets;  DATA/keys.bin uint64[S], content keys
    DATA/pieces.bin           int64[P + 1] sub-word offsets;  DATA/instances.bin int64[I + 1] piece offsets

The files hold no derived text: the derived language's ids are the source's, reordered and mapped by the twin's table. A
sub-word takes 5 bytes and a sentence 24, so WikiText-103 takes some 650 MB on disk and almost no memory.
"""

from __future__ import annotations

from dataclasses import dataclass, fields
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
    positions,
)
from derivlang.core.errors import StoreError
from derivlang.store.journal import file_hash
from derivlang.store.record import check_types, read_record, short
from derivlang.training.languages import DERIVED, Languages
from derivlang.training.settings import LONGEST, Packing

FORMAT = 2
NAME = "data.json"
_LONGEST = 1 << 20  # maximum seq_len of a valid recipe
_DTYPES = ("<u2", "<i4", "<i8", "|u1")


@dataclass(frozen=True, slots=True, eq=False)
class SubwordRows:
    """B rows of at most H sub-words.

    ids: int64[B, H], `<pad>` after the end. word_ids, sentence_ids: int32[B, H], numbers within the row, -1 for special
    ids and padding. language: int8[B, H]. side: int8[B, H], 1 in the second half of a pair row, else 0. positions:
    int32[B, H], or None for 0 … H - 1. lengths: int64[B]. shared: bool[B, H], sub-words with one id in both languages:
    those of an overlap, and special tokens of the text. links: int32[L, 3], row, from column and to column, sorted;
    None without links. translated: bool[B, H], sub-words that a stream has replaced by translations; None: none.
    """

    ids: Int64
    word_ids: Int32
    sentence_ids: Int32
    language: Ints
    side: Ints
    positions: Int32 | None
    lengths: Int64
    shared: Bool
    links: Int32 | None = None
    translated: Bool | None = None

    @property
    def shape(self) -> tuple[int, int]:
        return self.ids.shape[0], self.ids.shape[1]

    def take(self, first: int, last: int) -> SubwordRows:
        """Return the rows first … last - 1."""
        links = self.links
        if links is not None:
            begin, end = np.searchsorted(links[:, 0], [first, last])
            links = links[begin:end] - np.array([first, 0, 0], np.int32)
        found: dict[str, Any] = {f.name: getattr(self, f.name) for f in fields(self) if f.name != "links"}
        found = {name: array if array is None else array[first:last] for name, array in found.items()}
        return SubwordRows(**found, links=links)


@dataclass(frozen=True, slots=True, eq=False)
class PieceTokens:
    """The sub-words of pieces, one after the other, without special ids.

    ids: int64[M]. words: int64[M], the word of each sub-word, counted in its piece. language: int8[M]. shared: bool[M],
    sub-words with one id in both languages.
    """

    ids: Int64
    words: Int64
    language: Ints
    shared: Bool


@dataclass(frozen=True, slots=True)
class SpecialIds:
    """The special ids that every vocabulary has."""

    begin: int
    pad: int
    end: int
    mask: int

    @classmethod
    def of(cls, languages: Languages) -> SpecialIds:
        """Return the special ids of the source's tokenizer, which the twin shares."""
        ids = {entry: i for i, entry in enumerate(languages.tokenizer.bpe.entries[: languages.tokenizer.n_special])}
        return cls(ids["<s>"], ids["<pad>"], ids["</s>"], ids["<mask>"])


@dataclass(frozen=True, slots=True, eq=False)
class Data:
    """Encoded data: the arrays of the files, the large ones memory-mapped.

    table: int32[V], the joint id of each id of the twin. recipe: the content of data.json.
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
    marks: SpecialIds
    seq_len: int
    recipe: dict[str, Any]
    stream: Int64  # int64[P + 1]: offset of each piece in the stream of all, with its <s> and </s>

    @classmethod
    def open(cls, folder: Path, languages: Languages) -> Data:
        """Open the data of a folder. Raise StoreError if it is not one, or is cut off."""
        recipe = read_recipe(folder)
        large = {name: _mapped(folder, name, recipe) for name in ("ids", "order", "begins", "sentences", "keys")}
        # Every batch reads offsets, so they are kept in memory.
        small = {name: np.array(_mapped(folder, name, recipe)) for name in ("pieces", "instances")}
        large["keys"] = large["keys"].view(np.uint64)
        for name, ends in (("pieces", len(large["ids"])), ("instances", len(small["pieces"]) - 1)):
            if small[name][0] != 0 or small[name][-1] != ends or (np.diff(small[name]) < 0).any():
                raise StoreError(
                    "its offsets do not fit the other files",
                    where=str(folder / f"{name}.bin"),
                    fix="remove the folder and run again",
                    id="data",
                )
        kept = _mapped(folder, "kept", recipe) if recipe["kept"] else None
        stream = offsets_of(np.diff(small["pieces"]) + 2)
        table, marks = languages.twin.joint.table(), SpecialIds.of(languages)
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

    def rows(self, instances: Ints, language: Ints, length: int | None = None) -> SubwordRows:
        """Return the rows of instances [B], each in a language [B] (SOURCE or DERIVED)."""
        if self.packing == "stream":
            return self._cut_from_stream(np.asarray(instances, np.int64), np.asarray(language))
        first, last = self.instances[instances], self.instances[np.asarray(instances) + 1]
        pieces = expand_ranges(first, last - first)
        return self.rows_of(pieces, offsets_of(last - first), language, length or self.seq_len)

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
        ids[place == -1], ids[place == sizes] = self.marks.begin, self.marks.end
        # word ids, numbered from 0 in each row
        some, which = np.unique(piece, return_inverse=True)
        words, begins = self._words(some)
        in_piece = words[np.where(inside, begins[which.reshape(at.shape)] + flat - self.pieces[piece], 0)]
        number = piece - piece[:, :1]
        _, word = np.unique((np.arange(len(at))[:, None] << 40) + number * LONGEST * 2 + in_piece, return_inverse=True)
        word = word.reshape(at.shape)
        word -= word.min(axis=1, keepdims=True)
        return SubwordRows(
            ids=ids,
            word_ids=np.where(inside, word, -1).astype(np.int32),
            sentence_ids=np.where(inside, number, -1).astype(np.int32),
            language=np.repeat(np.asarray(language, np.int8)[:, None], width, axis=1),
            side=np.zeros(at.shape, np.int8),
            positions=None,
            lengths=np.full(len(at), width, np.int64),
            shared=shared & inside,
        )

    def tokens(self, pieces: Int64, language: Ints) -> PieceTokens:
        """Return the sub-words of pieces [P], each in a language [P] (SOURCE or DERIVED).

        a piece "a b c" with order [2, 0, 1], derived  ->  the ids of c' a' b', words [2, 0, 1]
        """
        starts = self.pieces[pieces]
        sizes = self.pieces[pieces + 1] - starts
        flat, base = expand_ranges(starts, sizes), np.repeat(starts, sizes)
        spoken = np.repeat(np.asarray(language, np.int8), sizes)
        at = np.where(spoken == DERIVED, base + self.order[flat], flat)
        words, begins = self._words(pieces)
        ids, shared = self._in_language(at, spoken == DERIVED)
        return PieceTokens(ids, words[np.repeat(begins[:-1], sizes) + at - base], spoken, shared)

    def _words(self, pieces: Int64) -> tuple[Int64, Int64]:
        """Return (int64[M]: number of each sub-word's word, counted in its piece; int64[P + 1]: offsets of pieces)."""
        starts, offsets = self.pieces[pieces], offsets_of(self.pieces[pieces + 1] - self.pieces[pieces])
        count = np.cumsum(self.begins[expand_ranges(starts, lengths_of(offsets))], dtype=np.int64)
        return count - np.repeat(np.append(count, 0)[offsets[:-1]], lengths_of(offsets)), offsets

    def _in_language(self, at: Int64, derived: Bool) -> tuple[Int64, Bool]:
        """Return (ids of the sub-words at these positions, whether both languages have the same id).

        derived: which ids are those of the derived language.
        """
        ids = self.ids[at].astype(np.int64)
        joint = self.table[ids].astype(np.int64)
        if self.kept is not None:
            joint = np.where(self.kept[at].astype(bool), ids, joint)
        return np.where(derived, joint, ids), joint == ids

    def rows_of(self, pieces: Int64, offsets: Int64, language: Ints, length: int) -> SubwordRows:
        """Return rows of the pieces `pieces[offsets[b]:offsets[b + 1]]`, each row in a language [B].

        one row of two pieces with 2 and 3 sub-words, length 9
        columns      0    1 2   3     4 5 6   7     8
        ids         <s>   a b  </s>   c d e  </s>  <pad>      piece_column [1, 4]: column of each piece's first
        """
        n_rows = len(offsets) - 1
        sizes = self.pieces[pieces + 1] - self.pieces[pieces]
        row_of_piece = owners(offsets)
        tokens = self.tokens(pieces, np.asarray(language)[row_of_piece])
        # a row is <s>, then each piece followed by </s>
        with_mark = sizes + 1
        ends = np.cumsum(with_mark)
        row_start = np.concatenate([[0], ends])[offsets[:-1]]
        piece_column = 1 + ends - with_mark - row_start[row_of_piece]
        column = np.repeat(piece_column, sizes) + positions(offsets_of(sizes))
        row = np.repeat(row_of_piece, sizes)
        shape = (n_rows, length)
        out = SubwordRows(
            ids=np.full(shape, self.marks.pad, np.int64),
            word_ids=np.full(shape, -1, np.int32),
            sentence_ids=np.full(shape, -1, np.int32),
            language=np.repeat(np.asarray(language, np.int8)[:, None], length, axis=1),
            side=np.zeros(shape, np.int8),
            positions=None,
            lengths=1 + np.concatenate([[0], ends])[offsets[1:]] - row_start,
            shared=np.zeros(shape, bool),
        )
        out.ids[:, 0] = self.marks.begin
        out.ids[row, column] = tokens.ids
        out.shared[row, column] = tokens.shared
        out.ids[row_of_piece, piece_column + sizes] = self.marks.end
        out.word_ids[row, column] = np.repeat(piece_column, sizes) + tokens.words
        out.sentence_ids[row, column] = np.repeat(positions(offsets), sizes)
        return out


def read_recipe(folder: Path) -> dict[str, Any]:
    """Return `data.json`. Raise StoreError if it is missing, damaged or of another format."""
    fix = "remove the folder, and run pretrain again"
    if not (folder / NAME).exists():
        raise StoreError(f"no encoded data: there is no {NAME}", where=str(folder), fix=fix, id="data")
    return read_record(folder / NAME, "recipe of encoded data", _check, id="data", fix=fix)


def _check(recipe: dict[str, Any]) -> None:
    if recipe.get("format") != FORMAT:
        raise ValueError(f"format {short(recipe.get('format'))}, but this version reads {FORMAT}")
    check_types(recipe, {"files": dict, "fingerprint": str, "seq_len": int, "kept": bool}, {"sha256": dict})
    if not 3 <= recipe["seq_len"] <= _LONGEST:
        raise ValueError(f"seq_len is {recipe['seq_len']}")
    names = ("ids", "order", "begins", "sentences", "keys", "pieces", "instances")
    for name in (*names, *(["kept"] if recipe["kept"] else [])):
        dtype, n = recipe["files"][name]
        if dtype not in _DTYPES or not isinstance(n, int) or n < 0:
            raise ValueError(f"{name} has the type {short(dtype)} and {short(n)} entries")


def _mapped(folder: Path, name: str, recipe: dict[str, Any]) -> Any:
    path, (dtype, n) = folder / f"{name}.bin", recipe["files"][name]
    if not path.exists() or path.stat().st_size != n * np.dtype(dtype).itemsize:
        raise StoreError("is missing or was cut off", where=str(path), fix="remove the folder and run again", id="data")
    told = (recipe.get("sha256") or {}).get(name)  # missing in folders of earlier versions
    if told is not None and told != file_hash(path):
        raise StoreError("was changed", where=str(path), fix="remove the folder and run again", id="data")
    return np.memmap(path, dtype, "r", shape=(n,))
