"""Rows to show: of a derived set on disk, or of a source file under a pipeline."""

from __future__ import annotations

from collections.abc import Iterator
from itertools import islice
from pathlib import Path

from derivlang.core.errors import DataError, StoreError, UsageError
from derivlang.display.linked import LinkedLines, linked_rows
from derivlang.parsing.registry import find_parser
from derivlang.pipeline import Pipeline
from derivlang.sources.corpus import FileSpan
from derivlang.sources.find import find
from derivlang.sources.read import Reading, batches
from derivlang.sources.request import SourceRequest
from derivlang.store.manifest import Derived, load
from derivlang.transforms.fitting import read_lexicon


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
    if not out:
        raise DataError(f"the source has no row {first}", where=request.source, id="row")
    return out


def set_of(folder: Path, split: str | None) -> tuple[Derived, str]:
    """Return a derived set and the name of a split, the first one for None. Raises StoreError for a damaged set."""
    derived = Derived(folder)
    return derived, derived.choose_split(split, first=True)
