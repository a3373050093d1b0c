"""Pipeline.map: a Hugging Face dataset, derived in memory; the rows that `make` gives."""

from __future__ import annotations

from collections import Counter
from dataclasses import dataclass, replace
from pathlib import Path
from typing import TYPE_CHECKING, Any

import numpy as np
import pyarrow as pa

from derivlang.core.batch import Policies
from derivlang.core.errors import UsageError
from derivlang.core.layers.spans import complete_classes
from derivlang.core.reading import to_batch
from derivlang.core.rows import to_table
from derivlang.core.schema import Schema
from derivlang.core.sentences import Rule
from derivlang.formats.pieces import Splitting
from derivlang.formats.words import Mode, Splitter
from derivlang.parsing.base import find_parser
from derivlang.pipeline import Pipeline, read_lexicon
from derivlang.sources.infer import infer
from derivlang.sources.read import split_texts
from derivlang.store.features import arrow_schema

if TYPE_CHECKING:
    from datasets import Dataset, DatasetDict, Features, IterableDataset

_BATCH = 1000


@dataclass(frozen=True, slots=True)
class Columns:
    """Columns that names alone do not tell. words: lists of words; texts: raw text; tags: the tag names
    (`B-PER` …) of entity columns that hold strings in a stream, where they cannot be collected first."""

    words: tuple[str, ...] = ()
    texts: tuple[str, ...] = ()
    tags: tuple[str, ...] = ()


@dataclass(frozen=True, slots=True)
class _Recipe:
    """What a batch of rows needs; plain data, so that `datasets` can hash and pickle it."""

    spec: str
    lexicon: str | None
    schema: Schema
    words: Mode
    language: str
    policies: Policies
    rule: Rule
    repair_tags: bool
    parser: str | None


def map_dataset(
    pipeline: Pipeline,
    dataset: Dataset | DatasetDict | IterableDataset,
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
    """See `Pipeline.map`. Columns are as in `docs/formats.md`; `document` counts rows.

    Raises UsageError where no column is words or text, or where a pipeline needs a lexicon and has none.
    """
    import datasets

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
        return type(dataset)({k: map_dataset(pipeline, v, columns, **options) for k, v in dataset.items()})
    columns = columns or Columns()
    streaming = isinstance(dataset, datasets.IterableDataset)
    features = dataset.features if not streaming else (dataset.features or dataset._resolve_features().features)
    sample = dataset.with_format("arrow")[: min(100, len(dataset))] if not streaming and len(dataset) else None
    schema = infer(features.arrow_schema, sample, where="Pipeline.map", words=columns.words, texts=columns.texts)
    schema = _with_tags(schema, dataset, columns, streaming)
    saved = read_lexicon(lexicon) if lexicon else None
    # A missing lexicon is an error now, not in the first batch; what was read of files is part of the recipe.
    saved = pipeline.save(pipeline.fit(saved=saved, where=str(lexicon)))
    found = None
    if pipeline.needs_trees and not schema.has_trees:
        found, schema = find_parser(parser, language).name, replace(schema, parsed=True)
    recipe = _Recipe(
        str(pipeline), saved, schema, words, language, policies or Policies(), sentences, repair_tags, found
    )
    mapped: dict[str, Any] = {
        "with_indices": True,
        "batched": True,
        "batch_size": _BATCH,
        "features": _features(recipe, features),
        "fn_kwargs": {"recipe": recipe},
    }
    if not streaming and len(dataset) == 0:
        empty = _derive_rows(features.arrow_schema.empty_table(), [], recipe)
        return datasets.Dataset(empty).cast(mapped["features"])
    # An Arrow table from the function replaces the batch; remove_columns would take its columns away in a stream.
    return dataset.with_format("arrow").map(_derive_rows, **mapped).with_format(None)


def _derive_rows(table: pa.Table, indices: list[int], recipe: _Recipe) -> pa.Table:
    pipeline = Pipeline.parse(recipe.spec)
    lexicon = pipeline.fit(saved=recipe.lexicon)
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
        has_order=pipeline.has_order,
        exact=pipeline.is_permutation,
        policies=recipe.policies,
    )
    plain = {name: _plain(column) for name, column in columns.items()}
    return pa.table(plain, metadata=arrow_schema(plain, recipe.schema).metadata)


def _features(recipe: _Recipe, features: Features) -> Features:
    """The features of the output: those of a table derived from no rows."""
    import datasets

    empty = _derive_rows(features.arrow_schema.empty_table(), [], recipe)
    return datasets.Features.from_arrow_schema(empty.schema)


def _with_tags(schema: Schema, dataset: Any, columns: Columns, streaming: bool) -> Schema:
    """Entity columns of strings get their tag names: given, or collected from a dataset that lies in memory."""
    fields = []
    for field in schema.fields:
        if field.kind == "entities" and field.classes is None:
            if columns.tags:
                names = list(columns.tags)
            elif streaming:
                raise UsageError(
                    f"the tags of {field.column} are strings, and a stream cannot be looked through first",
                    fix="name them: Columns(tags=('O', 'B-PER', 'I-PER', …))",
                    id="unnamed-tags",
                )
            else:
                column = dataset.with_format("arrow")[:][field.column]
                names = pa.compute.unique(column.combine_chunks().flatten()).to_pylist()
            proper = complete_classes(names)
            field = replace(field, classes=(*proper, *sorted(set(names) - set(proper))))
        fields.append(field)
    return Schema(schema.sides, tuple(fields), schema.running)


def _plain(column: pa.Array) -> pa.Array:
    kind = column.type
    if pa.types.is_list(kind) and pa.types.is_dictionary(kind.value_type):
        return column.cast(pa.list_(kind.value_type.value_type))
    return column
