"""shuffle: the words of a sentence in a random order, as a whole or in parts; perm: its older name.

    shuffle                    the whole sentence, each sentence in an order of its own (perm)
    shuffle:by=length          one order for all sentences with the same number of words
    shuffle:local=3            within windows of three words (perm:window=3)
    shuffle:local=3:by=window  … every window in the same order
    shuffle:blocks=2           pairs of neighbours stay together
    shuffle:rate=0.25          a quarter of the words; how=swaps: by exchanges of two words

Each word gets a draw, and the words of a group (the body of a sentence, or a window of it) are sorted by the top 32
bits of their draws, ties by position. The draw belongs to the key of the sentence and the place of the word in it. For
by=length the key is the length, for by=window the length of the window; so equal sentences are shuffled alike, in
every file.

    "a b c d" with the draws 7 2 9 1   ->   d b a c

Published programs draw from a generator instead: `rng=numpy` starts `default_rng(seed)` for each group, and for
by=sentence once for a whole corpus; `rng=python` starts `Random(seed + length)`. Their rows have `final=move`:

    shuffle:final=move:rng=numpy:seed=0                        Kallini et al. 2024, shuffle_nondeterministic
    shuffle:by=length:final=move:rng=numpy:seed=21             … shuffle_deterministic21
    shuffle:local=3:by=window:final=move:rng=numpy:seed=0      … shuffle_local3
    shuffle:by=length:final=move:rng=python:seed=0             Ziv et al. 2026, shuffle-global

Sources: Kallini et al. 2024 (arXiv 2401.06416), table 1; Deshpande et al. 2022 (MultilingualAnalysis,
`modify_inputs_permute_sentence`) for `perm`; Sinha et al. 2021 (arXiv 2104.06644) for blocks; K et al.
2020 (arXiv 1912.07840) for rates.

mallows: permutations that are near the source, or near its reversal, by one number.

A permutation has a probability proportional to exp(-theta · d), where d is the number of pairs of words that it puts in
the other order (Kendall's tau distance). theta = 0 is a uniform shuffle, large theta the source, large negative theta
the reversal. With by=length, the default and the published form, all sentences of a length share one permutation.

    mallows:0.5     one two three four five six .   ->   four one two six three five .
    mallows:-0.5    one two three four five six .   ->   five three six two one four .

The sampler is exact (repeated insertion, Doignon et al. 2004): word i, from 0, is put before the last k words of the
list so far, where k = 0 … i has a probability proportional to exp(-theta · k). Negative theta: the reversal of a sample
for -theta.

    the words a b c and k = 0 1 1   ->   a | b a | b c a

Source: Mayer Martins et al. 2026 (arXiv 2603.19427).
"""

from __future__ import annotations

import dataclasses
import random
from collections.abc import Callable
from dataclasses import dataclass
from itertools import pairwise
from typing import ClassVar, Literal, TypeAlias

import numpy as np

from derivlang.core.arrays import Float64, Int32, Int64, UInt64, expand_ranges, lengths_of, offsets_of, segment_any
from derivlang.core.batch import Batch
from derivlang.core.errors import UsageError
from derivlang.core.keys import Draws, fractions, uniform
from derivlang.core.order import Order
from derivlang.core.spec import param, text_of
from derivlang.transforms.base import Dial, Transform
from derivlang.transforms.word_order import (
    BodyTransform,
    Unit,
    from_numpy,
    key_of_length,
    unit_param,
    windows,
)

# Draws of one key for other purposes than sorting: the place of a word in its sentence is below 2^32.
_CHOSEN, _AGAIN = 1 << 40, 1 << 41
Draw: TypeAlias = Callable[[Int64, int], UInt64]  # of some units, for a purpose; 0: to be sorted by


@dataclass(frozen=True, kw_only=True)
class Perm(Transform):
    """Permutation: the words of each sentence in a random order, final punctuation last."""

    name = "perm"
    window: int = param(0, "number of words in a permuted block; 0: the whole sentence", low=0, high=2**31 - 1)
    unit: Unit = unit_param()
    seed: int = param(1, "seed of the permutations: each seed gives another language", low=0)

    def order(self, batch: Batch, draws: Draws) -> Order:
        """Return the permutation. Raise UsageError for `unit=token` on a batch of words."""
        return Shuffle(local=self.window, unit=self.unit, seed=self.seed).order(batch, draws)


