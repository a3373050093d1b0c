"""The entries of a dictionary at a given coverage, and those held out: parts of one ranking.

    keyed ranking of T entries     e7 e2 e9 e4 | e1 e5        the last floor(hT/100 + 1/2) are held out, for any `by`
    coverage c                     the first k = floor(cT/100 + 1/2) of the others by `random` (keyed), `frequency`
                                   (by count, ties by key) or `pos` (keyed within each tag, interleaved in proportion);
                                   `mass`: the shortest prefix of the keyed ranking with c % of the running words

A key is a draw of the word itself. So a ranking depends on the set of words and the seed, but not on the order of the
text. Cuts of one ranking are nested: 50 % contains 25 %. Methods, section 3.
"""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np
import pyarrow as pa

from derivlang.core.arrays import Int64, offsets_of, positions
from derivlang.core.arrow import to_arrow, to_numpy
from derivlang.core.errors import UsageError
from derivlang.core.keys import draw, hash_types, text_key
from derivlang.lexical.percent import Share, portion
from derivlang.lexical.settings import By

RULE_VERSION = 1


@dataclass(frozen=True, slots=True)
class Cut:
    """A cut ranking. chosen: int64[k], the dictionary's entries in ranking order. heldout: int64[h]."""

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
    """Choose the entries of a dictionary.

    words: Arrow strings [T], distinct. counts: int64[T]. tags: Arrow strings [T].
    Raise UsageError for `pos` without tags, and if the entries that are not held out cannot reach the coverage.
    """
    keyed = ranking(words, seed)
    n = len(keyed)
    kept = n - portion(heldout, n)
    rest = keyed[:kept]
    if by == "mass":
        # The shortest prefix with c % of the mass ends at the first running sum of at least that share, rounded up.
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
                fix="use a treebank (pos, CoNLL-U), or a parsed set: `derivlang parse`",
                id="needs-tags",
            )
        rest = rest[_interleaved(tags.take(to_arrow(rest)))]
    return Cut(rest[:k], keyed[kept:])


def ranking(words: pa.Array, seed: int) -> Int64:
    """Return int64[T]: the words sorted by their keys."""
    hashes = hash_types(words)
    stream = text_key(f"dict|seed={seed}|rule={RULE_VERSION}")
    return np.lexsort((hashes, draw(stream, hashes, np.zeros(len(hashes), np.int64))))


def _interleaved(tags: pa.Array) -> Int64:
    """Return int64[n]: words interleaved in proportion to their tags, in their order within a tag.

    The r-th of n words of a tag is sorted by (r + 1/2) / n: tags N N N V give 1/6, 3/6, 5/6 and 1/2, so N N V N.
    """
    codes = to_numpy(tags.dictionary_encode().indices)
    by_tag = np.argsort(codes, kind="stable")
    sizes = np.bincount(codes)
    place = np.empty(len(codes))
    place[by_tag] = (positions(offsets_of(sizes)) + 0.5) / np.repeat(sizes, sizes)
    return np.argsort(place, kind="stable")
