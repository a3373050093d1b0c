"""XLM-Align: MLM on each language, TLM on sentence pairs, and denoising word alignment (DWA) of the pairs.

    L = L_MLM + tlm * L_TLM + dwa * L_DWA
    L_DWA = sum over queries i of  -log softmax_j(q_i · k_j / sqrt(d))[A(i)]

    A      labels: links of the clean pair by optimal transport on the states of `layer`, filtered by itermax, without
           gradient and dropout; of several links of a position the last counts
    q, k   two linear layers on the states of the masked pair, which TLM has, too: the last ones, or of the layer
           `pointer` (section 5.3); j: sub-words of the other side

    query=masked        masked positions with a label, on both sides
          unmasked      the same of other positions, drawn at the rate of the masks
          all-aligned   of both ends of each link one, by a coin of the source side's position
    filter=no           labels are the best of either direction (section 5.4)
    labels=gold         the links of the pairs in place of the model's own; hmm, eflomal, FILE: as in streams/linked.py

The rows of pairs hold one pair each, without position reset and language ids. With labels=self and pairs that have
links the log has the labels' precision, the share that are among these links; another occurrence of the same word is
not. Before the step `start` no position has a label, so that the part is 0; MLM and TLM go on.

    clean states ──self_links──▶ links bool[B, H, H] ──last_link──▶ labels int64[B * H] ──pointer_loss──▶ loss

All is in columns of the rows [B, H]; links are in both directions. Nothing waits for the device: every shape is known.

Source: Chi et al. (2021), sections 3.1 to 3.3, 5.4 and 5.5, read with the released code, which has the floor of the
similarities, their dot product, and the last of several links. These readings are ours: special ids take no part;
L_DWA is divided by TLM's number of predictions in the step (the code: all parts by the number of all predictions), as
the number of self-labels is not known before; a `layer` by default at 10/12 of the depth, as 10 of 12 there.
"""

from __future__ import annotations

from dataclasses import dataclass
from functools import partial
from typing import TYPE_CHECKING, Any, Literal

import numpy as np

from derivlang.align.similarity import either, itermax, sinkhorn
from derivlang.core.errors import UsageError
from derivlang.core.spec import Named, param
from derivlang.training.batch import Step, SubwordRows
from derivlang.training.masking import Keys, choose_masked
from derivlang.training.objectives.base import Context, Loss, LossPart, Objective, Share, masked_part
from derivlang.training.streams.base import ALIGNERS, GOLD, Stream
from derivlang.training.streams.linked import LinkedPairs, check_kind
from derivlang.training.streams.packed import Packed
from derivlang.training.streams.pairs import SentencePairs

if TYPE_CHECKING:
    import torch

    from derivlang.training.config import ModelConfig
    from derivlang.training.encoder import Encoder
    from derivlang.training.settings import TrainingSettings

OWN = "self"
NONE = -1  # the label of a position without a link


