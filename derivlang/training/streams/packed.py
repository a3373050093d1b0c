"""Rows of both corpora, or of one (`--languages`), as `packing.py` makes them: the same for every objective."""

from __future__ import annotations

from collections.abc import Collection, Set
from dataclasses import dataclass
from typing import ClassVar

import numpy as np

from derivlang.core.arrays import Ints
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

    def reads(self, files: Collection[str]) -> Set[str]:
        return {"packing"}

    def open(self, material: StreamInputs) -> RowSource:
        settings = material.settings
        return PackedRows(material.encoded[settings.seq_len], settings.languages)


class PackedRows(RowSource):
    """The rows of both languages, the source's first and then the derived language's, or of one of them."""

    def __init__(self, data: Data, languages: Sides = "both"):
        sides = _SIDES[languages]
        self.data = data
        self._n_source = data.n_instances(SOURCE) if SOURCE in sides else 0
        self.n = sum(data.n_instances(side) for side in sides)
        self.length = data.seq_len
        self.mean_subwords = sum(data.filled(side) for side in sides) / self.n

    def rows(self, numbers: Ints, keys: Keys) -> SubwordRows:
        language = (numbers >= self._n_source).astype(np.int64)
        return self.data.rows(numbers - self._n_source * language, language)
