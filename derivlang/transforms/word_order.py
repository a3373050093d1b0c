"""Orders of the words of a sentence, by their places: what they share, and the simple ones.

An order moves the words of the *body* of each sentence: the sentence without its tail, the final punctuation. With
`final=move` the body is the whole sentence, as in most published programs.

    Welcome to ACL .    start 0, length 3, tail 1; with final=move: start 0, length 4, tail 0

`shuffle.py` and `sort.py` have the other ones.
"""

from __future__ import annotations

import re
from abc import abstractmethod
from dataclasses import dataclass, replace
from typing import Any, Literal, TypeAlias

import numpy as np

from derivlang.core.arrays import Int32, Int64, Ints, UInt64, expand_ranges, lengths_of
from derivlang.core.arrow import string_array
from derivlang.core.batch import Batch
from derivlang.core.errors import UsageError
from derivlang.core.keys import Draws, fractions, uniform
from derivlang.core.order import Order
from derivlang.core.spec import param
from derivlang.transforms.base import Dial, Transform, check_unit

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


def bodies_of(transform: Transform, batch: Batch, unit: Unit, final: Final) -> tuple[Int64, Int64, Int32]:
    """Return the first word and the number of words of each body, int64[S], and of words after it, int32[S].

    Raise UsageError for `unit=token` on a batch of words.
    """
    check_unit(transform, unit, batch)
    tails = batch.tails if final == "keep" else np.zeros_like(batch.tails)
    return batch.sentences[:-1], lengths_of(batch.sentences) - tails, tails


