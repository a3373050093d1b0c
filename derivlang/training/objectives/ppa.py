"""PPA: post-pre-training alignment, a contrast of sentences with their counterparts, plus TLM.

    L = moco * L_MoCo + tlm * L_TLM        words=mlm: L_MLM, of text in both languages, in place of L_TLM (section 4)

    L_MoCo = mean over pairs of  -log(e^(q·k/t) / (e^(q·k/t) + sum over the queue of e^(q·k'/t)))
    q = unit(W2 ReLU(W1 unit(h)))        h: the state of <s> of only the first side; k: the same of the second side,
                                         by encoder and projection of the keys, without gradient

The rows hold one pair each. A coin of each pair says which side comes first, in both losses; TLM has no position reset
and no language ids. The key encoder begins as a copy of the model. After each step its weights and the weights of its
projection become m times themselves plus 1 - m times the model's, and the step's keys replace the oldest of the queue.

Source: Pan et al. (2021), sections 2.1 and 2.2. No code was released, and these readings are ours. The positive is in
the denominator, as in MoCo (He et al. 2020, section 3.1); equation 3 leaves it out. q and k are normalised, of which
the paper says nothing. The projections have no biases. The sides of the contrast are not masked. The keys have dropout,
as in MoCo's code. Pairs with a side of fewer than `shortest` sub-words are left out (section 3.1); long pairs are cut,
where the paper leaves them out.
"""

from __future__ import annotations

from dataclasses import dataclass, replace
from math import ceil
from typing import TYPE_CHECKING, Any, Literal

from derivlang.core.errors import UsageError
from derivlang.core.spec import param
from derivlang.training.batch import Step
from derivlang.training.objectives.base import Context, Loss, LossPart, Objective, masked_part
from derivlang.training.streams.base import Stream
from derivlang.training.streams.packed import Packed
from derivlang.training.streams.pairs import SentencePairs

if TYPE_CHECKING:
    import torch

    from derivlang.training.config import ModelConfig
    from derivlang.training.encoder import Encoder
    from derivlang.training.settings import TrainingSettings


@dataclass(frozen=True, kw_only=True)
class Ppa(Objective):
    """Masked words of sentence pairs, and sentences that are like their counterparts."""

    name = "ppa"
    queue: int = param(32_000, "number of earlier sentences to distinguish a counterpart from", low=1)
    momentum: float = param(0.999, "share of the key encoder's weights that stays at a step", low=0, high=1)
    temperature: float = param(0.05, "by which similarities are divided, above 0", above=0)
    width: int = param(300, "width of the projection", low=1)
    shortest: int = param(10, "minimum number of sub-words of each side of a pair; shorter pairs are left out", low=1)
    pairs: float = param(1.0, "positions in pair rows, as a share of --batch-size x --seq-len, above 0", above=0)
    moco: float = param(1.0, "weight of the contrast", low=0)
    tlm: float = param(1.0, "weight of TLM, or of the MLM in its place", low=0)
    words: Literal["tlm", "mlm"] = param("tlm", "masked words to predict: of the pairs, or of text in both languages")

    def streams(self) -> tuple[Stream, ...]:
        shortest = self.shortest
        tlm = self.words == "tlm"
        pairs = SentencePairs(
            share=self.pairs, reset=False, together=False, shuffle=True, shortest=shortest, masked=tlm
        )
        return (pairs,) if tlm else (pairs, Packed())

    def check(self, settings: TrainingSettings, model_config: ModelConfig) -> None:
        rows = ceil(self.streams()[0].n_rows(settings))
        if rows > self.queue:
            raise UsageError(
                f"the queue holds {self.queue:,} sentences, fewer than the {rows:,} pairs of a step",
                where="--objective",
                fix=f"give {self.name}:queue={rows} or more, or a lower --batch-size",
                id="bad-value",
            )

    def state(self, model: Encoder, context: Context) -> torch.nn.Module:
        from derivlang.training.contrast import Momentum

        return Momentum(model.base().module, model.embeddings.shape[1], self.width, self.queue)

    def loss(self, model: Encoder, micro: Step, state: Any) -> Loss:
        import torch

        from derivlang.training.contrast import info_nce, one_side

        batch = micro["pairs"]
        query = state.encode(model.states(one_side(batch, 0))[:, 0], state.project)
        with torch.no_grad():
            second = replace(model, module=state.key_encoder).states(one_side(batch, 1))
            key = state.encode(second[:, 0], state.project_key)
        state.add(key, batch.totals.rows)
        total = info_nce(query, key, state.queue, self.temperature)
        moco = LossPart(total, batch.totals.rows, self.moco)
        masked = micro["rows"] if self.words == "mlm" else batch
        return {"moco": moco, self.words: masked_part(model, masked, weight=self.tlm)}

    def after_step(self, model: Encoder, state: Any, step: int) -> None:
        state.fill(step)
        state.follow(model.base().module, self.momentum)
