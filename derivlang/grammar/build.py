"""Build: a grammar from families, with the strength of the penalty and the thinning chosen on held-out families.

Defaults are those of the shipped grammars: no punctuation, all subtypes kept, weights of single labels held tighter
than those of tags and of relations, so that a rare label does as its tag and relation do. These were chosen on
French-Sequoia dev.
"""

from __future__ import annotations

from collections.abc import Collection, Mapping
from dataclasses import dataclass, replace

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
# Noun heads only: a verb that comes second, as in German, stands elsewhere once what leads its clause is left out.
THINNED = ("N",)
# Of these, the largest share whose bits are NEAR the best: the model leans least on which other dependents are there,
# which differs between the treebank's language and that of the trees to be ordered.
SHARES = (0.0, 0.25, 0.5)
FACTORS = {"joint": 2.0, "fine joint": 4.0, "fine relation": 2.0}
MOST = 7
MOST_WHILE_CHOOSING = 6
FEWEST_HEADS = 20  # of a class, to learn from


@dataclass(frozen=True, slots=True)
class Recipe:
    """name, language: of the grammar. classes: head classes to fit. subtypes: relations that keep theirs (None: all).
    labels: the treebanks' version of UD. punct: are there punctuation marks among the families? strengths: of the
    penalty, to choose from; None: `STRENGTHS` where there are held-out families, else the third of them. thin: share of
    dependents of noun heads left out; None: of `SHARES` where there are held-out families, else 0."""

    name: str
    language: str
    classes: Collection[str] = ("N", "V")
    subtypes: Collection[str] | None = None
    labels: str = "v2"
    punct: bool = False
    strengths: tuple[float, ...] | None = None
    thin: float | None = None


def build(
    recipe: Recipe,
    families: Families,
    held: Families | None,
    about: Mapping[str, str],
    counts: Mapping[str, Float] | None = None,
    taken: Mapping[str, Settings] | None = None,
) -> tuple[Grammar, dict[str, Settings]]:
    """(the grammar, the settings of each class). held: families to choose by, none that were learnt from.

    counts: for each class float64[F], what each family counts. taken: settings chosen before.
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
        used[name] = choose(recipe, name, families, held, own) if known is None else known
        weights[name] = fit(families, name, used[name], own)
    header = {**about, "settings": _said(recipe, used)}
    return Grammar(recipe.name, recipe.language, recipe.labels, weights, header), used


def choose(
    recipe: Recipe, name: str, families: Families, held: Families | None, counts: Float | None = None
) -> Settings:
    """The settings of one head class, by bits a head on held-out families: first the strength of the penalty, then, for
    noun heads, the thinning."""
    strengths = recipe.strengths or STRENGTHS
    shares = (0.0,) if name not in THINNED else SHARES if recipe.thin is None else (recipe.thin,)
    settings = Settings(l2=USUAL, factors=FACTORS, most=MOST)
    if held is None or not (classes_of(held) == name).sum() >= FEWEST_HEADS:
        return replace(settings, l2=strengths[0] if len(strengths) == 1 else USUAL, thin=shares[0])

    def near(tried: list[Settings]) -> list[Settings]:
        if len(tried) == 1:
            return tried
        bits = []
        for each in tried:
            weights = {name: fit(families, name, replace(each, most=MOST_WHILE_CHOOSING), counts)}
            bits.append(held_out_bits(OrderModel(Grammar("", "", recipe.labels, weights)), held))
        return [each for each, found in zip(tried, bits, strict=True) if found <= NEAR * min(bits)]

    settings = min(near([replace(settings, l2=l2) for l2 in strengths]), key=lambda s: s.l2)
    return max(near([replace(settings, thin=thin) for thin in shares]), key=lambda s: s.thin)


def _said(recipe: Recipe, used: Mapping[str, Settings]) -> str:
    """The settings, for the file's header."""
    factors = ", ".join(f"{name} x {factor:g}" for name, factor in FACTORS.items())
    thinned = ", ".join(f"{name} {settings.thin:g}" for name, settings in used.items() if settings.thin)
    return (
        f"L2 {', '.join(f'{name} {settings.l2:g}' for name, settings in used.items())} ({factors}),"
        f" heads of at most {MOST} members,{f' thinned {thinned},' if thinned else ''}"
        f" punctuation {'kept' if recipe.punct else 'left out'},"
        f" subtypes kept: {'all' if recipe.subtypes is None else ', '.join(recipe.subtypes) or 'none'}"
    )


def classes_of(families: Families) -> NDArray[np.str_]:
    """The head class of each family."""
    return np.array([head_class(token) for token in families.tokens])[families.members[families.head_places]]
