"""Bodies: the words of each sentence that an order of words moves, and what such orders share.

The body is the sentence without its tail, the final punctuation. With `final=move` it is the whole sentence, as in
most published programs.

    Welcome to ACL .    start 0, length 3, tail 1; with final=move: start 0, length 4, tail 0
"""

from __future__ import annotations

from abc import abstractmethod
from dataclasses import replace
from typing import Any, Literal, NamedTuple, TypeAlias

import numpy as np

from derivlang.core.arrays import Int32, Int64, Ints, UInt64, expand_ranges, lengths_of
from derivlang.core.batch import Batch
from derivlang.core.keys import Draws
from derivlang.core.order import Order
from derivlang.core.spec import param
from derivlang.transforms.base import Transform, check_unit

Unit: TypeAlias = Literal["word", "token"]
Final: TypeAlias = Literal["keep", "move"]


def unit_param() -> Any:
    """Declare the parameter `unit`."""
    return param("word", "unit to order: words of a text, or sub-words of an encoded batch", draws=False)


def final_param() -> Any:
    """Declare the parameter `final`."""
    return param("keep", "final punctuation: kept last, or ordered as any word", draws=False)


def from_numpy(draws: Draws, seed: int, occurrence: int) -> Draws:
    """Return draws from one `default_rng(seed)` for all sentences, as published programs draw.

    A transform that occurs again has another generator, since it would repeat the draws of the first.
    """
    return replace(draws, generator=np.random.default_rng([seed, occurrence] if occurrence else seed))


class Bodies(NamedTuple):
    """The bodies of S sentences.

    start, length: int64[S], first word and number of words of each. tails: int32[S], number of words after each.
    """

    start: Int64
    length: Int64
    tails: Int32


def bodies_of(transform: Transform, batch: Batch, unit: Unit, final: Final) -> Bodies:
    """Return the bodies of a batch. Raise UsageError for `unit=token` on a batch of words."""
    check_unit(transform, unit, batch)
    tails = batch.tails if final == "keep" else np.zeros_like(batch.tails)
    return Bodies(batch.sentences[:-1], lengths_of(batch.sentences) - tails, tails)


class BodyTransform(Transform):
    """A transform that gives the words of each body another order; all other words stay.

    Subclasses declare the two parameters, so that each has its own order of parameters.
    """

    final: Final
    unit: Unit

    def order(self, batch: Batch, draws: Draws) -> Order:
        """Return the order. Raise UsageError for `unit=token` on a batch of words."""
        start, length, tails = bodies_of(self, batch, self.unit, self.final)
        index = np.arange(batch.n_words, dtype=np.int32)
        self.permute(index, batch, draws, start, length)
        return Order(index, batch.sentences, tails, batch.n_words)

    @abstractmethod
    def permute(self, index: Int32, batch: Batch, draws: Draws, start: Int64, length: Int64) -> None:
        """Write the words of each body in their new order to their places in `index`, int32[N], which counts from 0.

        start, length: int64[S], first word and number of words of each body.
        """


def windows(start: Int64, length: Int64, size: int) -> tuple[Int64, Int64, Int64]:
    """Return start and length of each window of `size` words of groups int64[G], and its group.

    The last window of a group may be shorter.

    A group of 7 words from word 4, size 3   ->   starts 4 7 10, lengths 3 3 1, groups 0 0 0
    """
    count = -(-length // size)
    first = expand_ranges(np.zeros_like(count), count) * size
    owner = np.repeat(np.arange(len(length)), count)
    return start[owner] + first, np.minimum(length[owner] - first, size), owner


def reversal(first: Int64, size: Int64, n_words: int) -> Int32:
    """Return int32[n_words]: the order that reverses groups of words, int64[G] each, ascending, and leaves the others.

    A group's word p is first + size - 1 - (p - first) = (2 · first + size - 1) - p. This is computed for all words from
    a group to the next one, and words between two groups are put back.

    "Welcome to ACL ." at words 4 … 7, all but the full stop reversed: first 4, size 3, 8 + 3 - 1 - [4 5 6] = [6 5 4]
    """
    index = np.arange(n_words, dtype=np.int32)
    if not len(first):
        return index
    after = index[first[0] :]
    np.subtract(np.repeat((2 * first + size - 1).astype(np.int32), np.diff(first, append=n_words)), after, out=after)
    end = first + size
    between = expand_ranges(end, np.append(first[1:], n_words) - end)
    index[between] = between
    return index


def key_of_length(length: Ints) -> UInt64:
    """Return uint64[n]: lengths as keys of draws, for an order that is the same for all sentences of a length."""
    return length.astype(np.uint64)
