"""Lexicon: the form of each word type in the derived language, as a map on types.

    trans: Welcome -> Წელცომე, to -> ტო            applied once to the T types of a batch, then gathered

A lexicon is a chain of type maps. Each is fitted once, on a reference vocabulary if it needs one, and then applied to
type tables. Declared special tokens and inserted words are outside its domain.

A map may have several images for a type (a bilingual dictionary). `Transform.choices` then chooses one for each
occurrence.
"""

from __future__ import annotations

import re
from collections.abc import Iterable, Mapping
from dataclasses import dataclass, field
from typing import Any, Protocol, TypeGuard

import numpy as np
import pyarrow as pa
import pyarrow.compute as pc

from derivlang.core.arrays import Bool, Int64, expand_ranges, lengths_of
from derivlang.core.arrow import scalar, string_array, to_arrow, to_numpy
from derivlang.core.errors import UsageError

# Tokens that are not words of the language. Lexicons leave them unchanged and dictionaries leave them out.
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
PAIRS = "type\timage"  # the header of a section of `lexicon.tsv`
_NO_WORD = scalar("_")  # a missing word in annotations, as in CoNLL-U


class TypeMap(Protocol):
    """One fitted map on types. injective: different types have different images."""

    @property
    def injective(self) -> bool: ...

    def apply(self, types: pa.Array) -> pa.Array:
        """Return the image of each type: Arrow strings [T] -> Arrow strings [T]."""
        ...

    def invert(self) -> TypeMap:
        """Return the inverse map. Raise UsageError if the map is not injective."""
        ...

    def state(self) -> str | None:
        """Return what was fitted as the text of a section of `lexicon.tsv`, or None if nothing was."""
        ...


@dataclass(frozen=True, slots=True)
class Images:
    """The images of T types: offsets int64[T + 1] into Arrow strings [P]. The first image of a type is the type itself.

    `cat` with the translations `chat` and `matou`, `xyz` without any: offsets [0, 3, 4], cat chat matou xyz
    """

    offsets: Int64
    strings: pa.Array


class ManyMap(TypeMap, Protocol):
    """A map with several images for a type. `apply` returns the first after the type itself, or the type."""

    def images(self, types: pa.Array) -> Images:
        """Return all images of each type, Arrow strings [T]."""
        ...


def chooses(step: TypeMap) -> TypeGuard[ManyMap]:
    """Return whether a map has several images for a type, so that one is chosen for each occurrence."""
    return hasattr(step, "images")


@dataclass(frozen=True, slots=True)
class ByPlace:
    """The map of a transform that changes words by their place in the text (`Transform.forms`): types stay."""

    injective: bool = False

    def apply(self, types: pa.Array) -> pa.Array:
        """Return the types."""
        return types

    def images(self, types: pa.Array) -> Images:
        """Return each type by itself."""
        return Images(np.arange(len(types) + 1), types)

    def invert(self) -> TypeMap:
        """Raise UsageError: a type does not say how its words changed."""
        raise UsageError("words that change by their place have no inverse", id="not-injective")

    def state(self) -> None:
        """Return None: nothing is fitted."""


