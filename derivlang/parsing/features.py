"""The features of a word: its code in a vocabulary, and hashed pieces of its form.

    "Walking"  ->  the word `walking`, and the buckets of w-, wa-, wal-, walk-, -g, -ng, -ing, -king, -lking, Xx, …

The vector of a word is its own vector (for words seen twice or more in training) plus the mean of its pieces' vectors,
so that an unseen word has a vector too. It is computed once per word *type*. `<unk>` has a vector of its own. Training
and inference share this file: a change here changes every model (`RULE_VERSION`).
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from zlib import crc32

import numpy as np

from derivlang.core.arrays import Int32

RULE_VERSION = 1
UNSEEN, MASKED = 0, 1  # codes of words that are not in the vocabulary, and of `<unk>`
N_PIECES = 12
WORD_LIMIT = 8.0  # largest absolute value of a word vector
MASK = "<unk>"


def word_codes(words: Sequence[str], vocabulary: Mapping[str, int]) -> Int32:
    """Return int32[T], the code of each lower-cased word, or UNSEEN."""
    codes = (MASKED if word == MASK else vocabulary.get(word.lower(), UNSEEN) for word in words)
    return np.fromiter(codes, np.int32, len(words))


def piece_buckets(words: Sequence[str], n_buckets: int) -> Int32:
    """Return int32[T, N_PIECES], the buckets of the pieces, 1 … n_buckets - 1; bucket 0 is for `<unk>`."""
    out = np.zeros((len(words), N_PIECES), np.int32)
    for row, word in enumerate(words):
        if word != MASK:
            out[row] = [1 + crc32(piece.encode("utf-8", "surrogatepass")) % (n_buckets - 1) for piece in _pieces(word)]
    return out


def _pieces(word: str) -> tuple[str, ...]:
    """Return N_PIECES strings; the first letter marks the kind, so that the prefix `ing` is not the suffix `ing`."""
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
    """`McDonald's-1998` -> `XxXx'x-dddd`: runs of one kind of letter once, of digits up to four."""
    out: list[str] = []
    for char in word[:40]:
        kind = "d" if char.isdigit() else "X" if char.isupper() else "x" if char.isalpha() else char
        if not out or out[-1] != kind or (kind == "d" and out[-4:] != ["d"] * 4):
            out.append(kind)
    return "".join(out)


def _case(word: str) -> str:
    """Return the case of a word: lower, Upper, Single capital, Title, Mixed; Digits or Punctuation without letters."""
    if not any(map(str.isalpha, word)):
        return "d" if any(map(str.isdigit, word)) else "p"
    if word.islower():
        return "l"
    if word.isupper():
        return "u" if len(word) > 1 else "s"
    return "t" if word[0].isupper() else "m"
