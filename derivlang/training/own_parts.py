"""What each language of a model has of its own: embeddings, positions and special ids.

**Embeddings**, of an encoder without token types such as ModernBERT:

    embeddings of sub-words [B, T, d] + language_embeddings[language of each position] ──▶ the encoder's first norm

They are a module of the encoder, `language_embeddings`, in the file of its weights; `type_vocab_size` of its config is
their number. `transformers` itself leaves them out, so `export` adds the embeddings of one language to the embeddings
of all sub-words, which gives the same states (`fold`). Models with token types have the same in their own embeddings.

**Positions and special ids** (Dufter and Schütze 2020, section 3). The config names them, so a saved model keeps them:
`own_parts = ["positions", "special-ids"]`. The encoder is then given, of a model for rows of H sub-words with V ids in
all,

                 source           derived language
    positions    0 … H - 1        H … 2 H - 1
    special ids  <s> </s> <mask>  V - 3, V - 2, V - 1

Sub-words, labels, `<unk>` and padding keep their ids.
"""

from __future__ import annotations

from pathlib import Path
from typing import Any

import torch

from derivlang.core.errors import UsageError
from derivlang.training.languages import DERIVED, SpecialIds

_N_SPECIAL = 3  # `<s>`, `</s>` and the mask


def own_parts(config: Any) -> tuple[str, ...]:
    """Return what each language has of its own, by the config of a model of `transformers`."""
    return tuple(getattr(config, "own_parts", ()))


def refuse_own(config: Any, where: str) -> None:
    """Raise UsageError for a model that only our encoder gives positions or special ids of their own."""
    if parts := own_parts(config):
        raise UsageError(
            f"in this model each language has its own {' and '.join(part.replace('-', ' ') for part in parts)}, which "
            "only the encoder of derivlang gives it",
            where=where,
            fix="name a run that was trained without --own",
            id="own-parts",
        )


def n_own_ids(parts: tuple[str, ...]) -> int:
    """Return the number of ids that a model has for special ids of the derived language. parts: as of `own_parts`."""
    return _N_SPECIAL if "special-ids" in parts else 0


def ids_by_language(ids: torch.Tensor, language: Any, special_ids: SpecialIds, size: int) -> torch.Tensor:
    """Return ids, int64[B, T], with the derived language's own special ids at its positions.

    Its own are the last three of `size` ids. language: a number for all positions, or int64[B, T].

        <s> 0, </s> 2, <mask> 4, size 103      language 0 0 0 1 1 1
        ids 0 7 2 0 57 4  ->  0 7 2 100 57 102
    """
    derived = torch.zeros_like(ids) + language == DERIVED
    for place, special in enumerate((special_ids.begin, special_ids.end, special_ids.mask)):
        ids = ids.masked_fill(derived & (ids == special), size - _N_SPECIAL + place)
    return ids


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
