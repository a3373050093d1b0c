"""The language embeddings of an encoder without token types, such as ModernBERT.

    embeddings of sub-words [B, T, d] + language_embeddings[language of each position] ──▶ the encoder's first norm

They are a module of the encoder, `language_embeddings`, in the file of its weights; `type_vocab_size` of its config is
their number. `transformers` itself leaves them out, so `export` adds the embeddings of one language to the embeddings
of all sub-words, which gives the same states (`fold`). Models with token types have the same in their own embeddings.
"""

from __future__ import annotations

from pathlib import Path
from typing import Any

import torch

_NAME = "language_embeddings"


def table_of(base: Any) -> torch.nn.Embedding | None:
    """Return the language embeddings or token types of an encoder, [L, d]; None if it has none."""
    table = getattr(base, _NAME, None)
    embeddings: torch.nn.Embedding | None = (
        table if table is not None else getattr(getattr(base, "embeddings", None), "token_type_embeddings", None)
    )
    return embeddings


def has_own(lm: Any) -> bool:
    """Return whether a language model has language embeddings that are not token types."""
    return isinstance(getattr(lm.base_model, _NAME, None), torch.nn.Module)


def add(lm: Any, std: float, languages: int = 2) -> None:
    """Give a language model language embeddings, drawn from a normal distribution, unless it has token types."""
    base = lm.base_model
    if table_of(base) is not None:
        return
    weight = lm.get_input_embeddings().weight
    table = torch.nn.Embedding(languages, weight.shape[1], dtype=weight.dtype)
    torch.nn.init.normal_(table.weight, 0.0, std)
    base.add_module(_NAME, table)
    lm.config.type_vocab_size = languages


def restore(lm: Any, folder: Path) -> None:
    """Read the language embeddings of a model that was loaded from a folder. Raise ValueError if they are missing."""
    from safetensors import safe_open

    base = lm.base_model
    if (getattr(lm.config, "type_vocab_size", None) or 0) < 2 or table_of(base) is not None:
        return
    for path in sorted(folder.glob("*.safetensors")):
        with safe_open(path, "pt") as file:
            name = next((name for name in file.keys() if name.endswith(f"{_NAME}.weight")), None)  # noqa: SIM118
            if name is not None:
                add(lm, 1.0, lm.config.type_vocab_size)
                with torch.no_grad():
                    base.get_submodule(_NAME).weight.copy_(file.get_tensor(name))
                return
    raise ValueError("its language embeddings are missing")


def fold(lm: Any, language: int) -> None:
    """Add the language embeddings of one language to the embeddings of sub-words, and remove them.

    The output embeddings must stay as they are, so they must not be tied to these.
    """
    base = lm.base_model
    with torch.no_grad():
        lm.get_input_embeddings().weight += base.get_submodule(_NAME).weight[language]
    delattr(base, _NAME)
    lm.config.type_vocab_size = None
