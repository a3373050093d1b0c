"""Build: a grammar from families, and how well its model predicts the orders of others.

The strength of the penalty and the thinning are chosen on held-out families. The defaults made the shipped grammars.
They were chosen on French-Sequoia dev: no punctuation, all subtypes kept, and a stronger penalty on joint labels than
on tags and relations, so that a rare label behaves as its tag and relation.
"""

from __future__ import annotations

import math
from collections.abc import Collection, Mapping
from dataclasses import dataclass, replace

import numpy as np

from derivlang.core.arrays import lengths_of
from derivlang.core.errors import DataError
from derivlang.core.keys import Draws
from derivlang.core.messages import counted, warn
from derivlang.grammar.families import Families
from derivlang.grammar.fit import FitSettings, fit
from derivlang.grammar.grammar import Grammar
from derivlang.grammar.order_model import OrderModel
from derivlang.grammar.treebank import as_they_stand

RULE_VERSION = 1  # of the fit: raised if the same treebanks and settings give another grammar
STRENGTHS = (1.0, 1.5, 2.0, 3.0)
USUAL = 2.0
# Held-out bits differ little between strengths. The smallest penalty within this factor of the best is used, because a
# stronger one flattens what is certain (subject or object) for the sake of what is not.
NEAR = 1.005
# Noun heads only: a verb in second position, as in German, moves when the dependent before it is left out.
THINNED = ("N",)
# The largest share whose bits are NEAR the best is used: the model then depends least on which other dependents there
# are, which differs between the treebank's language and the language of the trees.
SHARES = (0.0, 0.25, 0.5)
DROPPED = 0.5  # share of the heads without subtypes, as they are in trees of other languages
FACTORS = {"joint": 2.0, "fine joint": 4.0, "fine relation": 2.0}
MOST = 7
MOST_WHILE_CHOOSING = 6
FEWEST_HEADS = 20  # of a class, for a model


@dataclass(frozen=True, slots=True)
class GrammarRecipe:
    """How a grammar is built.

    name, language: of the grammar. classes: head classes to fit. labels: UD version of the treebanks. punct: the
    families have punctuation. strengths: penalties to choose from; None: `STRENGTHS` with held-out families, else
    `USUAL`. thin: share of the dependents of noun heads left out; None: one of `SHARES` with held-out families, else 0.
    """

    name: str
    language: str
    classes: Collection[str] = ("N", "V")
    labels: str = "v2"
    punct: bool = False
    strengths: tuple[float, ...] | None = None
    thin: float | None = None


def build(
    recipe: GrammarRecipe,
    families: Families,
    held: Families | None,
    about: Mapping[str, str],
) -> tuple[Grammar, dict[str, FitSettings]]:
    """Return (the grammar, the settings of each class).

    held: families to choose settings by, none of the training families. Raises DataError few-heads if no class has
    enough heads.
    """
    sizes = lengths_of(families.offsets)
    classes = [name for name in recipe.classes if ((families.classes == name) & (sizes > 1)).sum() >= FEWEST_HEADS]
    if not classes:
        raise DataError(
            f"no head class of {', '.join(recipe.classes)} has {FEWEST_HEADS} heads with dependents",
            fix="use more sentences",
            id="few-heads",
        )
    weights, used = {}, {}
    for name in classes:
        used[name] = choose(recipe, name, families, held)
        weights[name] = fit(families, name, used[name])
    header = {**about, "settings": _said(recipe, used)}
    return Grammar(recipe.name, recipe.language, recipe.labels, weights, header), used


