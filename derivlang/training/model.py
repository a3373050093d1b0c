"""New language models of `transformers`, masked or causal, and the tying of their embeddings.

Tying input and output embeddings is a setting; untied embeddings are trained separately. A saved model is an ordinary
folder for `AutoModel` and `AutoModelForMaskedLM` or `AutoModelForCausalLM`.
"""

from __future__ import annotations

from typing import Any

import torch

from derivlang.training.config import ModelConfig, auto_class, refused
from derivlang.training.languages import SpecialIds


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
