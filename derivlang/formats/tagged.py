"""Tagged sentences, a word per line: `token<TAB>tag`, an empty line between sentences.

WikiAnn (PAN-X), CoNLL 2003, GermEval 2014 and Universal NER have this form. Of more than two columns, one holds the
tokens and one their tags (`tagged_columns.py`); a first column that counts the words of every sentence is neither.
Tabs or spaces separate them. White space at line ends and in blank lines means nothing.

    # id = 1
    Paris<TAB>B-LOC
    dort<TAB>O          ->   tokens [Paris, dort], ner_tags [B-LOC, O]

Lines before the first word of a sentence that begin with `#` and are not a word with its tag are comments, and left
out, as are the other columns.
"""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Sequence
from contextlib import suppress
from itertools import chain, islice, pairwise
from pathlib import Path
from typing import BinaryIO

import numpy as np
import pyarrow as pa
import pyarrow.compute as pc

from derivlang.core.arrays import offsets_of
from derivlang.core.arrow import list_array, scalar, to_arrow, to_numpy
from derivlang.core.errors import DataError, DerivlangError
from derivlang.core.messages import warn
from derivlang.core.schema import Field, Schema, Side
from derivlang.formats.base import Format, Look, ReadOptions
from derivlang.formats.header import looks_like_header
from derivlang.formats.lines import (
    columns_of,
    count_lines,
    cut_lines,
    join_columns,
    split_columns,
    text_blocks,
    word_values,
)
from derivlang.formats.opening import WHOLE, Piece, open_lines, suffix_of, whole_lines
from derivlang.formats.rows import Rows, in_tables
from derivlang.formats.tagged_columns import (
    LOOKED_AT,
    TAG,
    WHITE,
    TaggedColumns,
    ends_with_tag,
    find_columns,
    is_numbers,
    is_tag,
    stripped,
)

_MOST_WORDS = 2000  # in the first sentence
_FIX = "write token<TAB>tag, or remove the line"
_QUOTED, _UNQUOTED = (
    '""""',
    "write it without quotation marks around fields; in pandas, to_csv(…, quoting=3)",
)


def read(path: Path, *, encoding: str = "utf-8", limit: int | None = None, piece: Piece = WHOLE) -> Iterator[Rows]:
    """Yield one row per sentence: `tokens` and `ner_tags` list<string>, with `word_lines`; a document is a sentence.

    All lines must have as many columns as the first line that is not a comment. The prefix of PAN-X's `en:token` is
    removed if all tokens of the first 100 lines of the file have the same one. limit: greatest number of sentences.
    piece: what to read.
    Raises DataError: tsv-columns, word-numbers, conll-2012, tsv-header, empty-token, empty-tag, tsv-quoting, tag-space,
    empty-file, and as `open_lines`.
    """
    columns, sentences_of_piece = _sentences(path, encoding, piece)
    for done, sentences in in_tables(sentences_of_piece, limit, path, "sentence", piece):
        firsts, texts = zip(*sentences, strict=True)
        offsets = offsets_of(np.array([text.count("\n") + 1 for text in texts]))
        place = np.arange(offsets[-1]) - np.repeat(offsets[:-1], np.diff(offsets))  # of each word in its sentence
        numbers = np.repeat(np.array(firsts), np.diff(offsets)) + place
        text = columns.plain("\n".join(texts))
        fields = split_columns(text, max(columns.n, 2), columns.separator)
        if isinstance(fields, int):
            expected = str(columns.n) if columns.n > 1 else "2 or more"
            actual = columns_of(text.split("\n")[fields], columns.separator)
            raise DataError(
                f"the line has {actual}, expected {expected}",
                where=f"{path}:{numbers[fields]}",
                fix="write token<TAB>tag, as in the first line, and an empty line after each sentence",
                id="tsv-columns",
            )
        tokens, tags = fields[columns.word], fields[columns.tag]
        if columns.first_number is not None:
            _check_numbers(path, fields[0], columns.first_number + place, numbers)
        if columns.prefix:
            tokens = pc.replace_substring_regex(tokens, f"^{columns.prefix}", "")
        faults = [
            ("the token is empty", tokens, "", _FIX, "empty-token"),
            ("the tag is empty", tags, "", _FIX, "empty-tag"),
            (f"the token {_QUOTED} is a quotation mark as pandas writes it", tokens, _QUOTED, _UNQUOTED, "tsv-quoting"),
        ]
        for tag in pc.unique(tags).to_pylist():
            if tag != tag.strip():  # it would be a class of its own beside the tag without
                what = f"the tag {tag!r} begins or ends with white space"
                faults.append((what, tags, tag, "remove the white space", "tag-space"))
        for what, values, wrong, fix, id in faults:
            if (at := pc.index(values, scalar(wrong)).as_py()) >= 0:
                raise DataError(what, where=f"{path}:{numbers[at]}", fix=fix, id=id)
        table = pa.table({"tokens": list_array(offsets, tokens), "ner_tags": list_array(offsets, tags)})
        lines_of = list_array(offsets, to_arrow(numbers.astype(np.int32)))
        yield Rows.of_documents(path, table, np.array(firsts, np.int64), done, lines_of)


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