@dataclass(frozen=True, kw_only=True)
class Shuffle(BodyTransform):
    """Shuffle: words in a random order, for each sentence, length or window; wholly or in part."""

    name = "shuffle"
    family: ClassVar[str] = "perm"
    dial = Dial("rate", near=0.0, far=1.0)
    by: Literal["sentence", "length", "window"] = param(
        "sentence", "what has an order of its own: each sentence, each length of sentence, or each length of window"
    )
    local: int = param(0, "number of words in a window; 0: the whole sentence", low=0, high=2**31 - 1)
    blocks: int = param(1, "number of neighbours that stay together", low=1, high=2**31 - 1)
    derange: bool = param(False, "whether no block may stay at its place")
    rate: float = param(1.0, "share of the blocks to shuffle, or of the exchanges with how=swaps", low=0, high=1)
    how: Literal["positions", "swaps"] = param(
        "positions", "partial shuffle: drawn positions among each other, or drawn pairs exchanged one after the other"
    )
    rng: Literal["keyed", "numpy", "python"] = param(
        "keyed", "draws: of the key, or as published programs draw; numpy with by=sentence draws in sequence"
    )
    seed: int = param(1, "seed of the draws: each seed gives another language", low=0)

    def validate(self) -> None:
        """Raise UsageError for a shuffle that the generator does not draw, or swaps without a fixed place."""
        partly = self.blocks > 1 or self.derange or self.rate < 1 or self.how == "swaps"
        undefined = (self.by == "sentence" and self.rng == "python") or (self.local and self.by != "window")
        if self.rng != "keyed" and (partly or undefined):
            raise UsageError(
                f"shuffle: rng={self.rng} has only whole shuffles, windows by=window, and if it is numpy by=sentence",
                fix="write by=length or local=3:by=window, or leave rng out: it gives every shuffle",
                id="bad-value",
            )
        if self.derange and self.how == "swaps":
            raise UsageError(
                "shuffle: derange and how=swaps exclude each other, since exchanges may bring a word back",
                fix="leave one of them out",
                id="bad-value",
            )

    @property
    def keyed(self) -> bool:  # type: ignore[override]
        """Whether the order is a function of the sentence; else one generator runs through all sentences."""
        return self.rng == "keyed" or self.by != "sentence"

    def stream(self, occurrence: int) -> Draws:
        """Return the draws: as `perm` draws where both have such a permutation, so that their texts are the same.

        They do not depend on the rate: the words that a rate chooses are among the words of each larger rate.
        """
        same = Perm(window=self.local, seed=self.seed).stream(occurrence)
        more = [f for f in dataclasses.fields(self) if f.name in ("by", "blocks", "derange", "how")]
        stated = [f"{f.name}={text_of(getattr(self, f.name))}" for f in more if getattr(self, f.name) != f.default]
        draws = Draws("|".join([same.name, *stated]))
        return draws if self.keyed else from_numpy(draws, self.seed, occurrence)

    def permute(self, index: Int32, batch: Batch, draws: Draws, start: Int64, length: Int64) -> None:
        """Write the new order; see `BodyTransform.permute`."""
        if not self.keyed:
            end = start + length
            for sentence in batch.in_sequence().tolist():
                draws.generator.shuffle(index[start[sentence] : end[sentence]])
            return
        if self.by == "sentence":
            index[expand_ranges(start, length)] = self._moved(draws, batch.keys, start, length)
            return
        if self.by == "window" and self.local:
            start, length, _ = windows(start, length, self.local)
        sizes, which = np.unique(length, return_inverse=True)
        table = offsets_of(sizes)[:-1]
        # Each length once, as if the batch had one sentence of each: sizes 2 3 have the words 0 1 and 2 3 4.
        once = self._moved(draws, key_of_length(sizes), table, sizes)
        index[expand_ranges(start, length)] = once[expand_ranges(table[which], length)] + np.repeat(
            start - table[which], length
        )

    def _moved(self, draws: Draws, keys: UInt64, start: Int64, length: Int64) -> Int64:
        """Return int64[sum(length)]: the words of each body in their new order.

        keys: uint64[S], of the draws of each body. start, length: int64[S], first word and number of words of each.
        """
        if self.rng != "keyed":
            drawn = [_published(self.rng, self.seed, size) for size in length.tolist()]
            return np.repeat(start, length) + np.array([place for order in drawn for place in order], np.int64)
        origin = start  # places in a sentence count from here, in windows, too
        if self.local and self.by != "window":
            start, length, owner = windows(start, length, self.local)
            keys, origin = keys[owner], origin[owner]
        if self.blocks == 1:
            begin, count = expand_ranges(start, length), length
        else:
            begin, size, _ = windows(start, length, self.blocks)
            count = -(-length // self.blocks)
        keys = np.repeat(keys, count)
        place = begin - np.repeat(origin, count)
        order = self._order_units(
            lambda units, purpose: draws.draw(keys[units], place[units] + purpose), offsets_of(count)
        )
        return begin[order] if self.blocks == 1 else expand_ranges(begin[order], size[order])

    def _order_units(self, draw: Draw, groups: Int64) -> Int32:
        """Return int32[U]: the units (words or blocks) of each group in their new order. groups: int64[G + 1]."""
        if self.how == "swaps":
            return _swapped(draw, groups, self.rate)
        everything = np.arange(int(groups[-1]))
        if self.rate == 1 and not self.derange:
            return sort_within(draw(everything, 0), groups[:-1], lengths_of(groups))
        chosen = everything if self.rate == 1 else np.flatnonzero(fractions(draw(everything, _CHOSEN)) < self.rate)
        among = np.searchsorted(chosen, groups)  # int64[G + 1]: offsets of the groups in the chosen units
        order = sort_within(draw(chosen, 0), among[:-1], lengths_of(among))
        if self.derange:
            _derange(order, lambda units, purpose: draw(chosen[units], purpose), among)
        index = everything.astype(np.int32)
        index[chosen] = chosen[order]
        return index


def _derange(order: Int32, draw: Draw, groups: Int64) -> None:
    """Draw each group again in which a unit kept its place, until none does: every derangement is equally probable.

    order: int32[U], changed in place. groups: int64[G + 1]. A unit by itself cannot leave its place.
    """
    start, length = groups[:-1], lengths_of(groups)
    start, length = start[length > 1], length[length > 1]
    attempt = 0
    while len(start):
        inside = offsets_of(length)
        units = expand_ranges(start, length)
        if attempt:
            order[units] = units[sort_within(draw(units, attempt * _AGAIN), inside[:-1], length)]
        left = segment_any(order[units] == units, inside)
        start, length = start[left], length[left]
        attempt += 1


def _published(rng: str, seed: int, size: int) -> list[int]:
    """Return the order of `size` words that a published program draws from a generator of its own."""
    order = list(range(size))
    if rng == "numpy":
        np.random.default_rng(seed).shuffle(order)
    else:
        random.Random(seed + size).shuffle(order)
    return order


def _swapped(draw: Draw, groups: Int64, rate: float) -> Int32:
    """Return int32[U]: each group after int((length - 1) · rate) exchanges of two units, one after the other.

    The first unit of a pair is drawn from all, the second from the others: i, then (i + 1 + j) mod length.
    """
    start, length = groups[:-1], lengths_of(groups)
    count = np.maximum(((length - 1) * rate).astype(np.int64), 0)
    by = np.argsort(-count, kind="stable")  # the groups that still exchange are the first ones
    start, length, count = start[by], length[by], count[by]
    index = np.arange(int(groups[-1]), dtype=np.int32)
    for step in range(int(count.max(initial=0))):
        n = int(np.searchsorted(-count, -step, "left"))
        first, size = start[:n], length[:n]
        both = draw(first, _CHOSEN + step)  # 32 bits for each of the pair
        one = uniform(both, size)
        other = (one + 1 + uniform(both << np.uint64(32), size - 1)) % size
        index[first + one], index[first + other] = index[first + other], index[first + one]
    return index


def sort_within(random: UInt64, start: Int64, length: Int64) -> Int32:
    """Return int32[N]: the words of each group sorted by the top 32 bits of their draws. Other words stay.

    start, length: int64[G], first word and number of words of each group, in the order of the words. One number is
    group << 32 | draw, so that one sort keeps the groups apart; it is stable:

        two groups, "a b" and "c d e", draws 7 2 and 5 9 1   ->   0|7 0|2 1|5 1|9 1|1, the words "b a e c d"
    """
    index = np.arange(len(random), dtype=np.int32)
    words = expand_ranges(start, length)
    group = np.repeat(np.arange(len(length), dtype=np.uint64), length)
    index[words] = words[np.argsort((group << np.uint64(32)) | (random[words] >> np.uint64(32)), kind="stable")]
    return index


_CERTAIN = 800.0  # exp(-800) is 0, so that k is 0
_NO_MOVE = 37.0  # exp(-37) is below 2^-53, the least fraction that is drawn


@dataclass(frozen=True, kw_only=True)
class Mallows(BodyTransform):
    """Mallows: random permutations whose distance from the source is set by theta."""

    name = "mallows"
    dial = Dial("theta", near=8.0, far=-8.0)
    # The draws do not depend on theta, so that a word pair that is kept for one theta is kept for each larger one.
    theta: float = param(
        1.0, "0: uniform; large: the source; large and negative: the reversal", positional=True, draws=False
    )
    by: Literal["length", "sentence"] = param("length", "what has a permutation of its own: each length, each sentence")
    seed: int = param(1, "seed of the draws: each seed gives another language", low=0)

    def misfits(self, language: str) -> list[str]:
        return [f"{self}: theta is so large that no word moves: this is the source"] if self.theta >= _NO_MOVE else []

    def permute(self, index: Int32, batch: Batch, draws: Draws, start: Int64, length: Int64) -> None:
        """Write the new order; see `BodyTransform.permute`."""
        if self.by == "sentence":
            moved = self._sampled(draws, batch.keys, length)
        else:
            sizes, which = np.unique(length, return_inverse=True)
            once = self._sampled(draws, key_of_length(sizes), sizes)
            moved = once[expand_ranges(offsets_of(sizes)[:-1][which], length)]
        index[expand_ranges(start, length)] = moved + np.repeat(start, length)

    def _sampled(self, draws: Draws, keys: UInt64, length: Int64) -> Int32:
        """Return int32[sum(length)]: for each group, the place of the word that comes first, second, …

        keys: uint64[G], of the draws of each group.
        """
        groups = offsets_of(length)
        place = expand_ranges(np.zeros_like(length), length)
        code = _insertions(fractions(draws.draw(np.repeat(keys, length), place)), place, abs(self.theta))
        counts = code.tolist()
        places = [place for begin, end in pairwise(groups.tolist()) for place in _inserted(counts[begin:end])]
        out = np.array(places, np.int32)
        if self.theta < 0:  # each list from its end
            out = out[np.repeat(groups[:-1] + groups[1:] - 1, length) - np.arange(len(out))]
        return out


def _insertions(fraction: Float64, place: Int64, theta: float) -> Int64:
    """Return int64[n]: k = 0 … place with probability proportional to exp(-theta · k), by inversion.

    The share of 0 … k is (1 - exp(-theta (k + 1))) / (1 - exp(-theta (place + 1))).
    """
    count = place + 1
    theta = min(theta, _CERTAIN)
    if theta * float(count.max(initial=1)) < 1e-9:  # the limit: uniform
        drawn = fraction * count
    else:
        drawn = -np.log1p(fraction * np.expm1(-theta * count)) / theta
    out: Int64 = np.minimum(drawn.astype(np.int64), place)
    return out


def _inserted(counts: list[int]) -> list[int]:
    """Return the words of a list after all insertions, each before the last k words: k = 0 1 1 -> 1 2 0."""
    words: list[int] = []
    for i, k in enumerate(counts):
        words.insert(i - k, i)
    return words
