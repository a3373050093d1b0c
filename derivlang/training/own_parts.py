"""What each language of a model has of its own: positions and special ids (Dufter and Schütze 2020, section 3).

The config names it, so a saved model keeps it: `own_parts = ["positions", "special-ids"]`. The encoder is then given,
of a model for rows of H sub-words with V ids in all,

                 source           derived language
    positions    0 … H - 1        H … 2 H - 1
    special ids  <s> </s> <mask>  V - 3, V - 2, V - 1

Sub-words, labels, `<unk>` and padding keep their ids.
"""

from __future__ import annotations

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
