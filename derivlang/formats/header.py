"""The delimiter of a CSV file, and the names of the columns of a CSV or TSV file.

The delimiter is the one that divides each of the first rows into as many fields. Nothing else is guessed. If the user
gives no names and the first row is not known to be a header, the error lists the options that decide it.

    premise  hypothesis  label     a header: two of `KNOWN_NAMES`
    text  c0  c1  c2               a header: one, and numbered names
    sentence  stars                a header only with --header, or if --text-column names one of them
"""

from __future__ import annotations

import shlex
from collections.abc import Callable, Iterator, Sequence
from contextlib import suppress
from itertools import islice
from pathlib import Path
from typing import Any

from derivlang.core.errors import DataError, DerivlangError, UsageError
from derivlang.core.schema import is_nli
from derivlang.formats.base import SAMPLE, Look, ReadOptions
from derivlang.formats.opening import empty_file, open_lines, suffix_of
from derivlang.formats.rows import Rows

KNOWN_NAMES = (
    {"premise", "hypothesis", "hypo", "sentence1", "sentence2", "sentence", "text", "tokens", "question", "context"}
    | {"label", "gold_label"}
    | {"id", "index", "pairID", "promptID", "genre", "language"}
)
LOOKED_AT = 100  # rows that the advice in an error is based on


def look_at_columns(
    paths: Sequence[Path],
    fields: Callable[[Path], Iterator[list[str]]],
    asked: ReadOptions,
    read: Callable[..., Iterator[Rows]],
    **layout: Any,
) -> Look:
    """Return the names of the columns, whether there is a header, and the first rows.

    fields: yields the fields of each row of a file. read, layout: the reader of the format and its further options.
    Raises DataError header-differs or empty-file, and what `names_of` raises.
    """
    path = paths[0]
    first = list(islice(fields(path), LOOKED_AT))
    if not any(map(any, first)):
        raise empty_file(path, "row")
    if asked.names and asked.header is not False:
        _check_all_or_none(paths, fields, asked)
    names, header = names_of(path, first, asked)
    # Names that the user does not give come from each file's own header row: its columns may be in another order.
    options = {**({"columns": names} if asked.names else {}), "header": header, **layout}
    sample = next(read(path, encoding=asked.encoding, limit=SAMPLE, **options)).table
    return Look(sample=sample, options=options, layout={"columns": names, "header": header, **layout})


def names_of(path: Path, rows: Sequence[Sequence[str]], asked: ReadOptions) -> tuple[list[str], bool]:
    """Return the names of the columns and whether the first row is a header, from the first rows of a file.

    Raises UsageError: no-columns, column-names; DataError tsv-header.
    """
    first = list(rows[0])
    if asked.names:
        return _given_names(path, first, asked)
    header = asked.header
    if header is None:
        header = looks_like_header(first) or any(name in first for name in asked.columns)
    if header:
        check_header(path, first)
        return first, True
    meant = [name for name in first if name.lower() in {other.lower() for other in asked.columns}]
    raise UsageError(
        f"the columns have no names; the first row is {_shown(first)}",
        where=f"{path}:1",
        fix=f"did you mean {' and '.join(meant)}?" if meant else _or_tagged(path, rows, asked) + _advice(rows, asked),
        id="no-columns",
    )


def looks_like_header(fields: Sequence[str]) -> bool:
    """Return whether a first row holds two of `KNOWN_NAMES` (one, in a file of one column, or beside numbered names).

    Numbered names are all other fields, three or more: c0, c1, c2 …
    """
    known = KNOWN_NAMES.intersection(fields)
    return len(known) >= min(2, len(fields)) or (bool(known) and _are_numbered([f for f in fields if f not in known]))


def _are_numbered(names: Sequence[str]) -> bool:
    """Return whether names are one name with the numbers from 0 or 1 on, such as c1, c2, c3."""
    stem = names[0].rstrip("0123456789") if names else ""
    return (
        bool(stem)
        and len(names) >= 3
        and any(all(name == f"{stem}{number}" for number, name in enumerate(names, first)) for first in (0, 1))
    )


def check_header(path: Path, fields: Sequence[str]) -> None:
    """Raise DataError tsv-header if a name is empty or occurs twice."""
    if len(set(fields)) < len(fields) or "" in fields:
        names = list(fields)
        for n, name in enumerate(fields):
            if name in ("", *names[:n]):
                names[n] = f"{name or 'column'}{n + 1}"
        raise DataError(
            f"the header row {list(fields)} has an empty name, or a name twice",
            where=f"{path}:1",
            fix=f"name all columns, e.g. --header --column-names {shlex.quote(','.join(names))}",
            id="tsv-header",
        )


def _check_all_or_none(
    paths: Sequence[Path], fields: Callable[[Path], Iterator[list[str]]], asked: ReadOptions
) -> None:
    """Raise DataError header-differs if the first row of one file is a header, and the first row of another is data.

    With --header, first rows with unknown names are headers, unless another file has known ones.
    """
    known = KNOWN_NAMES.union(asked.names)
    headers, data = [], []
    for path in paths:
        with suppress(DerivlangError):  # a file that cannot be read is an error later, if its split is made
            first = next(fields(path), None)
            if first is None:
                continue
            if looks_like_header(first) or first == list(asked.names):
                headers.append(path)
            elif asked.header is None or known.isdisjoint(first):
                data.append((path, first))
    if headers and data:
        path, first = data[0]
        raise DataError(
            f"the first row is not a header ({_shown(first)}), but the first row of {headers[0]} looks like one",
            where=f"{path}:1",
            fix="give all files of the source a header row, or none",
            id="header-differs",
        )


