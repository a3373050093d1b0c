"""inv: the words before the tail in reverse.

    Welcome to ACL .   ->   ACL to Welcome .

`final=keep` leaves the tail at the end (what the released ALIGN-MLM scripts do, and the default);
`final=move` reverses it too (the papers' wording; MultilingualAnalysis). An involution.
Source: ALIGN-MLM (arXiv 2211.08547), section 3 and appendix F; methods, section 1.
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import Literal

import numpy as np

from derivlang.core.arrays import lengths_of, spread
from derivlang.core.batch import Batch
from derivlang.core.keys import Draws
from derivlang.core.order import Order
from derivlang.core.spec import param
from derivlang.transforms.base import Transform, check_unit


@dataclass(frozen=True, kw_only=True)
class Inv(Transform):
    """Inversion: the words of each sentence in reverse, the final marks kept last."""

    name = "inv"
    final: Literal["keep", "move"] = param("keep", "the final marks stay last, or move to the front", draws=False)
    unit: Literal["word", "token"] = param(
        "word", "order the words of a text, or the sub-words of an encoded batch", draws=False
    )

    def order(self, batch: Batch, draws: Draws) -> Order:
        check_unit(self, self.unit, batch)
        start, end = batch.sentences[:-1], batch.sentences[1:]
        tails = batch.tails if self.final == "keep" else np.zeros_like(batch.tails)
        body_end = end - tails
        mirror = (start + body_end - 1).astype(np.int32)
        index = np.repeat(mirror, lengths_of(batch.sentences))
        index -= np.arange(batch.n_words, dtype=np.int32)
        tail = spread(body_end, tails)
        index[tail] = tail
        return Order(index, batch.sentences, tails, batch.n_words)
