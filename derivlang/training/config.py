"""The config of a model, by name or from TOML.

tiny | bert-12 | roberta-8 | … | FILE.toml         [model] type, and fields of that config
                                                   [training] defaults of settings

All types have the same names for width, layers, heads, inner width and positions, also GPT-2, whose config names them
n_embd, n_layer, and so on.
"""

from __future__ import annotations

import math
import tomllib
from collections.abc import Mapping
from dataclasses import dataclass
from functools import lru_cache
from importlib import resources
from pathlib import Path
from typing import Any

from derivlang.core.errors import UsageError, parse_errors, unknown
from derivlang.training.languages import SpecialIds

TYPES = ("bert", "gpt2", "llama", "modernbert", "roberta", "xlm-roberta")
CAUSAL = ("gpt2", "llama")  # each position sees only those before it
MODELS = ("tiny", "tiny-gpt", "bert-12", "modernbert-4", "roberta-8", "gpt-8")
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
_AFTER_PADDING = ("roberta", "xlm-roberta")  # of new models; their positions count from pad + 1
TOKEN_TYPES = ("roberta", "xlm-roberta", "bert")
_TAKE_LANGUAGES = (*TOKEN_TYPES, "modernbert")  # by token types, or by own_parts.py
_ROTARY = ("modernbert", "llama")  # relative positions, of frequencies that `theta` sets
_WIDTHS = {"llama": 4096}  # where the default is not 768
_LAYERS = {"modernbert": 22, "llama": 32}  # where the default is not 12
# What a type's config calls a field of the common name.
_OWN_NAMES = {
    "gpt2": {
        "hidden_size": "n_embd", "num_hidden_layers": "n_layer", "num_attention_heads": "n_head",
        "intermediate_size": "n_inner", "max_position_embeddings": "n_positions",
    },
}  # fmt: skip


@dataclass(frozen=True, slots=True)
class ModelConfig:
    """The config of a model. name: as given; fields: of the `transformers` config; training: defaults of settings."""

    name: str
    type: str
    fields: Mapping[str, Any]
    training: Mapping[str, Any]
    embedding_std: float | None = None

    @staticmethod
    def read(name: str) -> ModelConfig:
        """Read the config of a named model or a TOML file. Raise UsageError for anything else."""
        where = "--model"
        if name.endswith(".toml"):
            where = name
            with parse_errors(name, "TOML file", error=UsageError, id="model"):
                text = Path(name).read_text("utf-8")
        elif name in MODELS:
            text = (resources.files("derivlang.training") / "models" / f"{name}.toml").read_text("utf-8")
        else:
            raise unknown("model", name, MODELS, fix="give one of these, or a FILE.toml")
        return _config(text, where, Path(name).stem if name.endswith(".toml") else name)

    @property
    def token_types(self) -> bool:
        """Whether the model has token types, which give it the language of each position."""
        return self.type in TOKEN_TYPES

    @property
    def takes_languages(self) -> bool:
        """Whether the model can be given the language of each position."""
        return self.type in _TAKE_LANGUAGES

    @property
    def has_position_table(self) -> bool:
        """Whether positions are rows of a table, not angles of a rotation."""
        return self.type not in _ROTARY

    @property
    def causal(self) -> bool:
        """Whether the model predicts each sub-word from those before it."""
        return self.type in CAUSAL

    @property
    def width(self) -> int:
        """The width of the states; the default of the type if the config does not set it."""
        return int(self.fields.get("hidden_size", _WIDTHS.get(self.type, 768)))

    @property
    def n_layers(self) -> int:
        """The number of layers above the embeddings; the default of the type if the config does not set it."""
        return int(self.fields.get("num_hidden_layers", _LAYERS.get(self.type, 12)))

    @property
    def own_fields(self) -> dict[str, Any]:
        """The fields under the names of the type's config."""
        names = _OWN_NAMES.get(self.type, {})
        return {names.get(name, name): value for name, value in self.fields.items()}

    def config(self, vocab_size: int, seq_len: int, special_ids: SpecialIds, *, tie: bool, language_ids: bool) -> Any:
        """Return the config of `transformers`. Raise UsageError if it rejects a field."""
        from transformers import AutoConfig

        names = _OWN_NAMES.get(self.type, {})
        known = set(AutoConfig.for_model(self.type).to_dict()) - _DECIDED - set(names.values()) | set(names)
        known |= {"attn_implementation"} | ({"theta"} if self.type in _ROTARY else set())
        known |= {"global_attn_every_n_layers"} if self.type == "modernbert" else set()
        for name in self.fields:
            if name not in known:
                common = next((common for common, own in names.items() if own == name), None)
                raise unknown("field of [model]", name, [common] if common else known, where=self.name)
        fields = self.own_fields
        positions = names.get("max_position_embeddings", "max_position_embeddings")
        theta = fields.pop("theta", None)
        rope = None if theta is None else {"rope_type": "default", "rope_theta": theta}
        if self.type in _ROTARY:
            fields.setdefault(positions, max(seq_len, 512))
        else:
            offset = special_ids.pad + 1 if self.type in _AFTER_PADDING else 0
            if fields.setdefault(positions, seq_len + offset) < seq_len + offset:
                raise UsageError(
                    f"max_position_embeddings = {fields[positions]} is too small for rows of {seq_len} "
                    f"sub-words, which need {seq_len + offset}",
                    where=self.name,
                    fix="leave it out, or lower --seq-len",
                    id="model",
                )
        if self.type == "modernbert":
            fields |= {"cls_token_id": special_ids.begin, "sep_token_id": special_ids.end, "reference_compile": False}
            if rope is not None:
                fields["rope_parameters"] = {"full_attention": rope, "sliding_attention": rope}
        elif rope is not None:
            fields["rope_parameters"] = rope
        if self.token_types:
            fields["type_vocab_size"] = 2 if language_ids else 1
        try:
            return AutoConfig.for_model(
                self.type,
                vocab_size=vocab_size,
                pad_token_id=special_ids.pad,
                bos_token_id=special_ids.begin,
                eos_token_id=special_ids.end,
                tie_word_embeddings=tie,
                **fields,
            )
        except Exception as error:  # noqa: BLE001 (transformers raises many kinds)
            raise refused(self.name, error) from None


