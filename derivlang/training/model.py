"""The model: an encoder of `transformers` with its masked-language-model head, by name, from TOML, or saved.

    tiny | roberta-8 | FILE.toml      [model] type, and the fields of that config      [training] defaults of settings

    ids ──encoder──▶ states [B, H, d] ──at masked positions──▶ head ──▶ logits [n, V]

Tying input and output embeddings is a setting; untied embeddings are trained separately. A saved model is an ordinary
folder for `AutoModel` and `AutoModelForMaskedLM`.
"""

from __future__ import annotations

import tomllib
from collections.abc import Callable, Iterator, Mapping
from contextlib import contextmanager
from dataclasses import dataclass
from functools import partial
from importlib import resources
from pathlib import Path
from typing import TYPE_CHECKING, Any

from derivlang.core.errors import UsageError, unknown
from derivlang.core.parse_errors import parse_errors
from derivlang.training.batch import TokenBatch
from derivlang.training.data import SpecialIds

if TYPE_CHECKING:
    import torch

_NAMES = ("tiny", "roberta-8")
_TABLES = ("model", "training")
# Numbers that must be above 0. 1: whole numbers; 0: any.
_NUMBERS = {
    "hidden_size": 1, "num_hidden_layers": 1, "num_attention_heads": 1, "intermediate_size": 1,
    "max_position_embeddings": 1, "theta": 0, "embedding_std": 0,
}  # fmt: skip
# Fields that the run sets, so a TOML file may not.
_DECIDED = {
    "vocab_size", "pad_token_id", "bos_token_id", "eos_token_id", "cls_token_id", "sep_token_id", "type_vocab_size",
    "tie_word_embeddings", "model_type",
}  # fmt: skip
# The head of each kind of encoder: from states to logits.
_HEADS: dict[str, Callable[[Any, Any], Any]] = {
    "roberta": lambda lm, states: lm.lm_head(states),
    "xlm-roberta": lambda lm, states: lm.lm_head(states),
    "modernbert": lambda lm, states: lm.decoder(lm.head(states)),
    "bert": lambda lm, states: lm.cls(states),
}
AFTER_PADDING = ("roberta", "xlm-roberta")  # positions count from pad + 1
_TOKEN_TYPES = ("roberta", "xlm-roberta", "bert")


@dataclass(frozen=True, slots=True)
class ModelConfig:
    """The config of a model. name: as given; fields: of the `transformers` config; training: defaults of settings."""

    name: str
    type: str
    fields: Mapping[str, Any]
    training: Mapping[str, Any]
    embedding_std: float | None = None

    @classmethod
    def read(cls, name: str) -> ModelConfig:
        """Read the config of a named model or a TOML file. Raise UsageError for anything else."""
        where = "--model"
        if name.endswith(".toml"):
            where = name
            with parse_errors(name, "TOML file", error=UsageError, id="model"):
                text = Path(name).read_text("utf-8")
        elif name in _NAMES:
            text = (resources.files("derivlang.training") / "models" / f"{name}.toml").read_text("utf-8")
        else:
            raise unknown("model", name, _NAMES, fix="give one of these, or a FILE.toml")
        with parse_errors(where, "TOML file", error=UsageError, id="model"):
            found = tomllib.loads(text)
        for table, content in found.items():
            if table not in _TABLES:
                raise unknown("table", table, _TABLES, where=where)
            if not isinstance(content, dict):
                raise UsageError(f"{table} is not a table", where=where, fix=f"write [{table}]", id="model")
        model = dict(found.get("model", {}))
        kind, std = model.pop("type", None), model.pop("embedding_std", None)
        if not isinstance(kind, str) or kind not in _HEADS:
            raise UsageError(
                f"[model] type is {kind!r}; there are: {', '.join(sorted(_HEADS))}", where=where, id="model"
            )
        for field, low in _NUMBERS.items():
            value = std if field == "embedding_std" else model.get(field)
            kinds = int if low else (int, float)
            if value is not None and (not isinstance(value, kinds) or isinstance(value, bool) or not value > 0):
                what = "a whole number, at least 1" if low else "a number above 0"
                raise UsageError(f"[model] {field} is {value!r}; it must be {what}", where=where, id="model")
        return cls(Path(name).stem if name.endswith(".toml") else name, kind, model, found.get("training", {}), std)

    @property
    def token_types(self) -> bool:
        """Whether the model has token types, which tell it the language of each position."""
        return self.type in _TOKEN_TYPES

    @property
    def width(self) -> int:
        """The width of the states; 768, the default of the encoders, if the config does not set it."""
        return int(self.fields.get("hidden_size", 768))

    def config(self, vocab_size: int, seq_len: int, marks: SpecialIds, *, tie: bool, language_ids: bool) -> Any:
        """Return the config of `transformers`. Raise UsageError if it rejects a field."""
        from transformers import AutoConfig

        fields: dict[str, Any] = dict(self.fields)
        known = set(AutoConfig.for_model(self.type).to_dict()) - _DECIDED | {"attn_implementation"}
        known |= {"theta", "global_attn_every_n_layers"} if self.type == "modernbert" else set()
        for name in fields:
            if name not in known:
                raise unknown("field of [model]", name, known, where=self.name)
        theta = fields.pop("theta", None)
        if self.type == "modernbert":
            fields |= {"cls_token_id": marks.begin, "sep_token_id": marks.end, "reference_compile": False}
            fields.setdefault("max_position_embeddings", max(seq_len, 512))
            if theta is not None:
                rope = {"rope_type": "default", "rope_theta": theta}
                fields["rope_parameters"] = {"full_attention": rope, "sliding_attention": rope}
        else:
            offset = marks.pad + 1 if self.type in AFTER_PADDING else 0
            if fields.setdefault("max_position_embeddings", seq_len + offset) < seq_len + offset:
                raise UsageError(
                    f"max_position_embeddings = {fields['max_position_embeddings']} is too small for rows of {seq_len} "
                    f"sub-words, which need {seq_len + offset}",
                    where=self.name,
                    fix="leave it out, or lower --seq-len",
                    id="model",
                )
            fields["type_vocab_size"] = 2 if language_ids else 1
        try:
            return AutoConfig.for_model(
                self.type,
                vocab_size=vocab_size,
                pad_token_id=marks.pad,
                bos_token_id=marks.begin,
                eos_token_id=marks.end,
                tie_word_embeddings=tie,
                **fields,
            )
        except Exception as error:  # noqa: BLE001 (transformers raises many kinds)
            raise _refused(self.name, error) from None

    def build(
        self, vocab_size: int, seq_len: int, marks: SpecialIds, *, tie: bool, language_ids: bool, seed: int
    ) -> Any:
        """Return a new model with weights drawn from the seed."""
        import torch
        from transformers import AutoModelForMaskedLM

        config = self.config(vocab_size, seq_len, marks, tie=tie, language_ids=language_ids)
        with torch.random.fork_rng(devices=[]):
            torch.manual_seed(seed)
            try:
                model: Any = AutoModelForMaskedLM.from_config(config)
            except Exception as error:  # noqa: BLE001 (transformers raises many kinds)
                raise _refused(self.name, error) from None
            if self.embedding_std is not None:
                with torch.no_grad():
                    weight = model.get_input_embeddings().weight
                    weight.normal_(0.0, self.embedding_std)
                    if not tie:
                        model.get_output_embeddings().weight.normal_(0.0, self.embedding_std)
        set_tie(model, tie)
        return model


