"""Transform: one file each; parameters are a frozen dataclass, from which spec, help and draws all follow.

    @dataclass(frozen=True, kw_only=True)
    class Swap(Transform):
        '''Exchanges neighbours.'''
        name = "swap"
        every: int = param(1, "exchange every k-th pair", low=1)
        def order(self, batch, draws): ...

A transform overrides what it does: `order` (which source word stands where), `fit` (what types look like; with
`choices` where a type has several images), or both; the rest is the identity. What it declares decides which laws the
contract tests hold it to.
"""

from __future__ import annotations

import dataclasses
from dataclasses import dataclass
from typing import TYPE_CHECKING, ClassVar

import numpy as np
import pyarrow as pa

from derivlang.core.arrays import Int32, Int64
from derivlang.core.errors import UsageError
from derivlang.core.keys import Draws
from derivlang.core.order import Order
from derivlang.core.spec import Named, quote, text_of

if TYPE_CHECKING:
    from derivlang.core.batch import Batch
    from derivlang.core.lexicon import TypeMap


# The layer that a batch has whose words are sub-words; `unit=token` asks for it.
SUBWORDS = "subwords"


@dataclass(frozen=True, kw_only=True)
class Transform(Named):
    """The identity; the base of every transform.

    name: as in a spec. rule_version: rises only when an output would change. needs: layers that a batch must
    have. is_permutation: no word is inserted or deleted. injective: the fitted map has an inverse.
    """

    rule_version: ClassVar[int] = 1
    needs: ClassVar[tuple[str, ...]] = ()
    is_permutation: ClassVar[bool] = True
    injective: ClassVar[bool] = True

    def order(self, batch: Batch, draws: Draws) -> Order:
        """The order of a batch. It sees source words in the order so far, never a lexicon's image."""
        return Order.identity(batch.sentences, batch.tails)

    def fit(self, types: pa.Array, counts: Int64, draws: Draws) -> TypeMap | None:
        """The map on types: Arrow strings [T] and int64[T] counts of a reference vocabulary."""
        return None

    def load(self, state: str, draws: Draws) -> TypeMap | None:
        """The fitted map again, from the text that its `state()` gave."""
        return None

    def choices(self, batch: Batch, images: Int32, draws: Draws) -> Int32:
        """Where the fitted map has several images for a type: which one each word takes, int32[N], 0: itself.

        batch: source words in the order so far, as `order` sees them. images: int32[N], how many there are for each.
        """
        return np.minimum(images - 1, 1)

    @property
    def needs_reference(self) -> bool:
        """Must `fit` see a reference vocabulary with these parameters?"""
        return False

    @property
    def saves(self) -> bool:
        """Is what `fit` gives kept in `lexicon.tsv`, so that nothing else is needed for deriving once more?"""
        return self.needs_reference

    @property
    def resources(self) -> tuple[str, ...]:
        """Fingerprints of the files that the parameters name (grammars, dictionaries)."""
        return ()

    @property
    def has_order(self) -> bool:
        return type(self).order is not Transform.order

    @property
    def has_lexicon(self) -> bool:
        return type(self).fit is not Transform.fit

    def stream(self, occurrence: int) -> Draws:
        """The draws of this transform, as the occurrence-th (from 0) of its name in a pipeline."""
        relevant = ",".join(
            f"{field.name}={quote(text_of(getattr(self, field.name)))}"
            for field in dataclasses.fields(self)
            if field.metadata["draws"]
        )
        return Draws(f"{self.name}|{relevant}|rule={self.rule_version}|occurrence={occurrence}")


def check_unit(transform: Transform, unit: str, batch: Batch) -> None:
    """UsageError where a transform of sub-words gets words."""
    if unit == "token" and SUBWORDS not in batch.layers:
        raise UsageError(
            f"{transform} orders sub-words, which a text of words cannot hold",
            where="--t",
            fix="leave unit=token out; for encoded batches there is derivlang.lexical.subwords.subword_order",
            id="unit",
        )
