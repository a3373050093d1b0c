"""Subtypes of relations: what a label means in its own treebank, and in trees that are annotated otherwise.

Subtypes are optional, and each language chooses its own; the universal relation is what all treebanks share
(universaldependencies.org, *Syntax: General Principles*, on language-specific relations). So a relation without a
subtype is two things:

    in its own treebank     Hindi has `nmod:poss` and `nmod`, and `nmod` is not one of the first: it is named `nmod:-`
    in other trees          an English `nmod` is any Hindi one, with `nmod:poss` or without

A grammar learns each head twice, with all subtypes and without any, so that `nmod` has the order of all Hindi genitives
and `nmod:-` the order of the others.

    NOUN&nmod:poss DET&det @NOUN&@   at 0.5  ->  NOUN&nmod:poss DET&det @NOUN&@ 0.5    NOUN&nmod DET&det @NOUN&@ 0.5

`DET&det:dem` is a `det` with PronType=Dem, a universal feature, and stays (universaldependencies.org/u/feat/PronType).
"""

from __future__ import annotations

from collections.abc import Iterable

import numpy as np

from derivlang.grammar.families import Families
from derivlang.grammar.weights import Float

NONE = "-"  # the subtype of a relation without one, in a treebank that has subtypes of it
DEMONSTRATIVE = "det:dem"


def plain(token: str) -> str:
    """Return a label without the subtype, `NOUN&nmod:poss` -> `NOUN&nmod`; `DET&det:dem` stays."""
    return token if token.endswith(DEMONSTRATIVE) else token.partition(":")[0]


def as_in_trees(token: str) -> str:
    """Return the label as trees have it, `NOUN&nmod:-` -> `NOUN&nmod`, `DET&det:dem` -> `DET&det`."""
    return token.partition(":")[0] if token.endswith((f":{NONE}", DEMONSTRATIVE)) else token


def named(families: Families) -> Families:
    """Return the families of one treebank with its relations without a subtype named: `nmod:-`.

    A relation is named if the treebank has a subtype of it.
    """
    divided = {_relation(token) for token in families.tokens if plain(token) != token}
    tokens = [f"{t}:{NONE}" if ":" not in t and _relation(t) in divided else t for t in families.tokens]
    return Families(families.offsets, families.members, tuple(tokens), families.keys)


def dropped(families: Families, counts: Float, share: float) -> tuple[Families, Float]:
    """Return (families, counts float64[F]) with this share of each family's count moved to it without subtypes.

    Each resulting label sequence occurs once, sorted by its labels; the sum of the counts stays the same.
    """
    totals: dict[tuple[str, ...], float] = {}
    for f, count in enumerate(counts.tolist()):
        labels = tuple(families.labels(f))
        for line, part in ((labels, 1 - share), (tuple(map(plain, labels)), share)):
            if part:
                totals[line] = totals.get(line, 0.0) + count * part
    ordered = sorted(totals)
    return Families.of([list(labels) for labels in ordered]), np.array([totals[labels] for labels in ordered])


def marked(upos: Iterable[str], deprel: Iterable[str], feats: Iterable[str]) -> tuple[list[str], list[str]]:
    """Return (tags, relations), with DET and `det:dem` for words with the relation det and PronType=Dem.

    The tag is DET whatever the treebank says, because it is PRON in some (Welsh) and the relation says as much.
    """
    tags, relations = list(upos), list(deprel)
    for word, values in enumerate(feats):
        if relations[word] == "det" and "PronType=Dem" in values.split("|"):
            tags[word], relations[word] = "DET", DEMONSTRATIVE
    return tags, relations


def _relation(token: str) -> str:
    """Return the relation of a label without its subtype."""
    return token.partition("&")[2].partition(":")[0]
