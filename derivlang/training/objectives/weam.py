"""WEAM (Word-Exchange Aligning Model): masked words of sentence pairs, predicted from their own states and from the
states of the words that they are linked to.

    L = L_mp + weight * L_cp
    L_mp = mean over masked positions i of           -log p(x_i | H_i)
    L_cp = mean over linked masked positions i of    -log softmax(E g(W2 (A^T H)_i + b2))[x_i]

H are the last layer's states and E the input embeddings. A exchanges the states of linked words: row i of A^T H is the
state of i's counterpart. g(h) = W4 GELU(W3 h + b3) + b4 is a head of its own. Positions do not restart in the second
half, and there are no language ids. Source: Yang et al. (2021), section 2.2, equations 1 to 11; there, 30 % of the
positions are masked, weight (lambda) is 1, and the links come from FastAlign.

    links    1-4 1-5, masked 1 and 2, both sides: row 1 of A^T H is (H_4 + H_5) / 2; 2 has no link and no part in L_cp

Readings that are ours, where the paper is silent or contradicts itself: of several links the mean (equation 5 sums);
masked positions without a link are left out of L_cp, which is divided by the number of the others (equation 10 counts
all, and would predict them from a state of zeros); g is not shared with the head of L_mp; links of words join all of
their sub-words; short pairs share a row, as in TLM; E is the input matrix if --no-tie unties it. The links of an
aligner come from derivlang's (links=hmm) or eflomal's.
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import TYPE_CHECKING, Any

from derivlang.core.spec import Named, param
from derivlang.training.batch import Step
from derivlang.training.objectives.base import Context, Loss, LossPart, Objective, masked_part
from derivlang.training.streams.base import ALIGNERS, GOLD, Stream
from derivlang.training.streams.linked import LinkedPairs, check_kind

if TYPE_CHECKING:
    import torch

    from derivlang.training.config import ModelConfig
    from derivlang.training.encoder import Encoder
    from derivlang.training.settings import TrainingSettings


@dataclass(frozen=True, kw_only=True)
class Weam(Objective):
    """Masked words of sentence pairs, also predicted from the words that they are linked to."""

    name = "weam"
    weight: float = param(1.0, "of the cross-lingual prediction (the paper's lambda)", low=0)
    links: str = param(
        GOLD,
        "links between words: gold, hmm, eflomal, or a Pharaoh FILE of --pairs",
        file=Named(lambda: (GOLD, *ALIGNERS)),
    )

    def streams(self) -> tuple[Stream, ...]:
        return (LinkedPairs(share=1.0, reset=False, kind=self.links),)

    def check(self, settings: TrainingSettings, model_config: ModelConfig) -> None:
        check_kind(self.links, "links")

    def state(self, model: Encoder, context: Context) -> torch.nn.Module:
        """Return W2 and g."""
        from torch.nn import GELU, Linear, Sequential

        width = model.embeddings.shape[1]
        return Sequential(Linear(width, width), Linear(width, width), GELU(), Linear(width, width))

    def loss(self, model: Encoder, micro: Step, state: Any) -> Loss:
        from torch.nn.functional import cross_entropy

        batch = micro["pairs"]
        states = model.states(batch).flatten(0, 1)
        own = masked_part(model, batch, states[batch.targets])
        counterparts, linked = exchanged(states, batch.targets, batch.links)
        logits = (state(counterparts) @ model.embeddings.T).float()
        total = (cross_entropy(logits, batch.labels, reduction="none") * linked).sum()
        return {"tlm": own, "cross": LossPart(total, batch.totals.linked, self.weight)}


def exchanged(states: torch.Tensor, targets: torch.Tensor, links: torch.Tensor) -> tuple[torch.Tensor, torch.Tensor]:
    """Return (float[n, d]: the mean state of the positions that each target is linked to; bool[n]: whether it has any).

    states: float[P, d]. targets: int64[n], distinct positions. links: int64[2, L], (from, to). A target without a link
    gets zeros. No sizes depend on values, so an accelerator is not waited for.

    targets [1, 3], links [[1, 1, 2], [3, 4, 0]]  ->  [(states[3] + states[4]) / 2, 0], [True, False]
    """
    import torch

    n = len(targets)
    row = targets.new_full((len(states),), n)  # of each position's sum; row n takes the links from other positions
    row[targets] = torch.arange(n, device=row.device)
    of_link = row[links[0]]
    sums = states.new_zeros(n + 1, states.shape[1]).index_add(0, of_link, states[links[1]])
    counts = row.new_zeros(n + 1).index_add(0, of_link, torch.ones_like(of_link))
    return sums[:n] / counts[:n, None].clamp(min=1), counts[:n] > 0
