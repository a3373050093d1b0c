"""Masked-LM perplexity of held-out sentences in both languages: exp of the mean cross-entropy at masked positions.

    <s> we <mask> er it </s>      exp(-mean log p(low | the rest))       over the vocabularies of both languages

Some 15 % of the sub-words are masked, keyed by (sentence, position), the same in the source and the derived sentence.
Unlike in training (80/10/10), all of them become `<mask>`, and a row is one sentence instead of a packed instance. So
the figure compares languages and runs, but not with a training loss.
"""

from __future__ import annotations

import math
from typing import Any

import numpy as np
import torch

from derivlang.core.arrays import Bool, Int32, expand_ranges, lengths_of, positions
from derivlang.core.keys import Draws
from derivlang.evaluation.examples import MASK
from derivlang.evaluation.heldout import Heldout
from derivlang.evaluation.measures.base import Figures, Measure
from derivlang.evaluation.measures.sets import MeasureSets
from derivlang.evaluation.padding import by_length, inside, padded, tokens_on
from derivlang.evaluation.trained import ModelEncoder
from derivlang.formats.progress import rows_done, stage
from derivlang.training.devices import to_device
from derivlang.training.languages import DERIVED, SOURCE

RATE = 0.15
_LOGITS = 1 << 25  # maximum number of logits in memory


class Perplexity(Measure):
    """Masked-LM perplexity of held-out sentences in both languages."""

    unit = ""
    needs_head = True

    def measure(self, model: ModelEncoder, sets: MeasureSets) -> dict[str, Any]:
        """Return {"source", "derived", "positions", "sentences"}. A perplexity is None if no sub-word is masked."""
        text = sets.sentences
        masked = chosen(text)
        with stage("perplexity", "rows", 2 * text.n_sentences):
            found: dict[str, Any] = {
                "source": _one(model, text, text.source, masked, SOURCE),
                "derived": _one(model, text, text.derived, masked[text.index], DERIVED),
            }
        return found | {"positions": int(masked.sum()), "sentences": text.n_sentences}

    def rows(self, found: Any) -> dict[str, Figures]:
        return {f"{found['positions']:,} sub-words": {name: found[name] for name in ("source", "derived")}}


def chosen(text: Heldout) -> Bool:
    """Return bool[M]: the source sub-words to mask."""
    draws = Draws("perplexity").draw(text.keys[text.rows], positions(text.offsets))
    return np.asarray(draws < np.uint64(int(RATE * 2**64)))


def _one(model: ModelEncoder, text: Heldout, ids: Int32, masked: Bool, language: int) -> float | None:
    if not masked.any():
        return None
    model.module.train(False)
    framed, offsets = text.framed(np.where(masked, np.int32(MASK), ids))
    to, lengths = model.device, lengths_of(offsets)
    tokens = max(1, min(tokens_on(to), int(_LOGITS / RATE) // model.module.config.vocab_size))
    total: Any = 0.0  # accumulated on the device, which is synchronised once
    with torch.inference_mode():
        for rows in by_length(lengths, tokens):
            block, mask = padded(framed, offsets, rows)
            at = expand_ranges(text.offsets[rows], lengths[rows] - 2)
            gold = to_device(ids[at[masked[at]]].astype(np.int64), to)
            asked = inside(mask)
            asked[asked] = masked[at]
            logits = model.logits(
                to_device(block, to), to_device(mask, to), language, to_device(np.flatnonzero(asked), to)
            )
            total = total + torch.nn.functional.cross_entropy(logits, gold, reduction="sum").double()
            rows_done(len(rows))
        return math.exp(min(float(total) / int(masked.sum()), 700.0))
