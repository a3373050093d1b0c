"""Words of a dictionary as sub-words: each sequence of sub-words has a number, the node of a prefix tree.

    words  dog  dogs  chien        as sub-words  17   17 9   44 102
    nodes  0: 17     1: 44         2: 17 9     3: 44 102           dog is 0, dogs is 2, chien is 3

The words of rows are looked up by the same steps: from the node of the sub-words so far to the one with the next.
"""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np

from derivlang.core.arrays import Int64, Ints, expand_ranges, lengths_of, offsets_of, positions
from derivlang.training.batch import SubwordRows


@dataclass(frozen=True, eq=False)
class Spelling:
    """The sub-words of numbered words.

    levels: by length, the keys (node before, last sub-word) of nodes, ascending. size: number of ids. ids: int64[M].
    starts, lengths: int64[N], where the sub-words of each node begin in `ids`, and how many they are.
    """

    levels: tuple[Int64, ...]
    size: int
    ids: Int64
    starts: Int64
    lengths: Int64

    @classmethod
    def of(cls, ids: Int64, offsets: Int64, size: int) -> Spelling:
        """Return the spelling of words. ids: int64[M], below `size`; offsets: int64[K + 1], of each word in `ids`."""
        begins, lengths, node = offsets[:-1], lengths_of(offsets), np.zeros(len(offsets) - 1, np.int64)
        levels: list[Int64] = []
        starts: list[Int64] = []
        first = 0
        for place in range(int(lengths.max(initial=0))):
            at = np.flatnonzero(lengths > place)
            keys, one, which = np.unique(
                node[at] * size + ids[begins[at] + place], return_index=True, return_inverse=True
            )
            levels.append(keys)
            starts.append(begins[at[one]])
            node[at], first = first + which, first + len(keys)
        sizes = np.repeat(np.arange(1, len(levels) + 1), [len(keys) for keys in levels])
        return cls(tuple(levels), size, ids, np.concatenate([np.zeros(0, np.int64), *starts]), sizes)

    def __len__(self) -> int:
        return len(self.starts)

    def find(self, ids: Int64, offsets: Int64) -> Int64:
        """Return int64[K]: the number of each sequence of sub-words, -1 if there is none. ids, offsets: as of `of`."""
        begins, lengths = offsets[:-1], lengths_of(offsets)
        node, known, first = np.zeros(len(lengths), np.int64), (lengths > 0) & (lengths <= len(self.levels)), 0
        for place, keys in enumerate(self.levels):
            at = np.flatnonzero(known & (lengths > place))
            wanted = node[at] * self.size + ids[begins[at] + place]
            found = np.minimum(np.searchsorted(keys, wanted), len(keys) - 1)
            node[at], known[at], first = first + found, keys[found] == wanted, first + len(keys)
        return np.where(known, node, -1)

    def of_rows(self, rows: SubwordRows) -> tuple[Int64, Int64]:
        """Return int64[B, H] twice: the number of the word of each sub-word, -1 if there is none; its place in it."""
        offsets = word_offsets(rows.word_ids)
        numbers = np.repeat(self.find(rows.clean_ids.ravel(), offsets), lengths_of(offsets))
        numbers[rows.word_ids.ravel() < 0] = -1
        return numbers.reshape(rows.shape), positions(offsets).astype(np.int64).reshape(rows.shape)

    def take(self, numbers: Int64) -> tuple[Int64, Int64]:
        """Return the sub-words of words by number, int64[M], and where each begins, int64[K + 1]."""
        sizes = self.lengths[numbers]
        return self.ids[expand_ranges(self.starts[numbers], sizes)], offsets_of(sizes)


def word_offsets(words: Ints) -> Int64:
    """Return int64[W + 1]: where the words of sub-words begin, in flattened rows. words: [B, H], numbers in each row.

    words [[0, 0, 1], [1, 2, 2]]  ->  [0, 2, 3, 4, 6]
    """
    new = np.ones(words.shape, bool)
    new[:, 1:] = words[:, 1:] != words[:, :-1]
    return np.append(np.flatnonzero(new), words.size)
