"""Weights in 8 bits."""

from __future__ import annotations

from typing import TYPE_CHECKING

if TYPE_CHECKING:
    import torch


def rounded(name: str, w: torch.Tensor) -> torch.Tensor:
    """The weights as they will be stored: matrices in 8 bits with one scale a row, the rest as it is."""
    if w.dim() < 2 or name.endswith("_root"):
        return w
    scale = w.abs().amax(1, keepdim=True).clamp_min(1e-8) / 127
    return (w / scale).round() * scale