def cut(path: Path, size: int, target: int) -> list[int]:
    """Return where the pieces of a file begin: behind empty lines."""
    return cut_lines(path, size, target, lambda before, line: before.isspace() and not line.isspace())


def count(path: Path, encoding: str = "utf-8", *, piece: Piece = WHOLE) -> tuple[int, int]:
    """Return the number of sentences, and of lines."""
    _, lines = count_lines(path, piece, encoding, len)
    return sum(1 for _ in _sentences(path, encoding, piece)[1]), lines


def _check_numbers(path: Path, given: pa.Array, expected: np.ndarray, lines: np.ndarray) -> None:
    """Raise DataError word-numbers for the first number of a word that is not the next one. given: of all words."""
    for line, number, next_one in zip(lines.tolist(), given.to_pylist(), map(str, expected.tolist()), strict=True):
        if number != next_one:
            raise DataError(
                f"the first column counts the words of each sentence, but holds {number!r} here, not {next_one}",
                where=f"{path}:{line}",
                fix="number the words of each sentence, or remove the column from all lines",
                id="word-numbers",
            )


def _check_columns(path: Path, columns: TaggedColumns, head: Sequence[tuple[int, str]]) -> None:
    """Raise DataError conll-2012 or word-numbers if it is open which column holds the words; tsv-header.

    A header line has no tag, although all other lines have one. head: the first blocks.
    """
    lines = [one for first, text in head for one in enumerate(text.split("\n"), first) if one[1][0] != "#"]
    rows = [columns.split(line) for _, line in lines]
    if rows and len(rows[0]) > 10 and rows[0][1].isdecimal() and rows[0][2] == "0" and "*" in rows[0][5]:
        raise DataError(
            "these are the columns of CoNLL 2012 (OntoNotes), whose entities are brackets such as (PERSON* and *)",
            where=f"{path}:{lines[0][0]}",
            fix="write token<TAB>tag, such as Ann<TAB>B-PERSON; the tokens are column 4, and the entities column 11",
            id="conll-2012",
        )
    if columns.first_number is None and columns.n > 2 and rows and is_numbers(row[0] for row in rows):
        raise DataError(
            "the first column holds only numbers, which do not clearly count the words of each sentence",
            where=f"{path}:{lines[0][0]}",
            fix="number the words of each sentence 1, 2, 3 …, or remove the column",
            id="word-numbers",
        )
    tags = [row[columns.tag] for row in rows if len(row) == columns.n > 1]
    if (
        len(tags) > 1
        and tags[0].replace("_", "").isalpha()
        and [*map(is_tag, tags)] == [False] + [True] * len(tags[1:])
    ):
        raise DataError(
            f"this looks like a header line: its tag is {tags[0]!r}, while the other lines have tags such as {tags[1]}",
            where=f"{path}:{lines[0][0]}",
            fix="remove the line, or correct its tag",
            id="tsv-header",
        )


