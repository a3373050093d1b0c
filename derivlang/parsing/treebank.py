"""A treebank as arrays, to train a parser on and to score it."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass

import numpy as np
import pyarrow as pa

from derivlang.core.arrays import Int32, Int64, UInt8, offsets_of
from derivlang.parsing.base import UPOS


@dataclass(frozen=True, eq=False)
class Treebank:
    """N words, T types, S sentences.

    words: int32[N], codes into types (Arrow strings [T]). sentences: int64[S + 1], word offsets.
    upos: uint8[N], codes into UPOS. head: int32[N], 1-based in the sentence, 0 = root.
    deprel: int32[N], codes into relations.
    """

    words: Int32
    types: pa.Array
    sentences: Int64
    upos: UInt8
    head: Int32
    deprel: Int32
    relations: tuple[str, ...]

    @property
    def n_sentences(self) -> int:
        """S."""
        return len(self.sentences) - 1

    @classmethod
    def of(
        cls,
        sentences: Sequence[Sequence[str]],
        upos: Sequence[Sequence[str]],
        head: Sequence[Sequence[int]],
        deprel: Sequence[Sequence[str]],
    ) -> Treebank:
        """Make a treebank from lists, one a sentence. Raises ValueError for a tag that is not one of UD's 17."""
        flat = pa.array([word for sentence in sentences for word in sentence], pa.string()).dictionary_encode()
        names = sorted({name for row in deprel for name in row})
        code = {name: i for i, name in enumerate(names)}
        return cls(
            words=flat.indices.to_numpy(zero_copy_only=False).astype(np.int32),
            types=flat.dictionary,
            sentences=offsets_of(np.array([len(sentence) for sentence in sentences], np.int64)),
            upos=np.array([UPOS.index(tag) for row in upos for tag in row], np.uint8),
            head=np.array([h for row in head for h in row], np.int32),
            deprel=np.array([code[name] for row in deprel for name in row], np.int32),
            relations=tuple(names),
        )
