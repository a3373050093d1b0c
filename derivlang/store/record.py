"""Records: JSON objects that derivlang writes, and that may be damaged or edited when it reads them again."""

from __future__ import annotations

import json
from collections.abc import Callable, Mapping
from hashlib import sha256
from pathlib import Path
from typing import Any

from derivlang.core.errors import DerivlangError, StoreError
from derivlang.core.parse_errors import parse_errors

Kind = type | tuple[type, ...]


def read_record(
    path: Path,
    what: str,
    check: Callable[[dict[str, Any]], object] = lambda found: None,
    *,
    id: str,
    fix: str | None = None,
) -> dict[str, Any]:
    """Return the object in a file. Raise StoreError if it cannot be read, or if `check` raises anything."""
    with parse_errors(str(path), what, error=StoreError, id=id, fix=fix):
        found = json.loads(path.read_text("utf-8"))
        if not isinstance(found, dict):
            raise TypeError("it is not an object")
        json.dumps(found, ensure_ascii=False).encode()  # a lone surrogate could not be written again
        try:
            check(found)
        except DerivlangError as caught:  # an error of an option or a spec: here the file is at fault
            raise ValueError(caught.what) from caught
    return found


def record_text(found: Mapping[str, Any]) -> str:
    """Return an object as the JSON text that derivlang writes."""
    return json.dumps(found, ensure_ascii=False, indent=1) + "\n"


def digest(value: Any) -> str:
    """Return 16 hex digits that identify a value by its JSON."""
    return sha256(json.dumps(value, sort_keys=True, default=str).encode()).hexdigest()[:16]


def check_types(
    found: Mapping[str, Any], required: Mapping[str, Kind], optional: Mapping[str, Kind] = {}, *, where: str = ""
) -> None:
    """Raise ValueError for a field of a wrong type, a missing required field, or a negative integer.

    Optional fields may be null. where: a prefix for the names in the message ("splits.train.").
    """
    if not isinstance(found, Mapping):
        raise ValueError(f"{where.rstrip('.') or 'it'} is {short(found)}")
    for name, kind in {**required, **optional}.items():
        value = found.get(name)
        if value is None and name in optional:
            continue
        wrong_bool = isinstance(value, bool) and kind is not bool
        if wrong_bool or not isinstance(value, kind):
            raise ValueError(f"{where}{name} is {'missing' if name not in found else short(value)}")
        if kind is int and isinstance(value, int) and value < 0:
            raise ValueError(f"{where}{name} is {value}")


def short(value: object) -> str:
    """Return a JSON value for a message, shortened."""
    text = json.dumps(value)
    return text if len(text) <= 60 else f"{text[:60]}…"
