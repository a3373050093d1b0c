"""inv: the words before the tail in reverse, as a whole or in parts.

    inv                       He cleans his messy books .   ->   books messy his cleans He .
    inv:local=2               He cleans his messy books .   ->   cleans He messy his books .
    inv:from=random           He cleans his messy books .   ->   He books messy his cleans .
    inv:from=random:mark=R    He cleans his messy books .   ->   He R books messy his cleans .
    inv:from=start:mark=R     He cleans his messy books .   ->   books messy his cleans R He .
    inv:from=end:mark=R       He cleans his messy books .   ->   He R cleans his messy books .

`from` says where the reversal begins: at a drawn place, at the first word (the marker is reversed, too), or nowhere
(only the marker is inserted: the control of Kallini et al.).
The tail is the sentence's final punctuation. `final=keep` leaves it at the end (the default, as in the released
ALIGN-MLM scripts); `final=move` reverses it too (as the papers say; MultilingualAnalysis). Without a marker, inv and
inv:local=k are involutions. The place is drawn by the sentence: it is the same for each `from` and with or without a
marker, from before the first word to after the last. `rng=numpy` draws it as the program of Kallini et al. does: from
one `default_rng(seed)` for a whole corpus, whole numbers from 0 to the number of words (their seed is 21).
Sources: ALIGN-MLM (arXiv 2211.08547), section 3 and appendix F; Kallini et al. 2024 (arXiv 2401.06416), table 1, for
`from` and `mark`; Yang et al. 2025 (arXiv 2502.18795) for `local`.
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import Literal

import numpy as np

from derivlang.core.arrays import Int64, lengths_of
from derivlang.core.arrow import string_array
from derivlang.core.batch import Batch
from derivlang.core.errors import UsageError
from derivlang.core.keys import Draws, uniform
from derivlang.core.order import Order
from derivlang.core.spec import param
from derivlang.transforms.base import Transform
from derivlang.transforms.word_order import Final, Unit, bodies_of, from_numpy, reversal, unit_param, windows


@dataclass(frozen=True, kw_only=True)
class Inv(Transform):
    """Inversion: the words of each sentence in reverse, final punctuation last."""

    name = "inv"
    final: Final = param("keep", "final punctuation: kept last, or moved to the front", draws=False)
    unit: Unit = unit_param()
    local: int = param(
        0, "number of words in a window that is reversed; 0: the whole sentence", low=0, high=2**31 - 1, draws=False
    )
    from_: Literal["start", "random", "end"] = param(
        "start", "where the reversal begins: at the first word, at a drawn place, or nowhere", draws=False
    )
    mark: str = param("", "word to insert at the drawn place", file=False, draws=False)
    rng: Literal["keyed", "numpy"] = param(
        "keyed", "draws of the places: of the key, or in sequence, as published programs draw", draws=False
    )
    seed: int = param(1, "seed of the drawn places", low=0)

    def validate(self) -> None:
        """Raise UsageError for windows with a place or a marker, or a marker of several words."""
        if self.local and (self.mark or self.from_ != "start"):
            raise UsageError(
                "inv: local reverses every window, so it does not go with from or mark",
                fix="leave local out, or from and mark",
                id="bad-value",
            )
        if self.mark != "".join(self.mark.split()):
            raise UsageError(f"inv: mark={self.mark!r} must be one word, without spaces", id="bad-value")

    @property
    def is_permutation(self) -> bool:  # type: ignore[override]
        """Whether no marker is inserted."""
        return not self.mark

    @property
    def takes_seed(self) -> bool:
        """Whether a place is drawn in each sentence."""
        return bool(self.mark) or self.from_ == "random"

    @property
    def keyed(self) -> bool:  # type: ignore[override]
        """Whether the places are functions of the sentence; else one generator runs through all sentences."""
        return self.rng == "keyed" or not self.takes_seed

    def stream(self, occurrence: int) -> Draws:
        """Return the draws of the places."""
        draws = super().stream(occurrence)
        return draws if self.keyed else from_numpy(draws, self.seed, occurrence)

    def order(self, batch: Batch, draws: Draws) -> Order:
        """Return the reversal of each sentence. Raise UsageError for `unit=token` on a batch of words."""
        start, length, tails = bodies_of(self, batch, self.unit, self.final)
        place = np.zeros_like(length)
        if not self.keyed:
            row_by_row = batch.in_sequence()
            place[row_by_row] = draws.generator.integers(0, length[row_by_row] + 1)
        elif self.takes_seed:  # 0 … length: before the first word … after the last
            place = uniform(draws.draw(batch.keys, np.zeros_like(length)), length + 1)
        first, size = start, length
        if self.local:
            first, size, _ = windows(start, length, self.local)
        elif self.from_ != "start":
            skipped = place if self.from_ == "random" else length
            first, size = start + skipped, length - skipped
        index = reversal(first, size, batch.n_words)
        order = Order(index, batch.sentences, tails, batch.n_words)
        if not self.mark:
            return order
        return _marked(order, self.mark, start, length, length - place if self.from_ == "start" else place)


def _marked(order: Order, mark: str, start: Int64, length: Int64, place: Int64) -> Order:
    """Return an order with a marker before a derived place of the body of each sentence that has words.

    start, length: int64[S] of the bodies. place: int64[S], 0 … length.
    """
    has_words = lengths_of(order.sentences) > 0
    at = (start + place)[has_words]  # int64: the derived place before which a marker stands
    # The marker marks the word after it, the last word of the sentence if none is after it.
    marked = np.minimum(at, order.sentences[1:][has_words] - 1)
    return order.with_words(at, np.flatnonzero(has_words), string_array([mark] * len(at)), order.index[marked])
