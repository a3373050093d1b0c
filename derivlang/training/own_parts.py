"""What each language of a model has of its own: positions and special ids. (Dufter and Schütze 2020, section 3)

The config names it, so a saved model keeps it: `own_parts = ["positions", "special-ids"]`. The encoder is then given,
of a model for rows of H sub-words with V ids in all,

                 source           derived language
    positions    0 … H - 1        H … 2 H - 1
    special ids  <s> </s> <mask>  V - 3, V - 2, V - 1

The ids of the text, its labels, `<unk>` and padding stay as they are.
"""

from __future__ import annotations

from typing import Any

import torch

from derivlang.core.errors import UsageError
from derivlang.training.languages import DERIVED, SpecialIds


def own_parts(config: Any) -> tuple[str, ...]:
    """Return what each language has of its own, by the config of a model of `transformers`."""
    return tuple(getattr(config, "own_parts", ()))


def refuse_own(config: Any, where: str) -> None:
    """Raise UsageError for a model that only our encoder gives positions or special ids of their own."""
    if parts := own_parts(config):
        raise UsageError(
            f"in this model each language has its own {' and '.join(part.replace('-', ' ') for part in parts)}, which "
            "is not possible here",
            where=where,
            fix="name a run that was trained without --own",
            id="own-parts",
        )


def n_own_ids(config: Any) -> int:
    """Return the number of ids of a model that are of no text: special ids of the derived language."""
    return 3 if "special-ids" in own_parts(config) else 0


def ids_by_language(ids: torch.Tensor, language: Any, special_ids: SpecialIds, size: int) -> torch.Tensor:
    """Return int64[B, T]: ids in which special ids of the derived language are its own, the last three of `size`.

    language: a number for all positions, or int64[B, T].

        <s> 0, </s> 2, <mask> 4, size 103      language 0 0 0 1 1 1
        ids 0 7 2 0 57 4  ->  0 7 2 100 57 102
    """
    derived = torch.zeros_like(ids) + language == DERIVED
    for place, special in enumerate((special_ids.begin, special_ids.end, special_ids.mask)):
        ids = ids.masked_fill(derived & (ids == special), size - 3 + place)
    return ids
