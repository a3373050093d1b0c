"""`map_dataset`: derive a Hugging Face dataset in memory, with the rows that `make` writes."""

from __future__ import annotations

import sys
from collections import Counter
from collections.abc import Iterable
from dataclasses import dataclass, replace
from functools import lru_cache
from pathlib import Path
from typing import TYPE_CHECKING, Any

import numpy as np
import pyarrow as pa
import pyarrow.compute as pc

from derivlang.core.arrays import Int64
from derivlang.core.arrow import decoded, whole
from derivlang.core.columns import bring
from derivlang.core.errors import DataError, UsageError
from derivlang.core.from_table import to_batch
from derivlang.core.layers.tag_schemes import SchemeSearch, are_entity_tags, with_scheme
from derivlang.core.lexicon import Lexicon
from derivlang.core.messages import errors_in_python, warn
from derivlang.core.policies import Policies, warn_of_unused
from derivlang.core.schema import UNDECIDED, Schema, answered_side
from derivlang.core.sentences import RULE_VERSION
from derivlang.core.spec import any_file
from derivlang.core.takes import Mode, Rule
from derivlang.core.to_table import to_table
from derivlang.formats.objects import opened
from derivlang.formats.pieces import Splitting
from derivlang.formats.words import Splitter
from derivlang.parsing.registry import find_parser, unused_parser
from derivlang.pipeline import Pipeline
from derivlang.sources.corpus import CorpusFile
from derivlang.sources.infer import infer, unify, without_nli
from derivlang.sources.labels import decided
from derivlang.store.manifest import OUTPUT_VERSION
from derivlang.store.shards import arrow_schema
from derivlang.transforms.fitting import read_lexicon

if TYPE_CHECKING:
    from datasets import Dataset, DatasetDict, Features, IterableDataset

_BATCH = 1000
_SAMPLE = 100


@dataclass(frozen=True, slots=True)
class Columns:
    """What the names of columns do not say.

    words: columns of lists of words. texts: columns of raw text. tags: the tag names (`B-PER` …) of entity columns that
    hold strings; needed for a stream, where they cannot be collected first. labels: what other columns of lists hold,
    as NAME=entities, NAME=tags (a value for each word) or NAME=value (it does not move with the words).
    """

    words: tuple[str, ...] = ()
    texts: tuple[str, ...] = ()
    tags: tuple[str, ...] = ()
    labels: tuple[str, ...] = ()

    def __post_init__(self) -> None:
        for name in ("words", "texts", "tags", "labels"):
            if isinstance(value := getattr(self, name), str):
                raise UsageError(
                    f"{name}= takes several names, not a string", fix=f"Columns({name}=({value!r},))", id="bad-value"
                )


@dataclass(frozen=True, slots=True)
class _Recipe:
    """What a batch of rows needs: plain data, which `datasets` can pickle and hash.

    fingerprint: of the contents of grammars, lexicon and parser, and of the versions of the tokenizer and the output.
    `datasets` finds derived rows again by the hash of the recipe.
    """

    spec: str
    lexicon: str | None
    schema: Schema
    types: pa.Schema
    layout: dict[str, Any]
    words: Mode
    language: str
    policies: Policies
    rule: Rule
    repair_tags: bool
    parser: str | None
    fingerprint: str


