"""Rows of both corpora, as `packing.py` makes them: the same for every objective."""

from __future__ import annotations

from dataclasses import dataclass
from typing import ClassVar

from derivlang.core.arrays import Ints
from derivlang.training.data import Data, SubwordRows
from derivlang.training.masking import Keys
from derivlang.training.streams.base import Material, RowSource, Stream


@dataclass(frozen=True, kw_only=True)
class Packed(Stream):
    """`<s> s1 </s> s2 </s> …`, each row in one language; an epoch has every row in both."""

    name: ClassVar[str] = "rows"

    def open(self, material: Material) -> PackedRows:
        return PackedRows(material.encoded[material.settings.seq_len])


class PackedRows(RowSource):
    """The rows of both languages: the source's first, then the derived language's."""

    def __init__(self, data: Data):
        self.data = data
        self.n = 2 * data.n_instances
        self.length = data.seq_len
        subwords = data.n_subwords + len(data.pieces) - 1 + data.n_instances  # each piece has </s>, each row <s>
        self.mean_subwords = data.seq_len if data.packing == "stream" else subwords / data.n_instances

    def rows(self, numbers: Ints, keys: Keys) -> SubwordRows:
        return self.data.rows(numbers % self.data.n_instances, numbers // self.data.n_instances)
