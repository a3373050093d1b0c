"""Column: what a task or a measure declares of one of its scores, so that tables and figures know no score by name."""

from __future__ import annotations

from dataclasses import dataclass, fields
from typing import Any, Literal

from derivlang.core.arrays import Int64
from derivlang.evaluation.formulas import formula_of, value_of

PERCENT = "%"  # a unit: values are shares, from 0 to 100
SIDES = ("source", "derived")  # regimes of scores without fine-tuning, by the number of the language


@dataclass(frozen=True, slots=True)
class Column:
    """A score.

    name: in tables of scores. title: in pages, the name by default. unit: of a value, for people. better: whether a
    larger or a smaller value is better; "" says that neither is. formula: the name of the function that makes a value
    of the sums of counts (`formulas.py`); "" if a value has no counts. headline: whether reports show it first.

    over: "layer" if each layer has a value, "points" if the counts are points of a picture, two coordinates each in
    ten-thousandths. chance: whether rows of the regime `chance` say what a guess reaches. explains: another score, such
    as "perplexity.bits", that reports correlate with it over conditions.
    """

    name: str
    title: str = ""
    unit: str = PERCENT
    better: Literal["up", "down", ""] = "up"
    formula: str = "percent"
    headline: bool = False
    over: Literal["", "layer", "points"] = ""
    chance: bool = False
    explains: str = ""

    def __post_init__(self) -> None:
        if self.formula:
            formula_of(self.formula)

    @property
    def shown(self) -> str:
        """The title."""
        return self.title or self.name

    def value(self, counts: Int64) -> float:
        """Return the score of all units together. counts: int64[U, k], as its formula takes them."""
        return value_of(self.formula, counts)

    def record(self) -> dict[str, Any]:
        """Return it as JSON, for the metadata of a table."""
        return {field.name: getattr(self, field.name) for field in fields(Column)}
