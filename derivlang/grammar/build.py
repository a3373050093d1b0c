"""Build: a grammar from families, with the strength of the penalty chosen on held-out families.

Defaults are those of the shipped grammars: no punctuation, subtypes dropped but for two that say where a word stands
(relative clauses, possessives), weights of single labels held tighter than those of tags and of relations, so
that a rare label does as its tag and relation do.
"""

from __future__ import annotations

from collections.abc import Collection, Mapping
from dataclasses import dataclass

import numpy as np

from derivlang.core.arrays import lengths_of
from derivlang.core.errors import DataError
from derivlang.grammar.evaluate import held_out_bits
from derivlang.grammar.families import Families, head_class
from derivlang.grammar.fit import Settings, fit
from derivlang.grammar.grammar import Grammar
from derivlang.grammar.order_model import OrderModel
from derivlang.grammar.treebank import with_subtypes

SUBTYPES = ("acl:relcl", "nmod:poss")
STRENGTHS = (0.5, 1.0, 2.0, 4.0)
FACTORS = {"joint": 2.0}
MOST = 7
FEWEST_HEADS = 20  # of a class, to learn from


@dataclass(frozen=True, slots=True)
class Recipe:
    """name, language: of the grammar. classes: head classes to fit. subtypes: relations that keep theirs (None: all).
    labels: the treebanks' version of UD. punct: are there punctuation marks among the families? strengths: of the
    penalty, to choose from; None: `STRENGTHS` where there are held-out families, else the third of them."""

    name: str
    language: str
    classes: Collection[str] = ("N", "V")
    subtypes: Collection[str] | None = SUBTYPES
    labels: str = "v2"
    punct: bool = False
    strengths: tuple[float, ...] | None = None


def build(
    recipe: Recipe, families: Families, held: Families | None, about: Mapping[str, str]
) -> tuple[Grammar, float]:
    """(the grammar, the strength taken). held: families to choose by, none that were learnt from.

    Raises DataError few-heads where no class has enough heads.
    """
    families = with_subtypes(families, recipe.subtypes)
    heads = np.array([head_class(token) for token in families.tokens])[families.members[families.head_places]]
    sizes = lengths_of(families.offsets)
    classes = [name for name in recipe.classes if ((heads == name) & (sizes > 1)).sum() >= FEWEST_HEADS]
    if not classes:
        raise DataError(
            f"no head class of {', '.join(recipe.classes)} has {FEWEST_HEADS} heads with dependents",
            fix="give more sentences",
            id="few-heads",
        )
    strengths = recipe.strengths or (STRENGTHS if held is not None else STRENGTHS[2:3])
    best: tuple[float, float, Grammar] | None = None
    for l2 in strengths:
        settings = Settings(l2=l2, factors=FACTORS, most=MOST)
        weights = {name: fit(families, name, settings) for name in classes}
        header = {
            **about,
            "settings": f"L2 {l2:g} (times 2 for UPOS&deprel), heads of at most {MOST} members,"
            f" punctuation {'kept' if recipe.punct else 'left out'},"
            f" subtypes kept: {'all' if recipe.subtypes is None else ', '.join(recipe.subtypes) or 'none'}",
        }
        grammar = Grammar(recipe.name, recipe.language, recipe.labels, weights, header)
        bits = held_out_bits(OrderModel(grammar), held) if held is not None and len(strengths) > 1 else 0.0
        if best is None or bits < best[0]:
            best = (bits, l2, grammar)
    assert best is not None
    return best[2], best[1]
