"""JSON from a file: any exception of its parser becomes one error with the line."""

from __future__ import annotations

import json
from collections.abc import Callable
from typing import Any

from derivlang.core.errors import DataError
from derivlang.core.parse_errors import parse_errors


def load_json(text: str, where: Callable[[int], str], *, fix: str) -> Any:
    """Return the value of a JSON text. where: returns `file:line` of a line, from 1. Raises DataError json."""
    with parse_errors(lambda: where(1), "JSON", id="json", fix=fix):
        try:
            return json.loads(text)
        except json.JSONDecodeError as error:
            what = f"column {error.colno}: this is not valid JSON: {error.msg}"
            raise DataError(what, where=where(error.lineno), fix=fix, id="json") from None
