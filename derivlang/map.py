"""`map_dataset`: derive a Hugging Face dataset in memory, with the rows that `make` writes."""

from __future__ import annotations

import re
from collections import Counter
from collections.abc import Iterator
from contextlib import contextmanager
from dataclasses import dataclass, replace
from functools import lru_cache
from pathlib import Path
from typing import TYPE_CHECKING, Any

import numpy as np
import pyarrow as pa
import pyarrow.compute as pc

from derivlang.core.arrow import decoded
from derivlang.core.errors import DerivlangError, UsageError
from derivlang.core.layers.spans import complete_classes
from derivlang.core.lexicon import Lexicon
from derivlang.core.policies import Policies
from derivlang.core.reading import to_batch
from derivlang.core.rules import Mode, Rule
from derivlang.core.schema import Schema, answered_side
from derivlang.core.to_table import to_table
from derivlang.formats.pieces import Splitting
from derivlang.formats.words import Splitter
from derivlang.parsing.registry import find_parser
from derivlang.pipeline import Pipeline
from derivlang.sources.infer import infer, without_nli
from derivlang.sources.read import split_texts
from derivlang.store.features import arrow_schema
from derivlang.transforms.lexicon_file import read_lexicon

if TYPE_CHECKING:
    from datasets import Dataset, DatasetDict, Features, IterableDataset

_BATCH = 1000
_SAMPLE = 100
# Command-line options that errors name, and the arguments that they become.
_ARGUMENTS = {
    "--lexicon FILE": "lexicon=Path('FILE')",
    "--lexicon": "lexicon=",
    "--lang": "language=",
    "--words unicode": "words='unicode'",
    "--words space": "words='space'",
    "--words": "words=",
    "--parser": "parser=",
    "--repair-tags": "repair_tags=True",
    "--sentences": "sentences=",
    "--t": "spec",
}
_OPTION = re.compile("|".join(rf"{re.escape(option)}\b" for option in _ARGUMENTS))


@dataclass(frozen=True, slots=True)
class Columns:
    """What the names of columns do not tell.

    words: columns of lists of words. texts: columns of raw text. tags: the tag names (`B-PER` …) of entity columns that
    hold strings; needed for a stream, where they cannot be collected first.
    """

    words: tuple[str, ...] = ()
    texts: tuple[str, ...] = ()
    tags: tuple[str, ...] = ()


@dataclass(frozen=True, slots=True)
class _Recipe:
    """What a batch of rows needs: plain data, which `datasets` can pickle and hash."""

    spec: str
    lexicon: str | None
    schema: Schema
    words: Mode
    language: str
    policies: Policies
    rule: Rule
    repair_tags: bool
    parser: str | None


@contextmanager
def _in_python() -> Iterator[None]:
    """Replace options of the command line in errors by the arguments of `map_dataset`."""
    try:
        yield
    except DerivlangError as error:
        texts = (error.what, error.where, error.fix)
        what, where, fix = (None if text is None else _OPTION.sub(_argument, text) for text in texts)
        raise type(error)(what or "", where=where, fix=fix, id=error.id) from error


def _argument(found: re.Match[str]) -> str:
    return _ARGUMENTS.get(found[0], found[0])


@_in_python()
def map_dataset(
    dataset: Dataset | DatasetDict | IterableDataset,
    spec: str,
    columns: Columns | None = None,
    *,
    lexicon: Path | None = None,
    words: Mode = "spacy",
    language: str = "en",
    policies: Policies | None = None,
    sentences: Rule = "marks",
    repair_tags: bool = False,
    parser: str | None = None,
) -> Any:
    """Derive a Dataset, DatasetDict or IterableDataset; the rows and columns are those that `make` writes.

    columns: which columns hold words, text and tags (default: by name and type). lexicon: a saved lexicon.tsv, needed
    if the spec keeps some of the types. words: how raw text is split into words. language: of the text, for the
    splitter and the parser. policies, sentences, repair_tags: as the options of `make`. parser: finds the trees that
    `syn` needs (default: the bundled one of the language). The column `document` counts rows; the reference page on
    columns describes the others.

    Raises UsageError if no column is words or text, or if the pipeline needs a lexicon and has none.

    >>> import datasets
    >>> rows = map_dataset(datasets.Dataset.from_dict({"text": ["Welcome to ACL ."]}), "trans,inv")
    >>> rows["text"][0]
    'ᲐᲪᲚ ტო Წელცომე ．'
    """
    import datasets

    kinds = (datasets.Dataset, datasets.DatasetDict, datasets.IterableDataset, datasets.IterableDatasetDict)
    if not isinstance(dataset, kinds):
        raise UsageError(
            f"map_dataset takes a set of `datasets` (Dataset, DatasetDict, IterableDataset, IterableDatasetDict), "
            f"not {'None' if dataset is None else type(dataset).__name__}",
            fix="make one of rows: datasets.Dataset.from_list([{'text': 'Hello .'}])",
            id="dataset",
        )
    if isinstance(dataset, (datasets.DatasetDict, datasets.IterableDatasetDict)):
        options: dict[str, Any] = {
            "lexicon": lexicon,
            "words": words,
            "language": language,
            "policies": policies,
            "sentences": sentences,
            "repair_tags": repair_tags,
            "parser": parser,
        }
        return type(dataset)({k: map_dataset(v, spec, columns, **options) for k, v in dataset.items()})
    pipeline, columns = Pipeline.parse(spec), columns or Columns()
    streaming = isinstance(dataset, datasets.IterableDataset)
    features = dataset.features if not streaming else (dataset.features or dataset._resolve_features().features)
    schema = infer(
        features.arrow_schema,
        _sample(dataset, streaming),
        where="map_dataset",
        words=columns.words,
        texts=columns.texts,
        fix="name it: Columns(words=['NAME']) (a list of words) or Columns(texts=['NAME']) (raw text)",
    )
    if not streaming:
        schema = without_nli(schema, lambda name: _unique(dataset, name))
    schema = _with_tags(schema, dataset, columns, streaming)
    saved = read_lexicon(lexicon) if lexicon else None
    # A missing lexicon is an error now, not in the first batch. What was read from files is part of the recipe.
    saved = pipeline.save(pipeline.fit(saved=saved, where=str(lexicon)))
    found = None
    if pipeline.needs_trees and not schema.has_trees:
        found, schema = find_parser(parser, language).name, replace(schema, parsed=True)
    recipe = _Recipe(
        pipeline.stored, saved, schema, words, language, policies or Policies(), sentences, repair_tags, found
    )
    size: int | None = _BATCH
    if recipe.policies.answers == "atomic" and answered_side(schema) is not None:
        if streaming:
            raise UsageError(
                "answers='atomic' needs all questions of a context at once, and a stream comes in batches",
                fix="load the dataset without streaming, or use `derivlang make --answers atomic`",
                id="streamed-answers",
            )
        size = None  # one batch
    mapped: dict[str, Any] = {
        "with_indices": True,
        "batched": True,
        "batch_size": size,
        "features": _features(recipe, features),
        "fn_kwargs": {"recipe": recipe},
    }
    if not streaming and len(dataset) == 0:
        empty = _derive_rows(features.arrow_schema.empty_table(), [], recipe)
        return datasets.Dataset(empty).cast(mapped["features"])
    # An Arrow table from the function replaces the batch; in a stream, remove_columns would remove its columns too.
    return dataset.with_format("arrow").map(_derive_rows, **mapped).with_format(None)


