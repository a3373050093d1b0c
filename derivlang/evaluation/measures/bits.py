"""Surprisal of sub-words under a causal model: -log2 p(sub-word | those before it in its sentence), in bits.

    <s> we low er </s>        bits of we, low, er, and of the closing </s>

A row is one sentence between <s> and </s>. The probabilities are exact and over the vocabularies of both languages.
"""

from __future__ import annotations

import math
from dataclasses import dataclass

import numpy as np
import torch

from derivlang.align.lexical import Floats
from derivlang.core.arrays import expand_ranges, lengths_of
from derivlang.evaluation.heldout import Heldout
from derivlang.evaluation.padding import by_length, padded, tokens_on
from derivlang.evaluation.trained import ModelEncoder
from derivlang.formats.progress import rows_done
from derivlang.training.devices import to_device
from derivlang.training.languages import Side

_LOGITS = 1 << 25  # maximum number of logits in memory


@dataclass(frozen=True, slots=True, eq=False)
class SentenceBits:
    """Bits of S sentences with M sub-words. subwords: float64[M]; ends: float64[S], of the closing `</s>`."""

    subwords: Floats
    ends: Floats

    @property
    def total(self) -> float:
        return float(self.subwords.sum() + self.ends.sum())

    @classmethod
    def of(cls, model: ModelEncoder, text: Heldout, side: Side, language: int) -> SentenceBits:
        """Return the bits of a text under a causal model, in one of its languages."""
        model.module.train(False)
        framed, offsets = text.framed(side)
        to, lengths = model.device, lengths_of(offsets)
        found = np.zeros(len(framed))
        with torch.inference_mode():
            for rows in by_length(lengths, max(1, min(tokens_on(to), _LOGITS // model.module.config.vocab_size))):
                block, mask = padded(framed, offsets, rows)
                before = np.zeros_like(mask)  # positions that predict the next one
                before[:, :-1] = mask[:, 1:]
                gold = to_device(block[:, 1:][mask[:, 1:]], to)
                at = to_device(np.flatnonzero(before), to)
                logits = model.logits(to_device(block, to), to_device(mask, to), language, at)
                losses = torch.nn.functional.cross_entropy(logits, gold, reduction="none")
                found[expand_ranges(offsets[rows] + 1, lengths[rows] - 1)] = losses.double().cpu().numpy()
                rows_done(len(rows))
        found /= math.log(2)
        return cls(found[expand_ranges(offsets[:-1] + 1, lengths - 2)], found[offsets[1:] - 1])
