"""Tagged sentences, a word a line: `token<TAB>tag`, an empty line between sentences.

The form of WikiAnn (PAN-X) and of CoNLL 2003. More than two columns are read too: the first is the token,
the last its tag; tabs or single spaces part them.

    Paris<TAB>B-LOC
    dort<TAB>O          ->   tokens [Paris, dort], ner_tags [B-LOC, O]
"""

from __future__ import annotations

import re
from collections.abc import Iterable, Iterator
from itertools import chain, islice, pairwise
from pathlib import Path
from typing import BinaryIO

import numpy as np
import pyarrow as pa
import pyarrow.compute as pc

from derivlang.core.arrays import offsets_of
from derivlang.core.arrow import list_array, to_arrow, to_numpy
from derivlang.core.errors import DataError, LayerError
from derivlang.formats.delimited import join_columns, split_columns
from derivlang.formats.opening import empty_file, open_lines
from derivlang.formats.rows import ROWS_PER_TABLE, Rows

DOCUMENT_MARK = "-DOCSTART-"  # CoNLL 2003: such a line and the empty one after it are no sentence
LINES_LOOKED_AT = 100
LANGUAGE_PREFIX = re.compile(r"[a-z]{2,3}:")


def read(path: Path | str, *, encoding: str = "utf-8", limit: int | None = None) -> Iterator[Rows]:
    """One row a sentence: `tokens` and `ner_tags` list<string>, with `word_lines`; a document is a sentence.

    All lines must have as many columns as the first. The prefix of PAN-X's `en:token` is taken off if all
    tokens of the first 100 lines have the same. limit: at most that many sentences.
    Raises DataError: tsv-columns, empty-token, empty-tag, empty-file, and those of `open_lines`.
    """
    path = Path(path)
    lines = _lines(path, encoding)
    head = list(islice(lines, LINES_LOOKED_AT))
    first = next((line for _, line in head if line), "")
    separator = "\t" if "\t" in first else " "
    n_columns = first.count(separator) + 1
    prefix = _language_prefix([line for _, line in head if line])
    done = 0
    for numbers, words, lengths in _chunks(chain(head, lines), limit):
        columns = split_columns(words, n_columns, separator)
        if n_columns < 2 or isinstance(columns, int):
            raise _wrong_columns(path, numbers, words, separator, n_columns)
        tokens, tags = columns[0], columns[-1]
        if prefix:
            tokens = [token.removeprefix(prefix) for token in tokens]
        for name, values in (("token", tokens), ("tag", tags)):
            if "" in values:
                raise DataError(
                    f"the {name} is empty",
                    where=f"{path}:{numbers[values.index('')]}",
                    fix=f"write {'token' if name == 'tag' else 'a token'}<TAB>tag, or take the line out",
                    id=f"empty-{name}",
                )
        yield _rows(path, numbers, tokens, tags, lengths, done)
        done += len(lengths)
    if done == 0 and limit != 0:
        raise empty_file(path, "sentence")


def write(
    tables: Iterable[pa.Table],
    out: BinaryIO,
    *,
    tag_column: str = "ner_tags",
    final_empty_line: bool = False,
) -> None:
    """`token<TAB>tag` lines, an empty line between sentences; sentences without words are left out.

    final_empty_line: one after the last sentence too, as in CoNLL 2003; the files of PAN-X have none.
    Raises DataError tsv-value: a token or a tag with a tab or a line end; empty-token; LayerError
    layer-length: a sentence with more or fewer tags than tokens.
    """
    separator = ""
    for table in tables:
        tokens, tags = (table.column(name).combine_chunks() for name in ("tokens", tag_column))
        lengths = pc.list_value_length(tokens)
        if lengths != pc.list_value_length(tags):
            raise LayerError(
                f"a sentence has more or fewer tags in {tag_column} than tokens",
                fix="give each token one tag",
                id="layer-length",
            )
        columns = [column.flatten().to_pylist() for column in (tokens, tags)]
        for name, values in zip(("token", tag_column), columns, strict=True):
            if "" in values:
                raise DataError(f"a {name} is empty", fix="leave such words out", id="empty-token")
        lines = join_columns(("tokens", tag_column), columns)
        offsets = offsets_of(to_numpy(lengths)).tolist()
        for start, stop in pairwise(offsets):
            if start < stop:
                out.write((separator + "\n".join(lines[start:stop]) + "\n").encode())
                separator = "\n"
    if final_empty_line:
        out.write(separator.encode())


def count(path: Path | str, encoding: str = "utf-8") -> int:
    """The number of sentences."""
    before, total = "", 0
    for _, line in _lines(Path(path), encoding):
        if line and not before:
            total += 1
        before = line
    return total


def _lines(path: Path, encoding: str) -> Iterator[tuple[int, str]]:
    for number, line in open_lines(path, encoding):
        yield number, "" if line.startswith(DOCUMENT_MARK) else line


def _language_prefix(lines: list[str]) -> str:
    """`en:` if all lines begin so, else nothing."""
    found = LANGUAGE_PREFIX.match(lines[0]) if lines else None
    return found[0] if found and all(line.startswith(found[0]) for line in lines) else ""


def _chunks(lines: Iterable[tuple[int, str]], limit: int | None) -> Iterator[tuple[list[int], list[str], list[int]]]:
    """Line numbers and lines of the words of some sentences, and the sentences' lengths."""
    if limit == 0:
        return
    numbers: list[int] = []
    words: list[str] = []
    lengths: list[int] = []
    start = done = 0
    for number, line in chain(lines, [(0, "")]):  # the last sentence may lack its empty line
        if line:
            numbers.append(number)
            words.append(line)
        elif len(words) > start:
            lengths.append(len(words) - start)
            start = len(words)
            done += 1
            if len(lengths) == ROWS_PER_TABLE or done == limit:
                yield numbers, words, lengths
                numbers, words, lengths, start = [], [], [], 0
                if done == limit:
                    return
    if words:
        yield numbers, words, lengths


def _rows(path: Path, numbers: list[int], tokens: list[str], tags: list[str], lengths: list[int], first: int) -> Rows:
    offsets = offsets_of(np.array(lengths))
    table = pa.table(
        {
            "tokens": list_array(offsets, pa.array(tokens, pa.string())),
            "ner_tags": list_array(offsets, pa.array(tags, pa.string())),
        }
    )
    word_lines = np.array(numbers, np.int32)
    return Rows(
        path,
        table,
        word_lines[offsets[:-1]].astype(np.int64),
        np.arange(first, first + len(lengths), dtype=np.int64),
        list_array(offsets, to_arrow(word_lines)),
    )


def _wrong_columns(path: Path, numbers: list[int], lines: list[str], separator: str, n_columns: int) -> DataError:
    expected = max(n_columns, 2)
    bad = next(i for i, line in enumerate(lines) if line.count(separator) != expected - 1)
    found = lines[bad].count(separator) + 1
    more = "" if n_columns > 1 else " or more"
    return DataError(
        f"the line has {found} column{'s' * (found > 1)}, expected {expected}{more}",
        where=f"{path}:{numbers[bad]}",
        fix="write token<TAB>tag, as in the first line, and an empty line after each sentence",
        id="tsv-columns",
    )
