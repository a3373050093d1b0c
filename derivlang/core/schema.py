"""Schema: which columns of a set are words, text and labels.

Input columns (a labelled file, a hub set)          output columns of a derived set
    tokens, ner_tags                                  document, key, source, tokens, order, ner_tags …
    premise, hypothesis, label                        …, premise, premise_source, premise_tokens, premise_order …

One side has no prefix. `reading.py` makes batches of input columns, `rows.py` output rows of batches, and back.
"""

from __future__ import annotations

from dataclasses import asdict, dataclass
from typing import Any, Literal

from derivlang.core.errors import LayerError

Kind = Literal["tags", "misc", "entities", "tree", "answers", "value"]
NLI = ("entailment", "neutral", "contradiction")
# Columns that are the derived set's own, with a side's name before them or not.
PARTS = ("source", "tokens", "order", "sentences", "gaps")


@dataclass(frozen=True, slots=True)
class Side:
    """One word sequence of a record. name: "" where there is only one. words: its column of word lists, or
    text: its column of text (raw, unless words is given too: then it is rebuilt from the words)."""

    name: str = ""
    words: str | None = None
    text: str | None = None

    def column(self, part: str) -> str:
        """The output column of a part: source, tokens, order, sentences, gaps."""
        return f"{self.name}_{part}" if self.name else part


@dataclass(frozen=True, slots=True)
class Field:
    """A label. classes: its names, where it is a class label. given: its input column, where that has another name."""

    column: str
    kind: Kind
    classes: tuple[str, ...] | None = None
    given: str | None = None

    @property
    def input(self) -> str:
        return self.given or self.column


def own_columns(sides: tuple[Side, ...], fields: tuple[Field, ...]) -> set[str]:
    """The names that a derived set needs for itself."""
    kept = {f"source_{field.column}" for field in fields if field.kind != "value"}
    return {"document", "key", *kept, *(side.column(part) for side in sides for part in PARTS)}


@dataclass(frozen=True, slots=True)
class Schema:
    """sides of a record, its labels, and whether records are the sentences of running text.

    parsed: has it the tags and trees of a parser, which are no labels of the source (`layers/parse.py`).
    """

    sides: tuple[Side, ...]
    fields: tuple[Field, ...] = ()
    running: bool = False
    parsed: bool = False

    def __post_init__(self) -> None:
        taken = own_columns(self.sides, self.fields)
        for name in (*(f.column for f in self.fields), *(side.text for side in self.sides)):
            if name in taken:
                raise LayerError(
                    f"a derived set has a column {name!r} of its own", fix="rename the set's column", id="reserved"
                )

    def to_json(self) -> dict[str, Any]:
        return asdict(self)

    @classmethod
    def from_json(cls, data: dict[str, Any]) -> Schema:
        sides = tuple(Side(**side) for side in data["sides"])
        fields = tuple(
            Field(f["column"], f["kind"], f["classes"] and tuple(f["classes"]), f.get("given")) for f in data["fields"]
        )
        return cls(sides, fields, data["running"], data.get("parsed", False))

    @property
    def has_trees(self) -> bool:
        """Has every word a head, from a treebank or from a parser?"""
        return self.parsed or any(field.kind == "tree" for field in self.fields)

    def field(self, column: str) -> Field | None:
        return next((field for field in self.fields if field.column == column), None)


TEXT = Schema((Side(),), (), running=True)
