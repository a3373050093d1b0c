"""Tagged sentences, a word a line: `token<TAB>tag`, an empty line between sentences.

WikiAnn (PAN-X) and CoNLL 2003 have this form. Of more than two columns, the first is the token and the last its tag.
Tabs or single spaces separate them.

    Paris<TAB>B-LOC
    dort<TAB>O          ->   tokens [Paris, dort], ner_tags [B-LOC, O]
"""

from __future__ import annotations

import re
from collections.abc import Iterable, Iterator, Mapping, Sequence
from itertools import chain, islice, pairwise
from pathlib import Path
from typing import Any, BinaryIO

import numpy as np
import pyarrow as pa
import pyarrow.compute as pc

from derivlang.core.arrays import offsets_of
from derivlang.core.arrow import list_array, to_arrow, to_numpy
from derivlang.core.errors import DataError
from derivlang.core.schema import Field, Schema, Side
from derivlang.formats.base import Asked, Format, Look
from derivlang.formats.header import looks_like_header
from derivlang.formats.opening import open_lines, suffix_of
from derivlang.formats.rows import Rows, in_tables
from derivlang.formats.sentence_lines import line_blocks, word_values
from derivlang.formats.tab_separated import columns_of, join_columns, split_columns

DOCUMENT_MARK = "-DOCSTART-"  # CoNLL 2003: a line that begins so is read as an empty one
LINES_LOOKED_AT = 100
_MOST_WORDS = 2000  # in the first sentence
_TAG = re.compile(r"O|[BILSEU]-.+")
LANGUAGE_PREFIX = re.compile(r"[a-z]{2,3}:")


def read(path: Path | str, *, encoding: str = "utf-8", limit: int | None = None) -> Iterator[Rows]:
    """Yield one row a sentence: `tokens` and `ner_tags` list<string>, with `word_lines`; a document is a sentence.

    All lines must have as many columns as the first. The prefix of PAN-X's `en:token` is removed if all tokens of the
    first 100 lines have the same one. limit: greatest number of sentences.
    Raises DataError: tsv-columns, empty-token, empty-tag, tag-space, empty-file, and as `open_lines`.
    """
    path = Path(path)
    lines = _lines(path, encoding)
    head = list(islice(lines, LINES_LOOKED_AT))
    first = next((line for _, line in head if line), "")
    separator = "\t" if "\t" in first else " "
    n_columns = first.count(separator) + 1
    prefix = _language_prefix([line for _, line in head if line])
    for done, sentences in in_tables(line_blocks(chain(head, lines)), limit, path, "sentence"):
        numbers = list(chain.from_iterable(sentence.numbers for sentence in sentences))
        words = list(chain.from_iterable(sentence.lines for sentence in sentences))
        columns = split_columns(words, max(n_columns, 2), separator)
        if isinstance(columns, int):
            expected = str(n_columns) if n_columns > 1 else "2 or more"
            found = columns_of(words[columns], separator)
            raise DataError(
                f"the line has {found}, expected {expected}",
                where=f"{path}:{numbers[columns]}",
                fix="write token<TAB>tag, as in the first line, and an empty line after each sentence",
                id="tsv-columns",
            )
        tokens, tags = columns[0], columns[-1]
        if prefix:
            tokens = [token.removeprefix(prefix) for token in tokens]
        for name, values in (("token", tokens), ("tag", tags)):
            if "" in values:
                raise DataError(
                    f"the {name} is empty",
                    where=f"{path}:{numbers[values.index('')]}",
                    fix="write token<TAB>tag, or remove the line",
                    id=f"empty-{name}",
                )
        for number, tag in zip(numbers, tags, strict=True):
            if tag != tag.strip():  # it would be a class of its own beside the tag without
                raise DataError(
                    f"the tag {tag!r} begins or ends with white space",
                    where=f"{path}:{number}",
                    fix="remove the white space",
                    id="tag-space",
                )
        offsets = offsets_of(np.array([len(sentence.lines) for sentence in sentences]))
        table = pa.table(
            {
                "tokens": list_array(offsets, pa.array(tokens, pa.string())),
                "ner_tags": list_array(offsets, pa.array(tags, pa.string())),
            }
        )
        lines_of = np.array(numbers, np.int32)
        starts = lines_of[offsets[:-1]].astype(np.int64)
        yield Rows.of_documents(path, table, starts, done, list_array(offsets, to_arrow(lines_of)))


