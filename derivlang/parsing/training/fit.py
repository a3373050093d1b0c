"""Train a parser on a treebank: vocabulary, pre-training on text, and the loop over the trees.

The learning rate rises linearly and falls as a cosine. The trained weights are an exponential average over the steps.
The last tenth of the steps computes with weights rounded to 8 bits, as the stored model has them (`model.py`).
"""

from __future__ import annotations

import math
from collections.abc import Callable, Iterator
from contextlib import contextmanager, nullcontext
from dataclasses import asdict, dataclass, replace
from typing import TYPE_CHECKING, Any

import numpy as np

from derivlang.core.arrays import Float32
from derivlang.parsing.base import UPOS
from derivlang.parsing.bundled import ModelParser
from derivlang.parsing.model import is_matrix, rounded
from derivlang.parsing.training.batches import batches
from derivlang.parsing.training.config import ParserConfig
from derivlang.parsing.training.network import TorchNetwork
from derivlang.parsing.training.plain_text import plain_sentences, pretrain
from derivlang.parsing.training.teach import taught
from derivlang.parsing.training.vocabulary import EncodedTreebank, build_vocabulary, encode_treebank, word_counts
from derivlang.parsing.treebank import Text, Treebank

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


def fit(
    train: Treebank,
    dev: Treebank | None,
    config: ParserConfig,
    text: Text | None = None,
    report: Callable[[str], None] = lambda line: None,
    teacher: ModelParser | None = None,
    language: str = "en",
) -> TrainedParser:
    """Train a parser on a treebank and, if there is one, a text; `report` gets a line per epoch.

    language: of the text, whose words are normalised as the parser will normalise them; a teacher has its own.
    teacher: a parser whose trees of the text are learnt too. The words, their vectors and the relations are then the
    teacher's; without a text, a teacher has no effect.
    The result is the same for the same seed on one machine with one thread.
    """
    import torch

    if teacher is not None and text is not None:
        return _fit_student(train, dev, config, text, teacher, report)
    config = replace(config, text=text is not None)
    torch.manual_seed(config.seed)
    plain = None if text is None else plain_sentences(text, language)
    vocabulary, counts, vectors = build_vocabulary(train, plain, config)
    data = encode_treebank(train, vocabulary, counts, train.relations, config)
    held_out = None if dev is None else encode_treebank(dev, vocabulary, counts, train.relations, config)
    network = TorchNetwork(config, len(vocabulary) + 2, len(UPOS), len(train.relations), vectors)
    report(f"{train.n_sentences:,} sentences, {sum(w.numel() for w in network.named.values()):,} weights")
    if plain is not None and config.text_epochs:
        pretrain(network, encode_treebank(plain, vocabulary, counts, train.relations, config), report)
    _train(network, data, held_out, report)
    new = np.fromiter((counts[word] < config.min_count for word in vocabulary), bool, len(vocabulary))
    weights = network.exported(np.concatenate([[False, False], new]))
    return TrainedParser(weights, vocabulary, train.relations, config)


def _fit_student(
    train: Treebank,
    dev: Treebank | None,
    config: ParserConfig,
    text: Text,
    teacher: ModelParser,
    report: Callable[[str], None],
) -> TrainedParser:
    """Train a parser on the trees of a treebank and on its teacher's trees of a text."""
    import torch

    torch.manual_seed(config.seed)
    model = teacher.model
    n_buckets, width = model.matrices["pieces"].shape
    config = replace(config, n_buckets=n_buckets, width=width)
    vocabulary = {word: i + 2 for i, word in enumerate(model.vocabulary)}
    bank = taught(train, text, teacher)
    counts = word_counts(bank)
    data = encode_treebank(bank, vocabulary, counts, model.relations, config)
    held_out = None if dev is None else encode_treebank(dev, vocabulary, counts, model.relations, config)
    network = TorchNetwork(config, len(vocabulary) + 2, len(UPOS), len(model.relations))
    network.keep_vectors(model)
    report(f"{bank.n_sentences:,} sentences, {sum(w.numel() for w in network.trained):,} weights to train")
    _train(network, data, held_out, report)
    return TrainedParser(network.exported(np.zeros(len(vocabulary) + 2, bool)), vocabulary, model.relations, config)


def _train(
    network: TorchNetwork, data: EncodedTreebank, dev: EncodedTreebank | None, report: Callable[[str], None]
) -> None:
    """Train the network on trees; it ends with the averaged weights."""
    import torch

    config = network.config
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
        line = f"epoch {epoch + 1}/{config.epochs}: loss {np.mean(losses):.3f}"
        if dev is not None:
            with _kept(weights):
                _set(weights, average)
                scores = evaluate(network, dev)
            line += "; dev " + ", ".join(f"{name} {value:.2f}" for name, value in scores.items())
        report(line)
    _set(weights, average)


def evaluate(network: TorchNetwork, data: EncodedTreebank) -> dict[str, float]:
    """Return UPOS, UAS and LAS in percent, with relations in full and the best head of each word (not of a tree)."""
    import torch

    right = np.zeros(4)
    with torch.no_grad():
        for _, batch in batches(data, network.config, None):
            tags, arcs, labels = network.scores(batch, noise=False)
            head = arcs.argmax(2).T
            same = (head == batch.head) & batch.inside
            label = (labels(head).argmax(2) == batch.deprel) & same
            tag = (tags.argmax(2) == batch.upos) & batch.inside
            right += [int(batch.inside.sum()), int(tag.sum()), int(same.sum()), int(label.sum())]
    return {name: 100 * n / right[0] for name, n in zip(("UPOS", "UAS", "LAS"), right[1:], strict=True)}


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
            if is_matrix(name, w) and name not in ("words", "pieces", "text_map"):
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
