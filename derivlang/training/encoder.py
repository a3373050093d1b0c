"""The encoder: the one place that calls a model of `transformers`, for objectives, measures and tasks.

    ids, mask, language, positions ──▶ states [B, T, d] ──at the positions that predict──▶ head ──▶ logits [n, V]

It gives each type of model what it expects: its own id for padding, token types, where positions begin.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator
from contextlib import AbstractContextManager, contextmanager, nullcontext
from dataclasses import dataclass, field, replace
from functools import cache, partial
from typing import Any

import torch

from derivlang.core.errors import UsageError
from derivlang.training.batch import SubwordRows
from derivlang.training.config import CAUSAL
from derivlang.training.languages import SpecialIds
from derivlang.training.own_parts import has_own, ids_by_language, own_parts, table_of
from derivlang.training.positions import check_reset, positions_of

# The heads of models, from states to logits, by the module that only models with such a head have.
_HEADS: dict[str, Callable[[Any, Any], Any]] = {
    "lm_head": lambda lm, states: lm.lm_head(states),  # RoBERTa, XLM-R, GPT-2, Llama
    "cls": lambda lm, states: lm.cls(states),  # BERT
    "decoder": lambda lm, states: lm.decoder(lm.head(states)),  # ModernBERT
    "vocab_projector": lambda lm, states: lm.vocab_projector(  # DistilBERT
        lm.vocab_layer_norm(lm.activation(lm.vocab_transform(states)))
    ),
    "generator_lm_head": lambda lm, states: lm.generator_lm_head(lm.generator_predictions(states)),  # ELECTRA
    "predictions": lambda lm, states: lm.predictions(states),  # ALBERT
}


@dataclass(frozen=True, slots=True, eq=False)
class Encoder:
    """A masked or causal language model of `transformers`, or one without a head, on any device.

    special_ids: of its languages. language_ids: whether it gets the language numbers, as token types. numbers: which
    languages of the model the caller's are, () if they are the same. bf16: whether it computes in bfloat16; if not, in
    the caller's precision. compiled: whether `cross_entropy` is compiled, so that the logits are never in memory as
    32-bit floats.
    """

    module: Any
    special_ids: SpecialIds
    language_ids: bool = field(default=False, kw_only=True)
    numbers: tuple[int, ...] = field(default=(), kw_only=True)
    bf16: bool = field(default=False, kw_only=True)
    compiled: bool = field(default=False, kw_only=True)

    @property
    def causal(self) -> bool:
        """Whether each position sees only those before it."""
        return self.module.config.model_type in CAUSAL

    @property
    def device(self) -> torch.device:
        """The device of the weights."""
        return next(self.module.parameters()).device  # type: ignore[no-any-return]

    @property
    def n_layers(self) -> int:
        """The number of layers above the embeddings."""
        return int(self.module.config.num_hidden_layers)

    @property
    def embeddings(self) -> torch.Tensor:
        """float[V, d]: the input embedding matrix."""
        return self.module.get_input_embeddings().weight  # type: ignore[no-any-return]

    @property
    def language_embeddings(self) -> torch.Tensor:
        """float[L, d]: the language embeddings or token types. Raises UsageError if the model has none."""
        return self._table[list(self.numbers)] if self.numbers else self._table

    @property
    def _table(self) -> torch.Tensor:
        table = table_of(self.module.base_model)
        if table is None:
            raise UsageError("the model has no language embeddings", where="--model", id="no-token-types")
        return table.weight

    def base(self) -> Encoder:
        """Return the encoder without its head."""
        return replace(self, module=self.module.base_model)

    def states(self, batch: SubwordRows, layer: int | None = None) -> torch.Tensor:
        """Return float[B, H, d]: the states of a batch at a layer. 0: the embeddings; None: the last layer."""
        return self(batch.input_ids, batch.attention, batch.language, batch.positions, layer)  # type: ignore[no-any-return]

    def states_and_layer(self, batch: SubwordRows, layer: int) -> tuple[torch.Tensor, torch.Tensor]:
        """Return the states of the last layer and of another one, float[B, H, d] each, from a single pass."""
        output = self._output(
            batch.input_ids, batch.attention, batch.language, batch.positions, output_hidden_states=True
        )
        return output.last_hidden_state, output.hidden_states[layer]

    def __call__(self, ids: Any, mask: Any, language: Any, positions: Any = None, layer: int | None = None) -> Any:
        """Return float[B, T, d]: the states of ids, int64[B, T], at a layer. 0: the embeddings; None: the last layer.

        mask: bool[B, T], False for padding, at the end of a row. language: a number for all positions, or int64[B, T].
        positions: int64[B, T], from 0; None: 0 … T - 1. Raise UsageError for positions if the model numbers them
        itself.
        """
        if layer is not None:
            return self.layers(ids, mask, language, positions)[layer]
        return self._output(ids, mask, language, positions).last_hidden_state

    def layers(self, ids: Any, mask: Any, language: Any, positions: Any = None) -> tuple[torch.Tensor, ...]:
        """Return the states of every layer, float[B, T, d] each, from the embeddings to the last layer."""
        output = self._output(ids, mask, language, positions, output_hidden_states=True)
        return output.hidden_states  # type: ignore[no-any-return]

    def predict(self, states: torch.Tensor) -> torch.Tensor:
        """Return float[n, V]: the logits of states float[n, d]. Raise UsageError for an unknown type of model."""
        with self._precision():
            return _head(self.module)(states)

    def cross_entropy(self, states: torch.Tensor, labels: torch.Tensor, reduction: str = "sum") -> torch.Tensor:
        """Return the cross-entropy in nats of labels int64[n], predicted from states float[n, d], as float32.

        reduction: `sum`, a scalar, or `none`, float32[n].
        """
        with self._precision():
            if not self.compiled:
                return _cross_entropy(self.module, states, labels, reduction)
            for tensor in (states, labels):  # n differs from step to step: compile once for all
                torch._dynamo.maybe_mark_dynamic(tensor, 0)
            return _compiled_cross_entropy()(self.module, states, labels, reduction)  # type: ignore[no-any-return]

    @contextmanager
    def without_gradient(self) -> Iterator[None]:
        """Compute states in the block without gradient and without dropout, e.g. for labels of the model's own."""
        training = self.module.training
        self.module.eval()
        try:
            with torch.no_grad():
                yield
        finally:
            self.module.train(training)

    def _output(self, ids: Any, mask: Any, language: Any, positions: Any, **options: Any) -> Any:
        config, base = self.module.config, self.module.base_model
        if self.numbers:
            every = torch.tensor(self.numbers, device=ids.device)
            language = every[torch.as_tensor(language, device=ids.device).long()]
        padding = config.pad_token_id
        # Attention needs no mask for rows without padding. Only a CPU can be asked without waiting for it.
        is_full = ids.device.type == "cpu" and bool(mask.all())
        if padding is not None and not is_full:  # RoBERTa numbers positions by it
            ids = ids.masked_fill(~mask, padding)
        own = own_parts(config)
        if "special-ids" in own:
            ids = ids_by_language(ids, language, self.special_ids, len(self.embeddings))
        if "positions" in own:
            places = torch.arange(ids.shape[1], device=ids.device) if positions is None else positions
            positions = places + positions_of(self.module).longest * (torch.zeros_like(ids) + language)
        given = {"input_ids": ids}
        if self.language_ids:
            spoken = torch.zeros_like(ids) + language
            if not has_own(self.module):
                options["token_type_ids"] = spoken
            else:
                given = {"inputs_embeds": self.module.get_input_embeddings()(ids) + self._table[spoken]}
        if positions is not None:
            check_reset(self.module)
            options["position_ids"] = positions + positions_of(self.module).shift
        if self.causal:
            options["use_cache"] = False  # keys and values of earlier positions are for generation
        with self._precision():
            return base(**given, attention_mask=None if is_full else mask.long(), **options)

    def _precision(self) -> AbstractContextManager[Any]:
        return torch.autocast("cuda", torch.bfloat16) if self.bf16 else nullcontext()


