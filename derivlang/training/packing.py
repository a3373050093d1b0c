"""Pack sentences into instances, the same for every objective and for both languages (methods, section 4).

    <s> s1 </s> s2 </s> s3 </s> <pad> <pad>        whole sentences in source order, H sub-words

An instance ends when the next sentence does not fit or, with --packing single, after each. A sentence of more than
H - 2 sub-words is cut into consecutive pieces, before words if possible (a longer word is cut inside). The derived
instance holds the same sub-words: the order of a sentence is restricted to each of its pieces.
"""

from __future__ import annotations

import numpy as np

from derivlang.core.arrays import Int64, Ints


def cut(sentences: Int64, words: Ints, most: int) -> Int64:
    """Return int64[P + 1]: the sub-word offsets of non-empty pieces.

    sentences: int64[S + 1] sub-word offsets. words: [M], the word of each sub-word, ascending. most: maximum number of
    sub-words in a piece.

        sentences [0, 5], words [0 0 1 1 2], most 3  ->  [0, 2, 5]: position 3 is inside word 1, which begins at 2
    """
    lengths = np.diff(sentences)
    starts = [sentences[:-1][lengths > 0]]
    for s in np.flatnonzero(lengths > most):
        begin, end = int(sentences[s]), int(sentences[s + 1])
        extra = []
        while end - begin > most:
            at = begin + most
            word = int(np.searchsorted(words[begin:end], words[at], "left")) + begin  # where the word at the cut begins
            begin = word if word > begin else at
            extra.append(begin)
        starts.append(np.array(extra, np.int64))
    return np.append(np.sort(np.concatenate(starts)), sentences[-1])


def pack(lengths: Int64, room: int, *, single: bool = False) -> Int64:
    """Return int64[I + 1]: the piece offsets of instances, filled greedily, or of a single piece each.

    lengths: int64[P], each with its `</s>`, at most `room`. room: H - 1.

        lengths [3, 2, 4, 1], room 5  ->  [0, 2, 4]: pieces of 3 + 2 and of 4 + 1 sub-words
    """
    if single:
        return np.arange(len(lengths) + 1)
    ends = np.concatenate([[0], np.cumsum(lengths)])
    cuts = [0]
    while cuts[-1] < len(lengths):
        # the last piece that ends at most `room` sub-words after the last cut
        cuts.append(int(np.searchsorted(ends, ends[cuts[-1]] + room, "right")) - 1)
    return np.array(cuts, np.int64)
