"""Noise for studies of robustness: exactly the stated share of things is made wrong, by key, and listed.

    translations   floor(pk/100 + 1/2) pairs of a dictionary get another entry's translation
    pairs          sentence pairs get another pair's derived side
    links          links are moved to a wrong source word

Each function says which things, and what they become; nothing is drawn but by key, so equal inputs give equal noise.
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
    """The stream of a kind of noise."""
    return text_key(f"noise-{name}|seed={seed}|rule={RULE_VERSION}")


def first_by_key(draws: UInt64, m: int) -> Int64:
    """int64[m]: the places of the m smallest draws, ties by place; ascending."""
    return np.sort(np.argsort(draws, kind="stable")[:m])


def wrong_translations(words: Sequence[str], translations: Sequence[str], share: Share, seed: int) -> dict[int, str]:
    """{pair: its wrong translation} for floor(pk/100 + 1/2) of k pairs: a translation of another entry, none of
    its own word. UsageError where there is no such translation."""
    m = portion(share, len(words))
    own: dict[str, set[str]] = {}
    rank = []  # the number of a pair among those of its word
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
            raise _impossible("no entry has another translation than this one's")
        own[words[pair]].add(found)
        out[pair] = found
    return out


def wrong_partners(keys: UInt64, share: Share, seed: int) -> tuple[Int64, Int64]:
    """(pairs int64[m], donors int64[m]): which of n sentence pairs get the derived side of which others.

    keys: uint64[n], the sentences' content keys. A donor has another key. UsageError where there is none.
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
        raise _impossible("all pairs are of one sentence")
    return wrong, by_key[at]


@dataclass(frozen=True, slots=True)
class Threshold:
    """The m smallest of some draws, without holding them: those below `least`, and the first `ties` equal to it."""

    least: np.uint64
    ties: int


def threshold(draws: Callable[[], Iterable[UInt64]], m: int) -> Threshold:
    """The m smallest draws of a stream that can be gone through twice: by their upper 16 bits, then inside one bin."""
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
    """(bool[n]: which draws are among the smallest; how many ties have been met, `seen` before these)."""
    tied = draws == cut.least
    number = seen + np.cumsum(tied)
    return (draws < cut.least) | (tied & (number <= cut.ties)), seen + int(tied.sum())


def other_word(draws: UInt64, right: Ints, sizes: Ints) -> Int64:
    """int64[n]: a word of 0 … size - 1 that is not the right one; sizes are 2 or more."""
    found = (draws % (sizes.astype(np.uint64) - np.uint64(1))).astype(np.int64)
    return found + (found >= right)


def _impossible(why: str) -> UsageError:
    return UsageError(f"so much noise is not possible: {why}", where="--noise", fix="lower --noise", id="noise")
