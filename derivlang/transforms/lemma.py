"""lemma: each word as its lemma.

    He cleans his very messy books .   ->   he clean his very messy book .

The lemmas are the column `lemmas` of the source (CoNLL-U), in their own case. A word without a lemma (`_`) stays. After
`trans` the lemma is written in that script. Several words become one, so `undo` reads the stored source.
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import ClassVar

import numpy as np

from derivlang.core.batch import Batch
from derivlang.core.keys import Draws
from derivlang.core.lexicon import Lexicon
from derivlang.transforms.base import Transform
from derivlang.transforms.forms import LEMMAS, Forms, with_lemmas


@dataclass(frozen=True, kw_only=True)
class Lemma(Transform):
    """Lemmas: each word as its lemma."""

    name = "lemma"
    injective = False
    needs: ClassVar[tuple[str, ...]] = (LEMMAS,)

    def forms(self, batch: Batch, forms: Forms, before: Lexicon, draws: Draws) -> Forms:
        """Return the lemmas."""
        return with_lemmas(forms, batch, np.arange(batch.n_words), before)
