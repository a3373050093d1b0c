"""Policies: what happens to an annotation if an order separates its words."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass
from typing import Literal

from derivlang.core.schema import Schema
from derivlang.core.settings import Settings, declared, setting, typed

Fragment = Literal["split", "drop", "atomic"]


@dataclass(frozen=True, kw_only=True)
class Policies(Settings):
    """The policy for each kind of annotation. Raises UsageError for an unknown policy.

    entities: `split` makes each run of adjacent words an entity, `drop` removes the entity. answers: `split` keeps the
    longest run, `drop` removes the answer. mwt: `free` dissolves a multiword token whose words are separated. All three
    take `atomic`, which makes an order treat the words of the annotation as one word.
    """

    entities: Fragment = setting("split", "Treatment of entities that an order splits.")
    answers: Fragment = setting("split", "Treatment of answers that an order splits; split keeps the longest run.")
    mwt: Literal["free", "atomic"] = setting(
        "free", "Treatment of multiword tokens: their words move freely, or as one word."
    )


# The labels that each option is about: the kind of their field, and their name.
_LABELS = {
    "--entities": ("entities", "entities"),
    "--answers": ("answers", "answers"),
    "--mwt": ("tree", "multiword tokens"),
    "--repair-tags": ("entities", "entities"),
}


def warn_of_unused(
    name: str, schema: Schema, policies: Policies | None, warn: Callable[[str], None], *, repair_tags: bool
) -> None:
    """Warn of each given option about labels that a set lacks. name: of the set.

    An option without effect is not an error here, since a study and a recipe give one set of options to several
    sources.
    """
    kinds = {field.kind for field in schema.fields}
    given = () if policies is None else typed(policies, declared(Policies))
    for word in (*given, *(["--repair-tags"] if repair_tags else [])):
        option = word.partition("=")[0]
        kind, labels = _LABELS[option]
        if kind not in kinds:
            warn(f"{name} has no {labels}, so {option} has no effect")
