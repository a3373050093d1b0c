"""Policies: what happens to annotations whose words an order separates (docs/methods.md, section 2)."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Literal

from derivlang.core.errors import unknown
from derivlang.core.settings import declared, setting

Fragment = Literal["split", "drop", "atomic"]


@dataclass(frozen=True, slots=True)
class Policies:
    """entities, answers: `split` keeps the fragments (of an answer the longest), `drop` removes the annotation.

    `atomic` treats the words of an annotation as one word, so that an order cannot separate them; so does it in mwt
    for the words of a multiword token, which is else dissolved (`free`).
    """

    entities: Fragment = setting("split", "Treatment of entities that an order splits.")
    answers: Fragment = setting("split", "Treatment of answers that an order splits; split keeps the longest run.")
    mwt: Literal["free", "atomic"] = setting("free", "Multiword tokens: their words move freely, or as one.")

    def __post_init__(self) -> None:
        for name, one in declared(Policies).items():
            if getattr(self, name) not in one.choices:
                raise unknown(f"policy for {name}", getattr(self, name), one.choices, where=f"--{name}")