def _sample(dataset: Any, streaming: bool) -> pa.Table | None:
    """Return the first rows, or None if there are none."""
    rows = dataset.with_format("arrow")
    if streaming:
        return next(iter(rows.iter(_SAMPLE)), None)
    return rows[: min(_SAMPLE, len(dataset))] if len(dataset) else None


def _unique(dataset: Any, name: str) -> list[Any]:
    """Return the distinct values of a column, or of the elements of its lists."""
    column = dataset.with_format("arrow")[:][name].combine_chunks()
    return list(pc.unique(column.flatten() if pa.types.is_list(column.type) else column).to_pylist())


@lru_cache(maxsize=2)
def _fitted(spec: str, lexicon: str | None) -> tuple[Pipeline, Lexicon]:
    """Return the pipeline of a stored spec and its lexicon; both serve all batches."""
    pipeline = Pipeline.from_stored(spec)
    return pipeline, pipeline.fit(saved=lexicon)


@_in_python()
def _derive_rows(table: pa.Table, indices: list[int], recipe: _Recipe) -> pa.Table:
    """Return the output rows of a batch of input rows."""
    pipeline, lexicon = _fitted(recipe.spec, recipe.lexicon)
    splitting = Splitting(Splitter(recipe.words, recipe.language))
    batch = to_batch(
        table,
        recipe.schema,
        lambda texts: split_texts(splitting, texts),
        documents=np.asarray(indices, np.int64),
        where=lambda row, word: f"row {indices[row]}" + ("" if word is None else f", word {word}"),
        counts=Counter(),
        repair_tags=recipe.repair_tags,
    )
    trees = None if recipe.parser is None else find_parser(recipe.parser, recipe.language)
    derived = pipeline.derive(batch, lexicon, policies=recipe.policies, rule=recipe.rule, parser=trees)
    columns = to_table(
        derived.source,
        derived.derived,
        derived.order,
        recipe.schema,
        lexicon,
        has_order=pipeline.has_order,
        exact=pipeline.is_permutation,
        policies=recipe.policies,
    )
    plain = {name: decoded(column) for name, column in columns.items()}
    return pa.table(plain, metadata=arrow_schema(plain, recipe.schema).metadata)


def _features(recipe: _Recipe, features: Features) -> Features:
    """Return the features of the output, by deriving a table without rows."""
    import datasets

    empty = _derive_rows(features.arrow_schema.empty_table(), [], recipe)
    return datasets.Features.from_arrow_schema(empty.schema)


def _with_tags(schema: Schema, dataset: Any, columns: Columns, streaming: bool) -> Schema:
    """Return the schema with the tag names of entity columns that hold strings, given or collected."""
    fields = []
    for field in schema.fields:
        if field.kind == "entities" and field.classes is None:
            if columns.tags:
                names = list(columns.tags)
            elif streaming:
                raise UsageError(
                    f"the tags of {field.column} are strings, and a stream cannot be searched for them first",
                    fix="name them: Columns(tags=('O', 'B-PER', 'I-PER', …))",
                    id="unnamed-tags",
                )
            else:
                names = _unique(dataset, field.column)
            proper = complete_classes(names)
            field = replace(field, classes=(*proper, *sorted(set(names) - set(proper))))
        fields.append(field)
    return Schema(schema.sides, tuple(fields), schema.running)
