"""Masked-LM perplexity of held-out sentences in both languages: exp of the mean cross-entropy at masked sub-words.

    <s> we <mask> er it </s>      exp(-mean log p(low | the rest))       over the vocabularies of both languages

Some 15 % of the sub-words are masked, keyed by (sentence, place): the same ones of the source and of the derived
sentence. Each becomes `<mask>`, none a random one or itself as in training (80/10/10), and a row is one sentence, not a
packed instance: the figure compares languages and runs, not with a training loss.
"""

from __future__ import annotations

import math
from typing import Any

import numpy as np

from derivlang.core.arrays import Bool, Int32, lengths_of, places, spread
from derivlang.core.keys import Draws
from derivlang.evaluation.examples import MASK
from derivlang.evaluation.heldout import Heldout
from derivlang.evaluation.padding import by_length, inside, padded, tokens_on
from derivlang.evaluation.trained import Encoder
from derivlang.training.devices import sent
from derivlang.training.languages import DERIVED, SOURCE

RATE = 0.15
_LOGITS = 1 << 25  # in memory at once


def perplexity(model: Encoder, text: Heldout) -> dict[str, Any]:
    """{"source", "derived", "positions", "sentences"}; a perplexity is None where no sub-word is masked.

    model: with its masked-LM head.
    """
    masked = chosen(text)
    found: dict[str, Any] = {
        "source": _one(model, text, text.source, masked, SOURCE),
        "derived": _one(model, text, text.derived, masked[text.index], DERIVED),
    }
    return found | {"positions": int(masked.sum()), "sentences": text.n_sentences}


def chosen(text: Heldout) -> Bool:
    """bool[M]: the source sub-words that are masked."""
    draws = Draws("perplexity").draw(text.keys[text.rows], places(text.offsets))
    return np.asarray(draws < np.uint64(int(RATE * 2**64)))


def _one(model: Encoder, text: Heldout, ids: Int32, masked: Bool, language: int) -> float | None:
    import torch

    if not masked.any():
        return None
    model.module.train(False)
    framed, offsets = text.framed(np.where(masked, np.int32(MASK), ids))
    to, lengths = model.device, lengths_of(offsets)
    tokens = max(1, min(tokens_on(to), int(_LOGITS / RATE) // model.module.config.vocab_size))
    total: Any = 0.0  # added up on the device, which is asked once
    with torch.inference_mode():
        for rows in by_length(lengths, tokens):
            block, mask = padded(framed, offsets, rows)
            at = spread(text.offsets[rows], lengths[rows] - 2)
            gold = sent(ids[at[masked[at]]].astype(np.int64), to)
            asked = inside(mask)
            asked[asked] = masked[at]
            logits = model.logits(sent(block, to), sent(mask, to), language, sent(np.flatnonzero(asked), to))
            total = total + torch.nn.functional.cross_entropy(logits, gold, reduction="sum").double()
        return math.exp(min(float(total) / int(masked.sum()), 700.0))
