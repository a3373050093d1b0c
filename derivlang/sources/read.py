"""Batches of a corpus, whatever its format: text directly, labelled files through Arrow tables."""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterator
from dataclasses import dataclass, field
from typing import Any

import numpy as np
import pyarrow.compute as pc

from derivlang.core.arrow import string_array, to_numpy
from derivlang.core.batch import Batch
from derivlang.core.errors import DataError
from derivlang.core.layers.gaps import Gaps
from derivlang.core.lexicon import Lexicon
from derivlang.core.reading import Splits, to_batch
from derivlang.core.rows import from_table
from derivlang.formats import text
from derivlang.formats.pieces import Splitting
from derivlang.formats.rows import Rows
from derivlang.formats.text import Piece
from derivlang.formats.words import Splitter
from derivlang.sources.corpus import Corpus, Part

# The 19-column files of XNLI 1.0, and the names of MultiNLI's release, hold the pair under other names.
_ALIASES = {"sentence1": "premise", "sentence2": "hypothesis", "gold_label": "label", "hypo": "hypothesis"}


@dataclass(slots=True)
class Reading:
    """How to read: the splitter of raw text, the encoding, and what was repaired or widened, by reason."""

    splitter: Splitter
    encoding: str = "utf-8"
    repair_tags: bool = False
    counts: Counter[str] = field(default_factory=Counter)


def batches(
    corpus: Corpus,
    part: Part,
    reading: Reading,
    *,
    piece: Piece = Piece(),  # noqa: B008 (frozen)
    limit: int | None = None,
    first_document: int = 0,
    lexicon: Lexicon | None = None,
    batch_words: int = text.WORDS_PER_BATCH,
) -> Iterator[Batch]:
    """The batches of a file or of a piece of a text file; sentences still to be split, but in derived sets.

    limit: documents at most. lexicon: of the pipeline that made a derived set. batch_words: words in a batch of text.
    """
    if corpus.format == "text":
        yield from text.read(
            part.path,
            reading.splitter,
            piece,
            encoding=reading.encoding,
            limit=limit,
            first_document=first_document,
            batch_words=batch_words,
        )
        return
    if corpus.format == "derived":
        yield from _derived(corpus, part, lexicon or Lexicon(), limit)
        return
    splitting = Splitting(reading.splitter)
    for rows in tables(corpus, part, encoding=reading.encoding, limit=limit):
        if corpus.schema.running:
            raise DataError("running text is read from .txt and .tokens files", where=str(part.path), id="format")
        yield to_batch(
            rows.table,
            corpus.schema,
            lambda texts: split_texts(splitting, texts),
            documents=rows.documents + first_document,
            where=rows.where,
            counts=reading.counts,
            repair_tags=reading.repair_tags,
        )


def tables(corpus: Corpus, part: Part, *, encoding: str = "utf-8", limit: int | None = None) -> Iterator[Rows]:
    """The rows of a labelled file, under the column names of the corpus's schema."""
    if corpus.format == "parquet":
        from derivlang.formats.parquet import read as read_parquet

        yield from read_parquet(part.path, limit=limit)
        return
    if corpus.format == "hub":
        from derivlang.sources.hub import read_hub

        yield from read_hub(corpus, part, limit)
        return
    options: dict[str, Any] = {"encoding": encoding, "limit": limit}
    if corpus.format == "conllu":
        from derivlang.formats.conllu import read as read_conllu

        yield from read_conllu(part.path, entities=corpus.options.get("entities", False), **options)
    elif corpus.format == "tagged":
        from derivlang.formats.tagged import read as read_tagged

        yield from read_tagged(part.path, **options)
    elif corpus.format == "squad":
        from derivlang.formats.squad import read as read_squad

        yield from read_squad(part.path, **options)
    elif corpus.format == "jsonl":
        from derivlang.formats.jsonl import read as read_jsonl

        yield from read_jsonl(part.path, **options)
    else:
        yield from _delimited(corpus, part, encoding, limit)


def count_documents(corpus: Corpus, part: Part, encoding: str) -> int:
    """Documents of a file: non-empty lines of text, elsewhere rows (SQuAD forms: paragraphs)."""
    if corpus.format == "text":
        return text.count_documents(part.path, corpus.splitter(), encoding=encoding)[0]
    if corpus.format == "derived":
        return 0  # a derived set brings its own document numbers
    last = 0
    for rows in tables(corpus, part, encoding=encoding):
        last = int(rows.documents[-1]) + 1 if len(rows.documents) else last
    return last


def _delimited(corpus: Corpus, part: Part, encoding: str, limit: int | None) -> Iterator[Rows]:
    """Rows of text, the columns that the schema names; other languages of an XNLI 1.0 file are left out."""
    from derivlang.formats.delimited import read as read_delimited

    wanted = [side.text for side in corpus.schema.sides] + [field.column for field in corpus.schema.fields]
    known = {"columns", "header", "quoting"}
    options = {key: value for key, value in corpus.options.items() if key in known}
    done = 0
    for rows in read_delimited(part.path, encoding=encoding, **options):
        table = rows.table
        if "language" in table.column_names and "premise" not in table.column_names:
            mine = pc.equal(table["language"], corpus.language)
            keep = to_numpy(mine)
            table = table.filter(mine)
            rows = Rows(rows.path, table, rows.lines[keep], done + np.arange(table.num_rows))
        done += table.num_rows
        names = [name if name in wanted else _ALIASES.get(name, name) for name in table.column_names]
        table = table.rename_columns(_distinct(names, wanted))
        absent = [name for name in wanted if name not in table.column_names]
        if absent:
            raise DataError(
                f"no column {absent[0]!r} among {', '.join(rows.table.column_names)}",
                where=str(part.path),
                fix="the file needs a header row that names it, or the usual three columns without a header",
                id="missing-column",
            )
        if limit is not None and done > limit:
            table = table.slice(0, table.num_rows - (done - limit))
        if table.num_rows:
            yield Rows(rows.path, table.select(wanted), rows.lines, rows.documents[: table.num_rows])
        if limit is not None and done >= limit:
            return


def _distinct(names: list[str], wanted: list[str | None]) -> list[str]:
    """Where an alias and the name itself are both there, the name itself wins."""
    seen: set[str] = set()
    out = []
    for name in names:
        out.append(f"{name}_" if name in seen else name)
        seen.add(name)
    return out


def _derived(corpus: Corpus, part: Part, lexicon: Lexicon, limit: int | None) -> Iterator[Batch]:
    from derivlang.store.shards import read_shard

    # Row group by row group, as written: the white space that goes without saying is told by a batch's own lines.
    for table in read_shard(part.path, codes=True):
        if limit is not None:
            table = table.filter(pc.less(table["document"], limit))
            if not table.num_rows:
                return
        yield from_table(table, corpus.schema, lexicon)[0]


def split_texts(splitting: Splitting, texts: list[str]) -> Splits:
    """Words and gaps of some texts, with a type table of their own."""
    split = splitting.texts(texts)
    used = np.unique(split.words)
    words = np.searchsorted(used, split.words).astype(np.int32)
    gaps = Gaps(splitting.gaps.types(), split.lead, split.trail, split.at, split.inner)
    types = splitting.words.subset(used) if len(used) else string_array([])
    return Splits(words, types, split.units, gaps)
