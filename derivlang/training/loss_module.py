"""The module that a step trains: the model, an objective's own layers, and the loss as the forward pass."""

from __future__ import annotations

from typing import Any

import torch

from derivlang.training.batch import Step
from derivlang.training.doses import OF, SOME
from derivlang.training.encoder import Encoder
from derivlang.training.objectives.base import Context, LossPart, Objective, Share


class LossModule(torch.nn.Module):
    """A module whose forward pass is the loss, so that processes exchange its gradients.

    lm: a language model of `transformers`. seed: of the objective's own layers. compile: whether torch compiles the
    encoder, and the head with its loss.
    """

    def __init__(
        self,
        lm: Any,
        objective: Objective,
        context: Context,
        *,
        language_ids: bool,
        seed: int,
        compile: bool = False,
    ):
        super().__init__()
        self.lm, self.objective = lm.train(), objective
        self.model = Encoder(lm, context.vocabulary.special_ids, language_ids=language_ids, compiled=compile)
        if compile:
            lm.base_model.compile()
        with torch.random.fork_rng(devices=[]):
            torch.manual_seed(seed)
            self.state = objective.state(self.model, context)

    def forward(self, micro: Step) -> tuple[torch.Tensor, dict[str, torch.Tensor]]:
        """Return (the loss of a micro-batch, its parts without their weights and without gradient).

        A part that has no term in the step, e.g. of a language without rows, is not among the parts.
        A share is among the parts as its two counts, with the endings SOME and OF.
        """
        terms = self.objective.loss(self.model, micro, self.state)
        parts = {name: part for name, part in terms.items() if isinstance(part, LossPart)}
        means = {name: part.total / max(part.by, 1) for name, part in parts.items()}
        loss: Any = sum(means[name] if part.weight == 1 else part.weight * means[name] for name, part in parts.items())
        seen = {name: mean.detach() for name, mean in means.items() if parts[name].by}
        for name, share in terms.items():
            if isinstance(share, Share):
                both = {SOME: share.some, OF: share.of}
                seen |= {name + ending: count.detach().float() for ending, count in both.items()}
        return loss, seen
