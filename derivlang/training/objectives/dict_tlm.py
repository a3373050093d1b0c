"""DICT-TLM: masked words of sentences beside code-switched copies, which stand in for translations.

    L = mean over masked positions i of  -log p(x_i)         <s> we low er it </s> <s> we' low er it </s>

In the copy, `switch` % of the words that have a dictionary entry are replaced by a translation (streams/switched.py; in
sentences of files by a dictionary of words).
Words are masked whole in both halves. The labels are what stands there, so the label of a replaced word is its
translation. The log has the dose: the share of masked positions whose label is a translation. Source: Chaudhary et al.
(2020), sections 2.2 and 2.3.

Readings that are ours: section 2.2 replaces 15 % of the words with an entry, while "simulated translation" in section
2.3 suggests all (`switch=100`). Positions do not restart in the second half. The model gets the language of each
position, as in DICT-MLM, but the prediction does not get the label's language, which section 2.3 describes for DICT-MLM
(`condition=yes`). Section 2.3 has one sentence per row; here, short sentences share a row, as in TLM. The copy keeps
the word order, so it shows nothing of an order such as `inv`.
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import TYPE_CHECKING, Any

from derivlang.core.spec import param
from derivlang.training import masking
from derivlang.training.batch import Step, SubwordRows
from derivlang.training.masking import Keys
from derivlang.training.objectives.base import Context, Loss, Objective
from derivlang.training.objectives.dict_mlm import check_conditioning, conditioned_part, conditioning
from derivlang.training.streams.base import Stream
from derivlang.training.streams.switched import CodeSwitched

if TYPE_CHECKING:
    import torch

    from derivlang.training.config import ModelConfig
    from derivlang.training.encoder import Encoder
    from derivlang.training.settings import TrainingSettings


@dataclass(frozen=True, kw_only=True)
class DictTlm(Objective):
    """Masked words of sentences and of their code-switched copies."""

    name = "dict-tlm"
    language_ids = True
    translates = True
    dictionary = "words"
    switch: int = param(15, "percentage of the words with an entry that are replaced in the copy", low=0, high=100)
    condition: bool = param(False, "whether the prediction gets the label's language")

    def streams(self) -> tuple[Stream, ...]:
        return (CodeSwitched(switch=self.switch / 100, reset=False),)

    def check(self, settings: TrainingSettings, model_config: ModelConfig) -> None:
        check_conditioning(settings, condition=self.condition)

    def mask(self, stream: str, rows: SubwordRows, keys: Keys, context: Context) -> SubwordRows:
        return masking.mask(rows, keys, context.vocabulary, context.rate, whole_words=True)

    def state(self, model: Encoder, context: Context) -> torch.nn.Module | None:
        return conditioning(model) if self.condition else None

    def loss(self, model: Encoder, micro: Step, state: Any) -> Loss:
        return {"tlm": conditioned_part(model, micro["switched"], state)}
