"""Objective: what is hidden in a step's rows, and the loss; one file each, parameters as in a spec.

    @dataclass(frozen=True, kw_only=True)
    class Mine(Objective):
        '''Masked words, and something else.'''
        name = "mine"
        needs = frozenset({"dictionary"})
        weight: float = param(1.0, "of the second part")
        def loss(self, model, inputs, state):
            mlm = masked_loss(model, inputs.rows)
            return Loss(mlm + self.weight * extra(model), {"mlm": mlm, "extra": extra(model)})

    rows ──mask──▶ Masked ──(torch)──▶ Inputs ──loss──▶ Loss

Losses are sums over a micro-batch's predicted positions, divided by their number in the whole step: what accumulates
over micro-batches and processes is the mean of the step.
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass
from typing import TYPE_CHECKING, ClassVar, Literal

from derivlang.core.spec import Named
from derivlang.training.data import Rows
from derivlang.training.dictionary import Dictionary
from derivlang.training.masking import Keys, Masked, Vocabulary, mask

if TYPE_CHECKING:
    import torch

    from derivlang.training.model import Model

Need = Literal["dictionary", "pairs", "language-ids"]


@dataclass(frozen=True, slots=True)
class Context:
    """What masks and states are made of. rate: share of sub-words that are hidden. dictionary: where it is needed."""

    vocabulary: Vocabulary
    rate: float
    dictionary: Dictionary | None = None


@dataclass(frozen=True, slots=True, eq=False)
class Part:
    """Rows of a micro-batch on the device. ids, language: int64[B, H]; attention: bool[B, H], true but for padding;
    positions: int64[B, H], or None for 0 … H - 1; targets, labels, label_language: int64[n]. total: predicted positions
    of the whole step, of all micro-batches and processes."""

    ids: torch.Tensor
    attention: torch.Tensor
    language: torch.Tensor
    positions: torch.Tensor | None
    targets: torch.Tensor
    labels: torch.Tensor
    label_language: torch.Tensor
    total: int


@dataclass(frozen=True, slots=True, eq=False)
class Inputs:
    """A micro-batch. rows: of the two corpora; pairs: parallel rows, where the objective needs them. share: of the
    step, for what does not depend on rows."""

    rows: Part
    pairs: Part | None = None
    share: float = 1.0


@dataclass(frozen=True, slots=True, eq=False)
class Loss:
    """total: a scalar with a gradient. parts: scalars by name, unweighted, for the log; they sum over micro-batches."""

    total: torch.Tensor
    parts: Mapping[str, torch.Tensor]


@dataclass(frozen=True, kw_only=True)
class Objective(Named):
    """needs: what must be there before training starts. language_ids: does it tell the model each position's language,
    where the model has token types."""

    needs: ClassVar[frozenset[Need]] = frozenset()
    language_ids: ClassVar[bool] = False

    @property
    def pair_rows(self) -> float:
        """Rows of parallel data in a step, as a share of its rows."""
        return 0.0

    @property
    def requires(self) -> frozenset[Need]:
        """`needs` with these parameters."""
        return self.needs

    def mask(self, rows: Rows, keys: Keys, context: Context) -> Masked:
        """What is hidden of rows [B, H] and what is to be found there: the usual masks."""
        return mask(rows, keys, context.vocabulary, context.rate)

    def state(self, model: Model, context: Context) -> torch.nn.Module | None:
        """What the loss needs on the device, and checkpoints keep: a dictionary, further layers."""
        return None

    def loss(self, model: Model, inputs: Inputs, state: torch.nn.Module | None) -> Loss:
        raise NotImplementedError


def masked_loss(model: Model, part: Part, state: torch.Tensor | None = None) -> torch.Tensor:
    """Cross-entropy of the hidden positions, summed over them and divided by the step's number of them.

    state: float[n, d], the states to predict from; those of the model's last layer where it is left out. The projection
    on the vocabulary is computed at the hidden positions alone.
    """
    from torch.nn.functional import cross_entropy

    if state is None:
        state = model.states(part).flatten(0, 1)[part.targets]
    logits = model.predict(state).float()
    return cross_entropy(logits, part.labels, reduction="sum") / max(part.total, 1)
