"""XLM: MLM on both languages, plus translation language modelling (TLM) on sentence pairs.

    L = L_MLM(rows) + L_TLM(pairs)          <s> s1 </s> s2 </s> <s> d1 </s> d2 </s>, each side at most H/2

Every step has the same rows as any other objective, and pair rows in addition. In pair rows, positions restart in the
second half, and the model gets the language of each position. Source: Lample and Conneau (2019), section 3.3.
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import TYPE_CHECKING

from derivlang.core.spec import param
from derivlang.training.inputs import Inputs
from derivlang.training.objectives.base import Loss, Objective, masked_loss

if TYPE_CHECKING:
    import torch

    from derivlang.training.model import LanguageModel


@dataclass(frozen=True, kw_only=True)
class Xlm(Objective):
    """Masked words, and masked words of sentence pairs."""

    name = "xlm"
    needs = frozenset({"pairs"})
    language_ids = True
    rows: float = param(0.5, "number of pair rows in a step, as a share of its other rows", low=0)
    reset: bool = param(True, "whether positions restart in the second half of a pair row")

    @property
    def pair_rows(self) -> float:
        return self.rows

    def loss(self, model: LanguageModel, inputs: Inputs, state: torch.nn.Module | None) -> Loss:
        assert inputs.pairs is not None
        mlm, tlm = masked_loss(model, inputs.rows), masked_loss(model, inputs.pairs)
        return Loss(mlm + tlm, {"mlm": mlm.detach(), "tlm": tlm.detach()})
