"""What the columns of a table mean, from their names and types: words, text, entities, trees, answers, labels."""

from __future__ import annotations

import json
from collections.abc import Sequence
from dataclasses import replace

import pyarrow as pa
import pyarrow.compute as pc

from derivlang.core.errors import UsageError
from derivlang.core.schema import NLI, Field, Kind, Schema, Side, own_columns

WORDS = ("tokens", "words", "forms")
ENTITIES = ("ner_tags", "ner", "entities", "chunk_tags", "slots")
PAIRS = (("premise", "hypothesis"), ("sentence1", "sentence2"), ("context", "question"), ("question", "context"))
TEXTS = ("text", "sentence")
# List columns that must have a value for each word; of others, the sampled rows tell.
PER_WORD = (*ENTITIES, "upos", "xpos", "lemmas", "feats", "head", "deprel", "deps", "misc", "pos_tags")
# The order in which Hugging Face's UD lists the tags; users' scripts read them by number.
UPOS = tuple("NOUN PUNCT ADP NUM SYM SCONJ ADJ PART DET CCONJ PROPN PRON X _ ADV INTJ VERB AUX".split())


def infer(
    schema: pa.Schema,
    sample: pa.Table | None = None,
    *,
    where: str,
    words: Sequence[str] = (),
    texts: Sequence[str] = (),
) -> Schema:
    """The schema of a table. words, texts: columns named by the user; else known names are looked for.

    sample: some rows; a list column of an unknown name that mostly has other lengths than the words is no tags.
    A label whose name is one of the derived set's own columns is kept as `<name>_given`.

    Class labels of entity columns are taken from the table's note for `datasets` where it has one, else left
    for the caller to collect. UsageError where no column is words or text, lists what there is.
    """
    types = {field.name: field.type for field in schema}
    classes = class_names(schema)
    for name in (*words, *texts):
        if name not in types:
            raise UsageError(
                f"there is no column {name!r}; there are: {', '.join(types)}", where=where, id="unknown-column"
            )
        kind = types[name]
        if not (_is_string(kind) if name in texts else _is_list(kind) and _is_string(kind.value_type)):
            wanted = "text" if name in texts else "lists of words"
            raise UsageError(f"the column {name!r} holds {kind}, not {wanted}", where=where, id="column-type")
    sides = _sides(types, words, texts)
    if not sides:
        raise UsageError(
            f"no column of words or text among {', '.join(types)}",
            where=where,
            fix="name it: --word-column NAME (a list of words) or --text-column NAME (raw text)",
            id="no-words",
        )
    used = {side.words for side in sides} | {side.text for side in sides}
    fields: list[Field] = []
    tree = len(sides) == 1 and {"head", "deprel"} <= set(types)
    for name, kind in types.items():
        if name in used or (tree and name in ("deprel", "deps", "mwt", "empty_nodes")):
            continue
        per_word = len(sides) == 1 and sides[0].words is not None and _fits_words(name, sides[0].words, sample)
        field = _field(name, kind, tree, per_word, classes.get(name))
        fields.append(field)
    taken = own_columns(tuple(sides), tuple(fields))
    free = [replace(f, column=f"{f.column}_given", given=f.column) if f.column in taken else f for f in fields]
    return Schema(tuple(sides), tuple(free))


def _fits_words(name: str, words: str, sample: pa.Table | None) -> bool:
    """Has a list column of an unknown name a value for each word, in most of the sampled rows?"""
    if sample is None or name in PER_WORD or not sample.num_rows or not _is_list(sample.schema.field(name).type):
        return True
    ours, theirs = (pc.list_value_length(sample[column]) for column in (name, words))
    return bool(2 * (pc.sum(pc.equal(ours, theirs)).as_py() or 0) > sample.num_rows)


def _sides(types: dict[str, pa.DataType], words: Sequence[str], texts: Sequence[str]) -> list[Side]:
    lists = [n for n, t in types.items() if _is_list(t) and _is_string(t.value_type)]
    strings = [n for n, t in types.items() if _is_string(t)]
    if words or texts:
        named = [Side(n, words=n) for n in words] + [Side(n, text=n) for n in texts]
        return [Side("", named[0].words, named[0].text)] if len(named) == 1 else named
    for name in WORDS:
        if name in lists:
            return [Side("", words=name)]
    for pair in PAIRS:
        if all(name in strings for name in pair):
            return [Side(name, text=name) for name in pair]
    for name in TEXTS:
        if name in strings:
            return [Side("", text=name)]
    return []


def _field(name: str, kind: pa.DataType, tree: bool, tokens: bool, classes: tuple[str, ...] | None) -> Field:
    if name == "head" and tree:
        return Field("head", "tree")
    if name == "answers":
        return Field(name, "answers")
    if tokens and _is_list(kind) and not pa.types.is_nested(kind.value_type):
        if name == "misc":
            return Field(name, "misc")
        bio = classes is not None and any(c.startswith("B-") for c in classes)
        if bio or (classes is None and name in ENTITIES and _is_string(kind.value_type)):
            return Field(name, "entities", classes)
        if name in ENTITIES and not bio:
            raise UsageError(
                f"{name} holds numbers without names, so its entities are unknown",
                fix="write the tags as strings (B-PER, I-PER, O)",
                id="unnamed-tags",
            )
        return Field(name, "tags", classes or (UPOS if name == "upos" else None))
    value: Kind = "value"
    if name in ("label", "gold_label") and classes is None and _is_string(kind):
        return Field(name, value, NLI)
    return Field(name, value, classes)


def class_names(schema: pa.Schema) -> dict[str, tuple[str, ...]]:
    """The class labels that a table's note for `datasets` names, by column."""
    note = (schema.metadata or {}).get(b"huggingface")
    if not note:
        return {}
    found = {}
    for name, feature in json.loads(note)["info"]["features"].items():
        inner = feature.get("feature", feature) if isinstance(feature, dict) else {}
        if isinstance(inner, dict) and inner.get("_type") == "ClassLabel":
            found[name] = tuple(inner["names"])
    return found


def _is_list(kind: pa.DataType) -> bool:
    return bool(pa.types.is_list(kind) or pa.types.is_large_list(kind))


def _is_string(kind: pa.DataType) -> bool:
    return bool(pa.types.is_string(kind) or pa.types.is_large_string(kind))
