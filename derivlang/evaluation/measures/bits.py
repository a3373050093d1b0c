"""Bits of sub-words: -log2 of the probability that a model gives to each sub-word of a sentence.

    causal    <s> we low er </s>          of each sub-word and of the closing </s>, given those before it
    masked    <s> we <mask> er </s>       of each sub-word, given all others

A row is one sentence between <s> and </s>. The probabilities are over the vocabularies of both languages. Those of a
causal model are exact. Their sum for a masked model is a pseudo-log-likelihood (Salazar et al. 2020, section 2).
"""

from __future__ import annotations

import math
from typing import TYPE_CHECKING, Any

import numpy as np

from derivlang.align.lexical import Floats
from derivlang.core.arrays import Bool, Int32, Int64, expand_ranges, lengths_of, offsets_of, owners, positions
from derivlang.evaluation.examples import by_length, framed, padded, tokens_on
from derivlang.evaluation.formulas import fixed
from derivlang.evaluation.scores import Score, ScoredSet
from derivlang.formats.progress import rows_done
from derivlang.training.devices import arrays_to_device

if TYPE_CHECKING:
    from derivlang.training.encoder import Encoder

_LOGITS = 1 << 25  # maximum number of logits in memory


class SentenceBits:
    """Bits of S sentences with M sub-words of one language under a causal model.

    offsets: int64[S + 1], of the sub-words. subwords: float64[M]. ends: float64[S], of the closing `</s>`.
    """

    def __init__(self, model: Encoder, ids: Int32, offsets: Int64, language: int):
        whole, ends = framed(ids, offsets, model.special_ids)
        asked = np.ones(len(whole), bool)  # each position predicts the next one; the last of a row predicts nothing
        asked[ends[1:] - 1] = False
        bits = losses(model, whole, ends, language, asked, np.roll(whole, -1)) / math.log(2)
        self.offsets, self.subwords = offsets, bits[expand_ranges(ends[:-1], lengths_of(offsets))]
        self.ends = bits[ends[1:] - 2]

    @property
    def sentences(self) -> Floats:
        """The bits of each whole sentence, its sub-words and its closing `</s>`: float64[S]."""
        return np.asarray(np.bincount(owners(self.offsets), self.subwords, minlength=len(self.ends)) + self.ends)


def masked_bits(model: Encoder, ids: Int32, offsets: Int64, language: int) -> Floats:
    """Return float64[M]: the bits of each sub-word under a masked model that sees all others of its sentence.

    ids: int32[M], sub-words of one language; offsets: int64[S + 1]. Each sub-word is a row of its own:

        sentences [we low] and [er]     rows  <s> <mask> low </s>    <s> we <mask> </s>    <s> <mask> </s>
        sentence of each row            0, 0, 1        place of its mask  1, 2, 1
    """
    whole, ends = framed(ids, offsets, model.special_ids)
    sentence, lengths = owners(offsets), lengths_of(ends)
    gold, rows = whole[expand_ranges(ends[sentence], lengths[sentence])], offsets_of(lengths[sentence])
    asked = np.zeros(len(gold), bool)
    asked[rows[:-1] + 1 + positions(offsets)] = True
    masked = np.where(asked, np.int32(model.special_ids.mask), gold)
    return losses(model, masked, rows, language, asked, gold)[asked] / math.log(2)


def losses(
    model: Encoder, ids: Int32, offsets: Int64, language: int, asked: Bool, gold: Int32, share: float = 1.0
) -> Floats:
    """Return float64[M]: the cross-entropy of the gold sub-word at each position that is asked for, in nats; else 0.

    ids, gold: int32[M], rows with special ids at offsets int64[R + 1]. asked: bool[M]. share: about how many of them.
    """
    import torch

    model.module.train(False)
    to, lengths = model.device, lengths_of(offsets)
    tokens = max(1, min(tokens_on(to), int(_LOGITS / share) // int(model.module.config.vocab_size)))
    places, entropies = [np.zeros(0, np.int64)], [torch.zeros(0, device=to)]  # the device is synchronised once
    with torch.inference_mode():
        for rows in by_length(lengths, tokens):
            block, mask = padded(ids, offsets, rows)
            every = expand_ranges(offsets[rows], lengths[rows])
            some = asked[every]
            places.append(every[some])
            at, wanted = np.flatnonzero(mask)[some], gold[places[-1]].astype(np.int64)
            batch = arrays_to_device({"ids": block, "mask": mask, "at": at, "wanted": wanted}, to)
            states = model(batch["ids"], batch["mask"], language).flatten(0, 1)[batch["at"]]
            entropies.append(model.cross_entropy(states, batch["wanted"], "none"))
            rows_done(len(rows))
    out = np.zeros(len(ids))
    out[np.concatenate(places)] = torch.cat(entropies).double().cpu().numpy()
    return out


def averaged(metric: str, regime: str, sums: Floats, numbers: Any, of: ScoredSet) -> Score:
    """Return a score of the formula `mean` or `exp`: NaN, without counts, if a sum is. sums, numbers: [S]."""
    known = not np.isnan(sums).any()
    return Score(metric, fixed(sums, numbers) if known else None, None if known else math.nan, regime, set=of)
