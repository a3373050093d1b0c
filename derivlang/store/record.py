"""Records: JSON objects that derivlang writes, and that may be damaged or edited when it reads them again."""

from __future__ import annotations

import json
from collections.abc import Callable, Mapping
from hashlib import sha256
from pathlib import Path
from typing import Any, TypeGuard

from derivlang.core.errors import DerivlangError, StoreError
from derivlang.core.parse_errors import parse_errors

Kind = type | tuple[type, ...]


def read_record(
    path: Path,
    what: str,
    check: Callable[[dict[str, Any]], object] = lambda record: None,
    *,
    id: str,
    fix: str | None = None,
) -> dict[str, Any]:
    """Return the object in a file. Raise StoreError if it cannot be read, or if `check` raises anything."""
    with parse_errors(str(path), what, error=StoreError, id=id, fix=fix):
        record = json.loads(path.read_text("utf-8"))
        if not isinstance(record, dict):
            raise TypeError("it is not an object")
        json.dumps(record, ensure_ascii=False).encode()  # a lone surrogate could not be written again
        try:
            check(record)
        except DerivlangError as caught:  # an error of an option or a spec: here the file is at fault
            raise ValueError(caught.what) from caught
    return record


def record_text(record: Mapping[str, Any]) -> str:
    """Return an object as the JSON text that derivlang writes."""
    return json.dumps(record, ensure_ascii=False, indent=1) + "\n"


def digest(value: Any) -> str:
    """Return 16 hex digits that identify a value by its JSON."""
    return sha256(json.dumps(value, sort_keys=True, default=str).encode()).hexdigest()[:16]


def difference(
    recorded: Mapping[str, Any],
    wanted: Mapping[str, Any],
    words: Mapping[str, str] = {},
    *,
    inside: str = "",
) -> str:
    """Return the first field of `wanted` that was recorded otherwise, as a reader calls it; "" if there is none.

    {"vocab_size": 60} and {"vocab_size": 70}                 ->  vocab_size is 60, not 70
    {"source": {"name": "demo"}} and {"source": {"name": "wikitext2"}}    ->  source.name is demo, not wikitext2
    [{"name": "a.txt", "sha256": "3f…"}] and another hash     ->  a.txt has changed since
    {"files": [{"name": "a.txt", …}]} and another file        ->  it is of a.txt, not of b.txt
    {"dev": [{"name": "a.txt", …}]} and another file          ->  dev is a.txt, not b.txt

    words: field -> what is said in place of its values. inside: the prefix of the fields of an inner object.
    The version of derivlang does not count as a difference.
    """
    plain = json.loads(json.dumps(wanted))  # as in a file: tuples are lists there
    for name, value in sorted(plain.items(), key=lambda one: f"{inside}{one[0]}" in words):  # what can be read first
        place = f"{inside}{name}"
        was = recorded.get(name)
        if was == value or place == "derivlang":
            continue
        if place in words:
            return words[place]
        if isinstance(was, dict) and isinstance(value, dict):
            every = {**value, **{other: None for other in was if other not in value}}
            if told := difference(was, every, words, inside=f"{place}."):
                return told
            continue
        if _are_files(was) and _are_files(value):
            return _difference_of_files(was, value, place)
        if was is None:
            return f"{place} was not given, and is {_plain(value)} now"
        return f"{place} is {_plain(was)}, not {_plain(value)}"
    return ""


def check_same(
    recorded: Mapping[str, Any],
    wanted: Mapping[str, Any],
    what: str,
    *,
    where: str,
    fix: str,
    id: str,
    words: Mapping[str, str] = {},
) -> None:
    """Raise StoreError `WHAT: first difference` if something of `wanted` was recorded otherwise (`difference`)."""
    if told := difference(recorded, wanted, words):
        raise StoreError(f"{what}: {told}", where=where, fix=fix, id=id)


def _are_files(value: Any) -> TypeGuard[list[dict[str, Any]]]:
    """Return whether a value lists files by name and hash."""
    return isinstance(value, list) and all(isinstance(one, dict) and {"name", "sha256"} <= one.keys() for one in value)


def _difference_of_files(recorded: list[dict[str, Any]], wanted: list[dict[str, Any]], place: str) -> str:
    names = [[str(file["name"]) for file in some] for some in (recorded, wanted)]
    if names[0] != names[1]:
        if place.rpartition(".")[2] != "files":
            return f"{place} is {_plain(names[0])}, not {_plain(names[1])}"
        return f"it is of {', '.join(names[0]) or 'no file'}, not of {', '.join(names[1]) or 'none'}"
    changed = (one["name"] for one, other in zip(recorded, wanted, strict=True) if one != other)
    return f"{next(changed)} has changed since"


def _plain(value: Any) -> str:
    if isinstance(value, list) and all(isinstance(one, str) for one in value):
        return ", ".join(value) or "none"
    return value if isinstance(value, str) and value else "given now" if value is None else short(value)


def check_types(
    record: Mapping[str, Any], required: Mapping[str, Kind], optional: Mapping[str, Kind] = {}, *, where: str = ""
) -> None:
    """Raise ValueError for a field of a wrong type, a missing required field, or a negative integer.

    Optional fields may be null. where: a prefix for the names in the message ("splits.train.").
    """
    if not isinstance(record, Mapping):
        raise ValueError(f"{where.rstrip('.') or 'it'} is {short(record)}")
    for name, kind in {**required, **optional}.items():
        value = record.get(name)
        if value is None and name in optional:
            continue
        wrong_bool = isinstance(value, bool) and bool not in (kind if isinstance(kind, tuple) else (kind,))
        if wrong_bool or not isinstance(value, kind):
            raise ValueError(f"{where}{name} is {'missing' if name not in record else short(value)}")
        if kind is int and isinstance(value, int) and value < 0:
            raise ValueError(f"{where}{name} is {value}")


def short(value: object) -> str:
    """Return a JSON value for a message, shortened."""
    text = json.dumps(value)
    return text if len(text) <= 60 else f"{text[:60]}…"
