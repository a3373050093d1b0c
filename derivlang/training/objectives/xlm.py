"""XLM: MLM on each language, plus translation language modelling (TLM) on sentence pairs.

    L = mean over masked positions i of  -log p(x_i), in rows of the source, of the derived language and of pairs

The rows of all three are one set, from which a step draws as many as MLM does. So the share of the pairs follows from
their number (`--parallel`), as in the released code of ALIGN-MLM (Tang et al. 2022, appendix G.3); a pair row has
`--seq-len` sub-words, half of them on each side. Lample and Conneau (2019), section 3.3, introduce TLM.

    xlm:pairs=0.5      L = source * L_MLM(source rows) + derived * L_MLM(derived rows) + tlm * L_TLM(pairs)

With `pairs=0.5`, a step has MLM's rows and also rows of pairs, of `--pair-length` sub-words: half as many positions as
the other rows have, however many pairs there are. So the three parts have equal sizes.
"""

from __future__ import annotations

from dataclasses import dataclass, fields, replace
from typing import TYPE_CHECKING, Any

from derivlang.core.errors import UsageError
from derivlang.core.spec import param
from derivlang.training.batch import Step
from derivlang.training.objectives.base import Loss, Objective, masked_part, masked_part_by_language
from derivlang.training.streams.base import Stream
from derivlang.training.streams.mixed import PackedAndPairs
from derivlang.training.streams.packed import Packed
from derivlang.training.streams.pairs import SentencePairs

if TYPE_CHECKING:
    from derivlang.training.config import ModelConfig
    from derivlang.training.encoder import Encoder
    from derivlang.training.settings import TrainingSettings

_WEIGHTS = ("source", "derived", "tlm")


@dataclass(frozen=True, kw_only=True)
class Xlm(Objective):
    """Masked words of each language, and masked words of sentence pairs."""

    name = "xlm"
    language_ids = True
    pairs: float | None = param(
        None, "positions in pair rows, as a share of those in other rows; by default as published, 0: no TLM", low=0
    )
    reset: bool = param(True, "whether positions restart in the second half of a pair row")
    source: float = param(1.0, "weight of MLM on the source, with pairs=SHARE", low=0)
    derived: float = param(1.0, "weight of MLM on the other languages, with pairs=SHARE", low=0)
    tlm: float = param(1.0, "weight of TLM, with pairs=SHARE", low=0)

    def streams(self) -> tuple[Stream, ...]:
        if self.pairs is None:
            return (PackedAndPairs(reset=self.reset),)
        return (Packed(), SentencePairs(share=self.pairs, reset=self.reset)) if self.pairs else (Packed(),)

    def check(self, settings: TrainingSettings, model_config: ModelConfig) -> None:
        given = [field.name for field in fields(self) if field.name in _WEIGHTS and getattr(self, field.name) != 1]
        if given and not self.pairs:
            raise UsageError(
                f"{self}: all masked positions count alike, so {' and '.join(given)} has no effect",
                where="--objective",
                fix="give a share of pairs, too, e.g. xlm:pairs=0.5:tlm=2",
                id="unused-option",
            )

    def loss(self, model: Encoder, micro: Step, state: Any) -> Loss:
        if not self.pairs:
            return {"mlm": masked_part(model, micro["rows"])}
        source, derived = masked_part_by_language(model, micro["rows"])
        return {
            "mlm-source": replace(source, weight=self.source),
            "mlm-derived": replace(derived, weight=self.derived),
            "tlm": masked_part(model, micro["pairs"], weight=self.tlm),
        }
