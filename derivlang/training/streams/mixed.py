"""Rows of both corpora and rows of sentence pairs in one set, drawn alike: XLM as published.

    source rows, derived rows, pair rows ──▶ one list of N_source + N_derived + N_pairs rows, permuted in every epoch

All rows have the same length, each half of a pair row at most half of it. So the share of the pairs in a step follows
from their number, and a step has as many positions as with MLM. Source: the released code of ALIGN-MLM (Tang et al.
2022, appendix G.3), which trains on the concatenation of the instances of MLM and of TLM.
"""

from __future__ import annotations

from collections.abc import Collection, Mapping, Set
from dataclasses import dataclass, replace
from typing import Any, ClassVar

import numpy as np

from derivlang.core.arrays import Ints
from derivlang.core.errors import UsageError
from derivlang.training.batch import SubwordRows
from derivlang.training.language import OPTION, phases_of
from derivlang.training.masking import Keys
from derivlang.training.prepare import Prepared
from derivlang.training.settings import TrainingSettings
from derivlang.training.streams.base import RowSource
from derivlang.training.streams.packed import Packed
from derivlang.training.streams.pairs import SentencePairs

PAIRS = SentencePairs.name


@dataclass(frozen=True, kw_only=True)
class PackedAndPairs(Packed):
    """The rows of both corpora and of sentence pairs. reset: positions restart in the second half of a pair."""

    of_one_language: ClassVar[bool] = False
    pair_kinds: ClassVar[Set[str]] = {PAIRS}
    reset: bool = True

    def reads(self, files: Collection[str]) -> Set[str]:
        return super().reads(files) | self._pairs().reads(files) - {"pair_length"}

    def keeps_apart(self, files: Collection[str]) -> bool:
        return self._pairs().keeps_apart(files)

    def piece_lengths(self, settings: TrainingSettings) -> Set[int]:
        return super().piece_lengths(settings) | {self.length(settings) // 2}

    def kinds(self, rows: SubwordRows) -> Mapping[str, Any]:
        of_pairs = (rows.side == 1).any(axis=1)
        return {self.name: ~of_pairs, PAIRS: of_pairs}

    def open(self, prepared: Prepared) -> RowSource:
        if phases_of(prepared.settings.asked):
            raise UsageError(
                "rows and sentence pairs are drawn from one set, so languages have no shares",
                where=OPTION,
                fix="give xlm:pairs=0.5, or leave out the shares",
                id="languages",
            )
        settings = replace(prepared.settings, pair_length=self.length(prepared.settings))
        pairs = self._pairs().open(replace(prepared, settings=settings))
        return RowsOfTwo(super().open(prepared), pairs, reset=self.reset)

    def _pairs(self) -> SentencePairs:
        return SentencePairs(reset=self.reset)


class RowsOfTwo(RowSource):
    """The rows of the corpora, then of the pairs, of one length. reset: whether positions restart in pairs."""

    def __init__(self, packed: RowSource, pairs: RowSource, *, reset: bool):
        self.packed, self.pairs, self.length, self.reset = packed, pairs, packed.length, reset
        self.n = packed.n + pairs.n
        self.mean_subwords = (packed.mean_subwords * packed.n + pairs.mean_subwords * pairs.n) / self.n

    def facts(self) -> dict[str, Any]:
        return self.pairs.facts() | {"rows": self.n, "rows_of_pairs": self.pairs.n}

    def rows(self, numbers: Ints, keys: Keys) -> SubwordRows:
        """Return rows of both kinds, in the order of the numbers."""
        of_pairs = numbers >= self.packed.n
        text, pairs = np.flatnonzero(~of_pairs), np.flatnonzero(of_pairs)
        sources = (self.packed, text, 0), (self.pairs, pairs, self.packed.n)
        parts = [source.rows(numbers[at] - first, keys.take(at)) for source, at, first in sources if len(at)]
        if self.reset:  # the same positions as without a restart, but written down
            plain = np.arange(self.length, dtype=np.int32)[None]
            parts = [replace(part, positions=np.repeat(plain, len(part.lengths), 0)) if part.positions is None else part
                     for part in parts]  # fmt: skip
        return SubwordRows.joined(parts, np.argsort(np.concatenate([text, pairs])))
