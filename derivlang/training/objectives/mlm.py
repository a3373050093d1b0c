"""MLM: masked language modelling on both languages.

    L = mean over masked positions i of  -log p(x_i)

Source: Devlin et al. (2019), section 3.1; the baseline of ALIGN-MLM (Tang et al., section 3).
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import TYPE_CHECKING, Any

from derivlang.training.batch import Step
from derivlang.training.objectives.base import Loss, Objective, masked_part

if TYPE_CHECKING:
    from derivlang.training.encoder import Encoder


@dataclass(frozen=True, kw_only=True)
class Mlm(Objective):
    """Masked words of both languages."""

    name = "mlm"

    def loss(self, model: Encoder, micro: Step, state: Any) -> Loss:
        return {"mlm": masked_part(model, micro["rows"])}
