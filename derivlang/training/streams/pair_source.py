"""Where sentence pairs come from: the protocol, and the pairs of a corpus and its derived language.

Derived pairs are the first floor(pS/100 + 1/2) sentences by the keyed ranking of `derivlang pair`, nested over rates. A
sentence that is longer than half a row is cut into pieces, and the order is restricted to each, so both sides of a pair
always hold the same words (methods, section 4). Each piece is a pair.
"""

from __future__ import annotations

from abc import ABC, abstractmethod
from collections import Counter
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass, fields
from hashlib import sha256
from typing import Any

import numpy as np

from derivlang.core.arrays import Int64, expand_ranges, offsets_of
from derivlang.core.errors import DataError
from derivlang.core.keys import draw
from derivlang.lexical.pairs import first_by_key, pair_stream
from derivlang.lexical.settings import Share, portion
from derivlang.training.batch import Pieces
from derivlang.training.data import Data
from derivlang.training.languages import DERIVED, SOURCE, SpecialIds


class PairSource(ABC):
    """P sentence pairs.

    sizes, languages: int64[P, 2], number of sub-words and language of each side. special_ids: for the ends of rows.
    facts: counts for run.json and the report. linked: the links of all pairs, unless a source finds them itself.
    """

    sizes: Int64
    languages: Int64
    special_ids: SpecialIds
    facts: Mapping[str, Any]
    linked: PairLinks

    @abstractmethod
    def side(self, pairs: Int64, side: int) -> Pieces:
        """Return one side of these pairs [K]."""

    def links(self, pairs: Int64) -> Int64:
        """Return int64[2, L]: linked positions in `side(pairs, 0)` and in `side(pairs, 1)`.

        pairs 0 and 1 of 2 + 3 and 1 + 1 sub-words, each with the link 0-0  ->  [[0, 2], [0, 3]]
        """
        ends, offsets = self.linked.ends, self.linked.offsets
        begin, counts = offsets[pairs], offsets[np.asarray(pairs) + 1] - offsets[pairs]
        shifts = [np.repeat(offsets_of(sizes)[:-1], counts) for sizes in self.sizes[pairs].T]
        return np.asarray(ends[:, expand_ranges(begin, counts)] + np.stack(shifts))


@dataclass(frozen=True, slots=True, eq=False)
class PairLinks:
    """Links of P pairs. ends: int64[2, L], sub-words, counted in the sides of their pair. offsets: int64[P + 1]."""

    ends: Int64
    offsets: Int64


class DerivedPairs(PairSource):
    """A share of a text's sentences in pairs of its languages, cut as the data is.

    kinds: the two languages of each kind of pairs, by number.
    """

    def __init__(
        self,
        data: Data,
        rate: Share,
        kinds: Sequence[tuple[int, int]] = ((SOURCE, DERIVED),),
        *,
        seed: int,
        shortest: int = 1,
    ):
        keys, sentences = np.asarray(data.keys), np.asarray(data.sentences)
        chosen = first_by_key(draw(pair_stream(seed), keys, np.zeros(len(keys), np.int64)), portion(rate, len(keys)))
        first, last = (np.searchsorted(data.pieces, ends) for ends in (sentences[chosen], sentences[chosen + 1]))
        self.data, self.special_ids = data, data.special_ids
        pieces = expand_ranges(first, last - first)
        languages = np.repeat(np.array(kinds, np.int64), len(pieces), axis=0)
        pieces = np.tile(pieces, len(kinds))
        sizes = np.stack([data.sizes(pieces, side) for side in languages.T], axis=1)
        some = (sizes >= shortest).all(axis=1)  # words of other scripts may have no sub-words
        self.pieces, self.sizes, self.languages = pieces[some], sizes[some], languages[some]
        first_kind = (self.languages == kinds[0]).all(axis=1)
        self.facts = {
            "sentences": len(chosen),
            "cut_sentences": int((last - first > 1).sum()),
            "short_pairs": int((~some).sum()),
            "percent": round(100 * int(self.sizes[first_kind, 0].sum()) / data.n_subwords, 2),
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
        return self.data.tokens(self.pieces[pairs], self.languages[pairs, side])

    def links(self, pairs: Int64) -> Int64:
        return self.data.links(self.pieces[pairs], *self.languages[pairs].T)


class JoinedPairs(PairSource):
    """The pairs of several sources, one after the other. facts: sums of the counts, and one hash of all."""

    def __init__(self, parts: Sequence[PairSource]):
        self.parts, self.special_ids = parts, parts[0].special_ids
        self.bounds = offsets_of(np.array([len(part.sizes) for part in parts]))
        self.sizes, self.languages = (np.concatenate([getattr(one, name) for one in parts]) for name in _BY_PAIR)
        counts: Counter[str] = Counter()
        for part in parts:
            counts.update({name: value for name, value in part.facts.items() if isinstance(value, int)})
        hashes = [part.facts["sha256"] for part in parts if "sha256" in part.facts]
        of_all = {"sha256": sha256("".join(hashes).encode()).hexdigest()} if hashes else {}
        self.facts = dict(counts) | of_all

    def _of(self, pairs: Int64) -> Iterator[tuple[PairSource, Int64, Int64]]:
        """Yield each source, the places in `pairs` that are its, and its numbers of these pairs."""
        number = np.searchsorted(self.bounds, pairs, "right") - 1
        for one, part in enumerate(self.parts):
            at = np.flatnonzero(number == one)
            yield part, at, pairs[at] - self.bounds[one]

    def side(self, pairs: Int64, side: int) -> Pieces:
        sizes, every = self.sizes[pairs, side], list(self._of(pairs))
        order = np.argsort(np.concatenate([expand_ranges(offsets_of(sizes)[at], sizes[at]) for _, at, _ in every]))
        parts = [part.side(some, side) for part, _, some in every]
        return Pieces(*(np.concatenate([getattr(one, f.name) for one in parts])[order] for f in fields(Pieces)))

    def links(self, pairs: Int64) -> Int64:
        found = []
        for part, at, some in self._of(pairs):
            ends = part.links(some)
            for side, sizes in enumerate(self.sizes[pairs].T):  # from places in these pairs to places in all
                ends[side] = expand_ranges(offsets_of(sizes)[at], sizes[at])[ends[side]]
            found.append(ends)
        return np.concatenate(found, axis=1)


_BY_PAIR = ("sizes", "languages")
