"""Tagged sentences, a word per line: `token<TAB>tag`, an empty line between sentences.

WikiAnn (PAN-X) and CoNLL 2003 have this form. Of more than two columns, the first is the token and the last its tag.
Tabs or single spaces separate them.

    # id = 1
    Paris<TAB>B-LOC
    dort<TAB>O          ->   tokens [Paris, dort], ner_tags [B-LOC, O]

Lines before the first word of a sentence that begin with `#` and are not a word with its tag are comments, and left
out.
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

from derivlang.core.arrays import Bool, Int64, UInt8, offsets_of
from derivlang.core.arrow import list_array, string_array, to_arrow, to_numpy
from derivlang.core.errors import DataError
from derivlang.core.schema import Field, Schema, Side
from derivlang.formats.base import Format, Look, ReadOptions
from derivlang.formats.file_piece import WHOLE, Piece
from derivlang.formats.header import looks_like_header
from derivlang.formats.line_cuts import NEWLINE, blocks_of_lines, bounds_of_lines, cut_lines
from derivlang.formats.opening import open_lines, suffix_of
from derivlang.formats.places import located
from derivlang.formats.rows import Rows, in_tables
from derivlang.formats.sentence_lines import LineBlock, begins_sentence, line_blocks, word_values
from derivlang.formats.tab_separated import columns_of, join_columns, split_columns

DOCUMENT_MARK = "-DOCSTART-"  # CoNLL 2003: a line that begins so is read as an empty one
LINES_LOOKED_AT = 100
_MOST_WORDS = 2000  # in the first sentence
_RETURN, _HASH, _DASH, _D = b"\r#-D"
_TAG = re.compile(r"O|[BIESLUMW]-.+")
LANGUAGE_PREFIX = re.compile(r"[a-z]{2,3}:")


def read(
    path: Path | str, *, encoding: str = "utf-8", limit: int | None = None, piece: Piece = WHOLE
) -> Iterator[Rows]:
    """Yield one row per sentence: `tokens` and `ner_tags` list<string>, with `word_lines`; a document is a sentence.

    All lines must have as many columns as the first line that is not a comment. The prefix of PAN-X's `en:token` is
    removed if all tokens of the first 100 lines of the file have the same one. limit: greatest number of sentences.
    piece: what to read.
    Raises DataError: tsv-columns, empty-token, empty-tag, tag-space, empty-file, and as `open_lines`.
    """
    path = located(path)
    head, sentences_of_piece = _sentences(path, encoding, piece)
    first = head[0].lines[0] if head else ""
    separator = _separator(first)
    n_columns = first.count(separator) + 1
    prefix = _language_prefix(list(islice(chain.from_iterable(block.lines for block in head), LINES_LOOKED_AT)))
    for done, sentences in in_tables(sentences_of_piece, limit, path, "sentence", piece):
        numbers = list(chain.from_iterable(sentence.numbers for sentence in sentences))
        words = list(chain.from_iterable(sentence.lines for sentence in sentences))
        columns = split_columns(words, max(n_columns, 2), separator)
        if isinstance(columns, int):
            expected = str(n_columns) if n_columns > 1 else "2 or more"
            actual = columns_of(words[columns], separator)
            raise DataError(
                f"the line has {actual}, expected {expected}",
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
                "tokens": list_array(offsets, string_array(tokens)),
                "ner_tags": list_array(offsets, string_array(tags)),
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


def cut(path: Path, size: int, target: int) -> list[int]:
    """Return where the pieces of a file begin: behind empty lines."""
    return cut_lines(path, size, target, begins_sentence)


def count(path: Path | str, encoding: str = "utf-8", *, piece: Piece = WHOLE) -> tuple[int, int]:
    """Return the number of sentences, and of lines."""
    path = located(path)
    sentences = lines = 0
    held = np.zeros(0, np.uint8)  # lines of a sentence that the next block may continue
    for _, text in chain(blocks_of_lines(path, piece, encoding), [(0, np.array([NEWLINE], np.uint8))]):
        text = np.concatenate([held, text])
        starts, ends = bounds_of_lines(text)
        empty = _are_empty(text, starts, ends)
        n_whole = int(np.flatnonzero(empty)[-1]) + 1 if empty.any() else 0
        held = text[starts[n_whole] if n_whole < len(starts) else len(text) :]
        lines += n_whole
        sentences += _count_runs(path, encoding, text, starts[:n_whole], ends[:n_whole], empty[:n_whole])
    return sentences, lines - 1


def _are_empty(text: UInt8, starts: Int64, ends: Int64) -> Bool:
    """Return which lines are read as empty ones."""
    empty = (starts == ends) | ((starts + 1 == ends) & (text[starts] == _RETURN))
    dashed = np.flatnonzero(text[starts] == _DASH)
    for line in dashed[text[starts[dashed] + 1] == _D].tolist():
        empty[line] = text[starts[line] : ends[line]].tobytes().startswith(DOCUMENT_MARK.encode())
    return np.asarray(empty)


def _count_runs(path: Path, encoding: str, text: UInt8, starts: Int64, ends: Int64, empty: Bool) -> int:
    """Count the runs of lines that are not all comments; the last line is empty."""
    run = np.cumsum(empty)
    hashed = ~empty & (text[starts] == _HASH)
    words = run[~empty & ~hashed]  # a line that begins otherwise is not a comment
    n_runs = int(np.count_nonzero(np.diff(words, prepend=-1)))
    for only in np.setdiff1d(run[hashed], words).tolist() if hashed.any() else ():
        separator, n_columns = _columns_of_comments(line_blocks(_lines(path, encoding)))[1:]
        n_runs += not all(
            _is_comment(text[starts[i] : ends[i]].tobytes().decode().removesuffix("\r"), separator, n_columns)
            for i in np.flatnonzero(hashed & (run == only)).tolist()
        )
    return n_runs


def _sentences(path: Path, encoding: str, piece: Piece) -> tuple[list[LineBlock], Iterator[LineBlock]]:
    """Return the first sentences of a file, and the sentences of a piece of it, both without comments."""
    blocks = line_blocks(_lines(path, encoding))
    held, separator, n_columns = _columns_of_comments(blocks)
    sentences = _without_comments(chain(held, blocks), separator, n_columns)
    head = list(islice(sentences, LINES_LOOKED_AT))
    if piece == WHOLE:
        return head, chain(head, sentences)
    return head, _without_comments(line_blocks(_lines(path, encoding, piece)), separator, n_columns)


def _columns_of_comments(blocks: Iterator[LineBlock]) -> tuple[list[LineBlock], str, int]:
    """Return the blocks read so far, and the separator and number of columns that distinguish words from comments.

    The first line that does not begin with `#`, or else the first that ends with a tag, decides.
    """
    held: list[LineBlock] = []
    first = None
    for block in blocks:
        held.append(block)
        first = next((line for line in block.lines if line[0] != "#"), None)
        if first is not None:
            break
    if first is None:
        first = next((line for block in held for line in block.lines if _ends_with_tag(line)), "")
    separator = _separator(first)
    return held, separator, first.count(separator) + 1


def _without_comments(blocks: Iterable[LineBlock], separator: str, n_columns: int) -> Iterator[LineBlock]:
    """Yield the lines of each sentence without the comments before it; blocks of comments are left out."""
    for block in blocks:
        comments = 0
        while comments < len(block.lines) and _is_comment(block.lines[comments], separator, n_columns):
            comments += 1
        if comments < len(block.lines):
            yield LineBlock(block.numbers[comments:], block.lines[comments:]) if comments else block


def _is_comment(line: str, separator: str, n_columns: int) -> bool:
    """Return whether a line that stands before the first word of a sentence is a comment, and not a word.

    A word has a tag in the last of all columns, or only a word in the first. In doubt it is a word, which may be an
    error: a comment is written as `# id = 1`, as `# id 12<TAB>domain=en` or as `#begin document 1`.

        # id = 1     comment          #<TAB>O     # O     #ACL<TAB>B-ORG     words          #ACL     #<TAB>X     errors
    """
    if line[0] != "#":
        return False
    fields, tag = line.split(separator), _ends_with_tag(line)
    if tag and (len(fields) == n_columns or len(line.split()) == 2):
        return False
    if separator == "\t":
        return " " in fields[0]
    return line[1:2] == " " or (" " in line and not tag)


def _ends_with_tag(line: str) -> bool:
    return _TAG.fullmatch(line.split(_separator(line))[-1]) is not None


def _separator(line: str) -> str:
    return "\t" if "\t" in line else " "


def _lines(path: Path, encoding: str, piece: Piece = WHOLE) -> Iterator[tuple[int, str]]:
    for number, line in open_lines(path, encoding, piece=piece):
        yield number, "" if line.startswith(DOCUMENT_MARK) else line


def _language_prefix(lines: list[str]) -> str:
    """Return `en:` if all lines begin with it, else ""."""
    match = LANGUAGE_PREFIX.match(lines[0]) if lines else None
    return match[0] if match and all(line.startswith(match[0]) for line in lines) else ""


def _recognises(path: Path, asked: ReadOptions) -> bool:
    """Return whether a file holds words and tags.

    Options about columns mean another format. `.tsv` files may hold a table, too, so that their rows decide: only words
    and tags have empty lines between them. A table may end with one, so that the lines before it must look like words
    and tags as well.
    """
    if asked.columns or asked.names or asked.quoting or asked.delimiter or asked.header is not None:
        return False
    if suffix_of(path) != ".tsv":
        return True
    rows: list[list[str]] = []
    commented = False
    for _, line in islice(open_lines(path, asked.encoding), _MOST_WORDS):
        if not rows and line[:1] == "#" and not _ends_with_tag(line):
            commented = True
        elif line.strip():
            rows.append(line.split("\t"))
        elif rows or not commented:
            return bool(rows) and not looks_like_header(rows[0]) and _are_words_and_tags(rows)
    return False


def _are_words_and_tags(rows: list[list[str]]) -> bool:
    """Return whether most rows end with a tag of entities, or all begin with a word and end with what may be a tag."""
    tags = sum(_TAG.fullmatch(row[-1]) is not None for row in rows)
    return 2 * tags > len(rows) or not any(" " in row[0] or row[-1].strip().isdecimal() for row in rows)


def _look(paths: Sequence[Path], asked: ReadOptions) -> Look:
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
    cut=cut,
    count=count,
    look=_look,
    recognises=_recognises,
)