def write(
    tables: Iterable[pa.Table],
    out: BinaryIO,
    *,
    tag_column: str = "ner_tags",
    final_empty_line: bool = False,
) -> None:
    """Write `token<TAB>tag` lines with an empty line between sentences; sentences without words are left out.

    final_empty_line: whether an empty line follows the last sentence, as in CoNLL 2003 (not in PAN-X).
    Raises DataError tsv-value (a token or tag with a tab or a line end), empty-token; LayerError layer-length (a
    sentence with more or fewer tags than tokens).
    """
    separator = ""
    for table in tables:
        columns = [word_values(table, name) for name in ("tokens", tag_column)]
        for name, values in zip(("token", tag_column), columns, strict=True):
            if "" in values:
                raise DataError(f"a {name} is empty", fix="leave out such words", id="empty-token")
        lines = join_columns(("tokens", tag_column), columns)
        lengths = pc.list_value_length(table.column("tokens").combine_chunks())
        offsets = offsets_of(to_numpy(lengths)).tolist()
        for start, stop in pairwise(offsets):
            if start < stop:
                out.write((separator + "\n".join(lines[start:stop]) + "\n").encode())
                separator = "\n"
    if final_empty_line:
        out.write(separator.encode())


def count(path: Path | str, encoding: str = "utf-8") -> int:
    """Count the sentences."""
    return sum(1 for _ in line_blocks(_lines(Path(path), encoding)))


def _lines(path: Path, encoding: str) -> Iterator[tuple[int, str]]:
    for number, line in open_lines(path, encoding):
        yield number, "" if line.startswith(DOCUMENT_MARK) else line


def _language_prefix(lines: list[str]) -> str:
    """Return `en:` if all lines begin with it, else ""."""
    found = LANGUAGE_PREFIX.match(lines[0]) if lines else None
    return found[0] if found and all(line.startswith(found[0]) for line in lines) else ""


def _recognises(path: Path, asked: Asked) -> bool:
    """Return whether a file holds words and tags.

    Options about columns mean another format. `.tsv` files may hold a table, too, so that their rows decide: only words
    and tags have empty lines between them. A table may end with one, so that the lines before it must look like words
    and tags as well.
    """
    if asked.columns or asked.names or asked.quoting or asked.header is not None:
        return False
    if suffix_of(path) != ".tsv":
        return True
    rows: list[list[str]] = []
    for _, line in islice(open_lines(path, asked.encoding), _MOST_WORDS):
        if not line.strip():
            return bool(rows) and not looks_like_header(rows[0]) and _are_words_and_tags(rows)
        rows.append(line.split("\t"))
    return False


def _are_words_and_tags(rows: list[list[str]]) -> bool:
    """Return whether most rows end with a tag of entities, or all begin with a word and end with what may be a tag."""
    tags = sum(_TAG.fullmatch(row[-1]) is not None for row in rows)
    return 2 * tags > len(rows) or not any(" " in row[0] or row[-1].strip().isdecimal() for row in rows)


def _look(paths: Sequence[Path], asked: Asked) -> Look:
    return Look(MEANING)


def _write(tables: Iterable[pa.Table], out: BinaryIO, schema: Schema, layout: Mapping[str, Any]) -> None:
    write(tables, out)


MEANING = Schema((Side("", words="tokens"),), (Field("ner_tags", "entities"),))
FORMAT = Format(
    name="tagged",
    suffixes=(".tsv", ".conll", ".bio", ".iob", ".iob2"),
    what="file of words and tags",
    read=read,
    write=_write,
    count=count,
    look=_look,
    recognises=_recognises,
)
