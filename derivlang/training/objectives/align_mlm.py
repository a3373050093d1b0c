"""ALIGN-MLM: masked language modelling, plus a loss that aligns the embeddings of dictionary pairs.

    L = L_MLM + alpha * L_align        L_align = -(1/|B|) * sum over pairs (b1, b2) of cos(E[b1], E[b2])

E is the input embedding matrix. Every step uses all pairs of the dictionary. Source: Tang, Deshpande and Narasimhan
(2022), section 3. There b1 and b2 are sub-words; of a dictionary of words (--language, --dictionary), E[b] is the mean
of the embeddings of a word's sub-words, which is our reading. With only=align, L is L_align: a control, in which only
the embeddings are trained.
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import TYPE_CHECKING, Any, Literal

import numpy as np

from derivlang.core.errors import UsageError
from derivlang.core.spec import param
from derivlang.training.batch import Step
from derivlang.training.objectives.base import Context, Loss, LossPart, Objective, masked_part

if TYPE_CHECKING:
    import torch

    from derivlang.training.config import ModelConfig
    from derivlang.training.encoder import Encoder
    from derivlang.training.settings import TrainingSettings

_SIDES, _OFFSETS = ("left", "right"), "_offsets"  # names of buffers


@dataclass(frozen=True, kw_only=True)
class AlignMlm(Objective):
    """Masked words, and alignment of the embeddings of dictionary pairs."""

    name = "align-mlm"
    dictionary = "entries"
    alpha: float = param(10.0, "weight of the alignment loss", positional=True, low=0)
    only: Literal["no", "align"] = param("no", "align: without masked language modelling, as a control")

    def check(self, settings: TrainingSettings, model_config: ModelConfig) -> None:
        if "embeddings" in settings.freeze.split(","):
            raise UsageError(
                f"{self.name} aligns the embeddings, and these are not trained",
                where="--freeze",
                fix="leave out embeddings, or give --objective mlm",
                id="nothing-to-train",
            )

    def entries_per_step(self, entries: int) -> int:
        return entries

    def state(self, model: Encoder, context: Context) -> torch.nn.Module:
        import torch

        state = torch.nn.Module()
        for side, name in enumerate(_SIDES):
            for part, array in zip(("", _OFFSETS), context.dictionary.side(side), strict=True):
                state.register_buffer(name + part, torch.from_numpy(np.ascontiguousarray(array)))
        return state

    def loss(self, model: Encoder, micro: Step, state: Any) -> Loss:
        sides = (means(model.embeddings, getattr(state, one), getattr(state, one + _OFFSETS)) for one in _SIDES)
        align = alignment_loss(*sides) * micro.share
        if self.only == "align":
            return {"align": LossPart(align)}
        return {"mlm": masked_part(model, micro["rows"]), "align": LossPart(align, weight=self.alpha)}


def alignment_loss(left: torch.Tensor, right: torch.Tensor) -> torch.Tensor:
    """Return the mean of -cos over pairs, from -1 to 1. left, right: float[K, d], the embeddings of both sides."""
    from torch.nn.functional import cosine_similarity

    return -cosine_similarity(left.float(), right.float(), dim=-1).mean()


def means(embeddings: torch.Tensor, ids: torch.Tensor, offsets: torch.Tensor) -> torch.Tensor:
    """Return float[K, d]: the mean embedding of each word. ids: int64[M]; offsets: int64[K + 1], of each word."""
    from torch.nn.functional import embedding, embedding_bag

    if len(ids) == len(offsets) - 1:
        return embedding(ids, embeddings)
    return embedding_bag(ids, embeddings, offsets, mode="mean", include_last_offset=True)
