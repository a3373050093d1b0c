"""Noise for studies of robustness: make an exact share of items wrong, and list them.

    translations   a dictionary pair gets the translation of another entry
    pairs          a sentence pair gets the derived side of another pair
    links          a link moves to a wrong source word

Of n items, p percent are floor(pn/100 + 1/2). Each function returns the chosen items and what they become. Draws are
keyed (`core/keys.py`), so equal inputs get equal noise.
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
    """Return the stream of draws for a kind of noise (`translation`, `dict`, `pairs` …)."""
    return text_key(f"noise-{name}|seed={seed}|rule={RULE_VERSION}")


def first_by_key(draws: UInt64, m: int) -> Int64:
    """Return int64[m]: the positions of the m smallest draws, ascending. Of equal draws the earlier counts as smaller.

    draws [9, 2, 7, 2], m = 3  ->  [1, 2, 3]
    """
    return np.sort(np.argsort(draws, kind="stable")[:m])


def wrong_translations(words: Sequence[str], translations: Sequence[str], share: Share, seed: int) -> dict[int, str]:
    """Choose a share of the pairs and return a wrong translation for each, by the number of the pair.

    A wrong translation belongs to another pair and is not a translation of the word, right or wrong. Raises UsageError
    if there is none.
    """
    m = portion(share, len(words))
    own: dict[str, set[str]] = {}
    rank = []  # the number of each pair among the pairs of its word
    for word, translation in zip(words, translations, strict=True):
        rank.append(len(own.setdefault(word, set())))
        own[word].add(translation)
    hashes = hash_types(string_array(words))
    places = np.array(rank, np.int64)
    out: dict[int, str] = {}
    starts = draw(stream("translation", seed), hashes, places) % np.uint64(max(len(words), 1))
    for pair in first_by_key(draw(stream("dict", seed), hashes, places), m).tolist():
        # From a drawn place on, the first translation that the word does not have yet.
        at = int(starts[pair])
        for step in range(len(words)):
            wrong = translations[(at + step) % len(words)]
            if wrong not in own[words[pair]]:
                break
        else:
            raise _impossible("no other entry has a different translation")
        # Another pair of this word must not get the same wrong translation.
        own[words[pair]].add(wrong)
        out[pair] = wrong
    return out


def wrong_partners(keys: UInt64, share: Share, seed: int) -> tuple[Int64, Int64]:
    """Choose the share of the sentence pairs that get a wrong derived side, and a donor for each.

    keys: uint64[n], the content key of each source sentence. Returns (pairs int64[m], donors int64[m]): pair number
    `pairs[i]` gets the derived side of pair number `donors[i]`, whose source sentence is a different one. Raises
    UsageError if all sentences are equal.

    A donor is drawn from the pairs sorted by key. If it has the same sentence, the first pair after its run of equal
    keys is taken: keys sorted 3 3 5 8 and a draw at position 1 for a pair with key 3  ->  position 2, key 5
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
    """Describes the m smallest of a stream of draws: all below `least`, and the first `ties` that are equal to it."""

    least: np.uint64
    ties: int


def threshold(draws: Callable[[], Iterable[UInt64]], m: int) -> Threshold:
    """Return the threshold of the m smallest draws without keeping all draws in memory.

    draws: returns the stream from its beginning. It is called twice: first draws are counted in bins by their upper 16
    bits, then the bin with the m-th smallest draw is sorted. Raises UsageError if there are fewer than m draws.

    draws 5 1 4 4 4, m = 3: 1 and two of the 4s  ->  least 4, ties 2
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
    # The m-th smallest draw is in bin `last`; so many draws of this bin are among the m.
    left = m - int(before[last] - bins[last])
    inside = np.sort(np.concatenate([some[(some >> np.uint64(48)) == last] for some in draws()]))
    least = inside[left - 1]
    return Threshold(least, left - int(np.searchsorted(inside, least, "left")))


def below(draws: UInt64, cut: Threshold, seen: int) -> tuple[Bool, int]:
    """Return (bool[n]: whether each draw is one of the m smallest; the number of ties so far).

    seen: number of ties before these draws. With least 4, ties 2 and seen 1, the draws 4 1 4 give [True, True, False]
    and 3.
    """
    tied = draws == cut.least
    number = seen + np.cumsum(tied)
    return (draws < cut.least) | (tied & (number <= cut.ties)), seen + int(tied.sum())


def other_word(draws: UInt64, right: Ints, sizes: Ints) -> Int64:
    """Return int64[n]: a word of 0 … size - 1 that is not the right one. Sizes are at least 2.

    One of size - 1 values is drawn, and those from the right word on are raised by 1: with size 4 and right word 1, the
    values 0 1 2 become 0 2 3.
    """
    word = (draws % (sizes.astype(np.uint64) - np.uint64(1))).astype(np.int64)
    return word + (word >= right)


def _impossible(why: str) -> UsageError:
    return UsageError(f"so much noise is not possible: {why}", where="--noise", fix="lower --noise", id="noise")
