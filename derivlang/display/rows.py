"""What is shown of a row: the words of both lines, their links, trees, tags, entities and answers.

Line        words, tree, tags and spans of one language
LinkedLines a source line, a derived line, and the order between them

Rows are of a derived set on disk, or of a source file under a pipeline.
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from dataclasses import dataclass, field
from itertools import islice
from pathlib import Path
from typing import Literal

import numpy as np

from derivlang.core.arrow import to_arrow
from derivlang.core.batch import Batch
from derivlang.core.errors import DataError, StoreError, UsageError
from derivlang.core.layers.answers import Answers
from derivlang.core.layers.constituents import ConstituentTrees
from derivlang.core.layers.misc import Misc
from derivlang.core.layers.spans import Spans
from derivlang.core.layers.tree import Tree
from derivlang.core.layers.words import Values, Words
from derivlang.core.order import Order
from derivlang.core.schema import Schema
from derivlang.parsing.registry import find_parser
from derivlang.pipeline import Pipeline
from derivlang.sources.corpus import FileSpan
from derivlang.sources.find import find
from derivlang.sources.read import Reading, batches, warn_of_relations
from derivlang.sources.request import SourceRequest
from derivlang.store.manifest import Derived, load
from derivlang.transforms.fitting import read_lexicon

SHORT_TAGS = ("upos", "pos_tags", "pos", "tags")  # columns of tags that are short enough to stand under a word


@dataclass(frozen=True, slots=True)
class Span:
    """An entity or an answer: the words first … end - 1 of its line. column: where the set has it."""

    kind: Literal["entity", "answer"]
    first: int
    end: int
    label: str
    column: str = ""


@dataclass(frozen=True, slots=True)
class Line:
    """The words of one language.

    head: the number of each word's governor, from 1; 0 = root, -1 = none. () if there is no tree, and then relation is
    (), too.
    tags: the values of each word, by column (`upos`, `lemma` …). brackets: each word's piece of a tree in brackets,
    `  (NP big` and `    Ann)`, () if there is none.
    """

    words: tuple[str, ...]
    head: tuple[int, ...] = ()
    relation: tuple[str, ...] = ()
    tags: Mapping[str, tuple[str, ...]] = field(default_factory=dict)
    spans: tuple[Span, ...] = ()
    brackets: tuple[str, ...] = ()

    @property
    def tag(self) -> tuple[str, ...]:
        """The tag of each word to stand beside it, of SHORT_TAGS or else of the first column; () if there is none."""
        return next((self.tags[name] for name in (*SHORT_TAGS, *self.tags) if name in self.tags), ())

    def labels(self) -> list[list[str]]:
        """Return what is known of each word, as a reader says it: `NOUN`, `lemma sleep`, `nsubj of 3 sleeps`, `PER`."""
        labels: list[list[str]] = [[] for _ in self.words]
        for name, values in self.tags.items():
            for word, value in enumerate(values):
                if value not in ("", "_"):
                    labels[word].append(value if name in SHORT_TAGS else f"{name} {value}")
        for word, governor in enumerate(self.head):
            of = f" of {governor - 1} {self.words[governor - 1]}" if governor > 0 else ""
            labels[word].append(f"{self.relation[word]}{of}")
        for span in self.spans:
            for word in range(span.first, span.end):
                labels[word].append(span.label)
        return labels


@dataclass(frozen=True, slots=True)
class LinkedLines:
    """A source line, a derived line, and the order between them.

    order: the source position of each derived word, from 0; -1 for an inserted word. facts: where the row lies (row,
    document, key, side), for its header. values: labels of the whole row.
    """

    source: Line
    derived: Line
    order: tuple[int, ...]
    facts: Mapping[str, str] = field(default_factory=dict)
    values: Mapping[str, str] = field(default_factory=dict)

    @property
    def positions(self) -> list[int]:
        """The derived position of each source word, -1 for a deleted one."""
        out = [-1] * len(self.source.words)
        for place, word in enumerate(self.order):
            if word >= 0:
                out[word] = place
        return out


def linked_rows(
    source: Batch, derived: Batch, order: Order, schema: Schema, rows: range, *, first_row: int = 0, split: str = ""
) -> list[LinkedLines]:
    """Return what is shown of some records of a batch, one for each side.

    first_row: the number of the batch's first record. The facts are row, split, document, key and, of pairs, side.
    """
    values = {name: layer for name, layer in derived.layers.items() if isinstance(layer, Values)}
    trees = {
        name: layer.columns(derived)[name]
        for name, layer in derived.layers.items()
        if isinstance(layer, ConstituentTrees)
    }
    keys = source.record_keys
    out = []
    for record in rows:
        for side, side_name in enumerate(derived.sides):
            unit = int(derived.records[record, side])
            begin, end = derived.unit_words[unit], derived.unit_words[unit + 1]
            index = order.index[begin:end]
            facts = {"row": str(first_row + record), **({"split": split} if split else {})}
            facts |= {"document": str(derived.documents[record]), "key": f"{int(keys[record]):016x}"}
            out.append(
                LinkedLines(
                    _line(source, record, side),
                    _line(derived, record, side),
                    tuple(np.where(index < 0, -1, index - source.unit_words[unit]).tolist()),
                    facts | ({"side": side_name} if side_name else {}),
                    {name: text for name, layer in values.items() if (text := _value(layer, record, schema))}
                    | {name: texts[record].as_py() for name, texts in trees.items()},
                )
            )
    return out


def _line(batch: Batch, record: int, side: int) -> Line:
    """Return the line of a record's side."""
    unit = int(batch.records[record, side])
    begin, end = int(batch.unit_words[unit]), int(batch.unit_words[unit + 1])
    words = batch.types.take(to_arrow(batch.words[begin:end])).to_pylist()
    head: tuple[int, ...] = ()
    relation: tuple[str, ...] = ()
    tags: dict[str, tuple[str, ...]] = {}
    spans: list[Span] = []
    brackets: tuple[str, ...] = ()
    for name, layer in batch.layers.items():
        if isinstance(layer, Tree):
            head, relation = tuple(layer.head[begin:end].tolist()), _values(layer.deprel, begin, end)
        elif isinstance(layer, Words) and not isinstance(layer, Misc):
            tags[name] = _values(layer, begin, end)
        elif isinstance(layer, Spans):
            inside = np.flatnonzero((layer.start >= begin) & (layer.end <= end) & (layer.end > begin))
            spans += [
                Span("entity", int(a) - begin, int(b) - begin, layer.types[label], name)
                for a, b, label in zip(layer.start[inside], layer.end[inside], layer.labels[inside], strict=True)
            ]
        elif isinstance(layer, ConstituentTrees):
            brackets = pieces_of(layer.columns(batch)[name][record].as_py())
        elif isinstance(layer, Answers) and layer.side == side:
            of_row = range(int(layer.offsets[record]), int(layer.offsets[record + 1]))
            answers = {(int(layer.start[i]) - begin, int(layer.end[i]) - begin) for i in of_row}
            spans += [Span("answer", first, last, "answer", name) for first, last in sorted(answers)]
    return Line(tuple(words), head, relation, tags, tuple(spans), brackets)


