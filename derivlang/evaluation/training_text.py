"""The text that a run was trained on, as the sub-words that its model predicts, in both languages.

    pieces of sentences, as in the rows of the training, each with its closing </s>:    we low er </s> it </s>

The source is read again, as its encoded data may be elsewhere; the hashes of its files are compared before.
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass
from typing import Any

import numpy as np

from derivlang.core.arrays import Int32, Int64, owners
from derivlang.core.ngrams import Sentences
from derivlang.engine.batches import Source
from derivlang.evaluation.columns import SIDES
from derivlang.training.data import cut
from derivlang.training.languages import Languages, LanguageSide


@dataclass(frozen=True, slots=True, eq=False)
class TrainingText:
    """The text of both languages, None for one that the run was not trained on."""

    source: Sentences | None
    derived: Sentences | None

    @classmethod
    def read(cls, source: Source, languages: Languages, n: int, settings: Mapping[str, Any]) -> TrainingText:
        """Read the first n sentences of the source's first split. settings: of the training, as in run.json."""
        asked, split = settings.get("languages", "both"), source.corpus.splits[0]
        parts: tuple[list[Sentences], list[Sentences]] = [], []
        left = n
        for batch in source.batches(split, settings.get("limit")):
            both = languages.parallel(batch)
            blocks = both.blocks[: left + 1]
            pieces = cut(blocks, np.cumsum(both.begins(), dtype=np.int64), settings["seq_len"] - 2)
            for name, side, some in zip(SIDES, both.sides, parts, strict=True):
                if asked in ("both", name):
                    some.append(_pieces(side, pieces, languages.special_ids.end))
            left -= len(blocks) - 1
            if not left:
                break
        return cls(*(_joined(some) if some else None for some in parts))


def closed(ids: Int32, offsets: Int64, end: int) -> Sentences:
    """Return rows of sub-words, each with its closing `</s>`. ids: int32[M], at offsets int64[R + 1]; end: its id."""
    return Sentences(np.insert(ids.astype(np.int64), offsets[1:], end), offsets + np.arange(len(offsets)))


def _pieces(side: LanguageSide, pieces: Int64, end: int) -> Sentences:
    """Return the sub-words of a language by piece. pieces: int64[P + 1], slot offsets; later slots are left out."""
    some = np.flatnonzero(side.slots < pieces[-1])
    piece = owners(pieces)[side.slots[some]]
    ids = side.ids[some][np.argsort(piece, kind="stable")]
    counts = np.bincount(piece, minlength=len(pieces) - 1)
    return closed(ids, np.concatenate([[0], np.cumsum(counts)]), end)


def _joined(parts: list[Sentences]) -> Sentences:
    """Return the sentences of several texts as if they were one text."""
    starts = np.cumsum([0, *(len(part.words) for part in parts)])
    offsets = [part.offsets[:-1] + start for part, start in zip(parts, starts.tolist(), strict=False)]
    return Sentences(np.concatenate([part.words for part in parts]), np.concatenate([*offsets, starts[-1:]]))