def _sentences(path: Path, encoding: str, piece: Piece) -> tuple[TaggedColumns, Iterator[tuple[int, str]]]:
    """Return the columns of a file, and the sentences of a piece of it, without comments.

    Raises DataError: conll-2012, word-numbers, tsv-header.
    """
    blocks = _blocks(path, encoding)
    head, only_comments = list[tuple[int, str]](), True
    for number, text in blocks:
        head.append((number, text))
        only_comments = only_comments and all(line[0] == "#" for line in text.split("\n"))
        if len(head) >= LOOKED_AT and not only_comments:
            break
    columns = find_columns(head)
    _check_columns(path, columns, head)
    blocks = chain(head, blocks) if piece == WHOLE else _blocks(path, encoding, piece)
    return columns, ((number, text) for number, text in map(columns.without_comments, blocks) if text)


def _blocks(path: Path, encoding: str, piece: Piece = WHOLE) -> Iterator[tuple[int, str]]:
    blocks = (stripped(lines.decode()) for lines in whole_lines(path, encoding, piece))
    for number, text in text_blocks(blocks, piece.line + 1):
        if "\r" in text:
            raise DataError(
                "the line has carriage returns inside, as line ends of an old Mac",
                where=f"{path}:{number + text[: text.index(chr(13))].count(chr(10))}",
                fix="end each line with a line feed",
                id="tsv-columns",
            )
        yield number, text


def _recognises(path: Path, asked: ReadOptions) -> bool:
    """Return whether a file holds words and tags.

    Options about columns mean another format. `.tsv` files may hold a table, too, so that their rows decide: only words
    and tags have empty lines between them. A table may end with one, so that the lines before it must look like words
    and tags as well.
    """
    named = asked.columns or asked.names or asked.delimiter
    if named or asked.quoting is not None or asked.header is not None:
        return False
    if suffix_of(path) != ".tsv":
        return True
    rows: list[list[str]] = []
    commented = False
    for _, line in islice(open_lines(path, asked.encoding), _MOST_WORDS):
        if not rows and line[:1] == "#" and not ends_with_tag(line):
            commented = True
        elif line.strip():
            rows.append(line.rstrip(WHITE).split("\t"))
        elif rows or not commented:
            return bool(rows) and not looks_like_header(rows[0]) and _are_words_and_tags(rows)
    return False


def _are_words_and_tags(rows: list[list[str]]) -> bool:
    """Return whether most rows end with a tag of entities, or all begin with a word and end with what may be a tag."""
    tags = sum(TAG.fullmatch(row[-1]) is not None for row in rows)
    return 2 * tags > len(rows) or not any(" " in row[0] or row[-1].strip().isdecimal() for row in rows)


def _look(paths: Sequence[Path], asked: ReadOptions) -> Look:
    """Return the meaning of the columns. Warn of what is left out, once for all files with the same columns."""
    said: set[str] = set()
    for path in paths:
        with suppress(DerivlangError):  # a file that cannot be read is an error later, if its split is made
            what = _sentences(path, asked.encoding, WHOLE)[0].left_out
            if what and what not in said:
                warn(f"{path.name}: {what}")
            said.add(what)
    return Look(MEANING)


MEANING = Schema((Side("", words="tokens"),), (Field("ner_tags", "entities"),))
FORMAT = Format(
    name="tagged",
    suffixes=(".tsv", ".conll", ".bio", ".iob", ".iob2"),
    what="file of words and tags",
    read=read,
    write=write,
    cut=cut,
    count=count,
    look=_look,
    recognises=_recognises,
)