def pieces_of(tree: str) -> tuple[str, ...]:
    """Return a tree in brackets as one piece for each word, indented by the brackets that are open before it.

    (S (NP big Ann) (VP sleeps))   ->   `(S (NP big`, `    Ann)`, `  (VP sleeps))`
    """
    pieces, held, depth = [], "", 0
    for part in tree.split(" ") if tree else ():
        held = f"{held} {part}" if held else "  " * depth + part
        depth += part.startswith("(") - part.count(")")
        if not part.startswith("("):
            pieces.append(held)
            held = ""
    return tuple(pieces)


def _values(layer: Words, begin: int, end: int) -> tuple[str, ...]:
    values = layer.values.to_pylist()
    return tuple("_" if values[code] is None else str(values[code]) for code in layer.codes[begin:end].tolist())


def _value(layer: Values, record: int, schema: Schema) -> str:
    """Return a label of a whole row, a class by its name; "" for a list, such as the comments of a tree."""
    value = layer.values[record].as_py()
    classes = next((f.classes for f in schema.fields if f.column == layer.name), None)
    if classes is not None and isinstance(value, int):
        return classes[value] if 0 <= value < len(classes) else "-"
    return "" if value is None or isinstance(value, list | dict) else str(value)


def rows_of_set(derived: Derived, split: str, first: int, count: int) -> list[LinkedLines]:
    """Return `count` rows of a split from row `first` on, with the split among their facts; pairs have two each.

    Raises StoreError if there is no such row, UsageError if `count` is not positive.
    """
    if count < 1:
        raise UsageError(f"count must be at least 1, got {count}", fix="the first row is row=0", id="bad-value")
    out: list[LinkedLines] = []
    left = count
    for group in load(derived, split):
        begin = max(0, first - group.first_row)
        rows = range(begin, min(group.table.num_rows, begin + left))
        if not rows:
            continue
        out += linked_rows(
            group.source, group.derived, group.order, derived.schema, rows, first_row=group.first_row, split=split
        )
        left -= len(rows)
        if not left:
            return out
    if not out:
        raise StoreError(f"the split {split} has no row {first}", where=str(derived.folder), id="row")
    return out


def rows_of_file(
    request: SourceRequest, pipeline: Pipeline, first: int, count: int, lexicon: Path | None = None
) -> list[LinkedLines]:
    """Return `count` rows of a source under a pipeline, from row `first` of its first split on. lexicon: a saved one.

    A source without trees is parsed if the pipeline needs them. Raises DataError if
    there is no such row, and as `find` and `fit` do.
    """
    corpus = find(request)
    pipeline.warn_of_misfits(corpus.language)
    fitted = pipeline.fit(saved=read_lexicon(lexicon) if lexicon else None, where=str(lexicon))
    trees = pipeline.needs_trees and not corpus.schema.has_trees
    parser = find_parser(None, corpus.language) if trees else None
    pipeline = pipeline.begin()
    reading = Reading(corpus.splitter(), request.encoding, shares=pipeline.keyed, whole_trees=pipeline.needs_heads)

    def all_rows() -> Iterator[LinkedLines]:
        done = 0
        for part in corpus.parts:
            if part.split != corpus.splits[0]:
                continue
            for batch in batches(corpus, [FileSpan(part, limit=first + count)], reading):
                result = pipeline.derive(batch, fitted, parser=parser, split=corpus.format != "derived")
                n = result.derived.n_records
                rows = range(max(0, first - done), min(n, first + count - done))
                yield from linked_rows(
                    result.source, result.derived, result.order, corpus.schema, rows, first_row=done, split=part.split
                )
                done += n
                if done >= first + count:
                    return

    out = list(islice(all_rows(), count * max(1, len(corpus.schema.sides))))
    warn_of_relations(reading.counts, corpus.name)
    if not out:
        raise DataError(f"the source has no row {first}", where=request.source, id="row")
    return out


def set_of(folder: Path, split: str | None) -> tuple[Derived, str]:
    """Return a derived set and the name of a split, the first one for None. Raises StoreError for a damaged set."""
    derived = Derived(folder)
    return derived, derived.choose_split(split, first=True)
