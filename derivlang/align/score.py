"""Precision, recall, F1 and alignment error rate of links against gold links (Och and Ney 2003, §4.1).

With links A, sure links S and possible links P (S is a subset of P):

    precision = |A ∩ P| / |A|    recall = |A ∩ S| / |S|    AER = 1 - (|A ∩ S| + |A ∩ P|) / (|A| + |S|)

Counts are summed over all sentence pairs. F1 is the harmonic mean of precision and recall.
"""

from __future__ import annotations

from dataclasses import asdict, dataclass

import numpy as np

from derivlang.align.links import Links, keys_of
from derivlang.core.errors import DataError
from derivlang.core.messages import counted


@dataclass(frozen=True, slots=True)
class AlignmentScore:
    """All figures are from 0 to 1."""

    precision: float
    recall: float
    f1: float
    aer: float

    def as_dict(self) -> dict[str, float]:
        """Return the figures by name."""
        return asdict(self)


def score(links: Links, gold: Links) -> AlignmentScore:
    """Return the figures of links against gold links; possible links in `links` count like sure ones.

    Precision is 1 without links, recall is 1 without sure links, AER is 0 without both. Raises DataError `lengths` if
    the numbers of lines differ.
    """
    if len(links) != len(gold):
        raise DataError(
            f"{counted(len(links), 'line')} of links, but {counted(len(gold), 'line')} of gold links",
            fix="score the links of the same sentence pairs, in the same order",
            id="lengths",
        )
    width = 1 + max(int(side.max(initial=0)) for side in (links.source, links.target, gold.source, gold.target))
    link_keys = np.unique(keys_of(links, width))
    keys = keys_of(gold, width)
    possible, sure = np.unique(keys), np.unique(keys[gold.sure])
    hits_possible = int(np.isin(link_keys, possible, assume_unique=True).sum())
    hits_sure = int(np.isin(link_keys, sure, assume_unique=True).sum())
    precision = hits_possible / len(link_keys) if len(link_keys) else 1.0
    recall = hits_sure / len(sure) if len(sure) else 1.0
    f1 = 2 * precision * recall / (precision + recall) if precision + recall else 0.0
    total = len(link_keys) + len(sure)
    return AlignmentScore(precision, recall, f1, 1 - (hits_sure + hits_possible) / total if total else 0.0)
