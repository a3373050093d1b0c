"""Thinning: families with dependents left out, so that a model does not lean on which others are there.

    DET ADJ @NOUN@  at 0.25  ->  DET ADJ @NOUN@ 0.5625    ADJ @NOUN@ 0.1875    DET @NOUN@ 0.1875    (@NOUN@ 0.0625)

What is left keeps its order. A noun without an article means another thing in English than in French, where it is rare:
a model that has seen nouns with and without each of their dependents says less about what is not there. As dropout of
inputs (Srivastava and others 2014), but summed over all outcomes, so that nothing is drawn.
"""

from __future__ import annotations

from itertools import combinations

import numpy as np

from derivlang.core.errors import UsageError
from derivlang.grammar.families import Families, is_head
from derivlang.grammar.weights import Float


def thinned(families: Families, counts: Float, share: float) -> tuple[Families, Float]:
    """Every family with each of its dependents left out with probability `share`.

    Each label sequence that arises, once, in the order of the labels; and how often it counts, float64[F]. These sum to
    what `counts` sums to. Takes 2^d steps for d dependents. Raises UsageError thin-share unless 0 <= share < 1.
    """
    if not 0 <= share < 1:
        raise UsageError(f"{share:g} is no share to leave out", fix="give 0 or more, less than 1", id="thin-share")
    totals: dict[tuple[str, ...], float] = {}
    for f, count in enumerate(counts.tolist()):
        labels = families.labels(f)
        dependents = [place for place, label in enumerate(labels) if not is_head(label)]
        for n_out in range(len(dependents) + 1 if share else 1):
            part = count * share**n_out * (1 - share) ** (len(dependents) - n_out)
            for out in combinations(dependents, n_out):
                left = tuple(label for place, label in enumerate(labels) if place not in out)
                totals[left] = totals.get(left, 0.0) + part
    ordered = sorted(totals)
    return Families.of([list(labels) for labels in ordered]), np.array([totals[labels] for labels in ordered])
