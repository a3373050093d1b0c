"""Figures: what `derivlang grammar score` says of a model and the families of a treebank."""

from __future__ import annotations

import math
from typing import Any

from derivlang.core.keys import Draws
from derivlang.grammar import statistics
from derivlang.grammar.evaluate import evaluate
from derivlang.grammar.families import Families
from derivlang.grammar.order_model import OrderModel


def figures(model: OrderModel, best: OrderModel, families: Families, most: int) -> dict[str, Any]:
    """Return the figures as JSON values. best: the same model under argmax. most: members of the largest heads.

    classes: {head class: {heads, bits, uniform, right}} (see `evaluate.Score`). With a model of verbs also clauses, the
    number of clauses with nominal subject and object, and observed, sample and argmax: {"S-V-O": share, ...}.
    """
    values: dict[str, Any] = {"classes": {}}
    for name in model.classes:
        score = evaluate(model, best, families, name, most)
        values["classes"][name] = {
            "heads": score.heads,
            **{key: _number(getattr(score, key)) for key in ("bits", "uniform", "right")},
        }
    if "V" in model.classes:
        clauses = statistics.clauses(families)
        expected, _ = statistics.expected_shares(model, clauses)
        chosen = best.draw(clauses.families, Draws(""))
        values["clauses"] = len(clauses.families)
        for key, shares in (
            ("observed", statistics.observed_shares(clauses)),
            ("sample", expected),
            ("argmax", statistics.observed_shares(clauses, chosen)),
        ):
            values[key] = {order: _number(share) for order, share in zip(statistics.SVO, shares, strict=True)}
    return values


def _number(value: float) -> float | None:
    """Return None for nan, which JSON lacks."""
    return None if math.isnan(value) else float(value)