@dataclass(frozen=True, slots=True)
class Lexicon:
    """A chain of type maps, applied one after the other, with the fitted orders of the same pipeline.

    orders: by the place of their transforms in the pipeline (`Transform.fits_order`). They change no words.
    """

    steps: tuple[TypeMap, ...] = ()
    orders: Mapping[int, Any] = field(default_factory=dict, compare=False)
    # The last type table and its image. Batches of one text share a table, so its image is computed once.
    _last: list[pa.Array] = field(default_factory=list, repr=False, compare=False)

    @property
    def injective(self) -> bool:
        """Whether different types have different images, so that the lexicon has an inverse."""
        return all(step.injective for step in self.steps)

    @property
    def is_identity(self) -> bool:
        return not self.steps

    @property
    def chooses(self) -> bool:
        """Whether words of one type may get different images."""
        return any(chooses(step) for step in self.steps)

    def apply(self, types: pa.Array) -> pa.Array:
        """Return the image of each type, Arrow strings [T]."""
        if self._last and self._last[0] is types:
            return self._last[1]
        image = types
        for step in self.steps:
            image = step.apply(image)
        self._last[:] = [types, image]
        return image

    @property
    def of_labels(self) -> Lexicon:
        """The lexicon for words in annotations (lemmas, forms of multiword tokens).

        It consists of the steps that have an inverse. Dictionaries and other maps without one leave annotations as they
        are.
        """
        return Lexicon(tuple(step for step in self.steps if step.injective))

    def apply_to_labels(self, values: pa.Array) -> pa.Array:
        """Return the images of words in annotations, Arrow strings [V]. `_` (no word) and null stay."""
        if not self.steps:
            return values
        image = values.cast(pa.string()).fill_null(_NO_WORD)
        for step in self.steps:
            mapped = step.apply(image)
            # A word whose image is `_` would become equal to "no word". It takes the image of `_`, so that the map has
            # an inverse without `_`: of a -> _ -> b -> a there remains a -> b -> a. In a pair a -> _ -> a, a stays.
            (after,) = step.apply(string_array([_NO_WORD.as_py()]))
            mapped = pc.if_else(pc.equal(mapped, _NO_WORD), after.cast(mapped.type), mapped)
            image = pc.if_else(pc.equal(image, _NO_WORD), image, mapped)
        return pc.if_else(values.is_null(), values, image.cast(values.type))

    def invert(self) -> Lexicon:
        """Return the inverse lexicon. Raise UsageError if this one is not injective."""
        if not self.injective:
            raise UsageError("this lexicon is not injective: it has no inverse", id="not-injective")
        return Lexicon(tuple(step.invert() for step in reversed(self.steps)))

    def pairs(self, types: pa.Array) -> pa.Table:
        """Return a table of `source` and `derived` with a row for each image of each type, without special tokens.

        If all maps of the chain are dictionaries, a type that none of them contains has no row.
        """
        types = types.filter(to_arrow(~special_types(types)))
        owner, image = np.arange(len(types), dtype=np.int32), types
        listed = np.full(len(types), not self.steps or not all(chooses(step) for step in self.steps))
        for step in self.steps:
            if not chooses(step):
                image = step.apply(image)
                continue
            many = step.images(image)
            others = lengths_of(many.offsets) - 1
            listed = listed | (others > 0)
            # Skip the type itself if it has translations.
            first, count = many.offsets[:-1] + (others > 0), np.maximum(others, 1)
            owner, listed = np.repeat(owner, count), np.repeat(listed, count)
            image = many.strings.take(to_arrow(expand_ranges(first, count)))
        owner, image = owner[listed], image.filter(to_arrow(listed))
        return pa.table({"source": types.take(to_arrow(owner)), "derived": image})


def escape(word: str) -> str:
    """Return a word as a cell of `lexicon.tsv`."""
    return word.replace("\\", "\\\\").replace("\t", "\\t").replace("\n", "\\n").replace("\r", "\\r")


def unescape(cell: str) -> str:
    """Return the word of a cell that `escape` wrote."""
    letters = {"\\": "\\", "t": "\t", "n": "\n", "r": "\r"}
    return re.sub(r"\\([\\tnr])", lambda match: letters[match[1]], cell)


def write_rows(header: str, rows: Iterable[Iterable[str]]) -> str:
    """Return rows of cells, with the header, as a section of `lexicon.tsv`."""
    return "".join(f"{row}\n" for row in [header, *("\t".join(map(escape, row)) for row in rows)])


def read_rows(state: str, header: str) -> list[tuple[str, ...]]:
    """Return the rows of a section that `write_rows` wrote. Raise ValueError for another text."""
    first, *rows, last = state.split("\n")
    cells = [tuple(map(unescape, row.split("\t"))) for row in rows]
    names = header.split("\t")
    if last or first != header or any(len(row) != len(names) for row in cells):
        raise ValueError(f"its rows must be {', '.join(names[:-1])} and {names[-1]}")
    return cells


def special_types(types: pa.Array) -> Bool:
    """Return bool[T]: which of the types are special tokens, such as `<unk>`."""
    is_special = pc.is_in(types, value_set=string_array(SPECIALS))
    return to_numpy(is_special)
