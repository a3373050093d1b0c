"""drop: words of some parts of speech are left out.

    drop:function   The cat sat on the very old mat .   ->   cat sat very old mat .
    drop:punct      The cat sat on the very old mat .   ->   The cat sat on the very old mat
    drop:ADJ+ADV    The cat sat on the very old mat .   ->   The cat sat on the mat .

`function` is DET, AUX, ADP, SCONJ, PART and CCONJ; `punct` is PUNCT. A dependent of a word that is left out hangs on
the next word above that stays. A sentence may lose all its words: it stays as an empty one, and is counted.
Source: Yang et al. 2025 (arXiv 2502.18795), function words; Clark et al. 2023 and Xu et al. 2026 leave out punctuation.
"""

from __future__ import annotations

from collections import Counter
from dataclasses import dataclass
from typing import ClassVar

import numpy as np

from derivlang.core.arrays import Int32, lengths_of, offsets_of
from derivlang.core.batch import Batch
from derivlang.core.errors import UsageError
from derivlang.core.keys import Draws
from derivlang.core.layers.words import Words, numbers_of
from derivlang.core.order import Order
from derivlang.core.schema import UPOS
from derivlang.core.spec import param
from derivlang.transforms.base import Transform

_TAGS = {*UPOS} - {"_"}
_GROUPS = {"function": ("ADP", "AUX", "CCONJ", "DET", "PART", "SCONJ"), "punct": ("PUNCT",)}


@dataclass(frozen=True, kw_only=True)
class Drop(Transform):
    """Words left out by their part of speech."""

    name = "drop"
    is_permutation = False
    needs: ClassVar[tuple[str, ...]] = ("upos",)

    upos: str = param("function", "function, punct, or tags: DET+AUX", positional=True, draws=False, file=False)

    def validate(self) -> None:
        """Raise UsageError for an unknown tag; name groups and sort tags, so that equal transforms have equal specs."""
        if unknown := sorted(self._tags() - _TAGS):
            raise UsageError(
                f"drop: {unknown[0]!r} is not a group of words",
                where="--t",
                fix=f"give function, punct, or tags joined by +, as in drop:AUX+DET: {', '.join(sorted(_TAGS))}",
                id="bad-value",
            )
        names = {tags: name for name, tags in _GROUPS.items()}
        tags = tuple(sorted(self._tags()))
        object.__setattr__(self, "upos", names.get(tags, "+".join(tags)))

    def _tags(self) -> set[str]:
        return {tag for part in self.upos.split("+") for tag in _GROUPS.get(part, (part,))}

    def order(self, batch: Batch, draws: Draws) -> Order:
        """Return the order of the words that stay. Counts sentences that lose all their words."""
        upos, gone = batch.layers["upos"], self._tags()
        assert isinstance(upos, Words)
        stays = numbers_of(upos, lambda tag: tag not in gone) > 0
        before = offsets_of(stays)  # int64[N + 1]: how many words stay before each
        sentences = before[batch.sentences]
        ends = batch.sentences[1:]
        tails: Int32 = (before[ends] - before[ends - batch.tails]).astype(np.int32)
        emptied = int(((lengths_of(sentences) == 0) & (lengths_of(batch.sentences) > 0)).sum())
        counts = Counter({"sentences-emptied": emptied} if emptied else {})
        return Order(np.flatnonzero(stays).astype(np.int32), sentences, tails, batch.n_words, counts=counts)
