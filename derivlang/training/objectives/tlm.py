"""TLM: translation language modelling, masked words of sentence pairs.

    L = mean over masked positions i of  -log p(x_i)         <s> s1 </s> s2 </s> <s> d1 </s> d2 </s>

Positions restart in the second half, and the model gets the language of each position. Source: Lample and Conneau
(2019), section 3.3.
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import TYPE_CHECKING, Any

from derivlang.core.spec import param
from derivlang.training.batch import Step
from derivlang.training.objectives.base import Loss, Objective, masked_part
from derivlang.training.streams.base import Stream
from derivlang.training.streams.pairs import SentencePairs

if TYPE_CHECKING:
    from derivlang.training.encoder import Encoder


@dataclass(frozen=True, kw_only=True)
class Tlm(Objective):
    """Masked words of sentence pairs."""

    name = "tlm"
    language_ids = True
    reset: bool = param(True, "whether positions restart in the second half of a row")

    def streams(self) -> tuple[Stream, ...]:
        return (SentencePairs(share=1.0, reset=self.reset),)

    def loss(self, model: Encoder, micro: Step, state: Any) -> Loss:
        return {"tlm": masked_part(model, micro["pairs"])}
