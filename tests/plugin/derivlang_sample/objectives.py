"""small: masked words, and embeddings that stay small.

L = L_MLM + weight * mean of E[i, j]^2
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any

from derivlang import param
from derivlang.training.batch import Step
from derivlang.training.objectives.base import Loss, LossPart, Objective, masked_part


@dataclass(frozen=True, kw_only=True)
class Small(Objective):
    """Masked words, and embeddings that stay small."""

    name = "small"
    weight: float = param(1.0, "of the embeddings' part", positional=True, low=0)

    def loss(self, model: Any, micro: Step, state: Any) -> Loss:
        size = model.embeddings.pow(2).mean() * micro.share
        return {"mlm": masked_part(model, micro["rows"]), "size": LossPart(size, weight=self.weight)}
