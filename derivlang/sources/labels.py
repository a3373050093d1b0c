"""What lists beside the words hold: entities, a value for each word, or something that does not move with the words.

The name says it (`upos`, `ner_tags`), or the user (NAME=KIND), or all values of a column of lists of strings, which is
undecided until they are known.
"""

from __future__ import annotations

import shlex
from collections.abc import Callable, Mapping, Sequence
from dataclasses import replace

import pyarrow as pa
import pyarrow.compute as pc

from derivlang.core.arrow import filled, is_string, whole
from derivlang.core.errors import DataError, UsageError
from derivlang.core.layers.tag_schemes import UNKNOWN, are_entity_tags, has_both, parse_tags
from derivlang.core.messages import first_names, warn
from derivlang.core.schema import UNDECIDED, UPOS, Field, Schema

# Columns with these names hold entities, even if the tags have no type or are not known yet, as in a stream. In all
# other columns the tags decide.
ENTITIES = ("ner_tags", "ner", "entities", "chunk_tags", "slots")
LABELS = ("entities", "tags", "heads", "value")  # what --label-column says of a column
# List columns that must have a value for each word. For others, the sampled rows decide.
PER_WORD = (*ENTITIES, "upos", "xpos", "lemmas", "feats", "head", "deprel", "deps", "misc", "pos_tags")

Naming = Callable[[str, str], str]  # ("text", "body") -> how a user says it


def by_option(kind: str, name: str) -> str:
    """Return how a user of the command line names a column: --text-column body."""
    return f"--{kind}-column {shlex.quote(name)}"


def field_of_column(
    name: str,
    kind: pa.DataType,
    tree: bool,
    words: bool,
    fits: bool,
    classes: tuple[str, ...] | None,
    asked: str | None,
    naming: Naming,
) -> Field:
    """Return what a column holds.

    tree: the table has trees. words: the table has one column of words. fits: the column may have a value for each
    word. asked: what the user says that it holds.
    """
    if name == "head" and tree:
        return Field("head", "tree", lexical=True)
    if name == "answers":
        return Field(name, "answers")
    if not is_list(kind) or pa.types.is_nested(kind.value_type):
        return Field(name, "value", None if pa.types.is_nested(kind) else classes)  # a list keeps its numbers
    if asked == "heads":
        return Field(name, "heads")
    strings = is_string(kind.value_type)
    by_values = strings and classes is None and asked is None
    known = asked == "entities" or (asked is None and (name in ENTITIES or are_entity_tags(classes or ())))
    if words and known:
        if not strings and classes is None:
            raise UsageError(
                f"{name} holds numbers without names, so its entities are unknown",
                fix="write the tags as strings (B-PER, I-PER, O); if they are not entities, pass "
                f"{naming('label', f'{name}=tags')}",
                id="unnamed-tags",
            )
        return Field(name, "entities", classes)
    if asked == "tags" or (fits and asked is None):
        if name == "misc" and by_values:
            return Field(name, "misc")
        lexical = name == "lemmas" and classes is None and strings
        by_values &= name != "upos"
        return Field(
            name, "tags?" if by_values else "tags", classes or (UPOS if name == "upos" else None), lexical=lexical
        )
    return Field(name, "value?" if by_values and name not in PER_WORD else "value")


def asked_of(labels: Sequence[str], types: Mapping[str, pa.DataType], where: str) -> dict[str, str]:
    """Return what the user says of columns of lists: [ner=tags] -> {ner: tags}. Raise UsageError."""
    asked: dict[str, str] = {}
    for label in labels:
        name, _, kind = label.rpartition("=")
        if not name or kind not in LABELS:
            raise UsageError(
                f"{label!r} does not say what a column holds", where=where,
                fix=f"NAME={' or NAME='.join(LABELS)}", id="bad-value",
            )  # fmt: skip
        if name not in types:
            raise UsageError(
                f"there is no column {name!r}; there are: {', '.join(types)}", where=where, id="unknown-column"
            )
        if name in asked:
            raise UsageError(f"the column {name!r} is named twice", where=where, fix="name it once", id="column-type")
        if not is_list(types[name]) or pa.types.is_nested(types[name].value_type):
            raise UsageError(
                f"the column {name!r} holds {types[name]}, not lists of labels", where=where, id="column-type"
            )
        asked[name] = kind
    return asked


