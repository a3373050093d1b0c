"""New language models of `transformers`, masked or causal; which embeddings are tied, and which parts are trained.

Tying input and output embeddings is a setting; untied embeddings are trained separately. A saved model is an ordinary
folder for `AutoModel` and `AutoModelForMaskedLM` or `AutoModelForCausalLM`.
"""

from __future__ import annotations

from typing import Any

import torch

from derivlang.core.errors import UsageError
from derivlang.training.config import ModelConfig, auto_class, refused
from derivlang.training.languages import SpecialIds
from derivlang.training.own_parts import add as add_language_embeddings
from derivlang.training.own_parts import n_own_ids
from derivlang.training.settings import check_layers, layers_of


def build_model(
    model_config: ModelConfig,
    vocab_size: int,
    seq_len: int,
    special_ids: SpecialIds,
    *,
    tie: bool,
    language_ids: bool,
    seed: int,
    own: tuple[str, ...] = (),
    languages: int = 2,
) -> Any:
    """Return a new language model of `transformers`, with weights drawn from the seed.

    own: of `own_parts.py`. languages: their number, if the model gets the language of each position.
    """
    sizes = vocab_size + n_own_ids(own), seq_len * (2 if "positions" in own else 1)
    config = model_config.config(*sizes, special_ids, tie=tie, language_ids=language_ids)
    if language_ids and model_config.token_types:
        config.type_vocab_size = languages
    if own:
        config.own_parts = list(own)
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
        if language_ids:
            std = model_config.embedding_std or model.config.initializer_range
            add_language_embeddings(model, std, languages)
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


def n_parameters(lm: Any) -> int:
    """Return the number of weights of a language model; tied embeddings count once."""
    return sum({p.data_ptr(): p.numel() for p in lm.parameters()}.values())


def freeze(lm: Any, parts: str) -> int:
    """Exclude parts of a model from training, and return the number of weights that remain.

    parts: of --freeze. Raise UsageError if it has no such layer, or if nothing remains to be trained.
    """
    base = lm.base_model
    embeddings = lm.get_input_embeddings()
    layers = next(m for m in base.modules() if isinstance(m, torch.nn.ModuleList))
    check_layers(parts, len(layers))
    for part in filter(None, parts.split(",")):
        if part == "embeddings":
            frozen = list(embeddings.parameters())
        elif part == "encoder":
            inside = {id(p) for p in embeddings.parameters()}
            frozen = [p for p in base.parameters() if id(p) not in inside]
        else:
            first, last = layers_of(part)
            frozen = [p for layer in layers[first : last + 1] for p in layer.parameters()]
        for parameter in frozen:
            parameter.requires_grad_(False)
    remaining: int = sum(p.numel() for p in lm.parameters() if p.requires_grad)
    if not remaining:
        raise UsageError(f"{parts} leaves nothing to train", where="--freeze", id="bad-value")
    return remaining
