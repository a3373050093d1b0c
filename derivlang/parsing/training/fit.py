"""The network in torch, for training; `inference.py` runs the same network with numpy.

    word vectors -> two layers, both ways -> tags
                                          -> arcs:   score(d, h) = dep(d) · head(h)
                                          -> labels: low-rank bilinear and linear terms of (d, its head)

A biaffine parser after Dozat and Manning (2017), "Deep Biaffine Attention for Neural Dependency Parsing", made small so
that plain numpy runs it quickly: hashed pieces of words replace the character model, dot products of two learned maps
replace the bilinear form over arcs, and the bilinear form over labels has a limited rank.

Axes: L words (time first), B sentences, R relations.

Train a parser on a treebank: vocabulary, and the loop over the trees.

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
from derivlang.parsing.features import WORD_LIMIT
from derivlang.parsing.model import is_matrix, rounded
from derivlang.parsing.training.batches import (
    EncodedTreebank,
    PaddedBatch,
    ParserConfig,
    batches,
    build_vocabulary,
    encode_treebank,
)
from derivlang.parsing.treebank import Treebank

if TYPE_CHECKING:
    import torch

ARC_SCALE = 0.25  # factor of the dot products


class TorchNetwork:
    """The network's weights and its forward pass; `noise` turns dropout on.

    named: the weights under the names of the stored model. tables: names of matrices that training never rounds.
    """

    tables: tuple[str, ...] = ("words", "pieces")

    def __init__(self, config: ParserConfig, n_words: int, n_tags: int, n_relations: int) -> None:
        import torch
        from torch import nn

        self.config = config
        wide = 2 * config.hidden[-1]

        def normal(*shape: int, std: float) -> torch.Tensor:
            return nn.Parameter(torch.randn(*shape) * std)

        def linear(outputs: int, inputs: int) -> torch.Tensor:
            return normal(outputs, inputs, std=inputs**-0.5)

        self.named: dict[str, torch.Tensor] = {
            "words": normal(n_words, config.width, std=0.3),
            "pieces": normal(config.n_buckets, config.width, std=0.5),
        }
        gates = 4 if config.cell == "lstm" else 2
        for layer, hidden in enumerate(config.hidden):
            for side in ("forward", "backward"):
                name = f"{side}{layer}"
                inputs = 2 * config.hidden[layer - 1] if layer else config.width
                self.named[f"{name}.input"] = linear(gates * hidden, inputs)
                recurrent = torch.cat([nn.init.orthogonal_(torch.empty(hidden, hidden)) for _ in range(gates)])
                self.named[f"{name}.state"] = nn.Parameter(recurrent)
                bias = torch.zeros(gates * hidden)
                if config.cell == "lstm":
                    bias[hidden : 2 * hidden] = 1.0  # forget gates start open
                else:
                    bias[:hidden] = -1.0  # states start to change slowly
                self.named[f"{name}.bias"] = nn.Parameter(bias)
        for name, outputs in (("tag", n_tags), ("arc_dep", config.arc), ("arc_head", config.arc)):
            self.named[name] = linear(outputs, wide)
            self.named[f"{name}.bias"] = nn.Parameter(torch.zeros(outputs))
        self.named["arc_root"] = normal(1, config.arc, std=0.1)
        for name in ("label_dep", "label_head"):
            self.named[name] = linear(config.label, wide)
            self.named[f"{name}.bias"] = nn.Parameter(torch.zeros(config.label))
        self.named["label_root"] = normal(1, config.label, std=0.1)
        self.named["label"] = linear(n_relations, 3 * config.label)
        self.named["label.bias"] = nn.Parameter(torch.zeros(n_relations))

    @property
    def trained(self) -> list[torch.Tensor]:
        """The weights that training changes."""
        return [w for w in self.named.values() if w.requires_grad]

    def exported(self) -> dict[str, Float32]:
        """Return the weights by the names of a stored model."""
        return {name: w.detach().numpy().copy() for name, w in self.named.items()}

    def words(self, code: torch.Tensor) -> torch.Tensor:
        """Return the vectors of words, float[L, B, width]; code: int64[L, B]."""
        from torch.nn.functional import embedding

        return embedding(code, self.named["words"])

    def states(self, batch: PaddedBatch, noise: bool) -> torch.Tensor:
        """Return float[L, B, 2 * hidden[-1]], the last layer."""
        import torch
        from torch.nn.functional import embedding

        w, config = self.named, self.config
        x = self.words(batch.code) + embedding(batch.buckets, w["pieces"]).mean(2)
        x = x.clamp(-WORD_LIMIT, WORD_LIMIT)
        if noise:
            x = x * _mask(x, config.dropout)
        back = batch.backward[:, :, None]
        for layer, hidden in enumerate(config.hidden):
            zero = x.new_zeros(1, x.shape[1], hidden)
            sides = []
            for side in ("forward", "backward"):
                name = f"{side}{layer}"
                # The backward side reads each sentence from its own last word, not from the padding of the batch.
                given = x if side == "forward" else x.gather(0, back.expand(-1, -1, x.shape[2]))
                matrices = w[f"{name}.input"], w[f"{name}.state"], w[f"{name}.bias"]
                if config.cell == "lstm":
                    weights = [*matrices, torch.zeros_like(w[f"{name}.bias"])]
                    out = torch.lstm(given, (zero, zero), weights, True, 1, 0.0, True, False, False)[0]
                else:
                    out = _light(given, *matrices)
                sides.append(out if side == "forward" else out.gather(0, back.expand(-1, -1, hidden)))
            x = torch.cat(sides, 2)
            if noise:
                x = x * _mask(x, config.dropout)
        return x

    def scores(self, batch: PaddedBatch, noise: bool) -> tuple[torch.Tensor, torch.Tensor, Callable[..., torch.Tensor]]:
        """Return (tags float[L, B, 17], arcs float[B, L, 1 + L], labels).

        arcs: [sentence, word, head], head 0 the root. labels: a function from heads int64[L, B] to float[L, B, R].
        """
        import torch
        from torch.nn.functional import linear

        w, config = self.named, self.config
        x = self.states(batch, noise)
        n, b = batch.code.shape

        def project(name: str) -> torch.Tensor:
            y = torch.tanh(linear(x, w[name], w[f"{name}.bias"]))
            return y * _mask(y, config.dropout) if noise else y

        tags = linear(x, w["tag"], w["tag.bias"])
        root = torch.tanh(w["arc_root"]).expand(b, 1, config.arc)
        heads = torch.cat([root, project("arc_head").transpose(0, 1)], 1)
        arcs = project("arc_dep").transpose(0, 1) @ heads.transpose(1, 2) * ARC_SCALE
        outside = torch.cat([batch.inside.new_zeros(b, 1), ~batch.inside.T], 1)
        arcs = arcs.masked_fill(outside[:, None, :], -1e4)
        dep = project("label_dep")
        root = torch.tanh(w["label_root"]).expand(b, config.label)[None]
        heads = torch.cat([root, project("label_head")], 0)

        def labels(head: torch.Tensor) -> torch.Tensor:
            at = heads.gather(0, head[:, :, None].expand(n, b, config.label))
            return linear(torch.cat([dep * at, dep, at], 2), w["label"], w["label.bias"])

        return tags, arcs, labels

    def loss(self, batch: PaddedBatch) -> torch.Tensor:
        """Return the mean over words of the cross-entropies of head, relation and (weighted) tag."""
        from torch.nn.functional import cross_entropy

        tags, arcs, labels = self.scores(batch, noise=True)
        inside = batch.inside
        arc = cross_entropy(arcs.transpose(0, 1)[inside], batch.head[inside])
        label = cross_entropy(labels(batch.head)[inside], batch.deprel[inside])
        tag = cross_entropy(tags[inside], batch.upos[inside])
        return arc + label + self.config.tag_weight * tag


def _light(x: torch.Tensor, given: torch.Tensor, state: torch.Tensor, bias: torch.Tensor) -> torch.Tensor:
    """Return float[L, B, hidden], the states of light cells (`inference.py`); x: float[L, B, K]."""
    import torch
    from torch.nn.functional import hardsigmoid, hardtanh, linear

    hidden = state.shape[1]
    across = state.T.contiguous()
    last = x.new_zeros(x.shape[1], hidden)
    states = []
    for z in linear(x, given, bias):
        p = torch.addmm(z, last, across)
        last = torch.lerp(last, hardtanh(p[:, hidden:]), hardsigmoid(p[:, :hidden]))
        states.append(last)
    return torch.stack(states)


def _mask(x: torch.Tensor, dropout: float) -> torch.Tensor:
    """Return a dropout mask float[1, B, K]: one per sentence, for all its words."""
    return x.new_empty(1, *x.shape[1:]).bernoulli_(1 - dropout) / (1 - dropout)


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
