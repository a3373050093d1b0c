"""The columns of a source: their types in all files, and what they mean by names and types.

Files are looked at before the first row is derived, so the shards of a set have the same columns: each column has one
type, which keeps the values of all files of all splits. It holds words, text, entities, trees, answers, or labels.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from contextlib import suppress
from dataclasses import replace
from itertools import chain
from typing import Any

import pyarrow as pa
import pyarrow.compute as pc

from derivlang.core.arrow import is_string
from derivlang.core.columns import united
from derivlang.core.errors import DataError, DerivlangError, UsageError
from derivlang.core.layers.constituents import PARSE, are_trees
from derivlang.core.messages import counted, first_names, warn
from derivlang.core.schema import NLI, PARTS, UNDECIDED, Field, Schema, Side, is_nli, own_columns
from derivlang.formats.base import Format
from derivlang.formats.objects import has_translations, inner_texts, layout_of, longest_text, opened
from derivlang.formats.parquet import class_names
from derivlang.sources.corpus import CorpusFile
from derivlang.sources.doubts import are_sentences, check_not_places, fitting, warn_of_unmoved
from derivlang.sources.labels import PER_WORD, Naming, asked_of, by_option, field_of_column, is_list, is_string_list

WORDS = ("tokens", "words", "forms")
_IN_OBJECTS = "lists in objects are not read as words: write them to a key of the row"
_IN_TWO = 'write the words and the tags of a row as two lists, {"tokens": ["Ann", "ran"], "tags": ["NNP", "VBD"]}'
_APART = "write each sentence as text in a row of its own, or as a list of its words"
_MOST_NAMED = 6  # columns in an error
_DEEPEST = 32  # levels of nesting; a Parquet file with some 100 can be written, but not read
PAIRS = (
    ("premise", "hypothesis"), ("premise", "hypo"), ("sentence1", "sentence2"), ("context", "question"),
    ("question", "context"), ("sentence_good", "sentence_bad"),
)  # fmt: skip
TEXTS = ("text", "sentence")
TEXT_NAMES = dict.fromkeys([*TEXTS, *chain.from_iterable(PAIRS)])


def infer(
    schema: pa.Schema,
    sample: pa.Table | None = None,
    *,
    where: str,
    words: Sequence[str] = (),
    texts: Sequence[str] = (),
    labels: Sequence[str] = (),
    language: str = "en",
    naming: Naming = by_option,
) -> tuple[Schema, dict[str, Any]]:
    """Return the schema of a table, and the layout of texts and answers inside objects (`formats/objects.py`).

    words, texts: the columns that the user names; without any, known names are looked for. labels: what the user says
    of other columns, NAME=KIND. language: of texts that rows hold in several languages. Lists of strings whose name
    does not say what they are have a kind of UNDECIDED, which `decided` replaces. sample: some rows; a list column with
    an unknown name holds tags only if most of its lists are as long as the lists of the words. A warning names lists
    that may be labels of words and do not move. naming: returns how the user names a column, for the error.

    A label with the name of one of derivlang's own columns is kept as `<name>_given`. The class labels of entity
    columns come from the table's note for `datasets`, else the caller collects them. UsageError if no column is words
    or text, with the columns there are.
    """
    given = [*words, *texts]
    if not given:
        texts = _in_language(schema, sample, language)
    layout = layout_of(schema, texts)
    schema = opened(schema.empty_table(), layout, lambda row: where).schema if layout else schema
    sample = sample and opened(sample, layout, lambda row: where)
    if layout and layout["objects"]["texts"]:
        columns = {path: name for name, path in layout["objects"]["texts"].items()}
        texts = [columns.get(name, name) for name in texts]
        other = "" if given else "; --lang or --text-column takes another language"
        warn(f"{', '.join(columns)}: the objects that hold these texts stay as they are, in the source language{other}")
    types = {field.name: field.type for field in schema}
    classes = class_names(schema)
    for name in (*words, *texts):
        if name not in types:
            raise UsageError(
                f"there is no column {name!r}; there are: {', '.join(types)}",
                where=where,
                fix=_IN_OBJECTS if name in _lists_in_objects(types) else None,
                id="unknown-column",
            )
        if [*words, *texts].count(name) > 1:
            raise UsageError(f"the column {name!r} is named twice", where=where, fix="name it once", id="column-type")
        kind = types[name]
        if not (is_string(kind) if name in texts else is_string_list(kind)):
            wanted = "text" if name in texts else "lists of words"
            raise UsageError(f"the column {name!r} holds {kind}, not {wanted}", where=where, id="column-type")
    asked = asked_of(labels, types, where)
    deep = next((name for name, kind in types.items() if _depth(kind) > _DEEPEST), None)
    if deep is not None:
        raise DataError(
            f"the values of {deep!r} are nested more than {_DEEPEST} levels deep",
            where=where,
            fix="flatten them, or leave the column out",
            id="nesting",
        )
    sides = _sides(types, words, texts)
    lists = [name for name, kind in types.items() if is_string_list(kind)]
    sentences = [name for name in lists if sample is not None and are_sentences(sample[name])]
    if not sides:
        raise UsageError(
            f"no column of words or text among {', '.join(types)}",
            where=where,
            fix=_advice(types, inner_texts(schema, sample), naming, sentences, sample),
            id="no-words",
        )
    for column in [side.words for side in sides if side.words in sentences]:
        warn(f"{column!r} looks like lists of sentences, but each string is read as one word: {_APART}")
    # Rows of a derived set (in memory, or exported) keep its own columns as they are: no column is a label of the
    # words.
    derived = {"document", "order", "sentences"} <= set(types)
    if not derived:
        _warn_of_other_texts(types, sides, naming, named=bool(given))
    used = {side.words for side in sides} | {side.text for side in sides}
    known_texts = {*TEXT_NAMES, *(layout["objects"]["texts"].values() if layout else ())}
    fields: list[Field] = []
    tree = len(sides) == 1 and {"head", "deprel"} <= set(types)
    for name, kind in types.items():
        if name in used or (tree and name in ("deprel", "deps", "mwt", "empty_nodes")):
            continue
        own = derived and (name in PARTS or name.startswith("source_"))
        one = len(sides) == 1 and sides[0].words is not None and not own
        if name in asked and not one:
            raise UsageError(
                f"the values of {name!r} are labels of no words", where=where,
                fix="--label-column is for tables with one column of words", id="column-type",
            )  # fmt: skip
        fits = one and _fits_words(name, str(sides[0].words), sample)
        if name == PARSE and one and is_string(kind) and _are_trees(str(sides[0].words), sample):
            field = Field(PARSE, "constituents")
        elif own:
            field = Field(name, "value")
        else:
            field = field_of_column(name, kind, tree, one, fits, classes.get(name), asked.get(name), naming)
        if UNDECIDED.get(field.kind, field.kind) == "value" and not own and name not in asked:
            warn_of_unmoved(name, kind, sides, sample, known_texts)
        if UNDECIDED.get(field.kind, field.kind) == "tags" and field.classes is None and sample and name not in asked:
            check_not_places(name, str(sides[0].words), sample, where, naming)
        fields.append(field)
    if [side.text for side in sides] in (["premise", "hypothesis"], ["premise", "hypo"]):
        fields = [_with_nli(field, types[field.column], sample) for field in fields]
    reserved_names = own_columns(tuple(sides), tuple(fields))
    free = [
        replace(f, column=_free(f.column, {*types, *reserved_names}), given=f.column)
        if f.column in reserved_names
        else f
        for f in fields
    ]
    return Schema(tuple(sides), tuple(free)), layout


def _free(name: str, reserved_names: set[str]) -> str:
    """Return the name with `_given` at its end, as often as needed: key -> key_given."""
    while name in reserved_names:
        name += "_given"
    return name


def _in_language(schema: pa.Schema, sample: pa.Table | None, language: str) -> list[str]:
    """Return the texts in one of the languages of each row, if the table has no others: [premise.en, hypothesis.en]."""
    if _sides({field.name: field.type for field in schema}, (), ()):
        return []
    keys = inner_texts(schema, sample)
    names = next((names for names in (*PAIRS, ("translation",)) if all(language in keys.get(n, ()) for n in names)), ())
    return [f"{name}.{language}" for name in names]


def _are_trees(words: str, sample: pa.Table | None) -> bool:
    """Return whether the column of constituents has trees over the words in all sampled rows. Warn if some have."""
    if sample is None:
        return False
    texts, tokens = (sample[name].combine_chunks() for name in (PARSE, words))
    fits = are_trees(texts.cast(pa.string()), tokens.cast(pa.list_(pa.string())))
    if all(fits) or not any(fits):  # not any: no trees at all, or none that derivlang reads
        return all(fits) and bool(fits)
    row, rows = fits.index(False), len(fits)
    why = "it has no value (null)"
    if sample[PARSE][row].is_valid:
        why = "its brackets do not match, it does not have the words of its row, or not one space between its parts"
    warn(
        f"the trees of {PARSE!r} do not move with the words: row {row + 1} of the first {counted(rows, 'row')} is not "
        f"a tree over its words: {why}"
    )
    return False


def _fits_words(name: str, words: str, sample: pa.Table | None) -> bool:
    """Return whether a list column has a value for each word in most of the sampled rows."""
    if sample is None or name in PER_WORD or not sample.num_rows or not is_list(sample.schema.field(name).type):
        return True
    return 2 * fitting(name, Side("", words=words), sample) > int(sample.num_rows)


def _sides(types: dict[str, pa.DataType], words: Sequence[str], texts: Sequence[str]) -> list[Side]:
    """Return the sides of a table: named columns, else words, a pair, or text; [] if there are none."""
    lists = [n for n, t in types.items() if is_string_list(t)]
    strings = [n for n, t in types.items() if is_string(t)]
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


def _warn_of_other_texts(
    types: Mapping[str, pa.DataType], sides: Sequence[Side], naming: Naming, *, named: bool
) -> None:
    """Warn of columns with names of texts that the sides leave out, so that they stay in the source language.

    named: the user names the sides, and may leave out any other text than the other one of a pair.
    """
    used = [str(side.words or side.text) for side in sides]
    known = {other for pair in PAIRS for other in pair if not {*pair}.isdisjoint(used)} if named else TEXT_NAMES
    others = [name for name in types if name in known and name not in used and is_string(types[name])]
    if others:
        texts = [name for name in types if name in (*used, *others)]
        how = " ".join(naming("word" if name == sides[0].words else "text", name) for name in texts[:2])
        warn(f"{', '.join(map(repr, others))} stays in the source language; for a pair of texts: {how}")


def _advice(
    types: dict[str, pa.DataType],
    inner: Mapping[str, list[str]],
    naming: Naming,
    sentences: Sequence[str],
    sample: pa.Table | None,
) -> str:
    """Return how to name the columns that may be words or text.

    inner: keys of texts in columns of objects. sentences: columns of lists of sentences.
    """
    keys = [key for key in next(iter(inner.values()), ()) if all(key in others for others in inner.values())]
    if len(inner) > 1 and keys:  # premise and hypothesis, in several languages each
        return f"choose one of {', '.join(keys)}: {' '.join(naming('text', f'{name}.{keys[0]}') for name in inner)}"
    words = [naming("word", n) for n, t in types.items() if is_string_list(t) and n not in sentences]
    paths = [name for name, kind in types.items() if is_string(kind)]
    paths += [f"{name}.{key}" for name, keys in inner.items() for key in keys]
    lists = _lists_in_objects(types)
    nested = [name for name, kind in types.items() if is_list(kind) and is_string_list(kind.value_type)]
    if sample is not None:
        longest = {path: longest_text(sample, path) for path in paths}
        paths = [path for path in paths if not (lists or nested) or " " in longest[path]]
        paths.sort(key=lambda path: -len(longest[path]))
    texts = [naming("text", path) for path in paths]
    named = f"name it: {' or '.join([*words, *texts][:_MOST_NAMED])}" if words or texts else ""
    inside = f"{_IN_OBJECTS} ({first_names(lists)})" if lists else ""
    inside = f"{first_names(nested)} holds lists of lists, such as [word, tag]: {_IN_TWO}" if nested else inside
    apart = f"{first_names(sentences)} looks like lists of sentences: {_APART}" if sentences else ""
    return "; ".join(filter(None, [named, apart, inside])) or "a source needs raw text or lists of words"


def _lists_in_objects(types: Mapping[str, pa.DataType]) -> list[str]:
    """Return the lists of strings in objects, and strings in lists of objects.

    {"doc": {"tokens": ["Ann"]}} -> ["doc.tokens"]      {"tokens": [{"form": "Ann"}]} -> ["tokens.form"]
    """
    kinds = {name: kind.value_type if is_list(kind) else kind for name, kind in types.items()}
    objects = {name: kind for name, kind in kinds.items() if pa.types.is_struct(kind) and not has_translations(kind)}
    return [f"{name}.{inner.name}" for name, kind in objects.items() for inner in kind
            if is_string_list(inner.type) or (is_list(types[name]) and is_string(inner.type))]  # fmt: skip


def _with_nli(field: Field, kind: pa.DataType, sample: pa.Table | None) -> Field:
    """Return a label of premise and hypothesis, as an NLI label if all its sampled values are names of those."""
    named = field.column in ("label", "gold_label") and field.classes is None and is_string(kind)
    if not named or sample is None or not _are_nli(field, set(pc.unique(sample[field.column]).to_pylist())):
        return field
    return replace(field, classes=NLI)


def _are_nli(field: Field, values: set[Any]) -> bool:
    """Return whether all values are NLI labels. Warn if they would be in small letters and without spaces."""
    are_nli = is_nli(values)
    if not are_nli and is_nli(value if value is None else str(value).strip().lower() for value in values):
        others = sorted(repr(value) for value in values if not is_nli([value, *NLI]))
        warn(
            f"{field.input} holds {first_names(others)}, so its values are plain texts; labels of xnli are "
            f"{', '.join(NLI)}"
        )
    return are_nli


def without_nli(schema: Schema, labels: Callable[[str], Iterable[Any]]) -> Schema:
    """Return the schema, with plain values for an NLI label if not all its values are names of NLI labels.

    labels: returns all values of a column. Numbers are of the classes that a table's note names.
    """

    def is_other(field: Field) -> bool:
        values = set(labels(field.input)) if field.kind == "value" and field.classes == NLI else set()
        return any(isinstance(value, str) for value in values) and not _are_nli(field, values)

    return replace(schema, fields=tuple(replace(f, classes=None) if is_other(f) else f for f in schema.fields))


def _depth(kind: pa.DataType) -> int:
    """Return how deep lists and objects are nested."""
    depth = 0
    level = [kind]
    while level := [t.field(i).type for t in level if pa.types.is_nested(t) for i in range(t.num_fields)]:
        depth += 1
    return depth


def types_of_files(
    format: Format, parts: Iterable[CorpusFile], encoding: str, options: Mapping[str, Any]
) -> dict[CorpusFile, pa.Schema]:
    """Return the columns of each file. A file that cannot be read is an error later, if its split is made."""
    found: dict[CorpusFile, pa.Schema] = {}
    for part in parts:
        with suppress(DerivlangError):
            found[part] = format.types_of(part.path, encoding, options)
    return found


def unify(found: Mapping[CorpusFile, pa.Schema]) -> pa.Schema:
    """Return the columns of all files, in the order in which they are met, with the note of the first file.

    Raise DataError types-differ for types that no type unites, and for other classes; column-names.
    """
    classes: dict[str, tuple[tuple[str, ...], CorpusFile]] = {}

    def checked() -> Iterator[tuple[pa.Schema, str, str]]:
        for part, schema in found.items():
            if twice := [name for name in schema.names if schema.names.count(name) > 1]:
                raise DataError(
                    f"two columns have the name {twice[0]!r}",
                    where=str(part.path),
                    fix="give each column a different name",
                    id="column-names",
                )
            yield schema, str(part.path), part.name
            for name, names in class_names(schema).items():
                known, other = classes.setdefault(name, (names, part))
                if names != known:
                    raise DataError(
                        f"the classes of {name!r} are {', '.join(names)}, but {', '.join(known)} in {other.name}",
                        where=str(part.path),
                        fix="give all files the same classes, or make the files one by one",
                        id="types-differ",
                    )

    fields = united(checked())
    metadata = next((schema.metadata for schema in found.values() if class_names(schema)), None)
    return pa.schema(fields, metadata)