def relabelled(schema: Schema, labels: Sequence[str], where: str) -> Schema:
    """Return the schema of a format whose tags may be entities, or a value for each word: [ner_tags=tags].

    Raise UsageError as `asked_of`, and for anything else.
    """
    tags = {field.column: pa.list_(pa.string()) for field in schema.fields if field.kind == "entities"}
    asked = asked_of(labels, tags, where)
    if other := next((kind for kind in asked.values() if kind not in ("entities", "tags")), None):
        raise UsageError(
            f"tags of words cannot be {other}", where=where, fix="NAME=entities or NAME=tags", id="bad-value"
        )
    return replace(
        schema, fields=tuple(replace(field, kind=asked.get(field.column, field.kind)) for field in schema.fields)
    )


def decided(schema: Schema, values: Mapping[str, Sequence[str]], naming: Naming = by_option) -> Schema:
    """Return the schema without undecided columns. One message says what was taken as what, where a value is a tag.

    values: all values of each of these columns, by output column; or some that are not tags.
    """
    has_words = len(schema.sides) == 1 and schema.sides[0].words is not None
    fields: list[Field] = []
    taken: dict[str, list[str]] = {"entities": [], "tags": []}
    for field in schema.fields:
        if field.kind in UNDECIDED:
            tags = values[field.column]
            entities = are_entity_tags(tags)
            if entities and not has_words:
                warn(f"the lists of {field.input!r} do not move with the words: the table has no column of words")
            kind = "entities" if entities and has_words else UNDECIDED[field.kind]
            doubtful = field.input not in PER_WORD and bool((parse_tags(tags)[1] != UNKNOWN).any())
            if kind == "entities" or (kind == "tags" and doubtful):
                taken[kind].append(field.input)
            field = replace(field, kind=kind, lexical=field.lexical and kind == "tags")
        fields.append(field)
    told = [
        f"{first_names(names)} hold{'s' * (len(names) == 1)} {what}"
        for names, what in ((taken["entities"], "entities"), (taken["tags"], "a value for each word"))
        if names
    ]
    if told:
        warn(f"by the values, {' and '.join(told)}; {naming('label', 'NAME=KIND')} says otherwise")
    return replace(schema, fields=tuple(fields))


def check_no_entities(column: pa.ChunkedArray, name: str, where: Callable[[int], str]) -> None:
    """Raise DataError late-tags if a column that held none so far holds tags of entities, with a B- and an I-.

    where: returns the place of a row.
    """
    if not is_string_list(column.type):
        return
    values = pc.unique(whole(column).flatten())
    begun = values.filter(filled(pc.match_substring_regex(values, "^[Bb][-_]."), False))
    if not len(begun) or not has_both([tag for tag in values.to_pylist() if tag is not None]):
        return
    row = next(row for row, value in enumerate(column) if {*begun.to_pylist()} & {*(value.as_py() or ())})
    raise DataError(
        f"{name!r} holds tags of entities here, but none in the rows before, which decided what it holds",
        where=where(row),
        fix=f"{by_option('label', f'{name}=entities')}, =tags or =value",
        id="late-tags",
    )


def by_name(schema: Schema) -> Schema:
    """Return the schema without undecided columns, of a named source, whose entities have known names."""
    return replace(schema, fields=tuple(replace(f, kind=UNDECIDED.get(f.kind, f.kind)) for f in schema.fields))


def is_string_list(kind: pa.DataType) -> bool:
    """Return whether a type is one of lists of strings."""
    return is_list(kind) and is_string(kind.value_type)


def is_list(kind: pa.DataType) -> bool:
    return bool(pa.types.is_list(kind) or pa.types.is_large_list(kind) or pa.types.is_fixed_size_list(kind))
