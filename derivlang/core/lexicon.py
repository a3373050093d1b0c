"""Lexicon: what each word type looks like in the derived language: a map on types, never on running text.

    trans: Welcome -> Წელცომე, to -> ტო            applied once to the T types of a batch, then gathered

A lexicon is a chain of type maps, each fitted once (on a reference vocabulary, where it needs one) and then
applied. Declared special tokens are outside its domain, and so are inserted words.
"""

from __future__ import annotations

from dataclasses import dataclass, field
from typing import Protocol

import pyarrow as pa

from derivlang.core.arrays import Bool
from derivlang.core.arrow import string_array, to_arrow, to_numpy
from derivlang.core.errors import UsageError

# Tokens that stand for no word of the language; no lexicon changes them, no dictionary lists them.
SPECIALS = (
    "<unk>",
    "<s>",
    "</s>",
    "<pad>",
    "<mask>",
    "<eos>",
    "<bos>",
    "[UNK]",
    "[CLS]",
    "[SEP]",
    "[PAD]",
    "[MASK]",
)


class TypeMap(Protocol):
    """One fitted map on types. `injective`: distinct types have distinct images."""

    @property
    def injective(self) -> bool: ...

    def apply(self, types: pa.Array) -> pa.Array:
        """Arrow strings [T] -> Arrow strings [T]."""
        ...

    def invert(self) -> TypeMap:
        """The way back; UsageError where the map is not injective."""
        ...

    def state(self) -> str | None:
        """What was fitted, as the text of a section of `lexicon.tsv`; None where nothing was."""
        ...


@dataclass(frozen=True, slots=True)
class Lexicon:
    """Type maps, applied in turn."""

    steps: tuple[TypeMap, ...] = ()
    # The last type table and its image: batches of one text share their table.
    _last: list[pa.Array] = field(default_factory=list, repr=False, compare=False)

    @property
    def injective(self) -> bool:
        return all(step.injective for step in self.steps)

    @property
    def is_identity(self) -> bool:
        return not self.steps

    def apply(self, types: pa.Array) -> pa.Array:
        """Arrow strings [T], the image of each type."""
        if self._last and self._last[0] is types:
            return self._last[1]
        image = types
        for step in self.steps:
            image = step.apply(image)
        self._last[:] = [types, image]
        return image

    def then(self, after: Lexicon) -> Lexicon:
        return Lexicon(self.steps + after.steps)

    def invert(self) -> Lexicon:
        if not self.injective:
            raise UsageError("this lexicon is not injective: it has no inverse", id="not-injective")
        return Lexicon(tuple(step.invert() for step in reversed(self.steps)))

    def pairs(self, types: pa.Array) -> pa.Table:
        """`source`, `derived` of the types that are no special tokens."""
        image = self.apply(types)
        plain = to_arrow(~special_types(types))
        return pa.table({"source": types.filter(plain), "derived": image.filter(plain)})


def special_types(types: pa.Array) -> Bool:
    """bool[T]: which types are declared special tokens."""
    found = pa.compute.is_in(types, value_set=string_array(SPECIALS))
    return to_numpy(found)
