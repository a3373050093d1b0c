"""The delimiter of a CSV file: the one that the user gives, or that divides each of the first rows into as many fields.

text;label                  ; divides both rows into two fields, the comma only one of them
"Look; a cat, too.";glad
"""

from __future__ import annotations

from collections.abc import Callable, Iterator, Sequence
from itertools import islice
from pathlib import Path

from derivlang.core.errors import DataError, UsageError
from derivlang.formats.base import ReadOptions
from derivlang.formats.header import LOOKED_AT, looks_like_header
from derivlang.formats.opening import open_lines

NAMES = {",": "comma", ";": "semicolon", "\t": "tab", "|": "vertical bar"}


def find_delimiter(path: Path, records: Callable[[Path, str], Iterator[list[str]]], asked: ReadOptions) -> str:
    """Return the delimiter of a file. records: yields the fields of each row under a delimiter.

    It is the comma if no row is divided. Raises DataError delimiter if several or none divide all rows alike.
    """
    if asked.delimiter is not None:
        return asked.delimiter
    _, line = next(iter(open_lines(path, asked.encoding)), (1, ""))
    present = [delimiter for delimiter in NAMES if delimiter in line]
    if present in ([], [","]) or len(asked.names) == 1:  # one name: each row is a text
        return ","
    rows = {delimiter: _rows(path, records, delimiter) for delimiter in present}
    fit = [d for d in present if _alike(rows[d], len(asked.names))]
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


def _rows(path: Path, records: Callable[[Path, str], Iterator[list[str]]], delimiter: str) -> Sequence[list[str]]:
    try:
        return list(islice(records(path, delimiter), LOOKED_AT))
    except DataError:  # the quotation marks do not fit this delimiter
        return []


def _alike(rows: Sequence[list[str]], n_names: int) -> bool:
    """Return whether all rows have as many fields, as many as names if there are some, and more than one."""
    counts = {len(row) for row in rows}
    return counts == {n_names} if n_names else len(counts) == 1 and counts != {1}


def _typed(delimiter: str) -> str:
    return "tab" if delimiter == "\t" else f"'{delimiter}'"
