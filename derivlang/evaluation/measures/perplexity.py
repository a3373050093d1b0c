"""Perplexity of held-out sentences in both languages: exp of the mean cross-entropy of sub-words.

A masked language model predicts masked sub-words:

    <s> we <mask> er it </s>      exp(-mean log p(low | the rest))       over the vocabularies of both languages

Some 15 % of the sub-words are masked, keyed by (sentence, position), the same in the source and the derived sentence.
Unlike in training (80/10/10), all of them become `<mask>`, and a row is one sentence instead of a packed instance. So
the figure compares languages and runs, but not with a training loss. A perplexity above 1e14 is written as 1e14.

A causal model predicts every sub-word and the closing </s> from what is before it in the sentence, without masks:

    <s> we low er </s>        exp(-mean log p(x_t | x_<t)) over we, low, er and </s>

Its bits a word are the bits of all of these, the closing </s> included, divided by the number of words of the text,
among which </s> does not count. They do not depend on the number of sub-words in a word. The perplexities of the two
kinds of models are different quantities.
"""

from __future__ import annotations

import math
from typing import Any

import numpy as np
import torch

from derivlang.core.arrays import Bool, expand_ranges, lengths_of, positions
from derivlang.core.keys import Draws
from derivlang.evaluation.heldout import Heldout
from derivlang.evaluation.measures.base import LARGEST_PERPLEXITY, Figures, Measure
from derivlang.evaluation.measures.bits import tokens_for
from derivlang.evaluation.measures.sets import MeasureSets
from derivlang.evaluation.padding import by_length, framed, inside, padded
from derivlang.formats.progress import rows_done, stage
from derivlang.training.devices import to_device
from derivlang.training.encoder import Encoder
from derivlang.training.languages import DERIVED, SOURCE, LanguageSide

RATE = 0.15


class Perplexity(Measure):
    """Perplexity of held-out sentences in both languages; for causal models also bits a word."""

    unit = ""
    needs_head = True
    reads = ("sentences",)

    def measure(self, model: Encoder, sets: MeasureSets) -> dict[str, Any]:
        """Return {"source", "derived", "positions", "sentences"}. A perplexity is None if no sub-word is masked.

        positions: number of predicted ones. For a causal model also "source_bits" and "derived_bits", a word, and
        "words".
        """
        if model.causal:
            return _exact(model, sets)
        text = sets.sentences
        by_slot = chosen(text)
        masked = [by_slot[side.slots] for side in (text.source, text.derived)]
        with stage("perplexity", "rows", 2 * text.n_sentences):
            found: dict[str, Any] = {
                "source": _one(model, text, text.source, masked[SOURCE], SOURCE),
                "derived": _one(model, text, text.derived, masked[DERIVED], DERIVED),
            }
        return found | {"positions": int(masked[SOURCE].sum()), "sentences": text.n_sentences}

    def rows(self, found: Any) -> dict[str, Figures]:
        rows = {}
        if "words" in found:
            bits = {side: found[f"{side}_bits"] for side in ("source", "derived")}
            rows[f"{found['words']:,} words, bits of each"] = bits
        return rows | {f"{found['positions']:,} sub-words": {side: found[side] for side in ("source", "derived")}}


def _exact(model: Encoder, sets: MeasureSets) -> dict[str, Any]:
    text, found = sets.sentences, dict[str, Any]()
    for side, bits in zip(("source", "derived"), sets.bits(model), strict=True):
        each = bits.total / (len(bits.subwords) + text.n_sentences)
        found[side] = min(2 ** min(each, 1000.0), LARGEST_PERPLEXITY)
        found[f"{side}_bits"] = bits.total / text.n_words
    return found | {
        "positions": len(text.source.ids) + text.n_sentences,
        "words": text.n_words,
        "sentences": text.n_sentences,
    }


def chosen(text: Heldout) -> Bool:
    """Return bool[K]: the slots whose sub-words are masked, in both languages."""
    draws = Draws("perplexity").draw(text.keys[text.rows], positions(text.offsets))
    return np.asarray(draws < np.uint64(int(RATE * 2**64)))


def _one(model: Encoder, text: Heldout, side: LanguageSide, masked: Bool, language: int) -> float | None:
    if not masked.any():
        return None
    model.module.train(False)
    within = text.offsets_in(side)
    whole, offsets = framed(np.where(masked, np.int32(model.marks.mask), side.ids), within, model.marks)
    to, lengths = model.device, lengths_of(offsets)
    total: Any = 0.0  # accumulated on the device, which is synchronised once
    with torch.inference_mode():
        for rows in by_length(lengths, tokens_for(model, RATE)):
            block, mask = padded(whole, offsets, rows)
            at = expand_ranges(within[rows], lengths[rows] - 2)
            gold = to_device(side.ids[at[masked[at]]].astype(np.int64), to)
            asked = inside(mask)
            asked[asked] = masked[at]
            logits = model.logits(
                to_device(block, to), to_device(mask, to), language, to_device(np.flatnonzero(asked), to)
            )
            total = total + torch.nn.functional.cross_entropy(logits, gold, reduction="sum").double()
            rows_done(len(rows))
        return min(math.exp(min(float(total) / int(masked.sum()), 700.0)), LARGEST_PERPLEXITY)
