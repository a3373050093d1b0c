"""Fine-tuning: an encoder with a small head on examples of one language. The dev score chooses the epoch.

    a label a word    logits = W · dropout(h at the word's first sub-word)                     (RoBERTa's taggers)
    a label a row     logits = W2 · dropout(tanh(W1 · dropout(h at <s>)))                      (RoBERTa's classifiers)

AdamW without weight decay, gradients clipped at 1, learning rate falling linearly to 0, no warm-up. The batches of an
epoch are shuffled by draws keyed by (seed, epoch, row), with rows of similar length in one batch. Everything is equal
for both languages, so a derived language with the source's ids gives the source's scores.
"""

from __future__ import annotations

import math
from collections.abc import Callable, Iterator
from dataclasses import dataclass
from typing import TYPE_CHECKING, Any

import numpy as np

from derivlang.core.arrays import Bool, Int64, expand_ranges, lengths_of, owners
from derivlang.core.errors import DataError
from derivlang.core.keys import Draws
from derivlang.evaluation.examples import Instances
from derivlang.evaluation.padding import by_length, padded, tokens_on
from derivlang.evaluation.tasks import FinetuneSettings
from derivlang.evaluation.trained import ModelEncoder
from derivlang.formats.progress import rows_done
from derivlang.training.devices import to_device

if TYPE_CHECKING:
    import torch

_POOL = 32  # number of batches whose rows are sorted by length together


@dataclass(frozen=True, slots=True, eq=False)
class Padded:
    """B padded rows of T. ids: int64[B, T]; mask: bool[B, T]; row, column: int64[G], of labels; gold: int64[G]."""

    ids: Int64
    mask: Bool
    row: Int64
    column: Int64
    gold: Int64

    @classmethod
    def of(cls, instances: Instances, rows: Int64) -> Padded:
        some = instances.take(rows)
        ids, mask = padded(some.ids, some.offsets, np.arange(len(rows)))
        return cls(ids, mask, owners(some.label_offsets).astype(np.int64), some.at, some.gold)


@dataclass(frozen=True, slots=True, eq=False)
class Classifier:
    """An encoder with a classification head."""

    encoder: ModelEncoder
    head: torch.nn.Module

    @classmethod
    def of(cls, encoder: ModelEncoder, n_classes: int, *, pairs: bool) -> Classifier:
        """Return a classifier with a new head: normal weights (std 0.02), biases 0, the model's dropout."""
        from torch import nn

        config = encoder.module.config
        own = getattr(config, "classifier_dropout", None)
        dropout = float(getattr(config, "hidden_dropout_prob", 0.0) if own is None else own)
        width = config.hidden_size
        layers: list[nn.Module] = [nn.Dropout(dropout)]
        if pairs:
            layers += [nn.Linear(width, width), nn.Tanh(), nn.Dropout(dropout)]
        head = nn.Sequential(*layers, nn.Linear(width, n_classes))
        for layer in head:
            if isinstance(layer, nn.Linear):
                nn.init.normal_(layer.weight, std=0.02)
                nn.init.zeros_(layer.bias)
        return cls(encoder, head.to(encoder.device))

    def parameters(self) -> list[torch.nn.Parameter]:
        return [*self.encoder.module.parameters(), *self.head.parameters()]

    def train(self, on: bool) -> None:
        self.encoder.module.train(on)
        self.head.train(on)

    def logits(self, batch: Padded, language: int) -> torch.Tensor:
        """Return [G, C]: the logits of each label."""
        device = self.encoder.device
        ids, mask, row, column = (to_device(a, device) for a in (batch.ids, batch.mask, batch.row, batch.column))
        states = self.encoder(ids, mask, language).last_hidden_state
        found: torch.Tensor = self.head(states[row, column].float())
        return found

    def loss(self, batch: Padded, language: int) -> torch.Tensor:
        """Return the mean cross-entropy over the labels of the batch."""
        import torch

        gold = to_device(batch.gold, self.encoder.device)
        return torch.nn.functional.cross_entropy(self.logits(batch, language), gold)

    def state(self) -> list[torch.Tensor]:
        """Return a copy of all weights."""
        return [p.detach().clone() for p in self.parameters()]

    def restore(self, state: list[torch.Tensor]) -> None:
        import torch

        with torch.no_grad():
            for parameter, value in zip(self.parameters(), state, strict=True):
                parameter.copy_(value)


