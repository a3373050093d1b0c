"""The base class of objectives, which mask the rows of a step and compute its loss. Each objective is one file.

    @dataclass(frozen=True, kw_only=True)
    class Mine(Objective):
        '''Masked words, and something else.'''
        name = "mine"
        needs = frozenset({"dictionary"})
        weight: float = param(1.0, "weight of the second part")
        def loss(self, model, inputs, state):
            mlm = masked_loss(model, inputs.rows)
            return Loss(mlm + self.weight * extra(model), {"mlm": mlm, "extra": extra(model)})

    rows ──mask──▶ Masked ──(torch)──▶ Inputs ──loss──▶ Loss

A loss is the sum over a micro-batch's predicted positions, divided by their number in the whole step. So the sum over
micro-batches and processes is the mean of the step.
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass
from typing import TYPE_CHECKING, ClassVar, Literal

from derivlang.core.spec import Parameterised
from derivlang.training.data import SubwordRows
from derivlang.training.dictionary import JointDictionary
from derivlang.training.inputs import Inputs, TokenBatch
from derivlang.training.masking import Keys, LanguageIds, Masked, mask

if TYPE_CHECKING:
    import torch

    from derivlang.training.model import LanguageModel

Need = Literal["dictionary", "pairs", "language-ids"]


@dataclass(frozen=True, slots=True)
class Context:
    """The inputs of masking and of an objective's state. rate: share of sub-words to mask."""

    vocabulary: LanguageIds
    rate: float
    dictionary: JointDictionary | None = None


@dataclass(frozen=True, slots=True, eq=False)
class Loss:
    """The loss of a micro-batch. total: a scalar with a gradient. parts: unweighted scalars by name, for the log."""

    total: torch.Tensor
    parts: Mapping[str, torch.Tensor]


@dataclass(frozen=True, kw_only=True)
class Objective(Parameterised):
    """Base class of training objectives.

    needs: inputs that training must provide. language_ids: whether the model gets each position's language, if it has
    token types.
    """

    needs: ClassVar[frozenset[Need]] = frozenset()
    language_ids: ClassVar[bool] = False

    @property
    def pair_rows(self) -> float:
        """The number of pair rows in a step, as a share of its other rows."""
        return 0.0

    @property
    def requires(self) -> frozenset[Need]:
        """The needs with these parameters."""
        return self.needs

    def mask(self, rows: SubwordRows, keys: Keys, context: Context) -> Masked:
        """Return the rows [B, H] with masked positions and their labels. The default is the usual masking."""
        return mask(rows, keys, context.vocabulary, context.rate)

    def state(self, model: LanguageModel, context: Context) -> torch.nn.Module | None:
        """Return what the loss needs on the device and checkpoints keep, e.g. a dictionary or further layers."""
        return None

    def loss(self, model: LanguageModel, inputs: Inputs, state: torch.nn.Module | None) -> Loss:
        raise NotImplementedError


def masked_loss(model: LanguageModel, part: TokenBatch, state: torch.Tensor | None = None) -> torch.Tensor:
    """Return the cross-entropy summed over the masked positions and divided by their number in the whole step.

    state: float[n, d], the states to predict from; by default those of the model's last layer. The projection onto the
    vocabulary is computed only at masked positions.
    """
    from torch.nn.functional import cross_entropy

    if state is None:
        state = model.states(part).flatten(0, 1)[part.targets]
    logits = model.predict(state).float()
    return cross_entropy(logits, part.labels, reduction="sum") / max(part.total, 1)
