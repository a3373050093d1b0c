"""The conditions of a dependency tree in every format: heads in range, one root, no cycle; and the ids of nodes.

`1-2` is the id of a multiword token of words 1 and 2, `4.1` of an empty node after word 4.
"""

from __future__ import annotations

import re

import numpy as np

from derivlang.core.arrays import Bool, Int32, Int64, first_true, lengths_of, owners, positions

# The id of a multiword token or an empty node. A sentence has fewer than 10^9 words, and `int` refuses 5,000 digits.
NODE_ID = re.compile(r"(0|[1-9][0-9]{0,8})([-.])([1-9][0-9]{0,8})")


NO_HEAD = -1


def first_fault(heads: Int32, offsets: Int64, *, whole: bool = True) -> tuple[int, str, str] | None:
    """Return (word, what, id) of the first fault of some trees, or None.

    heads: int32[N], 1-based in the sentence, 0 = root; offsets: int64[S + 1]. whole: whether each sentence must be one
    tree; if not, words may have NO_HEAD, and a sentence several roots. `what` continues "word 3 has …".
    ids: head-range, head-cycle, head-root.
    """
    row_of = owners(offsets)
    n_words = lengths_of(offsets)
    if whole and (heads == NO_HEAD).any():
        return first_true(heads == NO_HEAD), "no head, but a whole tree is needed", "head-range"
    outside = (heads < NO_HEAD) | (heads > n_words[row_of])
    if outside.any():
        word = first_true(outside)
        n = int(n_words[row_of[word]])
        return word, f"head {heads[word]}, but the sentence has {n} word{'s' * (n > 1)}", "head-range"
    own = heads == positions(offsets) + 1
    if own.any():
        return first_true(own), "itself as head", "head-cycle"
    is_root = heads == 0
    n_roots = np.bincount(row_of[is_root], minlength=len(n_words))
    n_ends = np.bincount(row_of[heads <= 0], minlength=len(n_words))
    rootless = (n_ends == 0) & (n_words > 0)
    if rootless.any():
        word = int(offsets[first_true(rootless)])
        return word, f"head {heads[word]}, and no word of its sentence has head 0", "head-root"
    if whole and (n_roots > 1).any():
        word = int(np.flatnonzero(is_root)[first_true(np.diff(row_of[is_root], prepend=-1) == 0)])
        return word, "head 0, but a word before it is the root", "head-root"
    circular = in_cycle(heads, offsets)
    if circular.any():
        word = first_true(circular)
        return word, f"head {heads[word]} and does not hang from the root: a cycle", "head-cycle"
    return None


def fault_of_ids(ids: list[str]) -> tuple[int, str] | None:
    """Find the first id of a sentence that is out of order. Return its index and what is wrong, or None.

    1 2-3 2 3 3.1 4 are in order.
    """
    if ids == [*map(str, range(1, len(ids) + 1))]:
        return None
    n_words = sum(map(str.isdecimal, ids))
    if n_words == 0:
        return 0, f"the id {ids[0]} stands in a sentence without words"
    words = empties = covered = 0  # words so far, empty nodes since, last word of a multiword token so far
    for i, id in enumerate(ids):
        match = NODE_ID.fullmatch(id)
        fault = ""
        if id.isdecimal():
            words, empties = words + 1, 0
            if id != str(words):
                return i, f"the word has the id {id}, expected {words}"
        elif match is None:
            fault = "is not an id (3 is a word, 3-4 a multiword token, 3.1 an empty node)"
        elif match[2] == ".":
            empties += 1
            if id != f"{words}.{empties}" or (i and "-" in ids[i - 1]):
                fault = f"is out of its place, expected {words}.{empties} right after word {words}"
        else:
            first, last = int(match[1]), int(match[3])
            if not 1 <= first <= last <= n_words:
                fault = f"is not a range within the {n_words} words of the sentence"
            elif first <= covered:
                fault = "overlaps the multiword token before it"
            elif first != words + 1:
                fault = f"is out of its place, expected right before word {first}"
            covered = last
        if fault:
            return i, f"the id {id} {fault}"
    return None


def in_cycle(heads: Int32, offsets: Int64) -> Bool:
    """Return bool[N]: the words from which no root and no word without a head is reached.

    heads: within their sentences, 0 = root, NO_HEAD.

    Each round doubles how far every word has climbed, so log2 rounds of the longest sentence suffice:

        heads [0, 1, 2, 3]   parents [0, 0, 1, 2]   after round 1 [0, 0, 0, 1]   after round 2 [0, 0, 0, 0]
    """
    here = np.arange(len(heads))
    above = np.where(heads <= 0, here, heads + np.repeat(offsets[:-1], np.diff(offsets)) - 1)
    for _ in range(int(lengths_of(offsets).max(initial=1)).bit_length()):
        above = above[above]
    return np.asarray(heads[above] > 0)