def fine_tune(
    make: Callable[[], Classifier],
    train: Instances,
    language: int,
    settings: FinetuneSettings,
    seed: int,
    dev_score: Callable[[Classifier], float],
) -> tuple[Classifier, dict[str, Any]]:
    """Return the classifier of the epoch with the best dev score (ties: the first), and {"epoch", "dev": [score, …]}.

    make: returns a classifier, whose head is drawn with the seed. Raise DataError if the loss became NaN or infinite.
    """
    import torch

    devices = [torch.cuda.current_device()] if torch.cuda.is_available() else []
    with torch.random.fork_rng(devices):  # leave the caller's random state unchanged
        torch.manual_seed(seed)
        model = make()
        optimiser = torch.optim.AdamW(model.parameters(), lr=settings.lr, weight_decay=0.0, fused=True)
        per_epoch = math.ceil(train.n_rows / settings.batch_size)
        total, done = per_epoch * settings.epochs, 0
        scores: list[float] = []
        best: list[torch.Tensor] = []
        for epoch in range(settings.epochs):
            model.train(True)
            losses = []
            for rows in batches(train, settings.batch_size, seed, epoch):
                batch = Padded.of(train, rows)
                if len(batch.gold):
                    loss = model.loss(batch, language)
                    optimiser.zero_grad(set_to_none=True)
                    loss.backward()
                    torch.nn.utils.clip_grad_norm_(model.parameters(), 1.0)
                    for group in optimiser.param_groups:
                        group["lr"] = settings.lr * (1 - done / total)
                    optimiser.step()
                    losses.append(loss.detach())
                done += 1
                rows_done(len(rows))
            if losses and not math.isfinite(float(torch.stack(losses).sum())):
                raise DataError(
                    f"the loss is not finite in epoch {epoch + 1}, at a learning rate of {settings.lr:g}",
                    fix="lower --lr",
                    id="loss",
                )
            scores.append(dev_score(model))
            if scores[-1] > max(scores[:-1], default=-math.inf) and epoch + 1 < settings.epochs:
                best = model.state()
        chosen = int(np.argmax(scores))
        if chosen + 1 < settings.epochs:
            model.restore(best)
    return model, {"epoch": chosen + 1, "dev": scores}


def batches(instances: Instances, size: int, seed: int, epoch: int) -> Iterator[Int64]:
    """Yield the rows of each batch of an epoch, every row once, keyed by (seed, epoch, row).

    Rows are shuffled, sorted by length in pools of 32 batches, cut into batches, and the batches are shuffled.
    """
    n = instances.n_rows
    draws = Draws(f"finetune:seed={seed}:epoch={epoch}")
    rows = np.argsort(draws.draw(np.zeros(n, np.uint64), np.arange(n)), kind="stable")
    pool = np.arange(n) // (size * _POOL)
    rows = rows[np.lexsort((instances.lengths[rows], pool))]
    starts = np.arange(0, n, size)
    for i in np.argsort(draws.draw(np.ones(len(starts), np.uint64), np.arange(len(starts))), kind="stable"):
        yield rows[starts[i] : starts[i] + size]


def predict(model: Classifier, instances: Instances, language: int) -> Int64:
    """Return int64[G]: the most probable class of each label (ties: the first)."""
    import torch

    model.train(False)
    out = np.zeros(len(instances.gold), np.int64)
    with torch.inference_mode():
        for rows in by_length(instances.lengths, tokens_on(model.encoder.device)):
            batch = Padded.of(instances, rows)
            if len(batch.gold):
                counts = lengths_of(instances.label_offsets)[rows]
                found = model.logits(batch, language).argmax(dim=1).cpu().numpy()
                out[expand_ranges(instances.label_offsets[rows], counts)] = found
            rows_done(len(rows))
    return out


def label_lists(classes: Int64, instances: Instances, names: tuple[str, ...]) -> list[list[str]]:
    """Return classes [G] as lists of label names, one list a row."""
    offsets = instances.label_offsets
    flat = [names[i] for i in classes.tolist()]
    return [flat[a:b] for a, b in zip(offsets[:-1].tolist(), offsets[1:].tolist(), strict=True)]
