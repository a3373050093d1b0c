"""Build: a grammar from families, with the strength of the penalty chosen on held-out families.

Defaults are those of the shipped grammars: no punctuation, all subtypes kept, weights of single labels held tighter than
those of tags and of relations, so that a rare label does as its tag and relation do. These were chosen on French-Sequoia dev.
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
from derivlang.grammar.weights import Float

STRENGTHS = (1.0, 1.5, 2.0, 3.0)
USUAL = 2.0
# Held-out bits differ little between strengths; the least penalty within this share of the best is taken, since a
# stronger one flattens what is certain (who is subject, who is object) for the sake of what is not.
NEAR = 1.01
FACTORS = {"joint": 2.0, "fine joint": 4.0, "fine relation": 2.0}
MOST = 7
MOST_WHILE_CHOOSING = 6
FEWEST_HEADS = 20  # of a class, to learn from


@dataclass(frozen=True, slots=True)
class Recipe:
    """name, language: of the grammar. classes: head classes to fit. subtypes: relations that keep theirs (None: all).
    labels: the treebanks' version of UD. punct: are there punctuation marks among the families? strengths: of the
    penalty, to choose from; None: `STRENGTHS` where there are held-out families, else the third of them."""

    name: str
    language: str
    classes: Collection[str] = ("N", "V")
    subtypes: Collection[str] | None = None
    labels: str = "v2"
    punct: bool = False
    strengths: tuple[float, ...] | None = None


def build(
    recipe: Recipe,
    families: Families,
    held: Families | None,
    about: Mapping[str, str],
    counts: Float | None = None,
) -> tuple[Grammar, float]:
    """(the grammar, the strength taken). held: families to choose by, none that were learnt from. counts: float64[F].

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
    l2 = USUAL
    if recipe.strengths is not None and len(recipe.strengths) == 1:
        l2 = recipe.strengths[0]
    elif held is not None:
        l2 = choose_strength(recipe, classes, families, held, counts)
    settings = Settings(l2=l2, factors=FACTORS, most=MOST)
    weights = {name: fit(families, name, settings, counts) for name in classes}
    factors = ", ".join(f"{name} x {factor:g}" for name, factor in FACTORS.items())
    header = {
        **about,
        "settings": f"L2 {l2:g} ({factors}), heads of at most {MOST} members,"
        f" punctuation {'kept' if recipe.punct else 'left out'},"
        f" subtypes kept: {'all' if recipe.subtypes is None else ', '.join(recipe.subtypes) or 'none'}",
    }
    return Grammar(recipe.name, recipe.language, recipe.labels, weights, header), l2


def choose_strength(
    recipe: Recipe, classes: Collection[str], families: Families, held: Families, counts: Float | None
) -> float:
    """The strength of the penalty, by bits a head on held-out families of verbs and nouns (or whatever there is)."""
    names = [name for name in classes if name in ("N", "V")] or list(classes)
    found = {}
    for l2 in recipe.strengths or STRENGTHS:
        settings = Settings(l2=l2, factors=FACTORS, most=MOST_WHILE_CHOOSING)
        weights = {name: fit(families, name, settings, counts) for name in names}
        found[l2] = held_out_bits(OrderModel(Grammar("", "", recipe.labels, weights)), held)
    return min(l2 for l2, bits in found.items() if bits <= NEAR * min(found.values()))
