"""CLM: causal language modelling, each sub-word from those before it.

    L = mean over t of  -log p(x_{t+1} | x_1 … x_t)          <s> s1 </s> s2 </s> <pad>

    <s>  we  low  er  </s>  <pad>      positions that predict  0 1 2 3      labels  we low er </s>

Every sub-word and every closing </s> of a row is predicted, but no <s> and no padding. The rows are the same as for
MLM, so the context of a sentence includes the earlier ones of its row. With --packing stream a row may begin inside a
sentence; its first sub-word has no context and is not predicted. Source: Radford et al. (2019), section 2.
"""

from __future__ import annotations

from dataclasses import dataclass, replace
from typing import TYPE_CHECKING, Any

import numpy as np

from derivlang.training.batch import Step, SubwordRows
from derivlang.training.masking import Keys
from derivlang.training.objectives.base import Context, Loss, Objective, masked_part

if TYPE_CHECKING:
    from derivlang.training.encoder import Encoder


@dataclass(frozen=True, kw_only=True)
class Clm(Objective):
    """Each sub-word of both languages from those before it."""

    name = "clm"
    causal = True

    def mask(self, stream: str, rows: SubwordRows, keys: Keys, context: Context) -> SubwordRows:
        """Return the rows as they are. Each position predicts the next one of its row."""
        asked = np.arange(rows.shape[1]) < rows.lengths[:, None]
        begin, end = context.vocabulary.special_ids.begin, context.vocabulary.special_ids.end
        if begin != end:  # one id for both, as GPT-2 has: only the <s> of column 0 begins a row then
            asked &= (rows.clean_ids != begin) | (rows.word_ids >= 0)  # a text may contain the word <s>
        asked[:, 0] = False
        after = np.flatnonzero(asked)
        return replace(rows.predicting(after), targets=after - 1)

    def loss(self, model: Encoder, micro: Step, state: Any) -> Loss:
        return {"clm": masked_part(model, micro["rows"])}
