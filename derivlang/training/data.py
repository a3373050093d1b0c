"""The encoded corpus of a trainer: the sub-words of both languages in pieces, and the rows that are made of them.

A *piece* is a sentence, or a part of one that fits into a row: a range of slots (`languages/base.py`), so both
languages have the same pieces. An *instance* is a row of whole pieces. `twin_data.py` and `text_data.py` say what the
files of both kinds of languages hold; these files are common to both:

    DATA/data.json                           source, settings, counts and fingerprint
    DATA/begins.bin                          [K] 1: the slot begins a word
    DATA/sentences.bin, keys.bin             int64[S + 1] slot offsets, uint64[S] content keys
    DATA/pieces.bin                          int64[P + 1] slot offsets
    DATA/stamps.json                         size and time of each file, as they were written

Opening data reads the hash of a file only if its size or time is another one, as in a copy: a billion sub-words are
7 GB. `derivlang verify RUN` reads the hashes of all.
"""

from __future__ import annotations

import json
from abc import ABC, abstractmethod
from collections.abc import Iterator
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import numpy as np

from derivlang.core.arrays import (
    Bool,
    Int64,
    Ints,
    UInt64,
    expand_ranges,
    lengths_of,
    offsets_of,
    owners,
    positions,
)
from derivlang.core.batch import Batch
from derivlang.core.errors import StoreError
from derivlang.store.listing import file_hash
from derivlang.store.record import Kind, check_types, read_record, record_text, short
from derivlang.training.batch import Pieces, SubwordRows
from derivlang.training.languages import ParallelBatch, SpecialIds
from derivlang.training.settings import Packing

FORMAT = 2
NAME, STAMPS = "data.json", "stamps.json"
_LONGEST = 1 << 20  # maximum seq_len of a valid recipe
_DTYPES = ("<u2", "<i4", "<i8", "|u1")


