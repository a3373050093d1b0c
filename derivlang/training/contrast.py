"""Contrastive learning with a momentum encoder and a queue: the loss, and the tensors that it keeps over steps.

    query encoder ──▶ q ─┐                    each step: key encoder <- m * key encoder + (1 - m) * query encoder
    key encoder ────▶ k ─┴─ InfoNCE           each step: the oldest keys of the queue <- the keys of the step

Source: He et al. (2020), sections 3.1 to 3.3 (MoCo); the projection comes from Chen et al. (2020), section 2.1.
"""

from __future__ import annotations

from contextlib import nullcontext
from copy import deepcopy
from dataclasses import replace

import torch
from torch.nn.functional import normalize, softplus

from derivlang.training.batch import SubwordRows


def info_nce(query: torch.Tensor, key: torch.Tensor, queue: torch.Tensor, temperature: float) -> torch.Tensor:
    """Return the sum over rows of -log(e^(q·k/t) / (e^(q·k/t) + sum over the queue of e^(q·k'/t))).

    query, key: float[B, d], a row of one belongs to the same row of the other. queue: float[K, d].
    """
    # Not under autocast: 1 / t would make an error of bfloat16 20 times as large.
    device = query.device.type
    with torch.autocast(device, enabled=False) if torch.amp.is_autocast_available(device) else nullcontext():
        kind = torch.promote_types(query.dtype, torch.float32)
        exact = query.to(kind)
        positive = (exact * key).sum(1, keepdim=True)
        # log(1 + sum of e^((q·k' - q·k)/t)): a small loss keeps its digits in 32 bits, too
        others = (exact @ queue.to(kind).T - positive) / temperature
        return softplus(torch.logsumexp(others, dim=1)).sum().to(query.dtype)


def one_side(batch: SubwordRows, side: int) -> SubwordRows:
    """Return one side of rows with one pair each, unmasked, as rows [B, H // 2] that begin at column 0.

    <s> a b </s> <s> x y z </s>  ->  side 0: <s> a b </s>        side 1: <s> x y z </s>

    What stands after the side is padding by its length, whatever its ids. There is nothing to predict.
    """
    inside = batch.attention & (batch.side == side)
    size = inside.sum(1, keepdim=True)
    first = side * (batch.attention & (batch.side == 0)).sum(1, keepdim=True)
    width = batch.clean_ids.shape[1]
    columns = torch.arange(width // 2, device=batch.clean_ids.device)
    at = (first + columns).clamp(max=width - 1)
    return replace(
        batch,
        **{name: getattr(batch, name).gather(1, at) for name in ("clean_ids", "language", "side", "word_ids")},
        input_ids=batch.clean_ids.gather(1, at),
        sentence_ids=batch.sentence_ids.gather(1, at),
        lengths=size.squeeze(1),
        positions=None,
        targets=batch.targets[:0],
        labels=batch.labels[:0],
        label_language=batch.label_language[:0],
        links=None,
    )


class Momentum(torch.nn.Module):
    """A key encoder that follows an encoder, the projections of both, and the queue of earlier keys.

    states: width of the encoder's states; width: of the projection; size: number of keys in the queue, which begins
    with random unit vectors.
    """

    queue: torch.Tensor

    def __init__(self, encoder: torch.nn.Module, states: int, width: int, size: int):
        super().__init__()
        self.project = torch.nn.Sequential(
            torch.nn.Linear(states, states, bias=False), torch.nn.ReLU(), torch.nn.Linear(states, width, bias=False)
        )
        self.key_encoder = deepcopy(encoder).requires_grad_(False)
        self.project_key = deepcopy(self.project).requires_grad_(False)
        self.register_buffer("queue", normalize(torch.randn(size, width), dim=1))
        self.fresh: list[torch.Tensor] = []  # the keys of this process in the step, one tensor a micro-batch
        self.rows = 0  # of a step, over all micro-batches and processes

    def encode(self, first: torch.Tensor, projection: torch.nn.Module) -> torch.Tensor:
        """Return float[B, width], unit vectors, of the states of <s>, float[B, d]."""
        exact = self.queue.dtype  # also under autocast
        return normalize(projection(normalize(first.to(exact), dim=1)).to(exact), dim=1)

    def add(self, keys: torch.Tensor, rows: int) -> None:
        """Keep the keys of a micro-batch for the end of a step of `rows` rows."""
        self.fresh.append(keys)
        self.rows = rows

    def follow(self, encoder: torch.nn.Module, momentum: float) -> None:
        """Move the keys' weights towards the weights of the queries. momentum: the share of them that stays."""
        for ours, theirs in ((self.key_encoder, encoder), (self.project_key, self.project)):
            for key, query in zip(ours.parameters(), theirs.parameters(), strict=True):
                key.lerp_(query, 1 - momentum)

    def fill(self, step: int) -> None:
        """Put the keys of a step, of all micro-batches and processes, in the place of the oldest.

        5 places, 2 rows per step: step 0 fills 0 1, step 1 fills 2 3, step 2 fills 4 0
        """
        keys = gather(torch.cat(self.fresh), self.rows)
        places = (step * self.rows + torch.arange(self.rows, device=keys.device)) % len(self.queue)
        self.queue[places] = keys
        self.fresh.clear()


def gather(rows: torch.Tensor, total: int) -> torch.Tensor:
    """Return [total, d]: the rows of a step that all processes have, in their order in the step.

    rows: the rows of this process. Of w processes process r has the rows total * r // w …, as the loader divides a
    step. total 5, 2 processes: the rows 0 1 of the first and 2 3 4 of the second
    """
    from torch import distributed

    if not (distributed.is_available() and distributed.is_initialized()):
        return rows
    first = total * distributed.get_rank() // distributed.get_world_size()
    out = rows.new_zeros(total, *rows.shape[1:])
    out[first : first + len(rows)] = rows
    distributed.all_reduce(out)
    return out