@lru_cache(maxsize=64)  # a study asks for the model of each cell several times
def _config(text: str, where: str, name: str) -> ModelConfig:
    """Return the config that a TOML file describes. where: the file or the option, for errors."""
    with parse_errors(where, "TOML file", error=UsageError, id="model"):
        tables = tomllib.loads(text)
    for table, content in tables.items():
        if table not in _TABLES:
            raise unknown("table", table, _TABLES, where=where)
        if not isinstance(content, dict):
            raise UsageError(f"{table} is not a table", where=where, fix=f"write [{table}]", id="model")
    model = dict(tables.get("model", {}))
    kind, std = model.pop("type", None), model.pop("embedding_std", None)
    if not isinstance(kind, str) or kind not in TYPES:
        raise UsageError(f"[model] type is {kind!r}; there are: {', '.join(TYPES)}", where=where, id="model")
    for field, low in _NUMBERS.items():
        value = std if field == "embedding_std" else model.get(field)
        kinds = int if low else (int, float)
        if value is not None and (not isinstance(value, kinds) or isinstance(value, bool) or not value > 0):
            what = "a whole number, at least 1" if low else "a number above 0"
            raise UsageError(f"[model] {field} is {value!r}; it must be {what}", where=where, id="model")
    with parse_errors(where, "config of a model", error=UsageError, id="model"):
        check_finite(model)
    return ModelConfig(name, kind, model, tables.get("training", {}), std)


def check_finite(fields: Mapping[str, Any]) -> None:
    """Raise ValueError for a field of a config that is NaN or infinite, which torch refuses only in training."""
    for field, value in fields.items():
        if isinstance(value, float) and not math.isfinite(value):
            raise ValueError(f"{field} is {value}, not a finite number")


def auto_class(kind: str) -> Any:
    """Return the class of `transformers` that makes and loads language models of a type."""
    import transformers

    return transformers.AutoModelForCausalLM if kind in CAUSAL else transformers.AutoModelForMaskedLM


def refused(name: str, error: Exception) -> UsageError:
    """Return the error for a config that `transformers` does not accept."""
    return UsageError(f"the model cannot be built: {' '.join(str(error).split())}", where=name, id="model")
