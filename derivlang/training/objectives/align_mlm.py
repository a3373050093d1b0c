"""ALIGN-MLM: masked language modelling, plus a loss that aligns the embeddings of dictionary pairs.

    L = L_MLM + alpha * L_align        L_align = -(1/|B|) * sum over pairs (b1, b2) of cos(E[b1], E[b2])

E is the input embedding matrix. Every step uses all pairs of the dictionary. Source: Tang, Deshpande and Narasimhan
(2022), section 3. With only=align, L is L_align: a control, in which only the embeddings are trained.
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import TYPE_CHECKING, Literal

from derivlang.core.errors import UsageError
from derivlang.core.spec import param
from derivlang.training.batch import Step
from derivlang.training.objectives.base import Context, Loss, LossPart, Objective, masked_part
from derivlang.training.objectives.needs import DICTIONARY, Need

if TYPE_CHECKING:
    import torch

    from derivlang.training.config import ModelConfig
    from derivlang.training.encoder import Encoder
    from derivlang.training.settings import TrainingSettings


@dataclass(frozen=True, kw_only=True)
class AlignMlm(Objective):
    """Masked words, and alignment of the embeddings of dictionary pairs."""

    name = "align-mlm"
    alpha: float = param(10.0, "weight of the alignment loss", positional=True, low=0)
    only: Literal["no", "align"] = param("no", "align: without masked language modelling, as a control")

    def needs(self) -> tuple[Need, ...]:
        return (DICTIONARY,)

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
        state.register_buffer("pairs", torch.from_numpy(context.found[DICTIONARY.name].pairs))
        return state

    def loss(self, model: Encoder, micro: Step, state: torch.nn.Module | None) -> Loss:
        assert state is not None
        align = alignment_loss(model.embeddings, state.pairs) * micro.share  # type: ignore[arg-type]
        if self.only == "align":
            return {"align": LossPart(align)}
        return {"mlm": masked_part(model, micro["rows"]), "align": LossPart(align, weight=self.alpha)}


def alignment_loss(embeddings: torch.Tensor, pairs: torch.Tensor) -> torch.Tensor:
    """Return the mean of -cos over pairs, from -1 to 1. embeddings: float[V, d]; pairs: int64[K, 2]."""
    from torch.nn.functional import cosine_similarity, embedding

    left, right = embedding(pairs[:, 0], embeddings), embedding(pairs[:, 1], embeddings)
    return -cosine_similarity(left.float(), right.float(), dim=-1).mean()
