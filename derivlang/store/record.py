"""Records: JSON objects that derivlang writes, and that may be damaged or edited when it reads them again.

A record may list files, each with its size and its SHA-256: {"model/config.json": [1286, "1f963c…"]}
"""

from __future__ import annotations

import json
import re
from collections.abc import Callable, Iterator, Mapping, Sequence
from hashlib import file_digest, sha256
from pathlib import Path
from types import UnionType
from typing import Any, TypeGuard

from derivlang.core.errors import DerivlangError, StoreError, parse_errors
from derivlang.core.seal import check_intact

ENTRY = (int, str)  # form of an entry (`check_record`): the size and the hash of a file


def read_record(
    path: Path,
    what: str,
    form: Mapping[str, Any] = {},
    check: Callable[[dict[str, Any]], object] = lambda record: None,
    *,
    sealed: bool = False,
    id: str,
    fix: str | None = None,
) -> dict[str, Any]:
    """Return the object in a file. Raise StoreError if it cannot be read, or has another form.

    form: as of `check_record`. check: called with the record; it raises any error if the record cannot be used. sealed:
    whether the record has the hash of its content, which must be right.
    """
    # An error of an option or a spec: here the file is at fault.
    with parse_errors(str(path), what, error=StoreError, id=id, fix=fix, within=DerivlangError):
        record: dict[str, Any] = json.loads(path.read_text("utf-8"))
        check_record(record, form)
        json.dumps(record, ensure_ascii=False).encode()  # a lone surrogate could not be written again
        if sealed:
            check_intact(record)
        check(record)
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


def check_record(value: Any, form: Any, where: str = "") -> None:
    """Raise ValueError, with the place, for a JSON value that does not have a form.

    A form is written as the value itself would be, with types in place of numbers and texts:

        {"format": 2, "name": str, "steps?": int, "files": [{"name": str}], "counts": {"*": int}, "entry": (int, str)}

    A field whose name ends with `?` may be missing or null, other fields may not; fields that the form does not name
    are not looked at. `*` is any name. The values of a list have one form, a tuple stands for a list of as many values.
    An `int` is not negative, a `float` is any number, `object` any value, and `str | bool` one of both. A pattern
    matches all of a text. The number of a format stands for itself. where: the place of the value in its record.
    """
    if isinstance(form, int):
        if type(value) is not int or value != form:
            raise ValueError(f"{where} is {short(value)}, but this version reads {form}")
        return
    if not _is_of(value, form):
        raise ValueError(f"{where or 'it'} is {short(value)}")
    for name, inner in _inside(value, form).items():
        place = f"{where}.{name}" if where else str(name)
        if isinstance(value, dict) and name not in value:
            raise ValueError(f"{place} is missing")
        check_record(value[name], inner, place)


def _inside(value: Any, form: Any) -> Mapping[Any, Any]:
    """Return the forms of what is in a value, by names or numbers."""
    if isinstance(form, tuple):
        return dict(enumerate(form))
    if isinstance(form, list):
        return dict.fromkeys(range(len(value)), form[0])
    if not isinstance(form, dict):
        return {}
    if "*" in form:
        return dict.fromkeys(value, form["*"])
    absent = {name for name in form if name.endswith("?") and value.get(name[:-1]) is None}
    return {name.removesuffix("?"): inner for name, inner in form.items() if name not in absent}


def _is_of(value: Any, form: Any) -> bool:
    """Return whether a value itself is of a form, whatever is in it."""
    if isinstance(form, re.Pattern):
        return isinstance(value, str) and form.fullmatch(value) is not None
    if isinstance(form, tuple):
        return isinstance(value, list) and len(value) == len(form)
    if isinstance(form, UnionType):
        return isinstance(value, form)
    if isinstance(value, bool):
        return form in (bool, object)
    if form is int:
        return isinstance(value, int) and value >= 0
    return isinstance(value, (int, float) if form is float else form if isinstance(form, type) else type(form))


def short(value: object) -> str:
    """Return a JSON value for a message, shortened."""
    text = json.dumps(value)
    return text if len(text) <= 60 else f"{text[:60]}…"


# Files that a record lists


def listed(files: Mapping[str, Path]) -> dict[str, list[Any]]:
    """Return [bytes, SHA-256] of each file, by the given names in alphabetical order."""
    return {name: [files[name].stat().st_size, file_hash(files[name])] for name in sorted(files)}


def faults(files: Mapping[str, Sequence[Any]], present: Mapping[str, Path]) -> Iterator[tuple[str, str]]:
    """Yield the name of each listed file that is missing, was cut off or was changed, and what is wrong with it.

    files: as of `listed`. present: the files that are there. No path that only the record holds is opened.
    """
    for name, (size, digest) in files.items():
        path = present.get(name)
        if path is None:
            yield name, "is missing"
        elif path.stat().st_size < size:
            yield name, f"was cut off ({path.stat().st_size:,} of {size:,} bytes)"
        elif path.stat().st_size != size or file_hash(path) != digest:
            yield name, "was changed"


def below(folder: Path, root: Path) -> dict[str, Path]:
    """Return the files in a folder and below, by their names from `root`; no hidden ones, and no notes (`*.md`)."""
    files = {path.relative_to(root).as_posix(): path for path in sorted(folder.rglob("*")) if path.is_file()}
    return {name: path for name, path in files.items() if path.suffix != ".md" and "/." not in f"/{name}"}


def file_hash(path: Path) -> str:
    """Return the SHA-256 of a file. Raise StoreError if it cannot be read."""
    with parse_errors(str(path), "file", error=StoreError), path.open("rb") as file:
        return file_digest(file, "sha256").hexdigest()
