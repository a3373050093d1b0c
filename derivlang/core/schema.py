"""Schema: the columns of a set that are words, text and labels.

Input columns (a labelled file, a hub set)          output columns of a derived set
    tokens, ner_tags                                  document, key, source, tokens, order, ner_tags …
    premise, hypothesis, label                        …, premise, premise_source, premise_tokens, premise_order …

One side has no prefix. `from_table.py` makes batches of input columns and of output columns; `to_table.py` makes output
columns of batches.
"""

from __future__ import annotations

from collections.abc import Iterable
from dataclasses import dataclass
from functools import cached_property
from typing import Any

from derivlang.core.errors import LayerError

# The order in which Hugging Face's UD lists the tags; users' scripts read them by number.
UPOS = tuple("NOUN PUNCT ADP NUM SYM SCONJ ADJ PART DET CCONJ PROPN PRON X _ ADV INTJ VERB AUX".split())
# Relations of Universal Dependencies, without subtypes, of its versions 1 and 2.
V1_RELATIONS = frozenset(
    "acl advcl advmod amod appos aux auxpass case cc ccomp compound conj cop csubj csubjpass dep det discourse"
    " dislocated dobj expl foreign goeswith iobj list mark mwe name neg nmod nsubj nsubjpass nummod parataxis punct"
    " remnant reparandum root vocative xcomp".split()
)
V2_RELATIONS = frozenset(
    "acl advcl advmod amod appos aux case cc ccomp clf compound conj cop csubj dep det discourse dislocated expl"
    " fixed flat goeswith iobj list mark nmod nsubj nummod obj obl orphan parataxis punct reparandum root vocative"
    " xcomp".split()
)
BRACKET_RELATIONS = ("root", "nested", "next", "close")  # of trees that `source:dyck` makes
NLI = ("entailment", "neutral", "contradiction")
# Other spellings of these labels, and the mark of pairs without a label.
NLI_SPELLINGS = {"contradictory": "contradiction"}
NO_LABEL = "-"
# Columns that a derived set adds, with or without a side's name as a prefix.
PARTS = ("source", "tokens", "order", "sentences", "gaps")
# Kinds of columns that hold entities if all values of all files say so, and what they are if not.
UNDECIDED = {"tags?": "tags", "value?": "value"}


@dataclass(frozen=True, slots=True)
class Side:
    """One word sequence of a record.

    name: "" for a single side. words: its column of word lists. text: its column of text, raw if there is no words
    column, else rebuilt from the words.
    """

    name: str = ""
    words: str | None = None
    text: str | None = None

    def column(self, part: str) -> str:
        """Return the output column of a part: source, tokens, order, sentences, gaps."""
        return f"{self.name}_{part}" if self.name else part


@dataclass(frozen=True, slots=True)
class Field:
    """A label.

    column: its output column. kind: the kind of its layer (`layers/base.py`). classes: the names of a class label.
    given: its input column, if that has another name. lexical: it contains words (lemmas, forms of multiword tokens),
    which a lexicon maps. scheme, given_classes: of tags of entities whose scheme is not IOB2 (`layers/tag_schemes.py`),
    its name and the tags of the input; `classes` are IOB2.
    """

    column: str
    kind: str
    classes: tuple[str, ...] | None = None
    given: str | None = None
    lexical: bool = False
    scheme: str | None = None
    given_classes: tuple[str, ...] | None = None

    @property
    def input(self) -> str:
        """The input column."""
        return self.given or self.column


def is_nli(labels: Iterable[str | None]) -> bool:
    """Return whether all labels are NLI labels or missing, and at least one is an NLI label."""
    classes = {NLI_SPELLINGS.get(label, label) for label in labels if label is not None} - {NO_LABEL}
    return bool(classes) and classes <= set(NLI)


