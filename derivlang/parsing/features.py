"""What a parser sees of a word: its place in a vocabulary, and hashed pieces of its form.

    "Walking"  ->  the word `walking`, and the buckets of w-, wa-, wal-, walk-, -g, -ng, -ing, -king, -lking, Xx, …

A word's vector is its own (words seen twice or more in training) plus the mean of its pieces' vectors, so that a word
never seen before still has one, and is computed once a word *type*. `<unk>` has one vector of its own. Training and
inference share this file: a change here is a change of every model (`RULE_VERSION`).
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from zlib import crc32

import numpy as np

from derivlang.core.arrays import Int32

RULE_VERSION = 1
UNSEEN, MASKED = 0, 1  # codes in the vocabulary: a word that is not in it; `<unk>`
N_PIECES = 12
MASK = "<unk>"


def word_codes(words: Sequence[str], vocabulary: Mapping[str, int]) -> Int32:
    """int32[T]: each word's code, lower-cased, UNSEEN where it has none."""
    codes = (MASKED if word == MASK else vocabulary.get(word.lower(), UNSEEN) for word in words)
    return np.fromiter(codes, np.int32, len(words))


def piece_buckets(words: Sequence[str], n_buckets: int) -> Int32:
    """int32[T, N_PIECES]: the bucket of each piece, 1 … n_buckets - 1; bucket 0 is `<unk>`'s."""
    out = np.zeros((len(words), N_PIECES), np.int32)
    for row, word in enumerate(words):
        if word != MASK:
            out[row] = [1 + crc32(piece.encode("utf-8", "surrogatepass")) % (n_buckets - 1) for piece in _pieces(word)]
    return out


def _pieces(word: str) -> tuple[str, ...]:
    low = word.lower()
    return (
        f"a{low[:1]}",
        f"b{low[:2]}",
        f"c{low[:3]}",
        f"d{low[:4]}",
        f"e{low[-1:]}",
        f"f{low[-2:]}",
        f"g{low[-3:]}",
        f"h{low[-4:]}",
        f"i{low[-5:]}",
        f"j{_shape(word)}",
        f"k{_case(word)}{min(len(word), 12)}",
        f"l{low}",
    )


def _shape(word: str) -> str:
    """`McDonald's-1998` -> `XxXx's-dddd`: runs of one kind of letter once, of digits up to four."""
    out: list[str] = []
    for char in word[:40]:
        kind = "d" if char.isdigit() else "X" if char.isupper() else "x" if char.isalpha() else char
        if not out or out[-1] != kind or (kind == "d" and out[-4:] != ["d"] * 4):
            out.append(kind)
    return "".join(out)


def _case(word: str) -> str:
    if not any(map(str.isalpha, word)):
        return "d" if any(map(str.isdigit, word)) else "p"
    if word.islower():
        return "l"
    if word.isupper():
        return "u" if len(word) > 1 else "s"
    return "t" if word[0].isupper() else "m"