@dataclass(frozen=True, eq=False)
class Data(ABC):
    """Encoded data: the arrays of the files, the large ones memory-mapped. recipe: the content of data.json."""

    begins: Ints
    sentences: Int64
    keys: UInt64
    pieces: Int64
    special_ids: SpecialIds
    seq_len: int
    recipe: dict[str, Any]

    @property
    def fingerprint(self) -> str:
        fingerprint: str = self.recipe["fingerprint"]
        return fingerprint

    @property
    @abstractmethod
    def n_subwords(self) -> int:
        """The number of sub-words of the source."""

    @abstractmethod
    def n_instances(self, language: int) -> int:
        """Return the number of rows of a language in an epoch."""

    @abstractmethod
    def first_pieces(self, language: int) -> Int64:
        """Return int64[n + 1]: the first piece of each row of a language, and the end of the last one."""

    def filled(self, language: int, instances: tuple[int, int] | None = None) -> int:
        """Return the number of positions that are not padding in rows of a language.

        instances: the first of them, and the last + 1; None for all.
        """
        first, last = instances or (0, self.n_instances(language))
        ends = self.first_pieces(language)
        begin, end = int(ends[first]), int(ends[last])
        pieces = np.arange(begin, end)
        # each piece has </s>, each row <s>
        return int(self.sizes(pieces, np.full(len(pieces), language)).sum()) + end - begin + last - first

    @abstractmethod
    def sizes(self, pieces: Int64, language: Ints) -> Int64:
        """Return int64[P]: the number of sub-words of pieces [P], each in a language [P]."""

    @abstractmethod
    def tokens(self, pieces: Int64, language: Ints) -> Pieces:
        """Return the sub-words of pieces [P], each in a language [P] (SOURCE or DERIVED)."""

    @abstractmethod
    def links(self, pieces: Int64) -> Int64:
        """Return int64[2, L]: linked positions in the source tokens of pieces [P] and in the derived ones."""

    @abstractmethod
    def rows(self, instances: Ints, language: Ints) -> SubwordRows:
        """Return the rows of instances [B], each in a language [B] (SOURCE or DERIVED)."""

    def words(self, pieces: Int64) -> tuple[Int64, Int64]:
        """Return (int64[K]: the word of each slot of pieces, counted in its piece; int64[P + 1]: offsets of pieces)."""
        starts, offsets = self.pieces[pieces], offsets_of(self.pieces[pieces + 1] - self.pieces[pieces])
        count = np.cumsum(self.begins[expand_ranges(starts, lengths_of(offsets))], dtype=np.int64)
        return count - np.repeat(np.append(count, 0)[offsets[:-1]], lengths_of(offsets)), offsets

    def rows_of(self, pieces: Int64, offsets: Int64, language: Ints, length: int) -> SubwordRows:
        """Return rows of the pieces `pieces[offsets[b]:offsets[b + 1]]`, each row in a language [B].

        one row of two pieces with 2 and 3 sub-words, length 9
        columns      0    1 2   3     4 5 6   7     8
        ids         <s>   a b  </s>   c d e  </s>  <pad>      piece_column [1, 4]: column of each piece's first
        """
        n_rows = len(offsets) - 1
        row_of_piece = owners(offsets)
        spoken = np.asarray(language)[row_of_piece]
        sizes = self.sizes(pieces, spoken)
        tokens = self.tokens(pieces, spoken)
        # a row is <s>, then each piece followed by </s>
        with_mark = sizes + 1
        ends = np.cumsum(with_mark)
        row_start = np.concatenate([[0], ends])[offsets[:-1]]
        piece_column = 1 + ends - with_mark - row_start[row_of_piece]
        column = np.repeat(piece_column, sizes) + positions(offsets_of(sizes))
        row = np.repeat(row_of_piece, sizes)
        shape = (n_rows, length)
        out = SubwordRows(
            clean_ids=np.full(shape, self.special_ids.pad, np.int64),
            word_ids=np.full(shape, -1, np.int32),
            sentence_ids=np.full(shape, -1, np.int32),
            language=np.repeat(np.asarray(language, np.int8)[:, None], length, axis=1),
            side=np.zeros(shape, np.int8),
            positions=None,
            lengths=1 + np.concatenate([[0], ends])[offsets[1:]] - row_start,
            shared=np.zeros(shape, bool),
        )
        out.clean_ids[:, 0] = self.special_ids.begin
        out.clean_ids[row, column] = tokens.ids
        out.shared[row, column] = tokens.shared
        out.clean_ids[row_of_piece, piece_column + sizes] = self.special_ids.end
        out.word_ids[row, column] = np.repeat(piece_column, sizes) + tokens.words
        out.sentence_ids[row, column] = np.repeat(positions(offsets), sizes)
        return out


class DataWriter(ABC):
    """What `encode.py` writes of one kind of languages. types: the type of each file that is written batch by batch."""

    types: dict[str, str]

    def facts(self) -> dict[str, Any]:
        """Return what data.json records of the batches so far; {} for nothing."""
        return {}

    @abstractmethod
    def arrays(self, batch: Batch, both: ParallelBatch, pieces: Int64, begins: Bool) -> dict[str, Any]:
        """Return what a batch adds to the files of `types`.

        pieces: int64[P + 1], slot offsets; begins: bool[K], the slots that begin a word.
        """

    @abstractmethod
    def last(self, pieces: Int64, seq_len: int, packing: Packing) -> dict[str, Int64]:
        """Return the int64 files that follow from all pieces, int64[P + 1] slot offsets: the files of instances."""

    @abstractmethod
    def sizes(
        self, pieces: Int64, last: dict[str, Int64], seq_len: int, packing: Packing
    ) -> tuple[int, list[tuple[int, int]]]:
        """Return (source sub-words, for each language its rows and their positions that are not padding).

        last: what `last` returned.
        """


def read_recipe(folder: Path) -> dict[str, Any]:
    """Return `data.json`. Raise StoreError if it is missing, damaged or of another format."""
    fix = "remove the folder, and run pretrain again"
    if not (folder / NAME).exists():
        raise StoreError(f"no encoded data: there is no {NAME}", where=str(folder), fix=fix, id="data")
    return read_record(folder / NAME, "recipe of encoded data", _check, id="data", fix=fix)


