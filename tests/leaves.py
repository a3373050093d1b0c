"""Records that differ from a given one in a single value."""

from __future__ import annotations

from collections.abc import Iterator
from copy import deepcopy
from typing import Any


def changes(found: Any) -> Iterator[tuple[str, Any]]:
    """Each record that differs from this one in one leaf: changed a little, or missing."""
    for place, value in leaves(found):
        for name in ("changed", "missing"):
            other = deepcopy(found)
            inner = other
            for key in place[:-1]:
                inner = inner[key]
            if name == "changed":
                inner[place[-1]] = another(value)
            else:
                inner.pop(place[-1])
            yield f"{'.'.join(map(str, place))} {name}", other


def leaves(found: Any, above: tuple[Any, ...] = ()) -> Iterator[tuple[tuple[Any, ...], Any]]:
    """The path and the value of each number, text, null, and empty list or object."""
    inside = found.items() if isinstance(found, dict) else enumerate(found) if isinstance(found, list) else ()
    for key, value in inside:
        yield from leaves(value, (*above, key))
    if above and not (found and isinstance(found, (dict, list))):
        yield above, found


def another(value: Any) -> Any:
    """A value of the same kind, as a hand would change it."""
    match value:
        case bool():
            return not value
        case int() | float():
            return value + 1
        case str():
            return f"{value}0"
        case None:
            return 1
    return [1] if isinstance(value, list) else {"a": 1}
