"""A pointer from sub-words of one side of a sentence pair to sub-words of the other, and the labels that it learns.

    clean states ──self_links──▶ links bool[B, H, H] ──last_link──▶ labels int64[B * H] ──pointer_loss──▶ loss

All is in columns of the rows [B, H]; links are in both directions. Nothing waits for the device: every shape is known.
Source: Chi et al. (2021), sections 3.1 and 3.2 (XLM-Align).
"""

from __future__ import annotations

import torch
from torch.nn.functional import cross_entropy

from derivlang.align.similarity import either, itermax, sinkhorn
from derivlang.training.batch import SubwordRows

NONE = -1  # the label of a position without a link


def other_side(batch: SubwordRows) -> torch.Tensor:
    """Return bool[B, H, H]: whether two columns of a row are sub-words of different sides, and not special ids."""
    inside, side = batch.word_ids >= 0, batch.side
    is_other: torch.Tensor = inside[:, :, None] & inside[:, None] & (side[:, :, None] != side[:, None])
    return is_other


def self_links(states: torch.Tensor, batch: SubwordRows, *, filtered: bool) -> torch.Tensor:
    """Return bool[B, H, H]: the links by optimal transport between the sides of each row.

    states: float[B, H, d]; similarities are their dot products. filtered: the links of itermax; otherwise each sub-word
    is linked to the best of the other side, so that a link needs one direction only.
    """
    exact = states.double()  # autocast does not change it
    cells = other_side(batch) & (batch.side == 0)[:, :, None]
    plan = sinkhorn((exact @ exact.mT).masked_fill(~cells, -torch.inf))
    forward: torch.Tensor = itermax(plan) if filtered else either(plan)
    return forward.logical_or(forward.mT)


def gold_links(batch: SubwordRows) -> torch.Tensor:
    """Return bool[B, H, H]: the links of the pairs."""
    rows, width = batch.clean_ids.shape
    source, target = batch.links
    gold = torch.zeros(rows * width * width, dtype=torch.bool, device=batch.clean_ids.device)
    gold[source * width + target % width] = True
    return gold.view(rows, width, width)


def last_link(links: torch.Tensor) -> torch.Tensor:
    """Return int64[B * H]: the column that each position is linked to, the last of several; NONE without a link.

    a row [[F, T, T], [F, F, F], [F, F, F]]  ->  [2, -1, -1]
    """
    columns = torch.arange(1, links.shape[-1] + 1, device=links.device)
    return ((links * columns).amax(-1) - 1).flatten()


def pointer_loss(
    query: torch.Tensor, key: torch.Tensor, allowed: torch.Tensor, places: torch.Tensor, labels: torch.Tensor
) -> torch.Tensor:
    """Return the sum of -log softmax_j(q_i · k_j / sqrt(d))[label of i] over the places that have a label.

    query, key: float[B, H, d]. allowed: bool[B, H, H], the columns that a position may point to. places: int64[n],
    positions in the flattened rows; labels: int64[n], columns.
    """
    scores = (query @ key.mT).float() / query.shape[-1] ** 0.5
    # A finite number, since a position without any column (padding) would make the gradient NaN.
    scores = scores.masked_fill(~allowed, torch.finfo(scores.dtype).min)
    return cross_entropy(scores.flatten(0, 1)[places], labels, ignore_index=NONE, reduction="sum")
