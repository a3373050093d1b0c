"""Heads: the layers that fine-tuning puts on top of an encoder.

A head takes the encoder's states, float[B, T, d], and the labels' places, and returns scores. Classification: linear
layers with normal weights (std 0.02) and biases 0, after the model's dropout.
"""

from __future__ import annotations

from typing import Any

import torch
from torch import nn

from derivlang.evaluation.finetune import LabelBatch


class Classification(nn.Module):
    """Scores [G, C] of G labels from the states at their places. pooled: with another layer, for labels at `<s>`."""

    def __init__(self, config: Any, n_classes: int, *, pooled: bool = False):
        super().__init__()
        width, dropout = config.hidden_size, dropout_of(config)
        layers: list[nn.Module] = [nn.Dropout(dropout)]
        if pooled:
            layers += [nn.Linear(width, width), nn.Tanh(), nn.Dropout(dropout)]
        self.layers = nn.Sequential(*layers, nn.Linear(width, n_classes))
        for layer in self.layers:
            if isinstance(layer, nn.Linear):
                nn.init.normal_(layer.weight, std=0.02)
                nn.init.zeros_(layer.bias)

    def forward(self, states: torch.Tensor, batch: LabelBatch) -> torch.Tensor:
        found: torch.Tensor = self.layers(states[batch.row, batch.column].float())
        return found


def dropout_of(config: Any) -> float:
    """Return the dropout of a classifier on an encoder with this config."""
    own = getattr(config, "classifier_dropout", None)
    return float(getattr(config, "hidden_dropout_prob", 0.0) if own is None else own)
