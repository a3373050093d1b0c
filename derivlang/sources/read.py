"""Read the batches of a corpus from the tables of its files. A table of running text has one column."""

from __future__ import annotations

from collections import Counter
from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass, field, replace
from importlib import import_module
from itertools import chain
from typing import Any

import numpy as np
import pyarrow.compute as pc

from derivlang.core.arrays import Int64
from derivlang.core.arrow import is_string, scalar, to_numpy, whole
from derivlang.core.batch import Batch, build
from derivlang.core.columns import bring
from derivlang.core.errors import DataError, LayerError, parse_errors
from derivlang.core.from_table import Splits, from_table, joined, to_batch
from derivlang.core.layers.tree import UNKNOWN
from derivlang.core.layers.words import Words
from derivlang.core.lexicon import Lexicon
from derivlang.core.messages import counted, warn
from derivlang.core.schema import Schema, answered_side, left_out
from derivlang.formats.base import NO_FILES, Format, find_format
from derivlang.formats.objects import as_given, opened
from derivlang.formats.opening import WHOLE, Piece
from derivlang.formats.pieces import Splitting
from derivlang.formats.rows import Rows, together, whole_runs
from derivlang.formats.words import Splitter
from derivlang.sources.corpus import Corpus, CorpusFile, FileSpan
from derivlang.sources.labels import check_no_entities

WORDS_PER_BATCH = 1 << 20  # words in a batch of text and in a Parquet row group


@dataclass(slots=True)
class Reading:
    """How to read a file.

    splitter: splits raw text into words. counts: what was repaired or widened is counted here, by reason.
    whole_contexts: put neighbouring rows with the same context into one batch, since their answers form its groups.
    no_null_strings: refuse null as the string of a word, which shards cannot hold. shares: neighbouring rows with the
    same text share it, and so its order; not where orders are drawn in sequence. whole_trees: each sentence of a
    treebank must be one tree.
    """

    splitter: Splitter
    encoding: str = "utf-8"
    repair_tags: bool = False
    counts: Counter[str] = field(default_factory=Counter)
    whole_contexts: bool = False
    no_null_strings: bool = False
    shares: bool = True
    whole_trees: bool = False


def batches(
    corpus: Corpus,
    spans: Sequence[FileSpan],
    reading: Reading,
    *,
    lexicon: Lexicon | None = None,
    batch_words: int = WORDS_PER_BATCH,
) -> Iterator[Batch]:
    """Yield the batches of some files, or pieces of files, whose documents are numbered without a break.

    Small files share a batch. Only batches of derived sets have split sentences. lexicon: of the pipeline that made a
    derived set. batch_words: words in a batch of text.
    """
    if corpus.format == "derived":
        for span in spans:
            yield from _derived(corpus, span.part, reading, lexicon or Lexicon(), span.limit)
        return
    all_rows = chain.from_iterable(_rows_of_span(corpus, span, reading) for span in spans)
    joined_rows = together(all_rows) if len(spans) > 1 else all_rows
    if corpus.schema.running:
        yield from text_batches(joined_rows, reading.splitter, batch_words)
    else:
        yield from _labelled(corpus, joined_rows, reading)


def warn_of_relations(counts: Mapping[str, int], name: str, warn: Callable[[str], None] = warn) -> None:
    """Warn of relations that orders of trees do not know, if some were counted. name: of the corpus."""
    if n_words := counts.get(UNKNOWN, 0):
        warn(
            f"{name}: {counted(n_words, 'word')} with a relation that Universal Dependencies does not have, which "
            "orders of trees do not know; convert them to nsubj, obj, obl …, in small letters, or parse the text"
        )