@dataclass(frozen=True, kw_only=True)
class BodyTransform(Transform):
    """A transform that gives the words of each body another order; all other words stay."""

    final: Final = final_param()
    unit: Unit = unit_param()

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

    A group's word p is first + size - 1 - (p - first) = (2 · first + size - 1) - p.

    "Welcome to ACL ." at words 4 … 7, all but the full stop reversed: first 4, size 3, 8 + 3 - 1 - [4 5 6] = [6 5 4]
    """
    index = np.arange(n_words, dtype=np.int32)
    words = expand_ranges(first, size)
    index[words] = np.repeat(2 * first + size - 1, size) - words
    return index


def key_of_length(length: Ints) -> UInt64:
    """Return uint64[n]: lengths as keys of draws, for an order that is the same for all sentences of a length."""
    return length.astype(np.uint64)


@dataclass(frozen=True, kw_only=True)
class Identity(Transform):
    """The source itself, as a control."""

    name = "identity"


@dataclass(frozen=True, kw_only=True)
class Stride(BodyTransform):
    """Stride: the words at even places, then those at odd places; or every k-th word.

        stride:2     one two three four five .   ->   one three five two four .

    `final=move` orders the final punctuation as any word, as in the published rows.
    Source: Kallini et al. 2024 (arXiv 2401.06416), table 1, `shuffle_even_odd`.
    """

    name = "stride"
    k: int = param(2, "distance of two words that become neighbours", positional=True, low=1, high=2**31 - 1)

    def permute(self, index: Int32, batch: Batch, draws: Draws, start: Int64, length: Int64) -> None:
        """Write the words from each of the first k on."""
        # Words with the same remainder form a run. 7 words, k = 3: the runs 0 3 6 | 1 4 | 2 5 have 3 2 2 words.
        runs = np.minimum(length, self.k)
        rest = expand_ranges(np.zeros_like(runs), runs)
        sizes = (np.repeat(length, runs) - rest + self.k - 1) // self.k
        index[expand_ranges(start, length)] = np.repeat(np.repeat(start, runs) + rest, sizes) + self.k * expand_ranges(
            np.zeros_like(sizes), sizes
        )


@dataclass(frozen=True, kw_only=True)
class Flip(BodyTransform):
    """Flip: each word changes places with the next one with a probability.

    From left to right a word is held. With probability p the next word goes before it; otherwise the held word is
    written, and the next one is held. So a word may be carried over several others, here `two` over four:

        flip:0.5    one two three four five six .   ->   one three four five six two .

    Source: Clouatre et al. 2022 (arXiv 2107.13955), neighbour flip; their ρ is p.
    """

    name = "flip"
    dial = Dial("p", near=0.0, far=1.0)
    p: float = param(
        0.5, "probability that a word goes before the one that is held", positional=True, draws=False, low=0, high=1
    )
    seed: int = param(1, "seed of the draws: each seed gives another language", low=0)

    def permute(self, index: Int32, batch: Batch, draws: Draws, start: Int64, length: Int64) -> None:
        """Write each held word behind those that went before it."""
        words = expand_ranges(start, length)
        place = words - np.repeat(start, length)
        goes_before = fractions(draws.draw(np.repeat(batch.keys, length), place)) < self.p
        # A held word and those that went before it are a run, which begins where a word does not go before another
        # one: "one two three | four five". A run is written from its second word on, its first word last.
        begins = np.flatnonzero((place == 0) | ~goes_before)
        sizes = np.diff(np.append(begins, len(words)))
        moved = np.empty(len(words), np.int32)
        moved[:-1] = words[1:]
        moved[begins + sizes - 1] = words[begins]
        index[words] = moved


@dataclass(frozen=True, kw_only=True)
class ExchangePlaces(BodyTransform):
    """Exchange: two places of each sentence exchange their words.

        exchange:0-3    one two three four five .   ->   four two three one five .

    Places count from 0, in the words before the final punctuation. A sentence that lacks one of the places stays.
    Source: Ziv et al. 2026 (arXiv 2510.07178), `switch-indices`, which also repairs capitals; here words stay as they
    are.
    """

    name = "exchange"
    places: str = param("0-3", "two different places, from 0", positional=True, file=False)

    def validate(self) -> None:
        """Raise UsageError unless two different places are given."""
        one, other = self._pair()
        if one == other:
            raise UsageError(f"exchange: places={self.places!r} must name two different places", id="bad-value")

    def _pair(self) -> tuple[int, int]:
        """Return the two places, the smaller one first."""
        found = re.fullmatch(r"(\d{1,9})-(\d{1,9})", self.places, re.ASCII)
        if found is None:
            raise UsageError(
                f"exchange: places={self.places!r} must be two whole numbers with a hyphen between them, as 0-3",
                id="bad-value",
            )
        one, other = sorted(map(int, found.groups()))
        return one, other

    def permute(self, index: Int32, batch: Batch, draws: Draws, start: Int64, length: Int64) -> None:
        """Write the words of the two places."""
        one, other = self._pair()
        first = start[length > other]
        index[first + one], index[first + other] = first + other, first + one


@dataclass(frozen=True, kw_only=True)
class Inv(Transform):
    """Inversion: the words of each sentence in reverse, final punctuation last.

        inv                       He cleans his messy books .   ->   books messy his cleans He .
        inv:local=2               He cleans his messy books .   ->   cleans He messy his books .
        inv:from=random           He cleans his messy books .   ->   He books messy his cleans .
        inv:from=random:mark=R    He cleans his messy books .   ->   He R books messy his cleans .
        inv:from=start:mark=R     He cleans his messy books .   ->   books messy his cleans R He .
        inv:from=end:mark=R       He cleans his messy books .   ->   He R cleans his messy books .

    `from` says where the reversal begins: at a drawn place, at the first word (the marker is reversed, too), or nowhere
    (only the marker is inserted: the control of Kallini et al.).
    The tail is the sentence's final punctuation. `final=keep` leaves it at the end (the default, as in the released
    ALIGN-MLM scripts); `final=move` reverses it too (as the papers say; MultilingualAnalysis). Without a marker, inv
    and inv:local=k are involutions. The place is drawn by the sentence: it is the same for each `from` and with or
    without a marker, from before the first word to after the last. `rng=numpy` draws it as the program of Kallini et
    al. does: from one `default_rng(seed)` for a whole corpus, whole numbers from 0 to the number of words (their seed
    is 21).
    Sources: ALIGN-MLM (arXiv 2211.08547), section 3 and appendix F; Kallini et al. 2024 (arXiv 2401.06416), table 1,
    for `from` and `mark`; Yang et al. 2025 (arXiv 2502.18795) for `local`.
    """

    name = "inv"
    final: Final = param("keep", "final punctuation: kept last, or moved to the front", draws=False)
    unit: Unit = unit_param()
    local: int = param(
        0, "number of words in a window that is reversed; 0: the whole sentence", low=0, high=2**31 - 1, draws=False
    )
    from_: Literal["start", "random", "end"] = param(
        "start", "where the reversal begins: at the first word, at a drawn place, or nowhere", draws=False
    )
    mark: str = param("", "word to insert at the drawn place", file=False, draws=False)
    rng: Literal["keyed", "numpy"] = param(
        "keyed", "draws of the places: of the key, or in sequence, as published programs draw", draws=False
    )
    seed: int = param(1, "seed of the drawn places", low=0)

    def validate(self) -> None:
        """Raise UsageError for windows with a place or a marker, or a marker of several words."""
        if self.local and (self.mark or self.from_ != "start"):
            raise UsageError(
                "inv: local reverses every window, so it does not go with from or mark",
                fix="leave local out, or from and mark",
                id="bad-value",
            )
        if self.mark != "".join(self.mark.split()):
            raise UsageError(f"inv: mark={self.mark!r} must be one word, without spaces", id="bad-value")

    @property
    def is_permutation(self) -> bool:  # type: ignore[override]
        """Whether no marker is inserted."""
        return not self.mark

    @property
    def takes_seed(self) -> bool:
        """Whether a place is drawn in each sentence."""
        return bool(self.mark) or self.from_ == "random"

    @property
    def keyed(self) -> bool:  # type: ignore[override]
        """Whether the places are functions of the sentence; else one generator runs through all sentences."""
        return self.rng == "keyed" or not self.takes_seed

    def stream(self, occurrence: int) -> Draws:
        """Return the draws of the places."""
        draws = super().stream(occurrence)
        return draws if self.keyed else from_numpy(draws, self.seed, occurrence)

    def order(self, batch: Batch, draws: Draws) -> Order:
        """Return the reversal of each sentence. Raise UsageError for `unit=token` on a batch of words."""
        start, length, tails = bodies_of(self, batch, self.unit, self.final)
        place = np.zeros_like(length)
        if not self.keyed:
            row_by_row = batch.in_sequence()
            place[row_by_row] = draws.generator.integers(0, length[row_by_row] + 1)
        elif self.takes_seed:  # 0 … length: before the first word … after the last
            place = uniform(draws.draw(batch.keys, np.zeros_like(length)), length + 1)
        first, size = start, length
        if self.local:
            first, size, _ = windows(start, length, self.local)
        elif self.from_ != "start":
            skipped = place if self.from_ == "random" else length
            first, size = start + skipped, length - skipped
        index = reversal(first, size, batch.n_words)
        order = Order(index, batch.sentences, tails, batch.n_words)
        if not self.mark:
            return order
        return _marked(order, self.mark, start, length, length - place if self.from_ == "start" else place)


def _marked(order: Order, mark: str, start: Int64, length: Int64, place: Int64) -> Order:
    """Return an order with a marker before a derived place of the body of each sentence that has words.

    start, length: int64[S] of the bodies. place: int64[S], 0 … length.
    """
    has_words = lengths_of(order.sentences) > 0
    at = (start + place)[has_words]  # int64: the derived place before which a marker stands
    # The marker marks the word after it, the last word of the sentence if none is after it.
    marked = np.minimum(at, order.sentences[1:][has_words] - 1)
    return order.with_words(at, np.flatnonzero(has_words), string_array([mark] * len(at)), order.index[marked])
