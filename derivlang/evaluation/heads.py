"""Heads: the layers that fine-tuning puts on top of an encoder.

A head takes the encoder's states, float[B, T, d], and the labels' places, and returns scores. Classification: linear
layers with normal weights (std 0.02) and biases 0, after the model's dropout. Pointer and
Biaffine: see `tasks/qa.py` and `tasks/dep.py`.
"""

from __future__ import annotations

from typing import Any

import torch
from torch import nn

from derivlang.evaluation.finetune import LabelBatch


class Classification(nn.Module):
    """Scores [G, C] of G labels from the states at their places. pooled: with another layer, for labels of rows."""

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
        """Return [G, C]. states: float[B, T, d]."""
        scores: torch.Tensor = self.layers(states[batch.row, batch.column].float())
        return scores


class Pointer(nn.Module):
    """Scores [G, T, 2] of the T positions of a row as the start and as the end of a span; -inf where no word begins."""

    def __init__(self, config: Any):
        super().__init__()
        self.layer = nn.Linear(config.hidden_size, 2)
        nn.init.normal_(self.layer.weight, std=0.02)
        nn.init.zeros_(self.layer.bias)

    def forward(self, states: torch.Tensor, batch: LabelBatch) -> torch.Tensor:
        """Return [G, T, 2]. states: float[B, T, d]."""
        scores: torch.Tensor = self.layer(states.float()).masked_fill((batch.words < 0)[..., None], -torch.inf)
        return scores[batch.row]


class Biaffine(nn.Module):
    """Scores of heads [G, T] and of relations [G, T, C] for G words, over the T positions of their rows.

    A position that is not a word, or the word itself, has the score -inf as a head. The projections have HEADS and
    RELATIONS dimensions (500 and 100 in the paper) and a leaky ReLU; the bilinear weights start at 0.
    """

    HEADS, RELATIONS = 128, 32

    def __init__(self, config: Any, n_classes: int):
        super().__init__()
        width, dropout = config.hidden_size, dropout_of(config)

        def projection(size: int) -> nn.Module:
            return nn.Sequential(nn.Dropout(dropout), nn.Linear(width, size), nn.LeakyReLU(0.1), nn.Dropout(dropout))

        self.words, self.heads = projection(self.HEADS), projection(self.HEADS)
        self.word_relations, self.head_relations = projection(self.RELATIONS), projection(self.RELATIONS)
        self.arcs = nn.Parameter(torch.zeros(self.HEADS, self.HEADS + 1))
        self.relations = nn.Parameter(torch.zeros(n_classes, self.RELATIONS + 1, self.RELATIONS + 1))

    def forward(self, states: torch.Tensor, batch: LabelBatch) -> tuple[torch.Tensor, torch.Tensor]:
        """Return ([G, T], [G, T, C]). states: float[B, T, d]."""
        every, own = states.float(), states[batch.row, batch.column].float()
        heads = torch.einsum("gi,ij,gtj->gt", self.words(own), self.arcs, _with_one(self.heads(every))[batch.row])
        positions = torch.arange(every.shape[1], device=every.device)
        barred = (batch.words[batch.row] < 0) | (positions == batch.column[:, None])
        relations = torch.einsum(
            "gi,cij,gtj->gtc",
            _with_one(self.word_relations(own)),
            self.relations,
            _with_one(self.head_relations(every))[batch.row],
        )
        return heads.masked_fill(barred, -torch.inf), relations


def _with_one(states: torch.Tensor) -> torch.Tensor:
    """Return the states with a last dimension of ones, which takes the place of biases."""
    return torch.cat([states, torch.ones_like(states[..., :1])], dim=-1)


def dropout_of(config: Any) -> float:
    """Return the dropout of a classifier on an encoder with this config."""
    names = "classifier_dropout", "hidden_dropout_prob", "resid_pdrop"  # the last one is GPT-2's
    return float(next((value for name in names if (value := getattr(config, name, None)) is not None), 0.0))