def own_columns(sides: tuple[Side, ...], fields: tuple[Field, ...]) -> set[str]:
    """Return the column names that a derived set reserves."""
    kept = {f"source_{field.column}" for field in fields if UNDECIDED.get(field.kind, field.kind) != "value"}
    groups = {side.column("groups") for side in sides if any(field.kind == "answers" for field in fields)}
    return {"document", "key", *kept, *groups, *(side.column(part) for side in sides for part in PARTS)}


@dataclass(frozen=True)
class Schema:
    """The columns of a set.

    sides: the word sequences of a record. fields: its labels. running: whether records are the sentences of running
    text. parsed: whether the set has the tags and trees of a parser, which are not labels of the source
    (`layers/parse.py`).
    """

    sides: tuple[Side, ...]
    fields: tuple[Field, ...] = ()
    running: bool = False
    parsed: bool = False

    def __post_init__(self) -> None:
        names = tuple(side.name for side in self.sides)
        if any(field.kind == "answers" for field in self.fields) and len(names) > 1 and "context" not in names:
            raise LayerError(
                f"answers lie in a column 'context', which is not among {', '.join(names)}",
                fix="name the column of the texts `context`; another name than `answers` keeps that column as it is",
                id="answer-types",
            )
        reserved_names = own_columns(self.sides, self.fields) | ({"head", "deprel"} if self.parsed else set())
        for name in (*(f.column for f in self.fields), *(side.text for side in self.sides)):
            if name in reserved_names:
                raise LayerError(
                    f"a derived set has a column {name!r} of its own", fix="rename the set's column", id="reserved"
                )

    def to_json(self) -> dict[str, Any]:
        """Return the schema as the manifest stores it."""
        # Not by `asdict`, which copies every value: a set may have thousands of fields.
        fields = tuple({name: getattr(field, name) for name in Field.__slots__} for field in self.fields)
        sides = tuple({name: getattr(side, name) for name in Side.__slots__} for side in self.sides)
        return {"sides": sides, "fields": fields, "running": self.running, "parsed": self.parsed}

    @classmethod
    def from_json(cls, data: dict[str, Any]) -> Schema:
        """Return the schema of a manifest."""
        sides = tuple(Side(**side) for side in data["sides"])
        lists = ("classes", "given_classes")
        fields = tuple(Field(**{**f, **{name: f[name] and tuple(f[name]) for name in lists}}) for f in data["fields"])
        return cls(sides, fields, data["running"], data["parsed"])

    @property
    def layer_fields(self) -> tuple[Field, ...]:
        """The fields, and the fields of a parser's tags (where the source has none of its own) and trees."""
        if not self.parsed:
            return self.fields
        tags = () if self.field("upos") else (Field("upos", "parsed-tags"),)
        return (*self.fields, *tags, Field("head", "parsed-tree"))

    @property
    def has_trees(self) -> bool:
        """Whether every word has a head, from a treebank or from a parser."""
        return self.parsed or any(field.kind == "tree" for field in self.fields)

    def field(self, column: str) -> Field | None:
        """Return the label with this output column, or None."""
        return self._labels.get(column)

    @cached_property
    def _labels(self) -> dict[str, Field]:
        """The labels by output column: a set may have thousands, each of which is looked up."""
        return {field.column: field for field in reversed(self.fields)}


def left_out(schema: Schema, parts: Iterable[str]) -> set[str]:
    """Return the output columns that `--columns` leaves out. parts: some of key, source, tokens and text."""
    out = {"key"} & set(parts)
    for side in schema.sides:
        out |= {side.column(part) for part in ("source", "tokens") if part in parts}
        if "text" in parts and side.text is not None:
            out.add(side.text)
    return out


def answered_side(schema: Schema) -> Side | None:
    """Return the side that contains answers, or None."""
    if not any(field.kind == "answers" for field in schema.fields):
        return None
    return schema.sides[answers_side(tuple(side.name for side in schema.sides))]


def answers_side(sides: tuple[str, ...]) -> int:
    """Return the number of the side in which answers lie: the only one, or the context."""
    return 0 if len(sides) == 1 else sides.index("context")


TEXT = Schema((Side(),), (), running=True)
