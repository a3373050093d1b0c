"""TreeBlock: some trees with all that their arrangement needs, and the rules of an arrangement."""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass

import numpy as np

from derivlang.core.arrays import Bool, Int32, Int64, stretches
from derivlang.syntax.forest import Forest
from derivlang.syntax.words import WordKinds


@dataclass(frozen=True, slots=True)
class Rules:
    """Rules of an arrangement.

    keep_order: a head whose yield has gaps keeps its words in order. free_marks: punctuation moves like other words.
    """

    keep_order: bool = False
    free_marks: bool = False


@dataclass(frozen=True, eq=False)
class TreeBlock:
    """T trees over n words.

    seen: the words. tails: int32[T], number of words in each tree's tail. bonds: bool[n], words that form one part with
    the word before. numbers: int64[T], numbers of the trees in the batch.
    """

    forest: Forest
    seen: WordKinds
    tails: Int32
    bonds: Bool
    numbers: Int64

    def take(self, trees: Int64) -> tuple[TreeBlock, Int64]:
        """Return (some of the trees, int64[m] their words)."""
        forest, words = self.forest.take(trees)
        part = TreeBlock(forest, self.seen.take(words), self.tails[trees], self.bonds[words], self.numbers[trees])
        return part, words

    def stretches(self, n_words: int) -> Iterator[tuple[TreeBlock, int, slice]]:
        """Yield (some trees, the first of them, the range of their words), about n_words words at a time.

        The stretches have about one size: a short one costs as many calls as a long one.
        """
        trees, parent = self.forest.trees, self.forest.parent
        n_stretches = max(1, round(len(parent) / n_words))
        for begin, end in stretches(trees, max(1, -(-len(parent) // n_stretches))):
            which, words = slice(begin, end), slice(int(trees[begin]), int(trees[end]))
            inside = np.maximum(parent[words] - words.start, -1)  # -1 stays a root
            forest = Forest(inside, trees[begin : end + 1] - words.start)
            seen = self.seen.take(words)
            yield TreeBlock(forest, seen, self.tails[which], self.bonds[words], self.numbers[which]), begin, words
