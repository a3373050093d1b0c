"""Train a parser on a treebank: vocabulary, and the loop over the trees.

The learning rate rises linearly and falls as a cosine. The trained weights are an exponential average over the steps.
The last tenth of the steps computes with weights rounded to 8 bits, as the stored model has them (`model.py`).
"""

from __future__ import annotations

import math
from collections.abc import Callable, Iterator
from contextlib import contextmanager, nullcontext
from dataclasses import asdict, dataclass
from typing import TYPE_CHECKING, Any

import numpy as np

from derivlang.core.arrays import Float32
from derivlang.parsing.base import UPOS
from derivlang.parsing.model import is_matrix, rounded
from derivlang.parsing.training.batches import EncodedTreebank, ParserConfig, batches, build_vocabulary, encode_treebank
from derivlang.parsing.training.network import TorchNetwork
from derivlang.parsing.treebank import Treebank

if TYPE_CHECKING:
    import torch


@dataclass(frozen=True, slots=True, eq=False)
class TrainedParser:
    """What `make_model` needs. weights: float32 by name. vocabulary: codes of words. config: the settings as used."""

    weights: dict[str, Float32]
    vocabulary: dict[str, int]
    relations: tuple[str, ...]
    config: ParserConfig

    def card(self, language: str) -> dict[str, Any]:
        """Return the part of the model's card that training determines."""
        return {
            "language": language,
            "tags": list(UPOS),
            "relations": list(self.relations),
            "settings": asdict(self.config),
        }


def fit(train: Treebank, config: ParserConfig, report: Callable[[str], None] = lambda line: None) -> TrainedParser:
    """Train a parser on a treebank; `report` gets a line per epoch.

    The result is the same for the same seed on one machine with one thread.
    """
    import torch

    torch.manual_seed(config.seed)
    vocabulary, counts = build_vocabulary(train, config)
    data = encode_treebank(train, vocabulary, counts, train.relations, config)
    network = TorchNetwork(config, len(vocabulary) + 2, len(UPOS), len(train.relations))
    train_network(network, data, report)
    return TrainedParser(network.exported(), vocabulary, train.relations, config)


def train_network(network: TorchNetwork, data: EncodedTreebank, report: Callable[[str], None]) -> None:
    """Train the network on trees; it ends with the averaged weights."""
    import torch

    config = network.config
    n_weights = sum(w.numel() for w in network.trained)
    report(f"{data.bank.n_sentences:,} sentences, {n_weights:,} weights to train")
    draws = np.random.default_rng(config.seed)
    weights = network.trained
    average = [w.detach().clone() for w in weights]
    optimizer = torch.optim.Adam(weights, lr=config.rate, betas=(0.9, 0.95), fused=True)
    total = config.epochs * sum(1 for _ in batches(data, config, np.random.default_rng(0)))
    number = 0
    for epoch in range(config.epochs):
        losses = []
        for _, batch in batches(data, config, draws):
            done = min(number / total, 1.0)
            for group in optimizer.param_groups:
                group["lr"] = _learning_rate_at(config, number, done)
            optimizer.zero_grad(set_to_none=True)
            with _rounded_matrices(network) if done >= 1 - config.rounded else nullcontext():
                loss = network.loss(batch)
                loss.backward()
                torch.nn.utils.clip_grad_norm_(weights, config.clip)
            optimizer.step()
            decay = min(config.average, (1 + number) / (10 + number))  # the first steps are forgotten sooner
            with torch.no_grad():
                torch._foreach_lerp_(average, [w.detach() for w in weights], 1 - decay)
            losses.append(float(loss.detach()))
            number += 1
        report(f"epoch {epoch + 1}/{config.epochs}: loss {np.mean(losses):.3f}")
    _set(weights, average)


def _learning_rate_at(config: ParserConfig, step: int, done: float) -> float:
    """Return the learning rate of a step; done: the share of all steps before it."""
    warm = min((step + 1) / config.warm_up, 1.0)
    cosine = config.last_rate + (1 - config.last_rate) * 0.5 * (1 + math.cos(math.pi * done))
    return config.rate * warm * cosine


@contextmanager
def _rounded_matrices(network: TorchNetwork) -> Iterator[None]:
    """Round the matrices, but not the tables of words and pieces, within the block.

    The optimizer applies the gradients at the rounded weights to the exact ones (a straight-through estimate).
    """
    with _kept(network.trained):
        for name, w in network.named.items():
            if is_matrix(name, w) and name not in network.tables:
                w.data.copy_(rounded(w.data))
        yield


@contextmanager
def _kept(weights: list[torch.Tensor]) -> Iterator[None]:
    """Restore the weights after the block."""
    kept = [w.detach().clone() for w in weights]
    yield
    _set(weights, kept)


def _set(weights: list[torch.Tensor], values: list[torch.Tensor]) -> None:
    for w, value in zip(weights, values, strict=True):
        w.data.copy_(value)
