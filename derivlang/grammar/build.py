"""Build: a grammar from families, with the strength of the penalty chosen on held-out families.

Defaults are those of the shipped grammars: no punctuation, all subtypes kept, weights of single labels held tighter
than those of tags and of relations, so that a rare label does as its tag and relation do. These were chosen on
French-Sequoia dev.
"""

from __future__ import annotations

from collections.abc import Collection, Mapping
from dataclasses import dataclass

import numpy as np
from numpy.typing import NDArray

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
NEAR = 1.005
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
    counts: Mapping[str, Float] | None = None,
    taken: Mapping[str, float] | None = None,
) -> tuple[Grammar, dict[str, float]]:
    """(the grammar, the strength taken for each class). held: families to choose by, none that were learnt from.

    counts: for each class float64[F], what each family counts. taken: strengths chosen before.
    Raises DataError few-heads where no class has enough heads.
    """
    families = with_subtypes(families, recipe.subtypes)
    heads = classes_of(families)
    sizes = lengths_of(families.offsets)
    classes = [name for name in recipe.classes if ((heads == name) & (sizes > 1)).sum() >= FEWEST_HEADS]
    if not classes:
        raise DataError(
            f"no head class of {', '.join(recipe.classes)} has {FEWEST_HEADS} heads with dependents",
            fix="give more sentences",
            id="few-heads",
        )
    weights, used = {}, {}
    for name in classes:
        own = None if counts is None else counts[name]
        known = None if taken is None else taken.get(name)
        used[name] = choose_strength(recipe, name, families, held, own) if known is None else known
        weights[name] = fit(families, name, Settings(l2=used[name], factors=FACTORS, most=MOST), own)
    factors = ", ".join(f"{name} x {factor:g}" for name, factor in FACTORS.items())
    header = {
        **about,
        "settings": f"L2 {', '.join(f'{name} {l2:g}' for name, l2 in used.items())} ({factors}),"
        f" heads of at most {MOST} members, punctuation {'kept' if recipe.punct else 'left out'},"
        f" subtypes kept: {'all' if recipe.subtypes is None else ', '.join(recipe.subtypes) or 'none'}",
    }
    return Grammar(recipe.name, recipe.language, recipe.labels, weights, header), used


def choose_strength(
    recipe: Recipe, name: str, families: Families, held: Families | None, counts: Float | None = None
) -> float:
    """The strength of the penalty for one head class, by bits a head on held-out families."""
    strengths = recipe.strengths or STRENGTHS
    if recipe.strengths is not None and len(strengths) == 1:
        return strengths[0]
    if held is None or not (classes_of(held) == name).sum() >= FEWEST_HEADS:
        return USUAL
    found = {}
    for l2 in strengths:
        weights = {name: fit(families, name, Settings(l2=l2, factors=FACTORS, most=MOST_WHILE_CHOOSING), counts)}
        found[l2] = held_out_bits(OrderModel(Grammar("", "", recipe.labels, weights)), held)
    return min(l2 for l2, bits in found.items() if bits <= NEAR * min(found.values()))


def classes_of(families: Families) -> NDArray[np.str_]:
    """The head class of each family."""
    return np.array([head_class(token) for token in families.tokens])[families.members[families.head_places]]