def _given_names(path: Path, first: list[str], asked: ReadOptions) -> tuple[list[str], bool]:
    names = list(asked.names)
    if len(set(names)) < len(names):
        raise UsageError(f"a name occurs twice in {','.join(names)}", where="--column-names", id="column-names")
    if asked.header is None and (looks_like_header(first) or first == names):
        raise UsageError(
            f"--column-names names the columns, but the first row looks like a header: {_shown(first)}",
            where=f"{path}:1",
            fix="add --header if it is one (its names are replaced), or --no-header if it is data",
            id="column-names",
        )
    return names, bool(asked.header)


def _or_tagged(path: Path, rows: Sequence[Sequence[str]], asked: ReadOptions) -> str:
    """Return how to read a TSV file as words and tags if its first column may hold words, and the last few labels."""
    last = {row[-1] for row in rows}
    words = all(len(row) > 1 and " " not in row[0] + row[-1] for row in rows)
    if suffix_of(path) != ".tsv" or asked.header is not None or not words or 2 * len(last) > len(rows):
        return ""
    return "if each line is a word and its tag: --format tagged; "


def _advice(rows: Sequence[Sequence[str]], asked: ReadOptions) -> str:
    """Return the options that say whether there is a header, for the columns of this file."""
    first, below = rows[0], [row for row in rows[1:] if len(row) == len(rows[0])] or [rows[0]]
    spaces = [sum(" " in row[i] for row in below) for i in range(len(first))]
    texts = [i for i, n in enumerate(spaces) if 2 * n > len(below)] or [spaces.index(max(spaces))]
    names = [f"column{i + 1}" for i in range(len(first))]
    for i, name in zip(texts, ("text",) if len(texts) == 1 else ("premise", "hypothesis"), strict=False):
        names[i] = name
    last = len(first) - 1
    if last not in texts and (len(texts) == 1 or is_nli(row[last] for row in below)):
        names[last] = "label"
    named = f"name the columns: --column-names {','.join(names)}"
    if asked.header is False or any(len(first[i]) > 40 for i in texts) or len(set(first)) < len(first):
        return f"{named} (with --header, they replace the first row)" if asked.header is None else named
    flags = " ".join(f"--text-column {shlex.quote(first[i])}" for i in texts)
    return f"if it is a header: --header {flags}; if it is data, {named}"


def _shown(fields: Sequence[str]) -> str:
    """Return the fields of a row for a message."""
    shown = ", ".join(repr(field if len(field) <= 40 else f"{field[:40]}…") for field in fields[:8])
    return shown if len(fields) <= 8 else f"{shown} and {len(fields) - 8} more"


NAMES = {",": "comma", ";": "semicolon", "\t": "tab", "|": "vertical bar"}


def find_delimiter(path: Path, fields: Callable[[str, Path], Iterator[list[str]]], asked: ReadOptions) -> str:
    """Return the delimiter of a file. fields: yields the fields of each row under a delimiter.

    It is the comma if no row is divided. Raises DataError delimiter if several or none divide all rows alike.
    """
    if asked.delimiter is not None:
        return asked.delimiter
    _, line = next(iter(open_lines(path, asked.encoding)), (1, ""))
    present = [delimiter for delimiter in NAMES if delimiter in line]
    if present in ([], [","]) or len(asked.names) == 1:  # one name: each row is a text
        return ","
    rows: dict[str, list[list[str]]] = {delimiter: [] for delimiter in present}
    for delimiter in present:
        with suppress(DataError):  # the quotation marks do not fit this delimiter
            rows[delimiter] = list(islice(fields(delimiter, path), LOOKED_AT))
    widths = {delimiter: {len(row) for row in some} for delimiter, some in rows.items()}
    wanted = {len(asked.names)} if asked.names else None
    fit = [d for d, width in widths.items() if width == wanted or (not wanted and len(width) == 1 and max(width) > 1)]
    headers = [d for d in fit if looks_like_header(rows[d][0]) or not set(asked.columns).isdisjoint(rows[d][0])]
    for clear in (fit, headers):
        if len(clear) == 1:
            return clear[0]
    if "," in present and not fit:
        return ","  # whose error names the first row with more or fewer fields
    raise DataError(
        f"the fields may be separated by {' or '.join(f'a {NAMES[d]}' for d in fit or present)}",
        where=f"{path}:1",
        fix=f"name the delimiter: --delimiter {_typed((fit or present)[0])}; or, if a row is one text, "
        "--column-names text",
        id="delimiter",
    )


def check_delimiter(value: str, where: str) -> str:
    """Return a delimiter as a character; `tab` is one, too. Raises UsageError bad-value."""
    character = {"tab": "\t", "\\t": "\t"}.get(value, value)
    if len(character) != 1 or character in '"\r\n\0':
        raise UsageError(
            f"must be one character, or tab, got {value!r}", where=where, fix="for example ';'", id="bad-value"
        )
    return character


def _typed(delimiter: str) -> str:
    return "tab" if delimiter == "\t" else f"'{delimiter}'"
