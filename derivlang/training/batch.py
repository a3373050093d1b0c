"""The rows of a training step: numpy arrays in the loader, tensors in an objective.

    Pieces   text without special ids       TokenBatch   rows of one stream       Step   those of every stream, by name

B = 2 rows of H = 3 sub-words; the last of row 0 and the first of row 1 are masked    ->    targets [2, 3]
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, fields, replace
from typing import TYPE_CHECKING, Any

import numpy as np

from derivlang.core.arrays import Bool, Int64, Ints
from derivlang.training.devices import to_device

if TYPE_CHECKING:
    import torch


@dataclass(frozen=True, slots=True, eq=False)
class Pieces:
    """The sub-words of pieces of text (`data.py`), one after the other, without special ids.

    ids: int64[M]. words: int64[M], the word of each sub-word, counted in its piece. language: int8[M]. shared: bool[M],
    sub-words with one id in both languages.

    `low er it` and `we` in the derived language, in pieces of 2 words and of 1
    ids [17, 18, 5, 9]      words [0, 0, 1, 0]      language [1, 1, 1, 1]      shared [F, F, F, F]
    """

    ids: Int64
    words: Int64
    language: Ints
    shared: Bool


@dataclass(frozen=True, slots=True)
class Totals:
    """Numbers of a stream's whole step, over all micro-batches and processes: what sums of losses are divided by.

    rows. masked: positions to predict, masked or not. by_language: those whose label is of the source, of the derived
    language. links. linked: positions to predict that have a link.
    """

    rows: int
    masked: int
    by_language: tuple[int, int]
    links: int
    linked: int


@dataclass(frozen=True, slots=True, eq=False)
class TokenBatch:
    """B rows of H sub-words.

    clean_ids: int64[B, H], the text; input_ids: int64[B, H], what the model gets: the text with masks. attention:
    bool[B, H], False for padding. language, side: int8[B, H], of each position; side 1 is the second half of a pair
    row. positions: int32[B, H], or None for 0 … H - 1. word_ids, sentence_ids: int32[B, H], numbers within the row, -1
    for special ids and padding; both sides of a sentence pair have its number. targets: int64[n], positions in the
    flattened rows [B * H], ascending, whose states predict `labels`, int64[n]: the masked positions and their ids or,
    with a causal objective, positions and the ids of the next ones. label_language: int8[n]. links: int64[2, L], linked
    positions (from, to) in the flattened rows, in both directions, ascending by `from`; None if the stream has no
    links.
    """

    input_ids: Any
    clean_ids: Any
    attention: Any
    language: Any
    side: Any
    positions: Any
    word_ids: Any
    sentence_ids: Any
    targets: Any
    labels: Any
    label_language: Any
    links: Any
    totals: Totals

    def to(self, device: torch.device) -> TokenBatch:
        """Return the batch with int64 (attention: bool) tensors on a device, without synchronising it."""
        found: dict[str, Any] = {
            field.name: to_device(array if array.dtype == np.bool_ else array.astype(np.int64, copy=False), device)
            for field in fields(self)
            if field.name != "totals" and (array := getattr(self, field.name)) is not None
        }
        return replace(self, **found)

    def unmasked(self) -> TokenBatch:
        """Return the batch with its original sub-words as input."""
        return replace(self, input_ids=self.clean_ids)


@dataclass(frozen=True, slots=True)
class StepCounts:
    """Numbers of a whole step. subwords: by stream, without padding. sentences: by stream, parts of sentences or pairs.

    masked: positions to predict in all streams. translated: those of which the input or the label is a translation. Of
    several views the first counts.
    """

    subwords: Mapping[str, int]
    sentences: Mapping[str, int]
    masked: int
    translated: int


@dataclass(frozen=True, slots=True, eq=False)
class Step:
    """A step's rows of every stream, or the part of them that one process trains on at once, a micro-batch.

    `step["rows"]` is the batch of the stream `rows`. step: its number, from 0. share: of the step, 1 / (micro-batches
    * processes), for parts of a loss that do not depend on rows. batches: by stream; a second view is `NAME:2`. counts:
    of the whole step.

    a step with 8 rows and 2 rows of pairs, 32 sub-words each, in 2 micro-batches      share 0.5
        step["rows"].clean_ids  int64[4, 32]      step["pairs"].clean_ids  int64[1, 32]
    """

    step: int
    share: float
    batches: Mapping[str, TokenBatch]
    counts: StepCounts

    def __getitem__(self, stream: str) -> TokenBatch:
        return self.batches[stream]

    def __contains__(self, stream: object) -> bool:
        return stream in self.batches

    def to(self, device: torch.device) -> Step:
        """Return the micro-batch with tensors on a device."""
        return replace(self, batches={name: batch.to(device) for name, batch in self.batches.items()})
