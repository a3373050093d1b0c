"""Rows of both corpora, as `packing.py` makes them: the same for every objective."""

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
from derivlang.training.streams.base import RowSource, Stream, StreamInputs


@dataclass(frozen=True, kw_only=True)
class Packed(Stream):
    """`<s> s1 </s> s2 </s> …`, each row in one language; an epoch has every row in both."""

    name: ClassVar[str] = "rows"

    def reads(self, files: Collection[str]) -> Set[str]:
        return {"packing"}

    def open(self, material: StreamInputs) -> RowSource:
        return PackedRows(material.encoded[material.settings.seq_len])


class PackedRows(RowSource):
    """The rows of both languages: the source's first, then the derived language's."""

    def __init__(self, data: Data):
        self.data = data
        self._n_source = data.n_instances(SOURCE)
        self.n = self._n_source + data.n_instances(DERIVED)
        self.length = data.seq_len
        self.mean_subwords = (data.filled(SOURCE) + data.filled(DERIVED)) / self.n

    def rows(self, numbers: Ints, keys: Keys) -> SubwordRows:
        language = (numbers >= self._n_source).astype(np.int64)
        return self.data.rows(numbers - self._n_source * language, language)
