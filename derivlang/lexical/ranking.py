"""Which entries a dictionary of some coverage has, and which are held out: one ranking, cut.

    keyed ranking of T entries     e7 e2 e9 e4 | e1 e5        the last floor(hT/100 + 1/2) are held out, whatever `by`
    coverage c                     the first k = floor(cT/100 + 1/2) of the others by `random` (keyed), `frequency`
                                   (by count, ties by key) or `pos` (keyed within each tag, interleaved in proportion);
                                   `mass`: the shortest prefix of the keyed ranking with c % of the running words

A key is a draw of the word itself, so that a ranking depends on the set of words and the seed, not on where the
words stood. Cuts of one ranking are nested: 25 % lies in 50 %. Methods, section 3.
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import Literal

import numpy as np
import pyarrow as pa

from derivlang.core.arrays import Int64, offsets_of, places
from derivlang.core.arrow import to_arrow, to_numpy
from derivlang.core.errors import UsageError
from derivlang.core.keys import draw, hash_types, text_key
from derivlang.lexical.percent import Share, portion

By = Literal["random", "frequency", "mass", "pos"]
RULE_VERSION = 1


@dataclass(frozen=True, slots=True)
class Cut:
    """chosen: int64[k], the dictionary's entries in the order of the ranking. heldout: int64[h], those kept apart."""

    chosen: Int64
    heldout: Int64


def cut(
    words: pa.Array,
    counts: Int64,
    *,
    coverage: Share,
    by: By = "random",
    heldout: Share = 0,
    seed: int = 1,
    tags: pa.Array | None = None,
) -> Cut:
    """The entries of a dictionary. words: Arrow strings [T], distinct; counts: int64[T]; tags: Arrow strings [T].

    Raises UsageError: `pos` without tags; a coverage that the entries not held out cannot reach.
    """
    keyed = ranking(words, seed)
    n = len(keyed)
    kept = n - portion(heldout, n)
    rest = keyed[:kept]
    if by == "mass":
        # Shortest prefix with c % of the mass: the first running sum that is at least the ceiling of it.
        target = -int(-coverage * int(counts.sum()) // 100)
        k = int(np.searchsorted(np.cumsum(counts[rest]), target, "left")) + 1 if target else 0
    else:
        k = portion(coverage, n)
    if k > kept:
        what = f"{float(coverage):g} % of the running words" if by == "mass" else f"{k:,} of {n:,} entries"
        raise UsageError(
            f"a coverage of {float(coverage):g} is {what}, but {n - kept:,} of the entries are held out",
            where="--coverage",
            fix="lower --coverage or --heldout",
            id="coverage",
        )
    if by == "frequency":
        rest = rest[np.argsort(-counts[rest], kind="stable")]
    elif by == "pos":
        if tags is None:
            raise UsageError(
                "ranking by pos needs word tags, which this source lacks",
                where="--by",
                fix="take a treebank (pos, CoNLL-U), or a set that was parsed: `derivlang parse`",
                id="needs-tags",
            )
        rest = rest[_interleaved(tags.take(to_arrow(rest)))]
    return Cut(rest[:k], keyed[kept:])


def ranking(words: pa.Array, seed: int) -> Int64:
    """int64[T]: the words by their keys."""
    hashes = hash_types(words)
    stream = text_key(f"dict|seed={seed}|rule={RULE_VERSION}")
    return np.lexsort((hashes, draw(stream, hashes, np.zeros(len(hashes), np.int64))))


def _interleaved(tags: pa.Array) -> Int64:
    """int64[n]: words of each tag in their order, tags in proportion: the r-th of n at place (r + 1/2) / n."""
    codes = to_numpy(tags.dictionary_encode().indices)
    by_tag = np.argsort(codes, kind="stable")
    sizes = np.bincount(codes)
    place = np.empty(len(codes))
    place[by_tag] = (places(offsets_of(sizes)) + 0.5) / np.repeat(sizes, sizes)
    return np.argsort(place, kind="stable")
