"""grammar: each head's dependents in the order of a weight table, or in the order with the shortest dependencies.

    grammar:my.tsv       a table of weights        grammar:random=3     the third random grammar
    grammar:min-dl       least total length        …:heads=function     prepositions, copulas and the like are heads

A weight table says for each relation on which side of the head its dependents stand, and how far from it.
A random grammar has random weights. `min-dl` orders the dependents of a head by the size of their subtrees, the
smallest next to the head, alternately on both sides (Gildea and Temperley 2007). No projective order of a tree has a
smaller sum of distances between words and their heads, if no parts are kept together (`freeze=none`) and marks are
words like others (`punct=permute`).

    the old man gave a book to the girl yesterday            min-dl with heads=function:
    old man the yesterday gave book a to girl the            lengths 19 -> 13

Published, punctuation is deleted; here it goes with its phrase. With `freeze=none` the words between the marks are in
the published order.
Source: Hahn, Jurafsky and Futrell 2020 (PNAS 117, 2347–2353); Clark et al. 2023 (TACL 11, 1048–1065: RANDOM-k,
MIN-DL-LOC).

Weight tables: one side and one distance for each relation, the grammars of Hahn et al. and Clark et al.

    relation	side	distance          side > 0: the dependent stands before its head, else after it
    nsubj	0.9	0.4               distance: of two on one side the larger one is farther from the head
    obj	-0.6	0.1
    *	-0.1	0.0               a relation without a row of its own (optional)

A relation with a subtype (`nmod:poss`) is looked up with it, then without it (`nmod`), then as `*`. Lines that begin
with `#` are comments; the header may be left out.
Source: Hahn, Jurafsky and Futrell 2020 (PNAS 117, 2347–2353), *word order grammars*; Clark et al. 2023 (TACL 11).
"""

from __future__ import annotations

import math
import random
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from functools import cache
from hashlib import sha256
from pathlib import Path
from typing import Literal

import numpy as np

from derivlang.core.arrays import Int64, ranks_in_runs
from derivlang.core.errors import DataError, UsageError
from derivlang.core.keys import Draws
from derivlang.core.schema import V2_RELATIONS
from derivlang.core.spec import Named, param
from derivlang.formats.places import once_per_version
from derivlang.grammar.families import LIFTED
from derivlang.grammar.weights import broken, lines
from derivlang.syntax.forest import Forest
from derivlang.syntax.layout import Listing, Members
from derivlang.syntax.lifting import lifted
from derivlang.syntax.nodes import TreeBlock
from derivlang.syntax.words import WordKinds
from derivlang.transforms.tree_transform import TreeTransform

_HEADER = "relation\tside\tdistance"
_REST = "*"
# A mark that is laid out like a word; published tables have no row for it.
_PUNCT = "punct"
# Slots of a family: relations before the head, from far to near; then these three; then relations after the head.
N_MIDDLE = 3


@dataclass(frozen=True, slots=True)
class WeightTable:
    """The weights of relations. rows: (side, distance) by relation. where: the file, for messages."""

    rows: Mapping[str, tuple[float, float]]
    where: str

    @property
    def fingerprint(self) -> str:
        """The hash of the weights, whatever the order and the form of the rows."""
        return sha256(repr(sorted(self.rows.items())).encode()).hexdigest()

    def slots(self, relations: Sequence[str]) -> tuple[Int64, int]:
        """Return (int64[R], the slot of each relation; the number of slots before the middle ones).

        Sorted by slots, a family is in the order of the table; equal weights have equal slots. A relation without
        weights has slot -1.

            nsubj 0.9 0.4, advmod 0.2 0.1, obj -0.6 0.1   ->   nsubj 0, advmod 1, (2 3 4 the middle), obj 5
        """
        found = [self._row(relation) for relation in relations]
        before = sorted({-distance for side, distance in filter(None, found) if side > 0})
        after = sorted({distance for side, distance in filter(None, found) if not side > 0})
        out = np.full(len(relations), -1, np.int64)
        for number, row in enumerate(found):
            if row is not None:
                side, distance = row
                out[number] = before.index(-distance) if side > 0 else len(before) + N_MIDDLE + after.index(distance)
        return out, len(before)

    def _row(self, relation: str) -> tuple[float, float] | None:
        plain = relation.partition(":")[0]
        for name in (relation, plain) if plain == _PUNCT else (relation, plain, _REST):
            if name in self.rows:
                return self.rows[name]
        return None

    def missing(self, relation: str) -> DataError:
        """Return the error for a relation that the table lacks."""
        return DataError(
            f"the table has no weights for the relation {relation!r}, which the trees have",
            where=self.where,
            fix=f"add a row for it, or a row `{_REST}` for all relations without one",
            id="grammar-relation",
        )


def read_table(path: Path) -> WeightTable:
    """Return the table of a file.

    Raises DataError missing-file, encoding, grammar-header (no weights), grammar-line (another number of columns, a
    weight that is not a finite number, a relation that comes twice).
    """
    rows: dict[str, tuple[float, float]] = {}
    numbers: dict[str, int] = {}
    for number, line in lines(path):
        if not line.strip() or line.startswith("#") or (not rows and line == _HEADER):
            continue
        cells = line.split("\t")
        if len(cells) != 3 or not cells[0].strip():
            raise broken(path, number, f"{line[:60]!r} is not a row of relation, side and distance, separated by tabs")
        relation = cells[0].strip()
        if relation in rows:
            raise broken(path, number, f"the relation {relation!r} comes twice, first in line {numbers[relation]}")
        rows[relation] = (_weight(path, number, cells[1]), _weight(path, number, cells[2]))
        numbers[relation] = number
    if not rows:
        raise DataError(
            "the table has no weights",
            where=str(path),
            fix="write a row for each relation: relation, side weight, distance weight, separated by tabs",
            id="grammar-header",
        )
    return WeightTable(rows, str(path))


def random_table(number: int) -> WeightTable:
    """Return the random grammar of a number: two draws from [-0.5, 0.5) for each relation, by name, as published.

    The names are the relations of UD v2 and of lifted heads; the published ones come from the authors' tables.
    `*` is `dep`, for relations outside UD.
    """
    draws = random.Random(number)
    rows = {name: (draws.random() - 0.5, draws.random() - 0.5) for name in sorted(V2_RELATIONS.union(LIFTED))}
    return WeightTable({**rows, _REST: rows["dep"]}, f"grammar:random={number}")


def _weight(path: Path, number: int, text: str) -> float:
    try:
        value = float(text)
    except ValueError:
        raise broken(path, number, f"{text!r} is not a number") from None
    if not math.isfinite(value):
        raise broken(path, number, f"{text!r} is not a finite number")
    return value


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
        if seen.relations[code].partition(":")[0] != _PUNCT:
            raise table.missing(seen.relations[code])
    # A mark without weights stays on its side, next to its head: the middle slots are a mark, the head, a mark.
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