def common(folder: Path, recipe: dict[str, Any]) -> dict[str, Any]:
    """Return the arrays that all data has, by name."""
    arrays = {name: mapped(folder, name, recipe) for name in ("begins", "sentences", "keys")}
    arrays["keys"] = arrays["keys"].view(np.uint64)
    arrays["pieces"] = read_offsets(folder, "pieces", recipe, len(arrays["begins"]))
    return arrays


def read_offsets(folder: Path, name: str, recipe: dict[str, Any], end: int) -> Int64:
    """Return the offsets of a file, in memory. Raise StoreError unless they ascend from 0 to `end`."""
    offsets: Int64 = np.array(mapped(folder, name, recipe))
    if not len(offsets) or offsets[0] != 0 or offsets[-1] != end or (np.diff(offsets) < 0).any():
        raise StoreError(
            "its offsets do not fit the other files",
            where=str(folder / f"{name}.bin"),
            fix="remove the folder and run again",
            id="data",
        )
    return offsets


def _check(recipe: dict[str, Any]) -> None:
    if recipe.get("format") != FORMAT:
        raise ValueError(f"format {short(recipe.get('format'))}, but this version reads {FORMAT}")
    dicts: dict[str, Kind] = dict.fromkeys(("files", "sha256", "reading"), dict)
    check_types(recipe, {**dicts, "fingerprint": str, "seq_len": int, "kept": bool})
    if not 3 <= recipe["seq_len"] <= _LONGEST:
        raise ValueError(f"seq_len is {recipe['seq_len']}")
    for name, (dtype, n) in recipe["files"].items():
        if dtype not in _DTYPES or not isinstance(n, int) or n < 0:
            raise ValueError(f"{name} has the type {short(dtype)} and {short(n)} entries")


def mapped(folder: Path, name: str, recipe: dict[str, Any]) -> Any:
    """Return the array of a file, memory-mapped. Raise StoreError if the file is missing, cut off or changed."""
    path = folder / f"{name}.bin"
    what = _damage(path, recipe, hashed=not _is_as_written(path))
    if what:
        raise StoreError(what, where=str(path), fix="remove the folder and run again", id="data")
    dtype, n = recipe["files"][name]
    return np.memmap(path, dtype, "r", shape=(n,))


def damages(folder: Path) -> Iterator[tuple[str, str]]:
    """Yield the name of each file that is not as it was written, and what is wrong. Raise StoreError for data.json."""
    recipe = read_recipe(folder)
    for path in (folder / f"{name}.bin" for name in recipe["files"]):
        if what := _damage(path, recipe, hashed=True):
            yield path.name, what


def write_stamps(folder: Path) -> None:
    """Write size and time of the files of data that has just been written."""
    stamps = {path.name: _stamp(path) for path in sorted(folder.glob("*.bin"))}
    (folder / STAMPS).write_bytes(record_text(stamps).encode())


def _damage(path: Path, recipe: dict[str, Any], *, hashed: bool) -> str | None:
    """Return what is wrong with a file, or None. hashed: whether its content is compared, not only its size."""
    dtype, n = recipe["files"].get(path.stem, (None, 0))
    if dtype is None or not path.exists() or path.stat().st_size != n * np.dtype(dtype).itemsize:
        return "is missing or was cut off"
    return "was changed" if hashed and recipe["sha256"].get(path.stem) != file_hash(path) else None


def _is_as_written(path: Path) -> bool:
    """Return whether a file has the size and the time of change that were noted when it was written."""
    try:
        return bool(json.loads((path.parent / STAMPS).read_bytes())[path.name] == _stamp(path))
    except (OSError, ValueError, TypeError, KeyError):  # then the hash decides
        return False


def _stamp(path: Path) -> list[int]:
    facts = path.stat()
    return [facts.st_size, facts.st_mtime_ns]
