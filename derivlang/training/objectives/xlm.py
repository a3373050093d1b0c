"""XLM: MLM on each language, plus translation language modelling (TLM) on sentence pairs.

    L = source * L_MLM(source rows) + derived * L_MLM(derived rows) + tlm * L_TLM(pairs)

Every step has the same rows as with MLM, and pair rows in addition: by default half as many positions, so that the
three parts have equal sizes. Source: Lample and Conneau (2019), section 3.3, where the parts have equal weights.
"""

from __future__ import annotations

from dataclasses import dataclass, replace
from typing import TYPE_CHECKING

from derivlang.core.spec import param
from derivlang.training.batch import Step
from derivlang.training.objectives.base import Loss, Objective, masked_part, masked_part_by_language
from derivlang.training.streams.base import Stream
from derivlang.training.streams.packed import Packed
from derivlang.training.streams.pairs import SentencePairs

if TYPE_CHECKING:
    import torch

    from derivlang.training.encoder import Encoder


@dataclass(frozen=True, kw_only=True)
class Xlm(Objective):
    """Masked words of each language, and masked words of sentence pairs."""

    name = "xlm"
    language_ids = True
    pairs: float = param(0.5, "positions in pair rows, as a share of those in other rows; 0: no TLM", low=0)
    reset: bool = param(True, "whether positions restart in the second half of a pair row")
    source: float = param(1.0, "weight of MLM on the source", low=0)
    derived: float = param(1.0, "weight of MLM on the derived language", low=0)
    tlm: float = param(1.0, "weight of TLM", low=0)

    def streams(self) -> tuple[Stream, ...]:
        return (Packed(), SentencePairs(share=self.pairs, reset=self.reset)) if self.pairs else (Packed(),)

    def loss(self, model: Encoder, micro: Step, state: torch.nn.Module | None) -> Loss:
        source, derived = masked_part_by_language(model, micro["rows"])
        parts = {
            "mlm-source": replace(source, weight=self.source),
            "mlm-derived": replace(derived, weight=self.derived),
        }
        return parts | {"tlm": masked_part(model, micro["pairs"], weight=self.tlm)} if self.pairs else parts
