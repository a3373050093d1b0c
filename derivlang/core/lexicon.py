"""Lexicon: what each word type looks like in the derived language: a map on types, never on running text.

    trans: Welcome -> Წელცომე, to -> ტო            applied once to the T types of a batch, then gathered

A lexicon is a chain of type maps, each fitted once (on a reference vocabulary, where it needs one) and then
applied. Declared special tokens are outside its domain, and so are inserted words.

A map may have several images for a type (a bilingual dictionary): which of them a word takes is then chosen for
each occurrence (`Transform.choices`).
"""

from __future__ import annotations

from dataclasses import dataclass, field
from typing import Protocol, TypeGuard

import numpy as np
import pyarrow as pa

from derivlang.core.arrays import Bool, Int64, lengths_of, spread
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
class Images:
    """The images of T types: offsets int64[T + 1] into strings (Arrow strings [P]); the first is the type itself."""

    offsets: Int64
    strings: pa.Array


class ManyMap(TypeMap, Protocol):
    """A map with several images for a type. `apply` gives the first that is not the type as it stands, where there is
    one."""

    def images(self, types: pa.Array) -> Images: ...


def chooses(step: TypeMap) -> TypeGuard[ManyMap]:
    """Must its image be chosen for each occurrence?"""
    return hasattr(step, "images")


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

    @property
    def chooses(self) -> bool:
        """Do words of one type differ by where they stand?"""
        return any(chooses(step) for step in self.steps)

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
        """`source`, `derived` of the types that are no special tokens; a type with several images has as many rows.

        Where nothing but dictionaries stands in the chain, a type that none of them holds has no row.
        """
        types = types.filter(to_arrow(~special_types(types)))
        owner, image = np.arange(len(types), dtype=np.int32), types
        found = np.full(len(types), not self.steps or not all(chooses(step) for step in self.steps))
        for step in self.steps:
            if not chooses(step):
                image = step.apply(image)
                continue
            many = step.images(image)
            others = lengths_of(many.offsets) - 1
            found = found | (others > 0)
            # Its translations, or itself where it has none.
            first, count = many.offsets[:-1] + (others > 0), np.maximum(others, 1)
            owner, found = np.repeat(owner, count), np.repeat(found, count)
            image = many.strings.take(to_arrow(spread(first, count)))
        owner, image = owner[found], image.filter(to_arrow(found))
        return pa.table({"source": types.take(to_arrow(owner)), "derived": image})


def escape(word: str) -> str:
    """A word as a cell of `lexicon.tsv`."""
    return word.replace("\\", "\\\\").replace("\t", "\\t").replace("\n", "\\n").replace("\r", "\\r")


def unescape(cell: str) -> str:
    """The word of a cell that `escape` gave."""
    if "\\" not in cell:
        return cell
    pairs = {"\\\\": "\\", "\\t": "\t", "\\n": "\n", "\\r": "\r"}
    out, i = [], 0
    while i < len(cell):
        two = cell[i : i + 2]
        out.append(pairs.get(two, cell[i]))
        i += 2 if two in pairs else 1
    return "".join(out)


def special_types(types: pa.Array) -> Bool:
    """bool[T]: which types are declared special tokens."""
    found = pa.compute.is_in(types, value_set=string_array(SPECIALS))
    return to_numpy(found)
