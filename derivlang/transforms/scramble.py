"""scramble: every word type becomes another word type of the same text, by one drawn bijection.

    One of the old ferries crossed the lake .   ->   ferries One old the lake crossed old . of

Here the sentence is the whole vocabulary. The map is drawn once, on a reference vocabulary, and saved in `lexicon.tsv`.
So a word has the same image everywhere, word order and sentence lengths stay, and the derived language has the source's
frequencies under other words. `within` draws inside groups of types:

    any          one group
    length       types with as many characters
    frequency    types with similar counts: 1, 2 to 3, 4 to 7, 8 to 15, and so on

Types are written as they stand: `The` and `the` become unrelated words. Words that the reference vocabulary does not
hold, and special tokens, stay, so the map is one to one on any text. A type may become itself, about one in each group.
Source: Wu, Tamkin, Papadimitriou 2023 (Oolong), whose list has the words of WikiText; the scrambled vocabularies of
Papadimitriou and Jurafsky 2020 (TILT).
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import Literal

import numpy as np
import pyarrow as pa
import pyarrow.compute as pc

from derivlang.core.arrays import Int64
from derivlang.core.arrow import places_of, string_array, to_arrow, to_numpy
from derivlang.core.keys import Draws, hash_types
from derivlang.core.lexicon import PAIRS, TypeMap, read_rows, special_types, write_rows
from derivlang.core.spec import param
from derivlang.transforms.base import Transform, if_many

Within = Literal["any", "length", "frequency"]


@dataclass(frozen=True, kw_only=True)
class Scramble(Transform):
    """Word scramble: every word type becomes another type of the same text."""

    name = "scramble"

    within: Within = param(
        "any", "types to draw from: all, types of the same length, or with similar counts", positional=True
    )
    seed: int = param(1, "seed of the drawn bijection", low=0)

    @property
    def needs_reference(self) -> bool:
        """True: the map is drawn over the types of a reference vocabulary."""
        return True

    def fit(self, types: pa.Array, counts: Int64, draws: Draws) -> TypeMap:
        """Return the bijection of a reference vocabulary. It does not depend on the order of the types.

        In each group the types are ranked twice, by two draws of their hashes; the k-th type of the first ranking
        becomes the k-th of the second.
        """
        plain = ~special_types(types)
        types, counts = types.filter(to_arrow(plain)), counts[plain]
        hashes = hash_types(types)
        group = self._groups(types, counts)
        first, second = (np.lexsort((draws.draw(hashes, np.full(len(hashes), which)), group)) for which in (0, 1))
        by = np.argsort(hashes)  # so that lexicon.tsv does not depend on the order in which types were met
        image = np.empty(len(types), np.int64)
        image[first] = second
        return Bijection(types.take(to_arrow(by)), types.take(to_arrow(image[by])))

    def _groups(self, types: pa.Array, counts: Int64) -> Int64:
        """Return int64[T]: the group of each type."""
        if self.within == "length":
            return to_numpy(pc.utf8_length(types)).astype(np.int64)
        if self.within == "frequency":  # the number of binary digits: 4 = 100, 7 = 111
            return np.frexp(counts)[1].astype(np.int64)
        return np.zeros(len(types), np.int64)

    def load(self, state: str, draws: Draws) -> TypeMap:
        """Return the saved bijection. Raise ValueError if it is damaged."""
        pairs = read_rows(state, PAIRS)
        types, images = ([pair[side] for pair in pairs] for side in (0, 1))
        if len(set(types)) < len(types) or sorted(types) != sorted(images):
            raise ValueError("its images must be its types in another order")
        return Bijection(string_array(types), string_array(images))

    def warnings(self, step: TypeMap, types: pa.Array, counts: Int64) -> list[str]:
        """Return a warning if more than 1 % of the running words are unknown to the map."""
        assert isinstance(step, Bijection)
        stays = (places_of(types, step.types) < 0) & ~special_types(types)
        return if_many(stays, counts, "are not in the vocabulary that scramble was fitted on; they stay")


@dataclass(frozen=True, slots=True, eq=False)
class Bijection:
    """A one-to-one map of some types onto each other; all others stay. types, targets: Arrow strings [T]."""

    types: pa.Array
    targets: pa.Array
    injective: bool = True

    def apply(self, types: pa.Array) -> pa.Array:
        """Return the image of each type."""
        places = pc.index_in(types, value_set=self.types.cast(types.type))  # null for an unknown type
        return pc.coalesce(self.targets.take(places).cast(types.type), types)

    def invert(self) -> TypeMap:
        """Return the inverse bijection."""
        return Bijection(self.targets, self.types)

    def state(self) -> str:
        """Return the section of `lexicon.tsv`: type and image."""
        return write_rows(PAIRS, zip(self.types.to_pylist(), self.targets.to_pylist(), strict=True))
