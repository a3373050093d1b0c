"""Very long sentences: cut into parts that are parsed separately, then joined into one tree.

The table of arcs grows with the square of the length, and no treebank has trees of 2,000 words to learn from. So a
sentence of more than LONGEST words is cut. Of the next LONGEST words, a part ends after the last `;`, `:`, `.`, `!` or
`?` in the second half, else after the last comma, dash or bracket there, else after all of them. The root of the first
part is the root of the sentence; the roots of the other parts depend on it as `parataxis` (a punctuation mark as
`punct`).
"""

from __future__ import annotations

from collections.abc import Sequence
from itertools import pairwise

import numpy as np

from derivlang.core.arrays import Int32, Int64, UInt8, lengths_of
from derivlang.parsing.base import UPOS

LONGEST = 160  # words; the longest sentence of UD English-EWT has 159
_STRONG, _WEAK = set(";:.!?") | {"..."}, set(",-)]}")


def cut_long(words: Int32, types: Sequence[str], sentences: Int64) -> Int64:
    """Return int64[P + 1], the word offsets of the parts; `sentences` itself if none is too long."""
    long = np.flatnonzero(lengths_of(sentences) > LONGEST)
    if not len(long):
        return sentences
    cuts = []
    for row in long.tolist():
        start, end = int(sentences[row]), int(sentences[row + 1])
        while end - start > LONGEST:
            start += _first_part([types[code] for code in words[start : start + LONGEST]])
            cuts.append(start)
    return np.sort(np.concatenate([sentences, np.array(cuts, np.int64)]))


def _first_part(words: Sequence[str]) -> int:
    """Return how many of LONGEST words are a part."""
    for marks in (_STRONG, _WEAK):
        for n in range(len(words), len(words) // 2, -1):
            if words[n - 1] in marks:
                return n
    return len(words)


def hang_together(
    upos: UInt8, head: Int32, deprel: Int32, parts: Int64, sentences: Int64, relations: Sequence[str]
) -> None:
    """Turn heads of parts (parts: int64[P + 1]) into heads of sentences (sentences: int64[S + 1]), in place.

    A sentence of 5 words in parts of 2 and 3 words, with heads 2 0 | 2 0 2: its root is word 2 (`top`). The second part
    begins at word 2 (from 0), so its heads 2 and 2 become 4 and 4, and its root depends on word 2: 2 0 4 2 4.
    """
    punct, parataxis = relations.index("punct"), relations.index("parataxis")
    for row in np.flatnonzero(lengths_of(sentences) > LONGEST).tolist():
        start, end = int(sentences[row]), int(sentences[row + 1])
        # an empty sentence before this one is a part that begins here, too
        bounds = parts[np.searchsorted(parts, start, "right") - 1 : np.searchsorted(parts, end) + 1].tolist()
        top = int(np.flatnonzero(head[start : bounds[1]] == 0)[0]) + 1
        for a, b in pairwise(bounds[1:]):
            part = head[a:b]
            root = a + int(np.flatnonzero(part == 0)[0])
            # First the shift of the heads inside the part, then the root: `top` already counts in the sentence.
            part[part > 0] += a - start
            head[root] = top
            deprel[root] = punct if upos[root] == UPOS.index("PUNCT") else parataxis
