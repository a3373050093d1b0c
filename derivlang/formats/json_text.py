"""JSON from a file: any exception of its parser becomes one error with the line.

A key that an object holds twice is an error too: the parser would keep the last value and lose the others. So are NaN
and infinite numbers, which Python reads and JSON does not have.
"""

from __future__ import annotations

import json
import math
from collections import Counter
from collections.abc import Callable
from typing import Any

from derivlang.core.errors import DataError
from derivlang.core.parse_errors import parse_errors


def load_json(text: str, where: Callable[[int], str], *, fix: str) -> Any:
    """Return the value of a JSON text. where: returns `file:line` of a line, from 1.

    Raises DataError: json, json-key (a key twice in one object).
    """
    with parse_errors(lambda: where(1), "JSON", id="json", fix=fix):
        try:
            return _DECODER.decode(text)
        except json.JSONDecodeError as error:
            what = f"column {error.colno}: this is not valid JSON: {error.msg}"
            raise DataError(what, where=where(error.lineno), fix=fix, id="json") from None
        except DataError as error:  # of the functions below, which do not know the file
            error.where = where(1)
            raise


def _to_dict(pairs: list[tuple[str, Any]]) -> dict[str, Any]:
    fields = dict(pairs)
    if len(fields) < len(pairs):
        names = Counter(name for name, _ in pairs)
        twice = next(name for name in names if names[name] > 1)
        what = f"an object has the key {twice!r} more than once"
        raise DataError(what, fix="give each key one value", id="json-key")
    return fields


def _to_number(text: str) -> float:
    value = float(text)
    if not math.isfinite(value):
        raise DataError(f"{text} is not a number of JSON", fix="write null for no value", id="json")
    return value


# One decoder for all lines: `json.loads` with these arguments would make a new one each time.
_DECODER = json.JSONDecoder(object_pairs_hook=_to_dict, parse_float=_to_number, parse_constant=_to_number)