def _cross_entropy(lm: Any, states: torch.Tensor, labels: torch.Tensor, reduction: str) -> torch.Tensor:
    return torch.nn.functional.cross_entropy(_head(lm)(states).float(), labels, reduction=reduction)


@cache
def _compiled_cross_entropy() -> Any:
    return torch.compile(_cross_entropy)


def check_head(lm: Any, where: str) -> None:
    """Raise UsageError if the head, applied to states, does not give the logits of the whole model."""
    head, ids, training = _head(lm, where), torch.arange(4)[None] + 5, lm.training
    lm.eval()
    try:
        with torch.no_grad():
            logits = head(lm.base_model(input_ids=ids).last_hidden_state)
            fits = torch.allclose(logits, lm(input_ids=ids).logits, atol=1e-4)
    finally:
        lm.train(training)
    if not fits:
        raise _unsuitable(lm, where)


def _head(lm: Any, where: str | None = None) -> Callable[[torch.Tensor], torch.Tensor]:
    """Return the function from states float[n, d] to logits float[n, V]. Raise UsageError if it is not known."""
    head = next((head for name, head in _HEADS.items() if hasattr(lm, name)), None)
    if head is None:
        raise _unsuitable(lm, where)
    return partial(head, lm)


def _unsuitable(lm: Any, where: str | None) -> UsageError:
    return UsageError(
        f"a model of the type {lm.config.model_type!r} is not suitable: it has no head that is a known function of the "
        "last layer's states",
        where=where,
        fix="give a checkpoint of BERT, RoBERTa, XLM-R, DistilBERT, ModernBERT, GPT-2 or a similar type",
        id="model",
    )
