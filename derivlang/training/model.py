"""The model: an encoder of `transformers` with its masked-word head, as named, described in TOML, or saved.

    tiny | roberta-8 | FILE.toml      [model] type, and the fields of that configuration      [training] its defaults

    ids ──encoder──▶ states [B, H, d] ──at hidden positions──▶ head ──▶ logits [n, V]

Tying input and output embeddings is a setting, and holds: of untied ones either moves alone. What is saved is an
ordinary folder for `AutoModel` and `AutoModelForMaskedLM`.
"""

from __future__ import annotations

import tomllib
from collections.abc import Callable, Mapping
from dataclasses import dataclass
from functools import partial
from importlib import resources
from pathlib import Path
from typing import TYPE_CHECKING, Any

from derivlang.core.errors import UsageError, unknown
from derivlang.training.data import Marks

if TYPE_CHECKING:
    import torch

    from derivlang.training.objectives.base import Part

_NAMES = ("tiny", "roberta-8")
_TABLES = ("model", "training")
# Numbers that must be above 0 (1: whole ones).
_NUMBERS = {
    "hidden_size": 1, "num_hidden_layers": 1, "num_attention_heads": 1, "intermediate_size": 1,
    "max_position_embeddings": 1, "theta": 0, "embedding_std": 0,
}  # fmt: skip
# What a run decides, not a description.
_DECIDED = {
    "vocab_size", "pad_token_id", "bos_token_id", "eos_token_id", "cls_token_id", "sep_token_id", "type_vocab_size",
    "tie_word_embeddings", "model_type",
}  # fmt: skip
# How each kind of encoder reads a state's words off; position of the first sub-word in its table of positions.
_HEADS: dict[str, Callable[[Any, Any], Any]] = {
    "roberta": lambda lm, states: lm.lm_head(states),
    "xlm-roberta": lambda lm, states: lm.lm_head(states),
    "modernbert": lambda lm, states: lm.decoder(lm.head(states)),
    "bert": lambda lm, states: lm.cls(states),
}
AFTER_PADDING = ("roberta", "xlm-roberta")  # positions count from pad + 1
_TOKEN_TYPES = ("roberta", "xlm-roberta", "bert")


@dataclass(frozen=True, slots=True)
class Design:
    """A model's description. name: as asked for; fields: of its configuration; training: defaults that suit it."""

    name: str
    type: str
    fields: Mapping[str, Any]
    training: Mapping[str, Any]
    embedding_std: float | None = None

    @classmethod
    def read(cls, name: str) -> Design:
        """A named model or a TOML file; UsageError for anything else."""
        where = "--model"
        if name.endswith(".toml"):
            where = name
            try:
                text = Path(name).read_text("utf-8")
            except (OSError, UnicodeDecodeError) as error:
                what = getattr(error, "strerror", None) or error
                raise UsageError(f"cannot be read: {what}", where=name, id="model") from None
        elif name in _NAMES:
            text = (resources.files("derivlang.training") / "models" / f"{name}.toml").read_text("utf-8")
        else:
            raise unknown("model", name, _NAMES, fix="name one of these, or a FILE.toml")
        try:
            found = tomllib.loads(text)
        except tomllib.TOMLDecodeError as error:
            raise UsageError(f"is no TOML: {error}", where=where, id="model") from None
        for table, content in found.items():
            if table not in _TABLES:
                raise unknown("table", table, _TABLES, where=where)
            if not isinstance(content, dict):
                raise UsageError(f"{table} is no table: write [{table}]", where=where, id="model")
        model = dict(found.get("model", {}))
        kind, std = model.pop("type", None), model.pop("embedding_std", None)
        if kind not in _HEADS:
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
        """Can it be told the language of each position?"""
        return self.type in _TOKEN_TYPES

    @property
    def width(self) -> int:
        """Of the states, where the description says it; 768 is what the encoders have without it."""
        return int(self.fields.get("hidden_size", 768))

    def config(self, vocab_size: int, seq_len: int, marks: Marks, *, tie: bool, language_ids: bool) -> Any:
        """The configuration of `transformers`; UsageError where it refuses a field."""
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
                    f"max_position_embeddings = {fields['max_position_embeddings']} is too few for rows of {seq_len} "
                    f"sub-words: {seq_len + offset} are needed",
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

    def build(self, vocab_size: int, seq_len: int, marks: Marks, *, tie: bool, language_ids: bool, seed: int) -> Any:
        """A new model with weights drawn from the seed."""
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


class Model:
    """What an objective sees of a masked language model of `transformers`."""

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
        """float[2, d]: of the token types; UsageError where the model has none."""
        table = getattr(self.lm.base_model.embeddings, "token_type_embeddings", None)
        if table is None:
            raise UsageError("the model has no token types", where="--model", id="no-token-types")
        return table.weight  # type: ignore[no-any-return]

    def states(self, part: Part) -> torch.Tensor:
        """float[B, H, d]: the last layer."""
        more: dict[str, Any] = {}
        if self.language_ids:
            more["token_type_ids"] = part.language
        if part.positions is not None:
            more["position_ids"] = part.positions + self._first_position
        out = self.lm.base_model(input_ids=part.ids, attention_mask=part.attention, **more)
        return out.last_hidden_state  # type: ignore[no-any-return]

    def predict(self, states: torch.Tensor) -> torch.Tensor:
        """float[n, V]: logits of states float[n, d]."""
        return self._head(states)


def head_of(lm: Any) -> Callable[[torch.Tensor], torch.Tensor] | None:
    """Logits float[n, V] of states float[n, d]; None where this kind of model's head is not known."""
    head = _HEADS.get(lm.config.model_type)
    return None if head is None else partial(head, lm)


def set_tie(lm: Any, tie: bool) -> None:
    """Make input and output embeddings one matrix, or two."""
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
            # RoBERTa's and BERT's second bias, which their forward never reads unless it is the decoder's own
            bias.requires_grad_(False)


def is_tied(lm: Any) -> bool:
    """Are input and output embeddings one matrix?"""
    source, output = lm.get_input_embeddings().weight, lm.get_output_embeddings().weight
    return bool(output.data_ptr() == source.data_ptr())
