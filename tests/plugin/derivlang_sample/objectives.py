"""small: masked words, and embeddings that stay small.

L = L_MLM + weight * mean of E[i, j]^2
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any

from derivlang import param
from derivlang.training.inputs import Inputs
from derivlang.training.objectives.base import Loss, Objective, masked_loss


@dataclass(frozen=True, kw_only=True)
class Small(Objective):
    """Masked words, and embeddings that stay small."""

    name = "small"
    weight: float = param(1.0, "of the embeddings' part", positional=True, low=0)

    def loss(self, model: Any, inputs: Inputs, state: Any) -> Loss:
        mlm = masked_loss(model, inputs.rows)
        size = model.embeddings.pow(2).mean() * inputs.share
        return Loss(mlm + self.weight * size, {"mlm": mlm.detach(), "size": size.detach()})
