"""Sentence pairs as word codes.

A line is a sentence, its words separated by white space; line n of one side belongs to line n of the other.

    encode(["the cat", ""], ["le chat", "x"])  ->  source: codes [0, 1], offsets [0, 2, 2]; target: codes [0, 1, 2] …

Blocks of sentence pairs of similar lengths, padded to one shape and processed at once.

A block of S pairs with at most J target and I source words is a box of cells [J, S, I]. Target words are the first
axis, because they are the time steps of the HMM. Each cell belongs to a pair of types. The pairs are numbered within
the block: its small table stays in the cache, a table of all pairs of the corpus does not (2.7 against 9 ns per cell to
read, 5 against 10 to add to).

    a / un, the cat / le chat       source [[a, -], [the, cat]], target [[un, -], [le, chat]]: J = S = I = 2
    cells[0] (un; le)   = [[a-un, -], [the-le, cat-le]]           one row per pair, one column per source word
    cells[1] (-; chat)  = [[-, -], [the-chat, cat-chat]]          `-` is padding
    entries = the-le, the-chat, cat-le, cat-chat, a-un, padding;  cells[0] holds the numbers [[4, 5], [0, 2]]
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass

import numpy as np
import pyarrow as pa
import pyarrow.compute as pc

from derivlang.core.arrays import Bool, Int32, Int64, lengths_of, offsets_of
from derivlang.core.arrow import string_array, to_arrow, to_numpy
from derivlang.core.errors import DataError
from derivlang.core.messages import counted
from derivlang.formats.progress import rows_done, stage

_AT_ONCE = 1 << 14  # lines


@dataclass(frozen=True, slots=True, eq=False)
class WordLists:
    """S sentences as word codes: types, Arrow strings; codes int32[N]; offsets int64[S + 1]."""

    types: pa.Array
    codes: Int32
    offsets: Int64

    @classmethod
    def of(cls, words: pa.Array, offsets: Int64) -> WordLists:
        """Return sentences of Arrow strings [N] at offsets int64[S + 1]."""
        coded = words.dictionary_encode()
        return cls(coded.dictionary, to_numpy(coded.indices).astype(np.int32), offsets)


@dataclass(frozen=True, slots=True, eq=False)
class Bitext:
    """S sentence pairs."""

    source: WordLists
    target: WordLists

    def __len__(self) -> int:
        return len(self.source.offsets) - 1

    @property
    def n_words(self) -> int:
        """Number of words of both sides."""
        return len(self.source.codes) + len(self.target.codes)


def encode(source: Sequence[str], target: Sequence[str], *, lower: bool = False) -> Bitext:
    """Return the sentence pairs of two lists of lines.

    Raises DataError `lengths` if one has more lines than the other, `empty-side` if a side has no words.
    """
    if len(source) != len(target):
        raise DataError(
            f"the source has {counted(len(source), 'line')}, but the target has {len(target):,}",
            fix="line n of one file must be the translation of line n of the other",
            id="lengths",
        )
    sides = []
    for name, lines in (("source", source), ("target", target)):
        with stage(f"numbering the words of the {name}", "rows", len(lines)):
            side = encode_lines(lines, lower=lower)
        if not len(side.codes):
            raise DataError(f"the {name} side has no words", fix="check that it is the right file", id="empty-side")
        sides.append(side)
    return Bitext(*sides)


def encode_lines(lines: Sequence[str], *, lower: bool = False) -> WordLists:
    """Return the sentences of lines. Raises ValueError for a line break in a line."""
    parts = [_words(lines[begin : begin + _AT_ONCE], lower) for begin in range(0, len(lines), _AT_ONCE)]
    coded = pa.chunked_array([words for words, _ in parts], pa.string()).dictionary_encode().unify_dictionaries()
    codes = np.concatenate([np.zeros(0, np.int32), *(to_numpy(chunk.indices) for chunk in coded.chunks)])
    lengths = np.concatenate([np.zeros(0, np.int64), *(lengths for _, lengths in parts)])
    types = coded.chunk(0).dictionary if coded.num_chunks else pa.array([], pa.string())
    return WordLists(types, codes, offsets_of(lengths))


def _words(lines: Sequence[str], lower: bool) -> tuple[pa.Array, Int64]:
    """Return (the words of some lines, Arrow strings [N]; their number in each line, int64[S])."""
    if any("\n" in line for line in lines):
        raise ValueError("a line contains a line break")
    lists = pc.ascii_split_whitespace(string_array(line.lower() if lower else line for line in lines))
    words = lists.flatten()
    is_word = to_numpy(pc.binary_length(words)) > 0  # white space at an end of a line leaves an empty string
    rows_done(len(lines))
    return words.filter(to_arrow(is_word)), np.diff(offsets_of(is_word)[to_numpy(lists.offsets)])


CELLS = 1 << 18  # of a block, so that its temporaries stay in the cache
_WASTE = 1.3  # most cells of a block for each cell that is not padding
_LEAST = 1 << 14  # cells; below this, numpy calls cost more than padding


@dataclass(frozen=True, slots=True)
class BitextBlock:
    """S sentence pairs.

    rows int64[S]: numbers of the pairs in the bitext. source int32[S, I], target int32[S, J]: word codes; padding has
    the number of types. source_lengths, target_lengths int64[S]. cells int32[J, S, I]: index into `entries` of the
    cell's pair of types. entries int32[e]: number of each pair in the table; padding has the table's last.
    """

    rows: Int64
    source: Int32
    target: Int32
    source_lengths: Int64
    target_lengths: Int64
    cells: Int32
    entries: Int32


@dataclass(frozen=True, slots=True)
class TypePairs:
    """The pairs of types that occur together in some sentence pair, and the blocks of the bitext.

    source_of, target_of int32[E + 1]: the types of each pair; the last pair is padding, with types of its own.
    n_source, n_target: numbers of types. blocks: all sentence pairs without an empty side.
    """

    source_of: Int32
    target_of: Int32
    n_source: int
    n_target: int
    blocks: list[BitextBlock]

    def __len__(self) -> int:
        return len(self.source_of)


def build(bitext: Bitext, cells: int = CELLS) -> TypePairs:
    """Return the table of a bitext. Memory: about six bytes per cell.

    cells: the largest size of a block; a single larger sentence pair is a block of its own.

    The key of a pair of types is source · n_target + target. Keys are numbered within each block first, then all
    distinct keys of the bitext; `entries` of a block maps the first numbers to the second.
    """
    n_source, n_target = len(bitext.source.types), len(bitext.target.types)
    source_lengths, target_lengths = lengths_of(bitext.source.offsets), lengths_of(bitext.target.offsets)
    pad = n_source * n_target  # above the key of every pair
    groups = _groups(source_lengths, target_lengths, cells)
    n_pairs = sum(map(len, groups))
    sides, keys, blocks = [], [], []
    with stage("finding word pairs", "rows", n_pairs):
        for rows in groups:
            source = _padded(bitext.source.codes, bitext.source.offsets, rows, n_source)
            target = _padded(bitext.target.codes, bitext.target.offsets, rows, n_target)
            pairs = source[None, :, :].astype(np.int64) * n_target + target.T[:, :, None]
            empty = ~(
                mask(source_lengths[rows], source.shape[1])[None, :, :]
                & mask(target_lengths[rows], target.shape[1]).T[:, :, None]
            )
            pairs[empty] = pad
            distinct, local = _numbered(pairs)
            sides.append((source, target, local))
            keys.append(distinct)
            rows_done(len(rows))
    with stage("sorting word pairs", None):  # one call of numpy, a quarter of the time here
        entries = np.unique(np.concatenate([*keys, np.array([pad])]))
    with stage("numbering word pairs", "rows", n_pairs):
        for rows, (source, target, local), distinct in zip(groups, sides, keys, strict=True):
            lengths = source_lengths[rows], target_lengths[rows]
            places = np.searchsorted(entries, distinct).astype(np.int32)
            blocks.append(BitextBlock(rows, source, target, *lengths, local, places))
            rows_done(len(rows))
    source_of, target_of = np.divmod(entries, max(n_target, 1))
    source_of[-1], target_of[-1] = n_source, n_target
    return TypePairs(source_of.astype(np.int32), target_of.astype(np.int32), n_source, n_target, blocks)


def mask(lengths: Int64, width: int) -> Bool:
    """Return bool[S, width], True at the words of rows of these lengths: [2, 1], 3 -> [[T, T, F], [T, F, F]]."""
    return np.arange(width) < lengths[:, None]


def _numbered(keys: Int64) -> tuple[Int64, Int32]:
    """Return (the distinct keys, sorted; int32 of the shape of keys: the index of each among them).

    [7, 3, 7] -> [3, 7], [1, 0, 1]
    """
    distinct, index = np.unique(keys, return_inverse=True)
    return distinct, index.reshape(keys.shape).astype(np.int32)


def _groups(source_lengths: Int64, target_lengths: Int64, cells: int) -> list[Int64]:
    """Return the rows of each block, sorted by length; pairs with an empty side are left out.

    A block ends if the next pair would make its box larger than `cells`, or would leave more than _WASTE cells of the
    box for each cell that is not padding (small boxes excepted). Rows are sorted by source length in steps of four,
    then by target length, so that both lengths change little inside a block.
    """
    rows = np.flatnonzero((source_lengths > 0) & (target_lengths > 0))
    rows = rows[np.lexsort((source_lengths[rows], target_lengths[rows], source_lengths[rows] >> 2))]
    groups: list[Int64] = []
    begin, full, width, height = 0, 0, 0, 0
    for at, (i, j) in enumerate(zip(source_lengths[rows].tolist(), target_lengths[rows].tolist(), strict=True)):
        wide, high = max(width, i), max(height, j)
        box = (at - begin + 1) * wide * high
        if at > begin and (box > cells or (box > _LEAST and box > _WASTE * (full + i * j))):
            groups.append(rows[begin:at])
            begin, full, wide, high = at, 0, i, j
        full, width, height = full + i * j, wide, high
    if len(rows):
        groups.append(rows[begin:])
    return groups


def _padded(codes: Int32, offsets: Int64, rows: Int64, pad: int) -> Int32:
    """Return int32[S, L]: the words of these rows, followed by `pad`."""
    lengths = lengths_of(offsets)[rows]
    inside = mask(lengths, int(lengths.max()))
    out = np.full(inside.shape, pad, np.int32)
    at = offsets[rows][:, None] + np.arange(inside.shape[1])
    out[inside] = codes[at[inside]]
    return out