def _refused(name: str, error: Exception) -> UsageError:
    return UsageError(f"the model cannot be built: {' '.join(str(error).split())}", where=name, id="model")


class LanguageModel:
    """The interface of objectives to a masked language model of `transformers`."""

    def __init__(self, lm: Any, *, language_ids: bool = False):
        self.lm = lm
        kind, head = lm.config.model_type, head_of(lm)
        if head is None:
            raise UsageError(f"an encoder of the kind {kind!r} cannot be trained here", where="--model", id="model")
        self._head = head
        self._first_position = int(lm.config.pad_token_id or 0) + 1 if kind in AFTER_PADDING else 0
        self.language_ids = language_ids

    @property
    def embeddings(self) -> torch.Tensor:
        """float[V, d]: the input embedding matrix."""
        return self.lm.get_input_embeddings().weight  # type: ignore[no-any-return]

    @property
    def language_embeddings(self) -> torch.Tensor:
        """float[2, d]: the embeddings of the token types. Raises UsageError if the model has none."""
        table = getattr(self.lm.base_model.embeddings, "token_type_embeddings", None)
        if table is None:
            raise UsageError("the model has no token types", where="--model", id="no-token-types")
        return table.weight  # type: ignore[no-any-return]

    def states(self, batch: TokenBatch, layer: int | None = None) -> torch.Tensor:
        """Return float[B, H, d]: the states of a layer. 0: the embeddings; None: the last layer."""
        more: dict[str, Any] = {}
        if self.language_ids:
            more["token_type_ids"] = batch.language
        if batch.positions is not None:
            more["position_ids"] = batch.positions + self._first_position
        if layer is not None:
            more["output_hidden_states"] = True
        out = self.lm.base_model(input_ids=batch.ids, attention_mask=batch.attention, **more)
        return out.last_hidden_state if layer is None else out.hidden_states[layer]  # type: ignore[no-any-return]

    @contextmanager
    def without_gradient(self) -> Iterator[None]:
        """Compute states in the block without gradient and without dropout, e.g. for labels of the model's own."""
        import torch

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
    head = _HEADS.get(lm.config.model_type)
    return None if head is None else partial(head, lm)


def set_tie(lm: Any, tie: bool) -> None:
    """Make input and output embeddings one matrix, or two separate ones."""
    import torch

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


def positions_of(config: Any) -> int | None:
    """Return the maximum number of sub-words in a row, with special ids; None if the model has no limit."""
    most = getattr(config, "max_position_embeddings", None)
    shifted = config.model_type in AFTER_PADDING  # positions count from padding + 1
    return None if most is None else int(most) - (int(config.pad_token_id) + 1 if shifted else 0)


def is_tied(lm: Any) -> bool:
    """Return whether input and output embeddings are one matrix."""
    source, output = lm.get_input_embeddings().weight, lm.get_output_embeddings().weight
    return bool(output.data_ptr() == source.data_ptr())
