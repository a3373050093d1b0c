"""The parser of a stored model: the one in this package, and those that `derivlang parser train` makes.

words -> normalise -> cut very long sentences -> network, sentences of like length together -> trees -> the way back.

A sentence's parse depends on its words alone, exactly: on no other sentence of the call, on no number of threads, and
on no machine (`quantised.py`).
"""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass
from functools import cached_property
from pathlib import Path

import numpy as np
import pyarrow as pa

from derivlang.core.arrays import Int32, Int64, UInt8, lengths_of
from derivlang.parsing.base import UPOS, Parses
from derivlang.parsing.cuts import cut_long, hang_together
from derivlang.parsing.decode import best_heads
from derivlang.parsing.inference import Network, Packed
from derivlang.parsing.model import Model, damaged, load_model
from derivlang.parsing.normalise import MARK, WORD, normalise, restore_heads

WORDS_AT_ONCE = 4096  # of sentences that go through the network together: larger ones leave the cache
SCORES_AT_ONCE = 1 << 19  # numbers in a batch's table of arcs, padded


@dataclass(frozen=True, eq=False)
class ModelParser:
    """A `Parser` (see base.py). Raises DataError parser-damaged if the model's weights do not fit together."""

    name: str
    model: Model
    network: Network

    @classmethod
    def load(cls, folder: Path, name: str | None = None) -> ModelParser:
        """Raises DataError parser-missing, parser-damaged."""
        model = load_model(folder)
        try:
            return cls(name or str(folder), model, Network(model))
        except (ValueError, KeyError, IndexError) as error:
            raise damaged(folder, error) from error

    @property
    def language(self) -> str:
        return self.model.language

    @cached_property
    def fingerprint(self) -> str:
        return self.model.fingerprint

    @cached_property
    def relations(self) -> tuple[str, ...]:
        """The model's relations, and those that the way back may need."""
        known = self.model.relations
        return known + tuple(name for name in ("goeswith", "parataxis", "punct") if name not in known)

    def parse(self, words: Int32, types: pa.Array, sentences: Int64) -> Parses:
        normal = normalise(words, types, sentences, self.language)
        upos, head, deprel = self._trees(normal.words, normal.types, normal.sentences)
        kind, number = normal.kind, self.relations.index
        if (kind == WORD).all():
            return Parses(upos, head, deprel, self.relations)
        all_upos = np.full(len(kind), UPOS.index("X"), np.uint8)
        all_upos[kind == MARK] = UPOS.index("PUNCT")
        all_upos[kind == WORD] = upos
        all_deprel = np.full(len(kind), number("goeswith"), np.int32)
        all_deprel[kind == MARK] = number("punct")
        all_deprel[kind == WORD] = deprel
        return Parses(all_upos, restore_heads(normal, head, sentences), all_deprel, self.relations)

    def _trees(self, words: Int32, types: list[str], sentences: Int64) -> tuple[UInt8, Int32, Int32]:
        """(upos, head, deprel) of normalised words."""
        used, codes = np.unique(words, return_inverse=True)
        vectors = self.network.vectors([types[code] for code in used]).astype(np.int16)
        codes = codes.reshape(-1)
        parts = cut_long(words, types, sentences)
        upos = np.zeros(len(words), np.uint8)
        head = np.zeros(len(words), np.int32)
        deprel = np.zeros(len(words), np.int32)
        for chosen in _batches(lengths_of(parts)):
            packed = Packed.of(lengths_of(parts)[chosen])
            row = packed.row[packed.inside]
            place = (parts[chosen][:, None] + np.arange(packed.inside.shape[1]))[packed.inside]
            x = np.empty((len(row), vectors.shape[1]), np.float32)
            x[row] = vectors[codes[place]]
            scores = self.network.scores(x, packed)
            heads = best_heads(scores.arcs, packed.lengths)
            governor = np.take_along_axis(packed.row, np.maximum(heads - 1, 0), 1)
            head_row = np.empty(len(row), np.int64)
            head_row[row] = np.where(heads > 0, governor, -1)[packed.inside]
            labels = self.network.labels(scores, head_row)
            labels[:, self._root] = np.where(head_row < 0, np.inf, -np.inf)
            upos[place] = scores.tags.argmax(1)[row]
            head[place] = heads[packed.inside]
            deprel[place] = labels.argmax(1)[row]
        if len(parts) != len(sentences):
            hang_together(upos, head, deprel, parts, sentences, self.relations)
        return upos, head, deprel

    @cached_property
    def _root(self) -> int:
        return self.model.relations.index("root")


def _batches(lengths: Int64) -> Iterator[Int64]:
    """Sentences by falling length, in stretches of a bounded size; empty ones are left out."""
    order = np.argsort(-lengths, kind="stable")
    order = order[: int((lengths > 0).sum())]
    start = 0
    while start < len(order):
        longest = int(lengths[order[start]])
        most = max(1, min(WORDS_AT_ONCE // longest, SCORES_AT_ONCE // (longest * (longest + 1))))
        yield order[start : start + most]
        start += most


def bundled_parser(name: str) -> ModelParser:
    """The parser of this name in the package."""
    return ModelParser.load(Path(__file__).parent / name, name)
