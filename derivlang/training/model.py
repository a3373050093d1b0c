"""The model: an encoder of `transformers` with its masked-language-model head, or a causal language model.

    ids ──▶ states [B, H, d] ──at the positions that predict──▶ head ──▶ logits [n, V]

Tying input and output embeddings is a setting; untied embeddings are trained separately. A saved model is an ordinary
folder for `AutoModel` and `AutoModelForMaskedLM` or `AutoModelForCausalLM`.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator
from contextlib import contextmanager
from functools import partial
from inspect import signature
from typing import Any

import torch

from derivlang.core.errors import UsageError
from derivlang.training.batch import TokenBatch
from derivlang.training.config import AFTER_PADDING, CAUSAL, ModelConfig, auto_class, refused
from derivlang.training.languages import SpecialIds

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


def build_model(
    model_config: ModelConfig,
    vocab_size: int,
    seq_len: int,
    marks: SpecialIds,
    *,
    tie: bool,
    language_ids: bool,
    seed: int,
) -> Any:
    """Return a new language model of `transformers`, with weights drawn from the seed."""
    config = model_config.config(vocab_size, seq_len, marks, tie=tie, language_ids=language_ids)
    with torch.random.fork_rng(devices=[]):
        torch.manual_seed(seed)
        try:
            model: Any = auto_class(model_config.type).from_config(config)
        except Exception as error:  # noqa: BLE001 (transformers raises many kinds)
            raise refused(model_config.name, error) from None
        if model_config.embedding_std is not None:
            with torch.no_grad():
                weight = model.get_input_embeddings().weight
                weight.normal_(0.0, model_config.embedding_std)
                if not tie:
                    model.get_output_embeddings().weight.normal_(0.0, model_config.embedding_std)
    set_tie(model, tie)
    return model


def n_weights(model_config: ModelConfig, vocab_size: int, *, tie: bool) -> int:
    """Return the number of weights of a language model, without making them."""
    config = model_config.config(vocab_size, 64, SpecialIds(0, 1, 2, 3), tie=tie, language_ids=False)
    with torch.device("meta"):
        model: Any = auto_class(model_config.type).from_config(config)
    set_tie(model, tie)
    return sum({id(p): p.numel() for p in model.parameters()}.values())


class LanguageModel:
    """The interface of objectives to a language model of `transformers`."""

    def __init__(self, lm: Any, *, language_ids: bool = False):
        self.lm = lm
        kind, head = lm.config.model_type, head_of(lm)
        if head is None:
            raise UsageError(f"a model of the kind {kind!r} cannot be trained here", where="--model", id="model")
        self._head = head
        self._takes_positions = "position_ids" in signature(lm.base_model.forward).parameters
        self._first_position = int(lm.config.pad_token_id or 0) + 1 if kind in AFTER_PADDING else 0
        self.language_ids = language_ids

    @property
    def n_layers(self) -> int:
        """The number of layers above the embeddings."""
        return int(self.lm.config.num_hidden_layers)

    @property
    def embeddings(self) -> torch.Tensor:
        """float[V, d]: the input embedding matrix."""
        return self.lm.get_input_embeddings().weight  # type: ignore[no-any-return]

    @property
    def language_embeddings(self) -> torch.Tensor:
        """float[2, d]: the embeddings of the token types. Raises UsageError if the model has none."""
        return language_embeddings(self.lm)

    def states(self, batch: TokenBatch, layer: int | None = None, *, encoder: Any = None) -> torch.Tensor:
        """Return float[B, H, d]: the states of a layer. 0: the embeddings; None: the last layer.

        encoder: another encoder of the same form, e.g. a momentum encoder; by default the model's own.
        """
        more: dict[str, Any] = {}
        if self.language_ids:
            more["token_type_ids"] = batch.language
        if batch.positions is not None:
            if not self._takes_positions:
                raise UsageError(
                    f"a model of the type {self.lm.config.model_type!r} numbers its positions itself, so they cannot "
                    "begin again in the second half of a pair",
                    where="--objective",
                    fix="give an objective that does not reset positions",
                    id="positions",
                )
            more["position_ids"] = batch.positions + self._first_position
        if layer is not None:
            more["output_hidden_states"] = True
        if self.lm.config.model_type in CAUSAL:
            more["use_cache"] = False  # keys and values of earlier positions are for generation
        out = (encoder or self.lm.base_model)(input_ids=batch.ids, attention_mask=batch.attention, **more)
        return out.last_hidden_state if layer is None else out.hidden_states[layer]  # type: ignore[no-any-return]

    @contextmanager
    def without_gradient(self) -> Iterator[None]:
        """Compute states in the block without gradient and without dropout, e.g. for labels of the model's own."""
        training = self.lm.training
        self.lm.eval()
        try:
            with torch.no_grad():
                yield
        finally:
            self.lm.train(training)

    def predict(self, states: torch.Tensor) -> torch.Tensor:
        """Return float[n, V]: the logits of states float[n, d]."""
        return self._head(states)


def head_of(lm: Any) -> Callable[[torch.Tensor], torch.Tensor] | None:
    """Return the function from states float[n, d] to logits float[n, V], or None for an unknown kind of model."""
    head = next((head for name, head in _HEADS.items() if hasattr(lm, name)), None)
    return None if head is None else partial(head, lm)


def language_embeddings(module: Any) -> torch.Tensor:
    """Return float[2, d]: the embeddings of a model's token types. Raise UsageError if it has none."""
    table = getattr(getattr(module.base_model, "embeddings", None), "token_type_embeddings", None)
    if table is None:
        raise UsageError("the model has no token types", where="--model", id="no-token-types")
    return table.weight  # type: ignore[no-any-return]


def check_head(lm: Any, where: str) -> None:
    """Raise UsageError if the head, applied to states, does not give the logits of the whole model."""
    head, ids = head_of(lm), torch.arange(4)[None] + 5
    training = lm.training
    lm.eval()
    try:
        with torch.no_grad():
            fits = head is not None and torch.allclose(
                head(lm.base_model(input_ids=ids).last_hidden_state), lm(input_ids=ids).logits, atol=1e-4
            )
    finally:
        lm.train(training)
    if not fits:
        raise UsageError(
            f"a model of the type {lm.config.model_type!r} cannot be trained here: its head is not a function of the "
            "last layer's states",
            where=where,
            fix="give a checkpoint of BERT, RoBERTa, XLM-R, DistilBERT, ModernBERT, GPT-2 or a similar type",
            id="model",
        )


def set_tie(lm: Any, tie: bool) -> None:
    """Make input and output embeddings one matrix, or two separate ones."""
    lm.config.tie_word_embeddings = tie
    output, source = lm.get_output_embeddings(), lm.get_input_embeddings()
    if tie:
        lm.tie_weights()
    elif output.weight is source.weight:
        output.weight = torch.nn.Parameter(source.weight.detach().clone())
    heads = getattr(lm, "lm_head", None), getattr(getattr(lm, "cls", None), "predictions", None)
    for bias in (getattr(head, "bias", None) for head in heads):
        if not tie and isinstance(bias, torch.nn.Parameter):
            # RoBERTa and BERT have a second bias here. Without tying their forward pass never reads it.
            bias.requires_grad_(False)


def is_tied(lm: Any) -> bool:
    """Return whether input and output embeddings are one matrix."""
    source, output = lm.get_input_embeddings().weight, lm.get_output_embeddings().weight
    return bool(output.data_ptr() == source.data_ptr())
