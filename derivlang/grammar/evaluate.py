"""Evaluate: how well a model predicts the orders of given families."""

from __future__ import annotations

import math
from dataclasses import dataclass

import numpy as np

from derivlang.core.arrays import lengths_of
from derivlang.core.keys import Draws
from derivlang.grammar.families import Families, head_class
from derivlang.grammar.order_model import OrderModel
from derivlang.grammar.treebank import as_they_stand


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
    of_class = np.array([head_class(token) == name for token in families.tokens])
    chosen = of_class[families.members[families.head_places]] & (lengths > 1) & (lengths <= most)
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
