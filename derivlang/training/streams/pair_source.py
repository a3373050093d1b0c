"""Where sentence pairs come from: the protocol, and the pairs of a corpus and its derived language.

Derived pairs are the first floor(pS/100 + 1/2) sentences by the keyed ranking of `derivlang pair`, nested over rates. A
sentence that is longer than half a row is cut into pieces, and the order is restricted to each, so both sides of a pair
always hold the same words (methods, section 4). Each piece is a pair.
"""

from __future__ import annotations

from abc import ABC, abstractmethod
from dataclasses import dataclass
from typing import Any

import numpy as np

from derivlang.core.arrays import Int64, Ints, expand_ranges, offsets_of
from derivlang.core.errors import DataError
from derivlang.core.keys import draw
from derivlang.lexical.noise import first_by_key
from derivlang.lexical.pairs import pair_stream
from derivlang.lexical.percent import Share, portion
from derivlang.training.batch import Pieces
from derivlang.training.data import Data
from derivlang.training.languages import DERIVED, SOURCE, SpecialIds


class PairSource(ABC):
    """P sentence pairs. sizes: int64[P, 2], number of sub-words of each side. special_ids: for the ends of rows."""

    sizes: Int64
    special_ids: SpecialIds

    @abstractmethod
    def side(self, pairs: Int64, side: int) -> Pieces:
        """Return one side of these pairs [K]."""

    @abstractmethod
    def links(self, pairs: Int64) -> Int64:
        """Return int64[2, L]: linked positions in `side(pairs, 0)` and in `side(pairs, 1)`."""

    def facts(self) -> dict[str, Any]:
        """Return the counts for run.json and the report."""
        return {}


@dataclass(frozen=True, slots=True, eq=False)
class PairLinks:
    """Links of P pairs. ends: int64[2, L], sub-words, counted in the sides of their pair. offsets: int64[P + 1]."""

    ends: Int64
    offsets: Int64

    def of(self, pairs: Int64, sizes: Int64) -> Int64:
        """Return int64[2, L'], the links of these pairs, as `PairSource.links` does. sizes: of all pairs.

        pairs 0 and 1 of 2 + 3 and 1 + 1 sub-words, each with the link 0-0  ->  [[0, 2], [0, 3]]
        """
        begin, counts = self.offsets[pairs], self.offsets[np.asarray(pairs) + 1] - self.offsets[pairs]
        shifts = [np.repeat(offsets_of(sizes[pairs, side])[:-1], counts) for side in (SOURCE, DERIVED)]
        return np.asarray(self.ends[:, expand_ranges(begin, counts)] + np.stack(shifts))


class DerivedPairs(PairSource):
    """A share of the corpus's sentences and their derived forms, cut as the data is."""

    def __init__(self, data: Data, rate: Share, *, seed: int, shortest: int = 1):
        keys, sentences = np.asarray(data.keys), np.asarray(data.sentences)
        chosen = first_by_key(draw(pair_stream(seed), keys, np.zeros(len(keys), np.int64)), portion(rate, len(keys)))
        first, last = (np.searchsorted(data.pieces, ends) for ends in (sentences[chosen], sentences[chosen + 1]))
        self.data, self.special_ids = data, data.special_ids
        pieces = expand_ranges(first, last - first)
        sizes = np.stack([data.sizes(pieces, side) for side in (SOURCE, DERIVED)], axis=1)
        some = (sizes >= shortest).all(axis=1)  # words of other scripts may have no sub-words
        self.pieces, self.sizes = pieces[some], sizes[some]
        self._facts = {
            "sentences": len(chosen),
            "cut_sentences": int((last - first > 1).sum()),
            "short_pairs": int((~some).sum()),
            "percent": round(100 * int(self.sizes[:, 0].sum()) / data.n_subwords, 2),
        }
        if not len(self.pieces):
            least = f" of {shortest} or more sub-words per side" if shortest > 1 else ""
            raise DataError(
                f"none of {len(keys):,} sentences is a pair{least} at {float(rate):g} %",
                where="--parallel",
                fix="raise it",
                id="no-pair-fits",
            )

    def side(self, pairs: Int64, side: int) -> Pieces:
        return self.in_language(pairs, np.full(len(pairs), side, np.int8))

    def in_language(self, pairs: Int64, language: Ints) -> Pieces:
        """Return the sub-words of pairs [K], each in a language [K]."""
        return self.data.tokens(self.pieces[pairs], language)

    def links(self, pairs: Int64) -> Int64:
        return self.data.links(self.pieces[pairs])

    def facts(self) -> dict[str, Any]:
        return self._facts
