"""Borrowing: relations that a head class has hardly seen, learnt from the heads of other classes.

A relation is the same whatever the part of speech of its head is (universaldependencies.org/u/dep/aux_: the auxiliary
of a clause, whose predicate may be a verb, a noun or an adjective), but each head class has a model of its own. Welsh
auxiliaries depend on verbal nouns, which are NOUN, and English ones on VERB: the Welsh model of verbs has seen none.

    AUX&aux PROPN&nsubj @NOUN&@     ->     AUX&aux @VERB&@

Such a dependent is learnt by itself with its head, under the name of the most frequent head of the class.
"""

from __future__ import annotations

from collections import Counter

import numpy as np

from derivlang.core.arrays import lengths_of
from derivlang.grammar.families import Families, head_class, is_head
from derivlang.grammar.subtypes import plain
from derivlang.grammar.weights import Float

FEW = 5  # a relation with fewer dependents in a class is borrowed
# The dependents of a borrowed relation count for at most this share of the class's heads, so that many such relations
# do not outweigh what a small class shows itself: Persian objects precede verbs, and nouns follow adverbs.
SHARE = 0.1


def with_borrowed(own: Families, counts: Float, families: Families, name: str) -> tuple[Families, Float]:
    """Return (families, counts float64[F]) of a head class, with families of two members for relations that it has
    hardly seen.

    own: the families of class `name`, each label sequence once. families: of all classes.
    """
    lengths = lengths_of(families.offsets)
    heads = np.repeat(families.head_places, lengths)
    at = np.arange(len(families.members))
    classes = np.array([head_class(token) if is_head(token) else "" for token in families.tokens])
    labels = [plain(token) for token in families.tokens]
    relations = [label.partition("&")[2].partition(":")[0] for label in labels]
    inside = (classes == name)[families.members[heads]]
    own_heads = Counter(families.members[families.head_places][inside[families.head_places]].tolist())
    if not own_heads:
        return own, counts
    usual = families.tokens[min(own_heads, key=lambda code: (-own_heads[code], families.tokens[code]))]
    dependents = at != heads
    seen = Counter(relations[code] for code in families.members[dependents & inside].tolist())
    others = np.flatnonzero(dependents & ~inside)
    pairs = Counter(zip(families.members[others].tolist(), (others < heads[others]).tolist(), strict=True))
    totals = Counter(relations[code] for code in families.members[others].tolist())
    most = SHARE * float(counts.sum())
    merged: dict[tuple[str, ...], float] = {}
    for (code, before), count in pairs.items():
        relation = relations[code]
        if seen[relation] < FEW:
            line: tuple[str, ...] = (labels[code], usual) if before else (usual, labels[code])
            part = count * min(1.0, most / totals[relation])
            merged[line] = merged.get(line, 0.0) + part
    for f, count in enumerate(counts.tolist()):
        line = tuple(own.labels(f))
        merged[line] = merged.get(line, 0.0) + count
    ordered = sorted(merged)
    return Families.of([list(line) for line in ordered]), np.array([merged[line] for line in ordered])