def text_batches(tables: Iterable[Rows], splitter: Splitter, batch_words: int = WORDS_PER_BATCH) -> Iterator[Batch]:
    """Yield the batches of running text, whose units are lines. tables: of the column `text`."""
    splitting = Splitting(splitter)
    held, documents = list[Splits](), list[Int64]()

    def batch() -> Batch:
        parts, numbers = joined(held), np.concatenate(documents)
        held.clear()
        documents.clear()
        records = np.arange(len(numbers), dtype=np.int32)[:, None]
        keys = np.zeros(0, np.uint64)  # the keys of sentences are made when the lines are split into sentences
        return build(parts.words, parts.types, parts.units, records, numbers, gaps=parts.gaps, running=True, keys=keys)

    for rows in tables:
        held.append(splitting.texts(whole(rows.table["text"]), rows.where, np.flatnonzero(rows.lines == 1)))
        documents.append(rows.documents)
        if sum(len(split.words) for split in held) >= batch_words:
            yield batch()
    if held:
        yield batch()


def _labelled(corpus: Corpus, tables: Iterable[Rows], reading: Reading) -> Iterator[Batch]:
    """Yield the batches of labelled files."""
    splitting = Splitting(reading.splitter)
    for rows in tables:
        with as_given(corpus.layout):
            batch = to_batch(
                rows.table,
                corpus.schema,
                splitting.texts,
                documents=rows.documents,
                where=rows.where,
                counts=reading.counts,
                repair_tags=reading.repair_tags,
                no_null_strings=reading.no_null_strings,
                shares=reading.shares,
                whole_trees=reading.whole_trees,
            )
        yield batch


def _rows_of_span(corpus: Corpus, span: FileSpan, reading: Reading) -> Iterator[Rows]:
    all_rows = tables(corpus, span.part, encoding=reading.encoding, limit=span.limit, piece=span.piece)
    side = answered_side(corpus.schema) if reading.whole_contexts else None
    for rows in all_rows if side is None else whole_runs(all_rows, side.text or str(side.words)):
        yield replace(rows, documents=rows.documents + span.first_document)


def tables(
    corpus: Corpus, part: CorpusFile, *, encoding: str = "utf-8", limit: int | None = None, piece: Piece = WHOLE
) -> Iterator[Rows]:
    """Yield the rows of a labelled file, with the column names of the schema. DataError if a column is missing."""
    for given in _rows(corpus, part, encoding, limit, piece):
        rows = replace(given, table=opened(given.table, corpus.layout, given.where)) if corpus.layout else given
        present = set(rows.table.column_names)
        absent = [name for name in corpus.columns if name not in present]
        if absent:
            raise DataError(
                f"no column {absent[0]!r} among {', '.join(rows.table.column_names)}",
                where=str(part.path),
                fix=f"give every file of the source the columns {', '.join(corpus.columns)}",
                id="missing-column",
            )
        for name in corpus.watched:
            check_no_entities(rows.table[name], name, rows.where)
        yield rows


def _rows(corpus: Corpus, part: CorpusFile, encoding: str, limit: int | None, piece: Piece = WHOLE) -> Iterator[Rows]:
    """Yield the rows of a labelled file, renamed and of the corpus's language if it has aliases."""
    if not corpus.aliases:
        yield from _typed(corpus, part, encoding, limit, piece)
        return
    done = 0
    for rows in _typed(corpus, part, encoding, None, piece):
        renamed = _of_language(rows, corpus, done, limit)
        done += renamed.table.num_rows
        if renamed.table.num_rows:
            yield renamed
        if limit is not None and done >= limit:
            return


def _typed(corpus: Corpus, part: CorpusFile, encoding: str, limit: int | None, piece: Piece) -> Iterator[Rows]:
    """Yield the rows of a file with the types that its columns have in all files.

    A column or key of values may be missing, and is null then; words, texts and labels may not.
    """
    optional = {field.input for field in corpus.schema.fields if field.kind == "value"}
    format, options = format_of(corpus), options_of(corpus)
    if format.types is not None:
        given = set() if corpus.types is None else {*corpus.columns} & {*corpus.types.names}
        required = frozenset(given - optional)
        options = {**options, "types": corpus.types, "required": required}
    for rows in format.rows(part.path, encoding=encoding, limit=limit, piece=piece, options=options):
        table = rows.table if corpus.types is None else bring(rows.table, corpus.types, rows.where, optional=optional)
        yield rows if table is rows.table else replace(rows, table=table)


