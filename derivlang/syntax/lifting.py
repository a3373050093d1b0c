"""Function heads: function words take the place of their heads, for an order only; no word and no label changes.

For cc, case, cop and mark, in this order, from left to right: the word's head becomes its dependent, with the relation
`lifted_case` (…), and the word gets the head and the relation that its head had.

    gave  to  girl      case(girl, to), obl(gave, girl)   ->   obl(gave, to), lifted_case(to, girl)

Of two function words of one head the right one ends next to it: `from under the bed` becomes from, under, bed. Where a
word gets one of the four relations by that (a preposition whose noun was a `mark`), the published program drops the
sentence; here the word keeps it.
Source: Hahn, Jurafsky and Futrell 2020 (PNAS 117), corpora with function heads; the same in Clark et al. 2023.
"""

from __future__ import annotations

from dataclasses import replace

import numpy as np

from derivlang.grammar.labels import FUNCTIONS, LIFTED
from derivlang.syntax.forest import Forest
from derivlang.syntax.words import WordKinds


def lifted(forest: Forest, words: WordKinds) -> tuple[Forest, WordKinds]:
    """Return the forest with function heads, and the words with their relations there."""
    parent, relation = forest.parent.copy(), words.relation.copy()
    names = np.array([name.partition(":")[0] for name in words.relations])
    claim = np.empty(len(forest), np.int64)
    for number, function in enumerate(FUNCTIONS):
        is_one = np.append(names == function, np.zeros(len(LIFTED), bool))
        pending = np.flatnonzero(is_one[relation] & (parent >= 0))
        while len(pending):
            # A round lifts the words that share neither themselves nor their heads with a word before them.
            head = parent[pending]
            claim[pending] = pending
            claim[head] = len(forest)
            np.minimum.at(claim, head, pending)
            claim[pending] = np.minimum(claim[pending], pending)
            ready = (claim[pending] == pending) & (claim[head] == pending)
            word, below = pending[ready], head[ready]
            parent[word], relation[word] = parent[below], relation[below]
            parent[below], relation[below] = word, len(names) + number
            pending = pending[~ready]
            pending = pending[is_one[relation[pending]] & (parent[pending] >= 0)]
    return Forest(parent, forest.trees), replace(words, relation=relation, relations=(*words.relations, *LIFTED))
