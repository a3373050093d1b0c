"""The tensors of a micro-batch: what the loop makes, the model reads, and an objective's loss is computed from.

rows: B rows of H sub-words      targets: positions in the flattened rows [B * H] whose sub-words are predicted

B = 2, H = 3, masked: the last sub-word of row 0 and the first of row 1    ->    targets [2, 3]
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import TYPE_CHECKING

if TYPE_CHECKING:
    import torch


@dataclass(frozen=True, slots=True, eq=False)
class TokenBatch:
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

    rows: TokenBatch
    pairs: TokenBatch | None = None
    share: float = 1.0
