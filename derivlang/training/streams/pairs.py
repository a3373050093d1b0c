"""Rows of sentence pairs, for TLM and for objectives that compare a sentence with its counterpart.

    <s> s1 </s> s2 </s> <s> d1 </s> d2 </s> <pad>         several pairs per row, each side at most half of it

A `PairSource` has the pairs: of the corpus and its derived language (pair_source.py), or of a file (bitext.py).
"""

from __future__ import annotations

from collections.abc import Collection, Set
from dataclasses import dataclass, replace
from pathlib import Path
from typing import Any, ClassVar

import numpy as np

from derivlang.core.arrays import Int64, Ints, expand_ranges, offsets_of
from derivlang.core.errors import UsageError
from derivlang.training.batch import SubwordRows
from derivlang.training.data import pack
from derivlang.training.masking import Keys
from derivlang.training.prepare import Prepared
from derivlang.training.settings import TrainingSettings
from derivlang.training.streams.base import RowSource, Stream
from derivlang.training.streams.bitext import FilePairs, read_pairs
from derivlang.training.streams.pair_source import DerivedPairs, JoinedPairs, PairSource


@dataclass(frozen=True, kw_only=True)
class SentencePairs(Stream):
    """Sentences and their derived forms. reset: positions restart in the second half. together: several pairs per row.

    shuffle: a coin of each row says which side comes first; otherwise the source does. links: the batch has the links
    between both sides, if the pairs have any. shortest: pairs with a side of fewer sub-words are left out.
    """

    name: ClassVar[str] = "pairs"
    pair_kinds: ClassVar[Set[str]] = {name}
    share: float = 0.5
    reset: bool = True
    together: bool = True
    shuffle: bool = False
    links: bool = False
    shortest: int = 1

    def reads(self, files: Collection[str]) -> Set[str]:
        return {"pair_length"} if "pairs" in files else {"pair_length", "parallel", "dictionary_seed"}

    def reads_text(self, files: Collection[str]) -> bool:
        return "pairs" not in files

    def length(self, settings: TrainingSettings) -> int:
        return settings.pair_length

    def piece_lengths(self, settings: TrainingSettings) -> Set[int]:
        return {self.length(settings) // 2}

    def source(self, prepared: Prepared, links_file: Path | None = None) -> PairSource:
        """Return the pairs: of files, or of the texts that languages share. links_file: Pharaoh links of a file."""
        length = self.length(prepared.settings) // 2
        if links_file is not None and len(prepared.pair_files) > 1:
            fix = "give links beside each file (PREFIX.pharaoh), or links=hmm"
            raise UsageError(f"{links_file} has links of one file", where="--pairs", fix=fix, id="languages")
        parts: list[PairSource] = [
            FilePairs(read_pairs(path, links_file), prepared.languages, length - 2, self.shortest, sides)
            for sides, path in prepared.pair_files.items()
        ]
        for data, numbers in prepared.texts_of(length):
            own = [sides for sides, path in prepared.pairs.items() if path is None and sides[0] in numbers]
            if own:
                rate, seed = prepared.settings.parallel_rate, prepared.settings.dict_seed
                parts.append(DerivedPairs(data, rate, own, seed=seed, shortest=self.shortest))
        return parts[0] if len(parts) == 1 else JoinedPairs(parts)

    def open(self, prepared: Prepared) -> PairRows:
        return PairRows(self, self.source(prepared), self.length(prepared.settings))


class PairRows(RowSource):
    """The rows of a pair source."""

    def __init__(self, stream: SentencePairs, source: PairSource, length: int):
        """Pack the pairs into rows: in their order, as many as fit, or one a row."""
        sizes = source.sizes.sum(axis=1) + 2  # with </s> on each side
        self.stream, self.source, self.length = stream, source, length
        self.instances = pack(sizes, length - 2) if stream.together else np.arange(len(sizes) + 1)
        self.n = len(self.instances) - 1
        self.mean_subwords = float(sizes.sum() + 2 * self.n) / self.n

    def facts(self) -> dict[str, Any]:
        shortest = {"shortest": self.stream.shortest} if self.stream.shortest > 1 else {}
        counts = {"pairs": len(self.source.sizes), "rows": self.n, "length": self.length}
        return {**self.source.facts, **counts, **shortest}

    def rows(self, numbers: Ints, keys: Keys) -> SubwordRows:
        """Return rows with both sides of their pairs.

        one row of a pair with 2 + 3 sub-words, length 10
        columns      0    1 2   3     4    5 6 7   8     9
        ids         <s>   a b  </s>  <s>   x y z  </s>  <pad>      starts [[0, 4]]: columns of each side's <s>
        side         0    0 0   0     1    1 1 1   1     1
        """
        begin, end = self.instances[numbers], self.instances[np.asarray(numbers) + 1]
        pairs, offsets = expand_ranges(begin, end - begin), offsets_of(end - begin)
        special_ids, sizes, languages = self.source.special_ids, self.source.sizes[pairs], self.source.languages
        # of each row and side: the number of sub-words with <s> and </s>, and the column of its <s>
        widths = 1 + np.add.reduceat(sizes + 1, offsets[:-1], axis=0)
        turned = np.zeros(len(widths), bool)
        if self.stream.shuffle:
            turned = keys.uniform("shuffle", np.zeros((1, 1), np.int64))[:, 0] < 0.5
        # The derived side of a turned row is its first half, and begins at column 0.
        half = np.where(turned, widths[:, 1], widths[:, 0])[:, None]
        starts = half * np.stack([turned, ~turned], axis=1)
        columns = np.arange(self.length, dtype=np.int32)[None]
        side = (columns >= half).astype(np.int8)
        language = np.take_along_axis(languages[begin], side ^ turned[:, None], axis=1)
        out = replace(
            SubwordRows.blank(language, self.length, widths.sum(axis=1), special_ids),
            side=side,
            positions=columns - side * half.astype(np.int32) if self.stream.reset else None,
        )
        at = [
            out.write(self.source.side(pairs, s), sizes[:, s], offsets, languages[pairs, s], starts[:, s], special_ids)
            for s in range(2)
        ]
        return out if not self.stream.links else replace(out, links=self._links(pairs, at))

    def _links(self, pairs: Int64, at: list[Int64]) -> Int64:
        """Return int64[2, L]: linked positions, in both directions, ascending. at: of the sub-words of each side."""
        left, right = self.source.links(pairs)
        source, derived = at[0][left], at[1][right]
        both = np.stack([np.concatenate([source, derived]), np.concatenate([derived, source])])
        return both[:, np.lexsort(both[::-1])]
