"""inv: the words before the tail in reverse.

    Welcome to ACL .   ->   ACL to Welcome .

The tail is the sentence's final punctuation. `final=keep` leaves it at the end (the default, as in the released
ALIGN-MLM scripts); `final=move` reverses it too (as the papers say; MultilingualAnalysis). inv is an involution.
Source: ALIGN-MLM (arXiv 2211.08547), section 3 and appendix F.
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import Literal

import numpy as np

from derivlang.core.arrays import expand_ranges, lengths_of
from derivlang.core.batch import Batch
from derivlang.core.keys import Draws
from derivlang.core.order import Order
from derivlang.core.spec import param
from derivlang.transforms.base import Transform, check_unit


@dataclass(frozen=True, kw_only=True)
class Inv(Transform):
    """Inversion: the words of each sentence in reverse, final punctuation last."""

    name = "inv"
    final: Literal["keep", "move"] = param("keep", "final punctuation: kept last, or moved to the front", draws=False)
    unit: Literal["word", "token"] = param(
        "word", "unit to order: words of a text, or sub-words of an encoded batch", draws=False
    )

    def order(self, batch: Batch, draws: Draws) -> Order:
        """Return the reversal of each sentence. Raise UsageError for `unit=token` on a batch of words."""
        check_unit(self, self.unit, batch)
        start, end = batch.sentences[:-1], batch.sentences[1:]
        tails = batch.tails if self.final == "keep" else np.zeros_like(batch.tails)
        body_end = end - tails
        # Position p of a sentence takes word start + body_end - 1 - p; the tail then gets its own positions back.
        # "Welcome to ACL ." at words 4..7 with a tail of 1: 4 + 7 - 1 - [4 5 6] = [6 5 4], and 7 stays.
        mirror = (start + body_end - 1).astype(np.int32)
        index = np.repeat(mirror, lengths_of(batch.sentences))
        index -= np.arange(batch.n_words, dtype=np.int32)
        tail = expand_ranges(body_end, tails)
        index[tail] = tail
        return Order(index, batch.sentences, tails, batch.n_words)