def _of_language(rows: Rows, corpus: Corpus, done: int, limit: int | None) -> Rows:
    """Return the rows of the corpus's language, renamed. done: how many were read before."""
    table, lines = rows.table, rows.lines
    wanted, given = set(corpus.columns), set(table.column_names)
    if corpus.language_column in given and not wanted <= given:
        language = scalar(corpus.rows_language or corpus.language)
        mine = pc.equal(table[corpus.language_column], language)
        table, lines = table.filter(mine), lines[to_numpy(mine)]
    if limit is not None:
        table = table.slice(0, limit - done)
    names = [name if name in wanted else corpus.aliases.get(name, name) for name in table.column_names]
    first = {name: at for at, name in reversed(list(enumerate(names)))}
    table = table.rename_columns([name if first[name] == at else f"{name}_" for at, name in enumerate(names)])
    n_rows = table.num_rows
    return Rows(rows.path, table, lines[:n_rows], np.arange(done, done + n_rows))


def count_documents(corpus: Corpus, span: FileSpan, encoding: str) -> tuple[int, int]:
    """Return the number of documents and of lines of a file or of a piece of it, which is read.

    A document is a non-empty line of running text, a paragraph of a SQuAD file, and a row of any other file.
    """
    if corpus.format == "derived":
        return 0, 0  # a derived set has document numbers of its own
    documents, lines = format_of(corpus).documents(
        span.part.path, encoding, piece=span.piece, options=options_of(corpus)
    )
    if corpus.aliases:  # the rows may be of several languages
        documents = 0
        for rows in tables(corpus, span.part, encoding=encoding, piece=span.piece):
            documents = int(rows.documents[-1]) + 1
    return documents, lines


def format_of(corpus: Corpus) -> Format:
    """Return the format of the files of a corpus that is not derived, or of rows that come from no file."""
    if corpus.has_files:
        return find_format(corpus.format)
    format: Format = import_module(NO_FILES[corpus.format]).FORMAT  # imported late: few sources have no files
    return format


def options_of(corpus: Corpus) -> dict[str, Any]:
    """Return the options with which the format of a corpus reads, cuts and counts its files."""
    return {"raw": corpus.is_raw and corpus.words != "space"} if corpus.schema.running else corpus.options


def _derived(
    corpus: Corpus, part: CorpusFile, reading: Reading, lexicon: Lexicon, limit: int | None
) -> Iterator[Batch]:
    """Yield the source batches of a derived set."""
    groups = _row_groups(corpus.schema, part, limit)
    side = answered_side(corpus.schema) if reading.whole_contexts else None
    with parse_errors(
        str(part.path), "shard of a derived set", id="damaged", fix="`derivlang verify` says what is wrong"
    ):
        # The column `order` is never left out, and equal contexts have equal orders.
        for rows in groups if side is None else whole_runs(groups, side.column("order")):
            batch = from_table(rows.table, corpus.schema, lexicon)[0]
            _check_values(batch, part)
            yield batch


def _check_values(batch: Batch, part: CorpusFile) -> None:
    """Raise LayerError null-value for null as the string of a word, which no shard of a set holds unless damaged."""
    layers = (layer for layer in batch.layers.values() if isinstance(layer, Words) and layer.classes is None)
    for layer in layers:
        if is_string(layer.values.type) and layer.values.null_count:
            raise LayerError(
                f"{layer.name} has no value (null) for a word",
                where=str(part.path),
                fix="`derivlang verify` says what is wrong",
                id="null-value",
            )


def _row_groups(schema: Schema, part: CorpusFile, limit: int | None) -> Iterator[Rows]:
    """Yield row groups as they were written: which white space is implied depends on the lines of a batch.

    Keys and texts are left out: both are computed again.
    """
    from derivlang.store.shards import read_shard

    for table in read_shard(part.path, without=left_out(schema, ("key", "text")), codes=True):
        if limit is not None:
            table = table.filter(pc.less(table["document"], scalar(limit)))
            if not table.num_rows:
                return
        yield Rows(part.path, table, np.zeros(table.num_rows, np.int64), to_numpy(table["document"]))
