"""Sentences to instances: the same for every objective, and for both languages (methods, section 4).

    <s> s1 </s> s2 </s> s3 </s> <pad> <pad>        whole sentences in source order, H sub-words

An instance closes when the next sentence does not fit. A sentence of more than H - 2 sub-words becomes consecutive
pieces, cut before words (a word that is longer itself, inside it). The derived instance holds the same sub-words: the
order of a sentence is restricted to each of its pieces.
"""

from __future__ import annotations

import numpy as np

from derivlang.core.arrays import Int64, Ints, owners


def cut(sentences: Int64, words: Ints, most: int) -> Int64:
    """int64[P + 1]: sub-word offsets of pieces, none of them empty.

    sentences: int64[S + 1] sub-word offsets. words: [M], the word of each sub-word, rising. most: sub-words in a piece.
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


def pack(lengths: Int64, room: int) -> Int64:
    """int64[I + 1]: piece offsets of instances. lengths: int64[P], each with its closing mark; room: H - 1.

    Greedy: an instance closes where the next piece does not fit. No length is above the room.
    """
    ends = np.concatenate([[0], np.cumsum(lengths)])
    cuts = [0]
    while cuts[-1] < len(lengths):
        # at most `room` sub-words after the last cut
        cuts.append(int(np.searchsorted(ends, ends[cuts[-1]] + room, "right")) - 1)
    return np.array(cuts, np.int64)


def restrict(order: Ints, pieces: Int64) -> Int64:
    """int64[M]: the order with the sub-words of each piece together, as source positions.

    order: [M], a gather within sentences. pieces: int64[P + 1] offsets, finer than the sentences'. Sub-words of a piece
    keep their derived order.
    """
    piece = owners(pieces)[order]
    return np.asarray(order, np.int64)[np.argsort(piece, kind="stable")]
