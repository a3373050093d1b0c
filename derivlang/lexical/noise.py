"""Noise for studies of robustness: an exact share of items is made wrong, chosen by key, and listed.

    translations   floor(pk/100 + 1/2) pairs of a dictionary get another entry's translation
    pairs          sentence pairs get another pair's derived side
    links          links are moved to a wrong source word

Each function returns the chosen items and what they become. All draws are keyed, so equal inputs give equal noise.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable, Sequence
from dataclasses import dataclass

import numpy as np

from derivlang.core.arrays import Bool, Int64, Ints, UInt64
from derivlang.core.arrow import string_array
from derivlang.core.errors import UsageError
from derivlang.core.keys import draw, hash_types, text_key
from derivlang.lexical.percent import Share, portion

RULE_VERSION = 1


def stream(name: str, seed: int) -> np.uint64:
    """Return the stream of draws of a kind of noise."""
    return text_key(f"noise-{name}|seed={seed}|rule={RULE_VERSION}")


def first_by_key(draws: UInt64, m: int) -> Int64:
    """Return int64[m]: the positions of the m smallest draws, ascending; ties: the earliest."""
    return np.sort(np.argsort(draws, kind="stable")[:m])


def wrong_translations(words: Sequence[str], translations: Sequence[str], share: Share, seed: int) -> dict[int, str]:
    """Return {pair: wrong translation} for floor(pk/100 + 1/2) of k pairs.

    A wrong translation belongs to another entry and is not a translation of the pair's word. Raise UsageError if there
    is none.
    """
    m = portion(share, len(words))
    own: dict[str, set[str]] = {}
    rank = []  # the number of each pair among those of its word
    for word, translation in zip(words, translations, strict=True):
        rank.append(len(own.setdefault(word, set())))
        own[word].add(translation)
    hashes = hash_types(string_array(words))
    places = np.array(rank, np.int64)
    out: dict[int, str] = {}
    starts = draw(stream("translation", seed), hashes, places) % np.uint64(max(len(words), 1))
    for pair in first_by_key(draw(stream("dict", seed), hashes, places), m).tolist():
        at = int(starts[pair])
        for step in range(len(words)):
            found = translations[(at + step) % len(words)]
            if found not in own[words[pair]]:
                break
        else:
            raise _impossible("no other entry has a different translation")
        own[words[pair]].add(found)
        out[pair] = found
    return out


def wrong_partners(keys: UInt64, share: Share, seed: int) -> tuple[Int64, Int64]:
    """Return (pairs int64[m], donors int64[m]): the sentence pairs that get a wrong derived side, and its origin.

    keys: uint64[n], the sentences' content keys. A donor has another key than its pair. Raise UsageError if there is
    none.
    """
    m = portion(share, len(keys))
    zeros = np.zeros(len(keys), np.int64)
    wrong = first_by_key(draw(stream("pairs", seed), keys, zeros), m)
    by_key = np.argsort(keys, kind="stable")
    ordered = keys[by_key]
    at = (draw(stream("donors", seed), keys[wrong], zeros[wrong]) % np.uint64(max(len(keys), 1))).astype(np.int64)
    same = ordered[at] == keys[wrong]
    at[same] = np.searchsorted(ordered, keys[wrong[same]], "right") % max(len(keys), 1)
    if (ordered[at] == keys[wrong]).any():
        raise _impossible("all pairs have the same sentence")
    return wrong, by_key[at]


@dataclass(frozen=True, slots=True)
class Threshold:
    """The m smallest of a stream of draws: those below `least`, and the first `ties` equal to it."""

    least: np.uint64
    ties: int


def threshold(draws: Callable[[], Iterable[UInt64]], m: int) -> Threshold:
    """Return the threshold of the m smallest draws without keeping all draws in memory.

    The stream is read twice: once to count draws by their upper 16 bits, once to sort the bin of the m-th.
    """
    bins = np.zeros(1 << 16, np.int64)
    for some in draws():
        bins += np.bincount((some >> np.uint64(48)).astype(np.int64), minlength=1 << 16)
    if m > bins.sum():
        raise _impossible(f"only {int(bins.sum()):,} links are in pairs with another source word")
    if m == 0:
        return Threshold(np.uint64(0), 0)
    before = np.cumsum(bins)
    last = int(np.searchsorted(before, m, "left"))
    left = m - int(before[last] - bins[last])
    inside = np.sort(np.concatenate([some[(some >> np.uint64(48)) == last] for some in draws()]))
    least = inside[left - 1]
    return Threshold(least, left - int(np.searchsorted(inside, least, "left")))


def below(draws: UInt64, cut: Threshold, seen: int) -> tuple[Bool, int]:
    """Return (bool[n]: draws below the threshold; number of ties so far). seen: number of ties before these draws."""
    tied = draws == cut.least
    number = seen + np.cumsum(tied)
    return (draws < cut.least) | (tied & (number <= cut.ties)), seen + int(tied.sum())


def other_word(draws: UInt64, right: Ints, sizes: Ints) -> Int64:
    """Return int64[n]: a word of 0 … size - 1 other than the right one. Sizes are at least 2.

    Drawn from size - 1 values and moved past the right one: with size 4 and right 1, draws 0 1 2 become 0 2 3.
    """
    found = (draws % (sizes.astype(np.uint64) - np.uint64(1))).astype(np.int64)
    return found + (found >= right)


def _impossible(why: str) -> UsageError:
    return UsageError(f"so much noise is not possible: {why}", where="--noise", fix="lower --noise", id="noise")
