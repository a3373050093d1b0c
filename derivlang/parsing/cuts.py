"""Very long sentences: cut into parts that are parsed apart, then hung together.

A table of arcs grows with the square of a sentence, and no treebank has trees of 2,000 words to learn from. A sentence
of more than LONGEST words is cut after a mark, the last `;`, `:`, `.`, `!` or `?` in the second half of what may be
one part, else the last comma, dash or bracket there, else where it is full. The first part's root is the sentence's;
the other parts' roots hang from it as `parataxis` (a part that is only a mark: as `punct`).
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
    """int64[P + 1]: word offsets of the parts; `sentences` itself where none is too long."""
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
    """How many of LONGEST words are a part."""
    for marks in (_STRONG, _WEAK):
        for n in range(len(words), len(words) // 2, -1):
            if words[n - 1] in marks:
                return n
    return len(words)


def hang_together(
    upos: UInt8, head: Int32, deprel: Int32, parts: Int64, sentences: Int64, relations: Sequence[str]
) -> None:
    """Changes heads of parts int64[P + 1] into heads of sentences int64[S + 1], in place."""
    punct, parataxis = relations.index("punct"), relations.index("parataxis")
    for row in np.flatnonzero(lengths_of(sentences) > LONGEST).tolist():
        start, end = int(sentences[row]), int(sentences[row + 1])
        bounds = parts[np.searchsorted(parts, start) : np.searchsorted(parts, end) + 1].tolist()
        top = int(np.flatnonzero(head[start : bounds[1]] == 0)[0]) + 1
        for a, b in pairwise(bounds[1:]):
            part = head[a:b]
            root = a + int(np.flatnonzero(part == 0)[0])
            part[part > 0] += a - start
            head[root] = top
            deprel[root] = punct if upos[root] == UPOS.index("PUNCT") else parataxis