@dataclass(frozen=True, kw_only=True)
class XlmAlign(Objective):
    """Masked words, masked words of sentence pairs, and links from them to the other side."""

    name = "xlm-align"
    layer: int = param(-1, "layer whose states give the labels, 0 is the embeddings; -1: at 10/12 of the depth", low=-1)
    query: Literal["masked", "unmasked", "all-aligned"] = param("masked", "positions that point to the other side")
    filter: bool = param(True, "whether labels come from itermax; otherwise the best of either direction")
    labels: str = param(
        OWN,
        "self: the model's own; gold, hmm, eflomal or a FILE: links of the pairs",
        file=Named(lambda: (OWN, GOLD, *ALIGNERS)),
    )
    start: int = param(0, "steps of only MLM and TLM before the alignment", low=0)
    pairs: float = param(0.5, "positions in pair rows, as a share of those in other rows, above 0", above=0)
    pointer: int = param(-1, "layer whose states point to the other side, 0 is the embeddings; -1: the last", low=-1)
    tlm: float = param(1.0, "weight of TLM", low=0)
    dwa: float = param(1.0, "weight of the alignment", low=0)

    def streams(self) -> tuple[Stream, ...]:
        views = 1 if self.query == "masked" else 2
        make = SentencePairs if self.labels == OWN else partial(LinkedPairs, kind=self.labels)
        return Packed(), make(share=self.pairs, views=views, reset=False, together=False, links=True)

    def check(self, settings: TrainingSettings, model_config: ModelConfig) -> None:
        if self.labels != OWN:
            check_kind(self.labels, "labels")
        for name, layer in (("layer", self.layer), ("pointer", self.pointer)):
            if layer > model_config.n_layers:
                raise UsageError(
                    f"{self.name}: {name}={layer}, but the model {settings.model} has the layers 0 to "
                    f"{model_config.n_layers}",
                    where="--objective",
                    id="bad-value",
                )

    def first_step(self) -> int:
        return self.start

    def mask(self, stream: str, rows: SubwordRows, keys: Keys, context: Context) -> SubwordRows:
        """Return the usual masks; in the second view of pairs the positions that are drawn as queries."""
        if keys.view == 1:
            return super().mask(stream, rows, keys, context)
        rate = 0.5 if self.query == "all-aligned" else context.rate
        return rows.predicting(np.flatnonzero(choose_masked(rows, keys, rate)))

    def state(self, model: Encoder, context: Context) -> torch.nn.Module:
        import torch

        width = model.embeddings.shape[1]
        return torch.nn.ModuleDict({"query": torch.nn.Linear(width, width), "key": torch.nn.Linear(width, width)})

    def loss(self, model: Encoder, micro: Step, state: Any) -> Loss:

        batch, allowed = micro["pairs"], other_side(micro["pairs"])
        if self.pointer < 0:
            pointing = states = model.states(batch)
        else:
            states, pointing = model.states_and_layer(batch, self.pointer)
        links, faults, shares = self._links(model, micro, allowed)
        label = last_link(links)
        shares["labelled"] = Share((label != NONE).sum(), (batch.word_ids >= 0).sum())
        total = pointer_loss(state["query"](pointing), state["key"](pointing), allowed, *self._queries(micro, label))
        return {
            "mlm": masked_part(model, micro["rows"]),
            "tlm": masked_part(model, batch, states.flatten(0, 1)[batch.targets], weight=self.tlm),
            "dwa": LossPart(total + faults, batch.totals.masked, self.dwa),
            **shares,
        }

    def _links(
        self, model: Encoder, micro: Step, allowed: torch.Tensor
    ) -> tuple[torch.Tensor, torch.Tensor | float, dict[str, Share]]:
        """Return (links bool[B, H, H], 0 or NaN if they come from states that are not finite, shares for the log)."""
        batch = micro["pairs"]
        if micro.step < self.start:
            return allowed & False, 0.0, {}
        if self.labels != OWN:
            return gold_links(batch), 0.0, {}
        layer = self.layer if self.layer >= 0 else round(model.n_layers * 10 / 12)
        with model.without_gradient():
            states = model.states(batch.unmasked(), layer)
        links = self_links(states, batch, filtered=self.filter)
        known = {"precision": Share((links & gold_links(batch)).sum(), links.sum())} if batch.totals.links else {}
        # 0 * NaN is NaN, which stops the run at the next entry of its log.
        return links, (0 * states.masked_fill(~batch.attention[..., None], 0)).sum(), known

    def _queries(self, micro: Step, label: torch.Tensor) -> tuple[torch.Tensor, torch.Tensor]:
        """Return int64[n] each: positions in the flattened rows, and their labels.

        all-aligned, links 1-5 and 2-6, heads at 1: position 1 points to 5, and 6 to 2
        """
        import torch

        batch = micro["pairs"]
        if self.query == "masked":
            return batch.targets, label[batch.targets]
        drawn, chosen = micro["pairs:2"].targets, torch.zeros_like(label, dtype=torch.bool)
        if self.query == "unmasked":
            chosen[batch.targets] = True
            return drawn, label[drawn].masked_fill(chosen[drawn], NONE)
        chosen[drawn] = True
        places = torch.arange(len(label), device=label.device)
        partner = places - places % batch.clean_ids.shape[1] + label.clamp(min=0)
        asked = torch.where(batch.side.flatten() == 0, chosen, ~chosen[partner])
        return places, label.masked_fill(~asked, NONE)


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
    import torch

    exact = states.double()  # autocast does not change it
    cells = other_side(batch) & (batch.side == 0)[:, :, None]
    plan = sinkhorn((exact @ exact.mT).masked_fill(~cells, -torch.inf))
    forward: torch.Tensor = itermax(plan) if filtered else either(plan)
    return forward.logical_or(forward.mT)


def gold_links(batch: SubwordRows) -> torch.Tensor:
    """Return bool[B, H, H]: the links of the pairs."""
    import torch

    rows, width = batch.clean_ids.shape
    source, target = batch.links
    gold = torch.zeros(rows * width * width, dtype=torch.bool, device=batch.clean_ids.device)
    gold[source * width + target % width] = True
    return gold.view(rows, width, width)


def last_link(links: torch.Tensor) -> torch.Tensor:
    """Return int64[B * H]: the column that each position is linked to, the last of several; NONE without a link.

    a row [[F, T, T], [F, F, F], [F, F, F]]  ->  [2, -1, -1]
    """
    import torch

    columns = torch.arange(1, links.shape[-1] + 1, device=links.device)
    return ((links * columns).amax(-1) - 1).flatten()


def pointer_loss(
    query: torch.Tensor, key: torch.Tensor, allowed: torch.Tensor, places: torch.Tensor, labels: torch.Tensor
) -> torch.Tensor:
    """Return the sum of -log softmax_j(q_i · k_j / sqrt(d))[label of i] over the places that have a label.

    query, key: float[B, H, d]. allowed: bool[B, H, H], the columns that a position may point to. places: int64[n],
    positions in the flattened rows; labels: int64[n], columns.
    """
    import torch
    from torch.nn.functional import cross_entropy

    scores = (query @ key.mT).float() / query.shape[-1] ** 0.5
    # A finite number, since a position without any column (padding) would make the gradient NaN.
    scores = scores.masked_fill(~allowed, torch.finfo(scores.dtype).min)
    return cross_entropy(scores.flatten(0, 1)[places], labels, ignore_index=NONE, reduction="sum")