def choose(recipe: GrammarRecipe, name: str, families: Families, held: Families | None) -> FitSettings:
    """Return the settings of one head class with the fewest bits per head on held-out families.

    First the strength of the penalty is chosen, then, for noun heads, the thinning. Warn of a class with too few
    held-out heads, whose settings are the usual ones.
    """
    strengths = recipe.strengths or STRENGTHS
    shares = (0.0,) if name not in THINNED else SHARES if recipe.thin is None else (recipe.thin,)
    settings = FitSettings(l2=USUAL, factors=FACTORS, most=MOST, dropped=DROPPED)
    n_held = 0 if held is None else int((held.classes == name).sum())
    if held is None or n_held < FEWEST_HEADS:
        settings = replace(settings, l2=strengths[0] if len(strengths) == 1 else USUAL, thin=shares[0])
        if held is not None and len(strengths) * len(shares) > 1:
            warn(
                f"{counted(n_held, 'held-out head')} of the class {name} are too few to choose by, where "
                f"{FEWEST_HEADS} are needed: L2 {settings.l2:g}, thinned {settings.thin:g}"
            )
        return settings

    def near(tried: list[FitSettings]) -> list[FitSettings]:
        if len(tried) == 1:
            return tried
        bits = []
        for each in tried:
            weights = {name: fit(families, name, replace(each, most=MOST_WHILE_CHOOSING))}
            bits.append(held_out_bits(OrderModel(Grammar("", "", recipe.labels, weights)), held))
        return [each for each, n_bits in zip(tried, bits, strict=True) if n_bits <= NEAR * min(bits)]

    settings = min(near([replace(settings, l2=l2) for l2 in strengths]), key=lambda s: s.l2)
    return max(near([replace(settings, thin=thin) for thin in shares]), key=lambda s: s.thin)


def _said(recipe: GrammarRecipe, used: Mapping[str, FitSettings]) -> str:
    """Return the settings as text for the file's header."""
    factors = ", ".join(f"{name} x {factor:g}" for name, factor in FACTORS.items())
    thinned = ", ".join(f"{name} {settings.thin:g}" for name, settings in used.items() if settings.thin)
    return (
        f"L2 {', '.join(f'{name} {settings.l2:g}' for name, settings in used.items())} ({factors}),"
        f" heads of at most {MOST} members,{f' thinned {thinned},' if thinned else ''}"
        f" punctuation {'kept' if recipe.punct else 'left out'},"
        f" a share of {DROPPED:g} without subtypes, subtypes kept: all"
    )


@dataclass(frozen=True, slots=True)
class GrammarScore:
    """Figures of the heads of one class that have a dependent and at most `most` members.

    heads: their number. bits: cross-entropy per head, log2. uniform: bits per head if all orders were equally likely.
    right: share of heads whose observed order is the most probable one.
    """

    heads: int
    bits: float
    uniform: float
    right: float


def evaluate(model: OrderModel, best: OrderModel, families: Families, name: str, most: int = 7) -> GrammarScore:
    """Return the score of the heads of class `name`. best: the same model under argmax."""
    lengths = lengths_of(families.offsets)
    chosen = (families.classes == name) & (lengths > 1) & (lengths <= most)
    families, lengths = families.take(chosen), lengths[chosen]
    if not len(families):
        return GrammarScore(0, math.nan, math.nan, math.nan)
    standing = as_they_stand(families)
    bits = -model.log_probs(families, standing).mean() / math.log(2)
    uniform = np.mean([math.lgamma(n + 1) / math.log(2) for n in lengths.tolist()])
    labels = families.members
    orders = best.draw(families, Draws(""))
    drawn = families.members[np.repeat(families.offsets[:-1], lengths) + orders]
    wrong = np.add.reduceat(drawn != labels, families.offsets[:-1]) > 0  # equal labels may be exchanged
    return GrammarScore(len(families), float(bits), float(uniform), float(1 - wrong.mean()))


def held_out_bits(model: OrderModel, families: Families, most: int = 7) -> float:
    """Return bits per head over all heads that the model orders, of all classes together."""
    lengths = lengths_of(families.offsets)
    families = families.take(model.modelled(families) & (lengths > 1) & (lengths <= most))
    return float(-model.log_probs(families, as_they_stand(families)).mean() / math.log(2))
