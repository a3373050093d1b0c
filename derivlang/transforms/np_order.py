"""np: the determiner, numeral, adjectives and noun of each noun phrase in one of 24 orders.

    np:N-Num-A-D      the two big city halls   ->   city halls two big the
    np:D-Num-N-A      the two big city halls   ->   the two city halls big

In each NP the children of four classes are put into the order, in the places that they have together:

    D    DT PRP$ PDT              Num  QP CD $
    N    NN NNS NNP NNPS          A    JJ JJR JJS ADJP RB

All other children stay where they are. Children of one class keep their order, so compounds and names stay whole: with
D-Num-A-N, `the York city halls` does not change. The published program sorts single labels, which gives `the city halls
York`, and has the 's of a genitive (POS) among D; here it stays behind its noun. The paper writes n for Num, a for A:
its orders are N-Num-D-A, A-Num-N-D, D-A-N-Num, D-Num-N-A, and D-Num-A-N for English.
Source: Yang et al. 2025 (arXiv 2502.18795), orders of noun phrases, after Greenberg's Universal 20.
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import ClassVar

import numpy as np

from derivlang.core.arrays import Int64
from derivlang.core.batch import Batch
from derivlang.core.errors import UsageError
from derivlang.core.keys import Draws
from derivlang.core.layers.constituents import PARSE
from derivlang.core.order import Order
from derivlang.core.spec import param
from derivlang.syntax.phrase_labels import check_tags, labelled
from derivlang.syntax.phrases import Phrases, phrase_order, phrases_of
from derivlang.transforms.base import Transform

_CLASSES = {
    "D": ("DT", "PRP$", "PDT"),
    "Num": ("QP", "CD", "$"),
    "A": ("JJ", "JJR", "JJS", "ADJP", "RB"),
    "N": ("NN", "NNS", "NNP", "NNPS"),
}


@dataclass(frozen=True, kw_only=True)
class NounPhrase(Transform):
    """Noun phrases: determiner, numeral, adjectives and noun in another order."""

    name = "np"
    needs: ClassVar[tuple[str, ...]] = (PARSE,)

    order_: str = param("N-Num-A-D", "order of D, Num, A and N", positional=True, draws=False, file=False)

    def validate(self) -> None:
        """Raise UsageError unless the order has each class once."""
        if sorted(self.order_.split("-")) != sorted(_CLASSES):
            raise UsageError(
                f"np: order={self.order_} must have each of D, Num, A and N once, with hyphens between them",
                fix="write np:N-Num-A-D, for example",
                id="bad-value",
            )

    def order(self, batch: Batch, draws: Draws) -> Order:
        """Return the order of a batch with constituents. Raise LayerError untagged for NPs of words without tags."""
        whole = phrases_of(batch)
        check_tags(str(self), batch, whole, labelled(whole.found, ("NP",)))
        return phrase_order(batch, whole, self._places, keep_tails=True)

    def _places(self, phrases: Phrases) -> Int64:
        """Return int64[N]: the position of each word."""
        found = phrases.found
        slot = np.zeros(len(found), np.int64)
        for number, name in enumerate(self.order_.split("-"), 1):
            slot[labelled(found, _CLASSES[name])] = number
        is_noun_phrase = np.append(labelled(found, ("NP",)), False)  # the last one is for parent -1
        return phrases.sorted_children(np.where(is_noun_phrase[found.parent], slot, 0))
