"""Thinning: families with dependents left out, so that a model depends less on which other dependents there are.

    DET ADJ @NOUN@  at 0.25  ->  DET ADJ @NOUN@ 0.5625    ADJ @NOUN@ 0.1875    DET @NOUN@ 0.1875    (@NOUN@ 0.0625)

The rest keeps its order. A noun without an article is common in English but rare in French: a model that has seen nouns
with and without each dependent infers less from absent dependents. This is dropout of inputs (Srivastava et al. 2014),
summed over all outcomes instead of sampled.
"""

from __future__ import annotations

from itertools import combinations

import numpy as np

from derivlang.core.errors import UsageError
from derivlang.formats.progress import rows_done
from derivlang.grammar.families import Families, is_head
from derivlang.grammar.weights import Float


def thinned(families: Families, counts: Float, share: float) -> tuple[Families, Float]:
    """Return (families, counts float64[F]) with each dependent left out with probability `share`.

    Each resulting label sequence occurs once, sorted by its labels; the sum of the counts stays the same. It takes 2^d
    steps for d dependents. Raises UsageError thin-share unless 0 <= share < 1.
    """
    if not 0 <= share < 1:
        raise UsageError(
            f"the share {share:g} must be at least 0 and below 1", fix="use 0 or more, less than 1", id="thin-share"
        )
    totals: dict[tuple[str, ...], float] = {}
    for f, count in enumerate(counts.tolist()):
        labels = families.labels(f)
        dependents = [place for place, label in enumerate(labels) if not is_head(label)]
        for n_out in range(len(dependents) + 1 if share else 1):
            part = count * share**n_out * (1 - share) ** (len(dependents) - n_out)
            for out in combinations(dependents, n_out):
                left = tuple(label for place, label in enumerate(labels) if place not in out)
                totals[left] = totals.get(left, 0.0) + part
        rows_done(1)
    ordered = sorted(totals)
    return Families.of([list(labels) for labels in ordered]), np.array([totals[labels] for labels in ordered])
