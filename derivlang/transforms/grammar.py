"""grammar: each head's dependents in the order of a weight table, or in the order with the shortest dependencies.

    grammar:my.tsv       a table of weights        grammar:random=3     the third random grammar
    grammar:min-dl       least total length        …:heads=function     prepositions, copulas and the like are heads

A weight table says for each relation on which side of the head its dependents stand, and how far from it
(`grammar/weight_table.py`). A random grammar has random weights. `min-dl` orders the dependents of a head by the size
of their subtrees, the smallest next to the head, alternately on both sides (Gildea and Temperley 2007). No projective
order of a tree has a smaller sum of distances between words and their heads, if no parts are kept together
(`freeze=none`) and marks are words like others (`punct=permute`).

    the old man gave a book to the girl yesterday            min-dl with heads=function:
    old man the yesterday gave book a to girl the            lengths 19 -> 13

Published, punctuation is deleted; here it goes with its phrase. With `freeze=none` the words between the marks are in
the published order.
Source: Hahn, Jurafsky and Futrell 2020 (PNAS 117, 2347–2353); Clark et al. 2023 (TACL 11, 1048–1065: RANDOM-k,
MIN-DL-LOC).
"""

from __future__ import annotations

from dataclasses import dataclass
from functools import cache
from typing import Literal

import numpy as np

from derivlang.core.arrays import Int64, ranks_in_runs
from derivlang.core.errors import UsageError
from derivlang.core.keys import Draws
from derivlang.core.spec import Named, param
from derivlang.formats.places import once_per_version
from derivlang.grammar.weight_table import N_MIDDLE, WeightTable, is_punct, random_table, read_table
from derivlang.syntax.forest import Forest
from derivlang.syntax.layout import Listing, Members
from derivlang.syntax.lifting import lifted
from derivlang.syntax.nodes import TreeBlock
from derivlang.syntax.words import WordKinds
from derivlang.transforms.tree_transform import (
    Freeze,
    Nonprojective,
    Punct,
    TreeTransform,
    freeze_param,
    nonprojective_param,
    punct_param,
)

_LEAST = "min-dl"


@dataclass(frozen=True, kw_only=True)
class WeightGrammar(TreeTransform):
    """Weight grammar: dependents by a weight for each relation, or with the least dependency length."""

    name = "grammar"

    weights: str = param(
        _LEAST,
        "table of weights (a file), or min-dl: least dependency length",
        positional=True,
        draws=False,
        file=Named(lambda: (_LEAST,)),
    )
    random: int = param(0, "number of a random grammar, from 1, in place of a table; 0: none", draws=False, low=0)
    heads: Literal["content", "function"] = param(
        "content", "heads of phrases: as in the tree, or prepositions, copulas and conjunctions", draws=False
    )
    freeze: Freeze = freeze_param()
    punct: Punct = punct_param()
    nonprojective: Nonprojective = nonprojective_param()

    def validate(self) -> None:
        """Raise UsageError for two grammars; DataError for a broken file, before any source is read."""
        if self.random and self.weights != _LEAST:
            raise UsageError(
                f"grammar: {self.weights} and random={self.random} are two grammars",
                where="--t",
                fix="leave one of them out",
                id="bad-spec",
            )
        self.table()

    def table(self) -> WeightTable | None:
        """Return the weights, None for min-dl. Raise DataError for a broken file."""
        if self.random:
            return _random(self.random)
        return None if self.weights == _LEAST else _read(self.weights)

    def lift(self, forest: Forest, words: WordKinds) -> tuple[Forest, WordKinds]:
        """Return the trees with function words as heads if `heads=function`."""
        return lifted(forest, words) if self.heads == "function" else (forest, words)

    @property
    def resources(self) -> tuple[str, ...]:
        """The version of the layout and the fingerprint of the weights."""
        table = self.table()
        return (*super().resources, *([] if table is None else [f"weights {table.fingerprint}"]))

    def choose(self, draws: Draws, block: TreeBlock, members: Members) -> Listing:
        """Return the families in the order of the grammar; roots keep theirs.

        Raises DataError grammar-relation for a relation that the table lacks.
        """
        table = self.table()
        return _shortest(members, _sizes(block, members.top)) if table is None else _weighted(members, table, block)


def _weighted(members: Members, table: WeightTable, block: TreeBlock) -> Listing:
    """Return the families by the slots of a weight table."""
    listing, seen = members.listing, block.seen
    slot_of, middle = table.slots(seen.relations)
    relation = seen.relation[members.word]
    slot = slot_of[relation]
    slot[listing.itself] = middle + 1
    for code in np.unique(relation[(slot < 0) & (members.head >= 0)]).tolist():
        if not is_punct(seen.relations[code]):
            raise table.missing(seen.relations[code])
    # A mark without weights stays next to its head: the middle slots are a mark, the head, a mark.
    slot = np.where(slot < 0, np.where(members.before, middle, middle + N_MIDDLE - 1), slot)
    return members.arranged(slot)


def _sizes(block: TreeBlock, top: Int64) -> Int64:
    """Return int64[n]: the number of words of each node, from the words that stand for them."""
    part = np.cumsum(~block.bonds) - 1
    return np.bincount(part)[part[top]] if len(part) else np.zeros(0, np.int64)


def _shortest(members: Members, sizes: Int64) -> Listing:
    """Return the families in an order of the least dependency length. sizes: int64[n], words of each node.

    The dependents of a head, the smallest subtree first and ties in source order, go alternately to its two sides, each
    outside of those before. A node's first dependent goes to its right if the node stands left of its parent, or if it
    has an odd number of dependents, but not if both hold. So the side of a dependent is

        right(dependent of rank k) = right(head) xor not odd(dependents of the head) xor odd(k)

    which is a sum of bits over the path from the root, whose own bit is 1. If the first goes to the right, the ranks
    0 1 2 3 stand as 3 1 head 0 2: a dependent of rank k is number k // 2 of its side, counted from the head.
    """
    forest, listing = members.forest, members.listing
    child = ~listing.itself & (members.head >= 0)
    total = forest.below(sizes)
    entries = np.flatnonzero(child)
    family = members.family[entries]
    node = listing.nodes[entries]
    key = family * (int(total.max(initial=0)) + 1) + total[node]
    by = np.argsort(key, kind="stable")
    entries, family, node = entries[by], family[by], node[by]
    rank = ranks_in_runs(family)
    n_dependents = np.bincount(family, minlength=len(listing.heads))
    bits = np.ones(len(forest), np.int64)
    bits[node] = 1 ^ (n_dependents[family] & 1) ^ (rank & 1)
    right = (forest.along(bits) & 1)[node]
    n_left = np.bincount(family[right == 0], minlength=len(listing.heads))
    begin = listing.offsets[:-1]
    target = begin[family] + n_left[family] + np.where(right == 1, 1 + rank // 2, -1 - rank // 2)
    source = np.arange(len(listing.nodes))
    source[target] = entries
    itself = np.flatnonzero(listing.itself)
    source[(begin + n_left)[members.family[itself]]] = itself
    return listing.reordered(np.arange(len(source)), source)


_random = cache(random_table)
_read = once_per_version(read_table)
