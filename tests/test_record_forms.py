"""Records have the form that is declared: each value of another type is refused, with its place."""

from __future__ import annotations

import json
import re
from collections.abc import Iterator
from contextlib import suppress
from copy import deepcopy
from pathlib import Path
from typing import Any

import pytest

from derivlang.core.errors import StoreError
from derivlang.store.manifest import read_manifest
from derivlang.store.record import check_record
from tests.commands import make, written

FORM = {
    "format": 2,
    "name": str,
    "steps?": int,
    "seconds": float,
    "files": [{"name": str, "hash": re.compile("[0-9a-f]{4}")}],
    "counts": {"*": int},
    "entry": (int, str),
    "level": str | bool,
    "any": object,
}
RIGHT = {
    "format": 2,
    "name": "a",
    "seconds": 1,
    "files": [{"name": "b", "hash": "00ff"}],
    "counts": {"c?": 1},
    "entry": [1, "d"],
    "level": True,
    "any": None,
    "other": [1],
}
DAMAGES = (None, 3, -1, "x", [], {}, True, 1.5)
# Fields that no command reads, and texts of a schema that may be null.
UNREAD = {
    "derivlang",
    "sentence_rule_version",
    "missing",
    "entities",
    "vocabulary",
    "limit",
    "versions",
    "card",
    "sha256",
}
OPTIONAL = {"words", "text", "given", "scheme", "classes", "given_classes", "options", "lexicon"}


@pytest.mark.parametrize(
    ("change", "message"),
    [
        ({"format": 1}, "format is 1, but this version reads 2"),
        ({"format": True}, "format is true, but this version reads 2"),
        ({"name": None}, "name is null"),
        ({"steps": True}, "steps is true"),
        ({"steps": -1}, "steps is -1"),
        ({"seconds": "1"}, 'seconds is "1"'),
        ({"files": {}}, "files is {}"),
        ({"files": [{"name": "b", "hash": "00ff"}, {"hash": "00ff"}]}, "files.1.name is missing"),
        ({"files": [{"name": "b", "hash": "00ff0"}]}, 'files.0.hash is "00ff0"'),
        ({"counts": {"c?": 1.5}}, "counts.c? is 1.5"),
        ({"entry": [1]}, "entry is [1]"),
        ({"entry": ["1", "d"]}, 'entry.0 is "1"'),
        ({"level": 1}, "level is 1"),
    ],
)
def test_a_value_of_another_form(change: dict[str, Any], message: str) -> None:
    with pytest.raises(ValueError, match=f"^{re.escape(message)}$"):
        check_record({**RIGHT, **change}, FORM)


def test_what_a_form_takes() -> None:
    check_record(RIGHT, FORM)
    check_record({**RIGHT, "steps": None}, FORM)
    for value in (None, [], "x", 1):
        with pytest.raises(ValueError, match=f"^it is {re.escape(json.dumps(value))}$"):
            check_record(value, FORM)
    for name in RIGHT.keys() - {"other"}:
        with pytest.raises(ValueError, match=f"^{name} is missing$"):
            check_record({other: value for other, value in RIGHT.items() if other != name}, FORM)


def paths(found: Any, path: tuple[Any, ...] = ()) -> Iterator[tuple[tuple[Any, ...], Any]]:
    """The path and the value of everything in a JSON value; of a list, of its first three values."""
    inside = found.items() if isinstance(found, dict) else enumerate(found[:3]) if isinstance(found, list) else ()
    for name, value in inside:
        yield (*path, name), value
        yield from paths(value, (*path, name))


def may_stay(path: tuple[Any, ...], old: Any, new: Any) -> bool:
    """Whether a manifest may have another value here: one of the same type, or of a field that is not read."""
    if path[0] in UNREAD or (path[:2] == ("source", "files") and path[-1] in ("bytes", "sha256")):
        return True
    if path[-1] in OPTIONAL and (old is None or new is None):
        return True
    return type(old) is type(new) and new != -1


def test_a_manifest_with_one_other_value(tmp_path: Path) -> None:
    make("trans:overlap=30,inv", "demo", tmp_path / "set", "--splits", "test")
    folder = tmp_path / "set"
    manifest = json.loads((folder / "derivlang.json").read_text("utf-8"))
    damages, taken = 0, []
    for path, old in paths(manifest):
        for new in DAMAGES:
            damaged = deepcopy(manifest)
            place = damaged
            for name in path[:-1]:
                place = place[name]
            place[path[-1]] = new
            written(folder / "derivlang.json", json.dumps(damaged))
            damages += 1
            with suppress(StoreError):  # any other exception is a fault
                read_manifest(folder)
                if not may_stay(path, old, new):
                    taken.append((path, new))
    assert damages > 568, damages
    assert taken == []
