"""Rows of both corpora, or of one (`--languages`), as `packing.py` makes them: the same for every objective."""

from __future__ import annotations

from collections.abc import Collection, Sequence, Set
from dataclasses import dataclass
from typing import ClassVar

import numpy as np

from derivlang.core.arrays import Ints
from derivlang.core.errors import DataError
from derivlang.training.batch import SubwordRows
from derivlang.training.data import Data
from derivlang.training.languages import DERIVED, SOURCE
from derivlang.training.masking import Keys
from derivlang.training.settings import Sides
from derivlang.training.streams.base import RowSource, Stream, StreamInputs

_SIDES: dict[Sides, tuple[int, ...]] = {"both": (SOURCE, DERIVED), "source": (SOURCE,), "derived": (DERIVED,)}


@dataclass(frozen=True, kw_only=True)
class Packed(Stream):
    """`<s> s1 </s> s2 </s> …`, each row in one language; an epoch has every row in both."""

    name: ClassVar[str] = "rows"
    of_one_language: ClassVar[bool] = True

    def reads(self, files: Collection[str]) -> Set[str]:
        return {"packing"}

    def keeps_apart(self, files: Collection[str]) -> bool:
        return True

    def open(self, material: StreamInputs) -> RowSource:
        settings = material.settings
        data = material.encoded[settings.seq_len]
        ranges = halves(data) if settings.halves else None
        return PackedRows(data, settings.languages, ranges, derived=material.derived)


class PackedRows(RowSource):
    """The rows of both languages, the source's first and then the derived language's, or of one of them.

    ranges: the first and the last + 1 instance of each language, None for all. derived: the text of the derived
    language, None for the source's. So an epoch has every row of both texts once, whatever their sizes.
    """

    def __init__(
        self,
        data: Data,
        languages: Sides = "both",
        ranges: Sequence[tuple[int, int]] | None = None,
        *,
        derived: Data | None = None,
    ):
        self.data, self.length = data, data.seq_len
        self._texts = (data, data if derived is None else derived)
        every = [(0, text.n_instances(side)) for side, text in enumerate(self._texts)]
        self._ranges = [span if side in _SIDES[languages] else (0, 0) for side, span in enumerate(ranges or every)]
        sizes = [last - first for first, last in self._ranges]
        self._n_source, self.n = sizes[SOURCE], sum(sizes)
        filled = sum(
            text.filled(side, span)
            for side, (text, span) in enumerate(zip(self._texts, self._ranges, strict=True))
            if span[1] > span[0]
        )
        self.mean_subwords = filled / self.n

    def rows(self, numbers: Ints, keys: Keys) -> SubwordRows:
        language = (numbers >= self._n_source).astype(np.int64)
        first = np.array([span[0] for span in self._ranges])
        instances = numbers - self._n_source * language + first[language]
        source, derived = self._texts
        if source is derived:
            return source.rows(instances, language)
        places = [np.flatnonzero(language == side) for side in (SOURCE, DERIVED)]
        parts = [
            text.rows(instances[some], language[some])
            for text, some in zip(self._texts, places, strict=True)
            if len(some)
        ]
        return SubwordRows.joined(parts, np.argsort(np.concatenate(places)))


def halves(data: Data) -> list[tuple[int, int]]:
    """Return the source rows before the middle of the text, and the derived rows after it, as ranges.

    The middle is the end of a sentence, so no sentence is read in both languages; a row that crosses it is left out.
    Raise DataError if a half has no row.
    """
    middle = int(
        np.searchsorted(data.pieces, data.sentences[len(data.sentences) // 2])
    )  # a piece that begins a sentence
    source = int(np.searchsorted(data.instances[SOURCE], middle, "right")) - 1
    derived = int(np.searchsorted(data.instances[DERIVED], middle))
    ranges = [(0, source), (derived, data.n_instances(DERIVED))]
    if any(last <= first for first, last in ranges):
        raise DataError("half of the text has no row", where="--halves", fix="give more text", id="no-text")
    return ranges
