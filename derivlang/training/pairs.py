"""Pair rows for TLM: sentences and their derived forms in one row, for a given share of the sentences.

    <s> s1 </s> s2 </s> <s> d1 </s> d2 </s> <pad>         each side at most H/2

The pairs are the first floor(pS/100 + 1/2) sentences by the keyed ranking of `derivlang pair`, nested over rates. A
pair that does not fit into half a row is dropped and counted (methods, sections 3 and 4).
"""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np

from derivlang.core.arrays import Int64, Ints, expand_ranges, offsets_of
from derivlang.core.errors import DataError
from derivlang.core.keys import draw
from derivlang.lexical.noise import first_by_key
from derivlang.lexical.pairs import pair_stream
from derivlang.lexical.percent import Share, portion
from derivlang.training.data import Data, SubwordRows
from derivlang.training.languages import DERIVED, SOURCE
from derivlang.training.packing import pack


@dataclass(frozen=True, slots=True, eq=False)
class PairData:
    """Sentence pairs, packed into instances.

    pieces: int64[P], the pairs that fit, in source order. instances: int64[I + 1], offsets into pieces. chosen,
    dropped: number of drawn pairs, and of those too long. reset: whether positions restart in the second half.
    """

    data: Data
    pieces: Int64
    instances: Int64
    chosen: int
    dropped: int
    reset: bool

    @classmethod
    def of(cls, data: Data, rate: Share, *, seed: int = 1, reset: bool = True) -> PairData:
        """Draw and pack the pairs of a rate. Raise DataError if no pair fits."""
        keys = np.asarray(data.keys)
        chosen = first_by_key(draw(pair_stream(seed), keys, np.zeros(len(keys), np.int64)), portion(rate, len(keys)))
        starts = np.asarray(data.sentences)[chosen]
        sizes = np.asarray(data.sentences)[chosen + 1] - starts
        half = data.seq_len // 2
        fits = (sizes > 0) & (sizes <= half - 2)
        if not fits.any():
            raise DataError(
                f"none of {len(chosen):,} sentence pairs fits into {half} positions a side",
                where="--seq-len",
                fix="raise --seq-len or --parallel",
                id="no-pair-fits",
            )
        pieces = np.searchsorted(data.pieces, starts[fits])
        instances = pack(sizes[fits] + 1, half - 1)
        return cls(data, pieces, instances, len(chosen), int((sizes > half - 2).sum()), reset)

    @property
    def n_instances(self) -> int:
        return len(self.instances) - 1

    def rows(self, instances: Ints) -> SubwordRows:
        """Return the rows of instances [B], with H sub-words and both languages in each."""
        half, width = self.data.seq_len // 2, self.data.seq_len
        first, last = self.instances[instances], self.instances[np.asarray(instances) + 1]
        pieces, offsets = self.pieces[expand_ranges(first, last - first)], offsets_of(last - first)
        n = len(offsets) - 1
        sides = [self.data.rows_of(pieces, offsets, np.full(n, language), half) for language in (SOURCE, DERIVED)]
        size = sides[0].lengths
        out = SubwordRows(
            np.full((n, width), self.data.marks.pad, np.int64),
            np.full((n, width), -1, np.int32),
            np.full((n, width), DERIVED, np.int8),
            np.repeat(np.arange(width, dtype=np.int32)[None], n, axis=0),
            2 * size,
            np.zeros((n, width), bool),
        )
        row, column = np.repeat(np.arange(n), size), expand_ranges(np.zeros(n, np.int64), size)
        for language, side in zip((SOURCE, DERIVED), sides, strict=True):
            at = row, column + language * np.repeat(size, size)
            out.ids[at] = side.ids[row, column]
            groups = side.groups[row, column]
            out.groups[at] = np.where(groups >= 0, groups + language * half, -1)
            out.language[at] = language
            out.shared[at] = side.shared[row, column]
            if self.reset:
                out.positions[at] = column
        return out
