"""Fine-tuning: an encoder with the head of a task on examples of one language. The dev score chooses the epoch.

AdamW without weight decay, gradients clipped at 1, learning rate falling linearly to 0, no warm-up. The batches of an
epoch are shuffled by draws keyed by (seed, epoch, row), with rows of similar length in one batch. Everything is equal
for both languages, so a derived language with the source's ids gives the source's scores.
"""

from __future__ import annotations

import copy
import math
from collections.abc import Callable, Iterator
from typing import Any

import numpy as np
import torch

from derivlang.core.arrays import Int64, expand_ranges, lengths_of, owners
from derivlang.core.errors import DataError
from derivlang.core.keys import Draws
from derivlang.evaluation.examples import Instances, by_length, padded, tokens_on
from derivlang.evaluation.finetune_settings import FinetuneSettings
from derivlang.evaluation.tasks.base import Task
from derivlang.formats.progress import rows_done
from derivlang.training.devices import arrays_to_device
from derivlang.training.encoder import Encoder
from derivlang.training.model import freeze

_POOL = 32  # number of batches whose rows are sorted by length together


class LabelBatch:
    """B rows of T with G labels, padded to the longest, on a device.

    ids: int64[B, T]; mask: bool[B, T]; row, column: int64[G], the places of labels; gold: int64[G, k]. words: int64[B,
    T], at least 0 where a label may name the position. languages: int64[B, T], of each position, in mixed rows; None:
    one for all.
    """

    def __init__(self, instances: Instances, rows: Int64, device: torch.device):
        some = instances.take(rows)
        ids, mask = padded(instances.ids, instances.offsets, rows)
        words, _ = padded(instances.words, instances.offsets, rows, -1)
        arrays = {"ids": ids, "mask": mask, "row": owners(some.label_offsets).astype(np.int64)}
        arrays |= {"column": some.at, "gold": some.gold, "words": words}
        if instances.languages is not None:
            arrays["languages"], _ = padded(instances.languages, instances.offsets, rows)
        there = arrays_to_device(arrays, device)
        self.ids, self.mask, self.row, self.column, self.gold = (
            there[name] for name in ("ids", "mask", "row", "column", "gold")
        )
        self.words, self.languages = there["words"], there.get("languages")


class TaskModel(torch.nn.Module):
    """An encoder with a new head of a task, on the encoder's device.

    If only the head is trained, dropout stays off in the encoder.
    """

    def __init__(self, task: Task, encoder: Encoder, n_classes: int):
        super().__init__()
        self.task, self.encoder, self.module = task, encoder, encoder.module
        if task.settings.only_head:
            self.module.requires_grad_(False)
        elif task.settings.freeze:
            freeze(self.module, task.settings.freeze)
        self.head = task.head(self.module.config, n_classes).to(encoder.device)

    def train(self, mode: bool = True) -> TaskModel:
        """Turn dropout on or off, in the encoder only if it is trained."""
        super().train(mode)
        self.module.train(mode and not self.task.settings.only_head)
        return self

    def forward(self, batch: LabelBatch, language: int, encoder: Encoder | None = None) -> Any:
        """Return the scores of the head for the labels of the batch.

        language: of rows that are not mixed. encoder: the same model for other languages; None: the model's.
        """
        languages = language if batch.languages is None else batch.languages
        return self.head((encoder or self.encoder)(batch.ids, batch.mask, languages), batch)


def fine_tune(
    make: Callable[[], TaskModel],
    train: Instances,
    language: int,
    settings: FinetuneSettings,
    seed: int,
    dev_score: Callable[[TaskModel], float],
    together: int = 1,
) -> tuple[TaskModel, dict[str, Any]]:
    """Return the model of the epoch with the best dev score (ties: the first), and {"epoch", "dev": [score, …]}.

    make: returns a model, whose head is drawn with the seed. together: number of neighbouring rows that share a batch.
    Raise DataError if the loss became NaN or infinite.
    """
    devices = [torch.cuda.current_device()] if torch.cuda.is_available() else []
    with torch.random.fork_rng(devices):  # leave the caller's random state unchanged
        torch.manual_seed(seed)
        model = make()
        decay = settings.weight_decay
        optimiser = torch.optim.AdamW(model.parameters(), lr=settings.lr, weight_decay=decay, fused=True)
        per_epoch = math.ceil(train.n_rows / settings.batch_size)
        total, done = per_epoch * settings.epochs, 0
        scores: list[float] = []
        best: dict[str, Any] = {}
        for epoch in range(settings.epochs):
            model.train(True)
            losses = []
            for rows in batches(train, settings.batch_size, seed, epoch, together):
                batch = LabelBatch(train, rows, model.encoder.device)
                if len(batch.gold):
                    loss = model.task.loss(model(batch, language), batch.gold)
                    optimiser.zero_grad(set_to_none=True)
                    loss.backward()
                    torch.nn.utils.clip_grad_norm_(model.parameters(), 1.0)
                    for group in optimiser.param_groups:
                        group["lr"] = settings.learning_rate_at(done, total)
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
                best = copy.deepcopy(model.state_dict())
        chosen = int(np.argmax(scores))
        if chosen + 1 < settings.epochs:
            model.load_state_dict(best)
    return model, {"epoch": chosen + 1, "dev": scores}


def batches(instances: Instances, size: int, seed: int, epoch: int, together: int = 1) -> Iterator[Int64]:
    """Yield the rows of each batch of an epoch, every row once, keyed by (seed, epoch, row).

    Rows are shuffled, sorted by length in pools of 32 batches, cut into batches, and the batches are shuffled. Each
    `together` neighbouring rows stay together, as if they were one.
    """
    lengths = instances.lengths.reshape(-1, together).max(axis=1)
    n, size = len(lengths), size // together
    draws = Draws(f"finetune:seed={seed}:epoch={epoch}")
    rows = np.argsort(draws.draw(np.zeros(n, np.uint64), np.arange(n)), kind="stable")
    pool = np.arange(n) // (size * _POOL)
    rows = rows[np.lexsort((lengths[rows], pool))]
    starts = np.arange(0, n, size)
    for i in np.argsort(draws.draw(np.ones(len(starts), np.uint64), np.arange(len(starts))), kind="stable"):
        some = rows[starts[i] : starts[i] + size]
        yield (some[:, None] * together + np.arange(together)).ravel()


def predict(model: TaskModel, instances: Instances, language: int, encoder: Encoder | None = None) -> Int64:
    """Return int64[G, k]: the most probable labels. encoder: as of `TaskModel.forward`."""
    model.train(False)
    out = np.zeros_like(instances.gold)
    with torch.inference_mode():
        for rows in by_length(instances.lengths, tokens_on(model.encoder.device)):
            batch = LabelBatch(instances, rows, model.encoder.device)
            if len(batch.gold):
                counts = lengths_of(instances.label_offsets)[rows]
                labels = model.task.decode(model(batch, language, encoder)).cpu().numpy()
                out[expand_ranges(instances.label_offsets[rows], counts)] = labels
    return out