@errors_in_python()
def map_dataset(
    dataset: Dataset | DatasetDict | IterableDataset,
    spec: str,
    columns: Columns | None = None,
    *,
    lexicon: Path | str | None = None,
    words: Mode = "spacy",
    lang: str = "en",
    policies: Policies | None = None,
    sentences: Rule = "marks",
    repair_tags: bool = False,
    parser: str | None = None,
) -> Any:
    """Derive a Dataset, DatasetDict or IterableDataset; the rows and columns are those that `make` writes.

    columns: which columns hold words, text and tags (default: by name and type). lexicon: a saved lexicon.tsv, needed
    if the spec keeps some of the types. words: how raw text is split into words. lang: language of the text, for the
    splitter and the parser. policies, sentences, repair_tags: as the options of `make`. parser: finds the trees that
    `syn` needs (default: the bundled one of the language). The column `document` counts rows; the reference page on
    columns describes the others.

    A stream that several processes read (`datasets.distributed.split_dataset_by_node`, which comes before; workers of a
    `DataLoader`) has numbers of its own in each, so that no two rows share one. They depend on how many processes there
    are, and with them what is drawn for each row.

    The splits of a dictionary are derived as one set: a label has the same classes in each.

    Raises UsageError if no column is words or text, if the splits of a dictionary have different features, or if the
    pipeline needs a lexicon and has none.

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
    columns, policies = columns or Columns(), policies or Policies()
    for name, value, kind in (("columns", columns, Columns), ("policies", policies, Policies)):
        if not isinstance(value, kind):
            raise UsageError(
                f"{name}= takes a {kind.__name__}, not {type(value).__name__}",
                fix=f"import it: from {kind.__module__} import {kind.__name__}",
                id="bad-value",
            )
    splits = dict(dataset) if isinstance(dataset, dict) else {"": dataset}
    if not splits:
        return dataset
    pipeline, types = Pipeline.parse(spec), _types_of(splits)
    schema, layout = _schema(splits, types, columns)
    saved = read_lexicon(Path(lexicon)) if lexicon else None
    # A missing lexicon is an error now, not in the first batch. What was read from files is part of the recipe.
    saved = pipeline.save(pipeline.fit(saved=saved, where=str(lexicon)))
    parser_name, contents = None, f"{pipeline.fingerprint(saved)} {OUTPUT_VERSION} {RULE_VERSION}"
    is_raw = any(side.words is None for side in schema.sides)
    if is_raw:
        contents = f"{contents} {Splitter(words, lang)}"
    if pipeline.needs_trees and not schema.has_trees:
        trees = find_parser(parser, lang)
        parser_name, schema, contents = trees.name, replace(schema, parsed=True), f"{contents} {trees.fingerprint}"
    elif parser is not None:
        raise unused_parser("the set has trees already" if pipeline.needs_trees else f"{pipeline} needs no trees")
    pipeline.warn_of_misfits(lang)
    warn_of_unused("the set", schema, policies, warn, repair_tags=repair_tags)
    if words != "spacy" and not is_raw:
        warn("the set has words, not raw text, so words= has no effect")
    if lang != "en" and not (is_raw and words == "spacy") and parser_name is None:
        warn("neither spaCy's tokenizer nor a parser reads the set, so lang= has no effect")
    made = pipeline.stored, saved, schema, types, layout
    recipe = _Recipe(*made, words, lang, policies, sentences, repair_tags, parser_name, contents)
    size: int | None = _BATCH
    if policies.answers == "atomic" and answered_side(schema) is not None:
        if _is_stream(dataset):
            raise UsageError(
                "answers='atomic' needs all questions of a context at once, and a stream comes in batches",
                fix="load the dataset without streaming, or use `derivlang make --answers atomic`",
                id="streamed-answers",
            )
        size = None  # one batch
    if not pipeline.keyed:
        if _is_stream(dataset):
            pipeline.check_keyed("a stream", "map_dataset")
        size = None
    mapped = {name: _mapped(split, recipe, size) for name, split in splits.items()}
    return type(dataset)(mapped) if isinstance(dataset, dict) else mapped[""]


def _mapped(dataset: Any, recipe: _Recipe, size: int | None) -> Any:
    """Return a derived split. size: rows of a batch, None for one batch."""
    import datasets

    derived_features = _features(recipe)
    if not _is_stream(dataset) and len(dataset) == 0:
        empty = _derive_rows(recipe.types.empty_table(), [], recipe)
        return datasets.Dataset(empty).cast(derived_features)
    node = getattr(dataset, "_distributed", None)  # `split_dataset_by_node` says it nowhere else
    place = (node.rank, node.world_size) if node else (0, 1)
    # An Arrow table from the function replaces the batch; in a stream, remove_columns would remove its columns too.
    return (
        dataset.with_format("arrow")
        .map(
            _derive_rows,
            with_indices=True,
            batched=True,
            batch_size=size,
            features=derived_features,
            fn_kwargs={"recipe": recipe, **({"place": place} if _is_stream(dataset) else {})},
        )
        .with_format(None)
    )


def _is_stream(dataset: Any) -> bool:
    import datasets

    return isinstance(dataset, (datasets.IterableDataset, datasets.IterableDatasetDict))


def _types_of(splits: dict[str, Any]) -> pa.Schema:
    """Return the columns that all splits have, with types that keep the values of each. UsageError if none do."""
    schemas = {
        name: (split.features or split._resolve_features().features).arrow_schema for name, split in splits.items()
    }
    first = next(iter(schemas))
    for name, schema in schemas.items():
        if set(schema.names) != set(schemas[first].names):
            raise UsageError(
                f"the splits {first} and {name} have different columns: {', '.join(schemas[first].names)}, and "
                f"{', '.join(schema.names)}",
                where="map_dataset",
                fix="give them the same columns, or derive one after the other",
                id="split-features",
            )
    try:
        return unify({CorpusFile(name, Path(name), name): schema for name, schema in schemas.items()})
    except DataError as error:
        raise UsageError(
            f"the split {error.where}: {error.what}",
            where="map_dataset",
            fix="cast them to the same features, or derive one after the other",
            id="split-features",
        ) from None


def _schema(splits: dict[str, Any], types: pa.Schema, columns: Columns) -> tuple[Schema, dict[str, Any]]:
    """Return the schema and the layout of all splits, so that a label means the same in each."""
    samples = (_sample(split) for split in splits.values())
    sample = next((bring(one, types, "row {}".format) for one in samples if one is not None), None)
    schema, layout = infer(
        types, sample, where="map_dataset",
        words=columns.words, texts=columns.texts, labels=columns.labels, naming=_by_argument,
    )  # fmt: skip
    kept = [split for split in splits.values() if not _is_stream(split)]
    if kept:
        schema = without_nli(schema, lambda name: _unique(_column(split, types, name) for split in kept))
    rows = kept or [sample]  # a stream can be searched no further
    values = {
        field.column: _unique(_column(one, types, field.input) for one in rows if one is not None)
        for field in schema.fields
        if field.kind in UNDECIDED
    }
    doubtful = next((f for f in schema.fields if f.column in values and are_entity_tags(values[f.column])), None)
    if doubtful is not None and not kept:
        raise UsageError(
            f"the first values of {doubtful.input} are tags of entities, and a stream cannot be searched for others",
            fix=f"say what it holds: {_by_argument('label', f'{doubtful.input}=entities')} with tags=, or "
            f"{_by_argument('label', f'{doubtful.input}=tags')}",
            id="unnamed-tags",
        )
    schema = decided(schema, values, _by_argument)
    if columns.tags and not any(field.kind == "entities" and field.classes is None for field in schema.fields):
        warn("no column holds tags of entities as strings, so Columns(tags=) has no effect")
    return _with_tags(schema, kept, types, columns), layout


def _sample(dataset: Any) -> pa.Table | None:
    """Return the first rows, or None if there are none."""
    rows = dataset.with_format("arrow")
    if _is_stream(dataset):
        return next(iter(rows.iter(_SAMPLE)), None)
    return rows[: min(_SAMPLE, len(dataset))] if len(dataset) else None


def _by_argument(kind: str, name: str) -> str:
    """Return how a user of `map_dataset` names a column."""
    return f"Columns({kind}s=[{name!r}])"


def _column(dataset: Any, types: pa.Schema, name: str) -> pa.Array:
    """Return a column of a split, or of a table, with the type that it has in all splits."""
    table = dataset if isinstance(dataset, pa.Table) else dataset.with_format("arrow")[:]
    return whole(bring(table.select([name]), pa.schema([types.field(name)]), "row {}".format)[name])


def _unique(columns: Iterable[pa.Array]) -> list[Any]:
    """Return the distinct values of some columns, or of the elements of their lists, without null."""
    values: dict[Any, None] = {}
    for column in columns:
        is_list = pa.types.is_list(column.type) or pa.types.is_large_list(column.type)
        flat = column.flatten() if is_list else column
        values |= dict.fromkeys(pc.unique(flat.drop_null()).to_pylist())
    return list(values)


@lru_cache(maxsize=2)
def _fitted(spec: str, lexicon: str | None, fingerprint: str) -> tuple[Pipeline, Lexicon]:
    """Return the pipeline of a stored spec and its lexicon; both serve all batches."""
    pipeline = Pipeline.from_stored(spec, any_file)  # `map_dataset` has stored it
    return pipeline, pipeline.fit(saved=lexicon)


def _numbers(indices: list[int], place: tuple[int, int] | None) -> Int64:
    """Return the numbers of documents, int64[R], given the numbers of rows as this process counts them.

    place: rank and number of the nodes that read a stream, None for a set that is not a stream. Each worker of a
    DataLoader counts its rows from 0, too:

        rank 1 of 3, worker 0 of 2    0 1 2  ->  1 7 13
        rank 1 of 3, worker 1 of 2    0 1 2  ->  4 10 16
    """
    numbers = np.asarray(indices, np.int64)
    if place is None:
        return numbers
    torch, (rank, world) = sys.modules.get("torch"), place
    worker = torch.utils.data.get_worker_info() if torch else None
    return (numbers * worker.num_workers + worker.id if worker else numbers) * world + rank


@errors_in_python()
def _derive_rows(
    table: pa.Table, indices: list[int], recipe: _Recipe, place: tuple[int, int] | None = None
) -> pa.Table:
    """Return the output rows of a batch of input rows. place: as of `_numbers`."""
    pipeline, lexicon = _fitted(recipe.spec, recipe.lexicon, recipe.fingerprint)
    splitting = Splitting(Splitter(recipe.words, recipe.language))

    def where(row: int) -> str:
        return f"row {indices[row]}" if indices else "map_dataset"

    batch = to_batch(
        opened(bring(table, recipe.types, where), recipe.layout, where),
        recipe.schema,
        splitting.texts,
        documents=_numbers(indices, place),
        where=lambda row, word: f"row {indices[row]}" + ("" if word is None else f", word {word}"),
        counts=Counter(),
        repair_tags=recipe.repair_tags,
        shares=pipeline.keyed,
        whole_trees=pipeline.needs_heads,
    )
    trees = None if recipe.parser is None else find_parser(recipe.parser, recipe.language)
    derived = pipeline.begin().derive(batch, lexicon, policies=recipe.policies, rule=recipe.rule, parser=trees)
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


def _features(recipe: _Recipe) -> Features:
    """Return the features of the output, by deriving a table without rows."""
    import datasets

    empty = _derive_rows(recipe.types.empty_table(), [], recipe)
    return datasets.Features.from_arrow_schema(empty.schema)


def _with_tags(schema: Schema, splits: list[Any], types: pa.Schema, columns: Columns) -> Schema:
    """Return the schema with the scheme of entity columns, and with the tag names of those that hold strings.

    splits: those to search, [] for streams.
    """
    fields = []
    for field in schema.fields:
        if field.kind == "entities" and field.classes is None and not splits and not columns.tags:
            raise UsageError(
                f"the tags of {field.column} are strings, and a stream cannot be searched for them first",
                fix="name them: Columns(tags=('O', 'B-PER', 'I-PER', …))",
                id="unnamed-tags",
            )
        if field.kind == "entities":
            search = SchemeSearch(field.classes or columns.tags)
            for split in splits:
                search.add(_column(split, types, field.input))
            field = search.of_field(field) if splits else with_scheme(field, search.names)
            if field.scheme is not None:
                warn(f"the tags in {field.input} are {field.scheme}: the entities are written as B-, I- and O")
        fields.append(field)
    return Schema(schema.sides, tuple(fields), schema.running)
