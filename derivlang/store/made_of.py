"""Folders that are named by what they are made of: HOME/tokenizer-3f2a9c01b7d4e6f0.

    HOME/tokenizer-3f2a…/made-of.json    its recipe, whose hash is in its name; bytes, time and SHA-256 of its files

Another recipe has another name, so nothing is compared, refused or replaced. A folder appears under its name when it is
whole. Nothing is deleted here: `derivlang ls --data HOME --unused` lists the folders that no run names.
"""

from __future__ import annotations

import json
import os
from collections.abc import Callable, Iterator, Mapping
from contextlib import suppress
from functools import partial
from pathlib import Path
from typing import Any

from derivlang.core.errors import StoreError
from derivlang.core.seal import sealed
from derivlang.store.disk import file_lock
from derivlang.store.folders import replace_folder
from derivlang.store.record import below, digest, file_hash, read_record, record_text

RECIPE = "made-of.json"
_FORM = {"recipe": dict, "files": {"*": (int, int, str)}}
_FIX = "remove its folder, and run the same command again"


def made(
    home: Path,
    kind: str,
    recipe: Mapping[str, Any],
    write: Callable[[Path], object],
    check: Callable[[], object] = lambda: None,
) -> Path:
    """Return the folder of a recipe, JSON values. If it is missing, one process makes it, and others wait.

    write: fills an empty folder. check: called before the folder has its name; raises an error if what it is made of
    has changed meanwhile. Raise StoreError if a file of the folder was changed since it was made.
    """
    folder = home / f"{kind}-{digest(recipe)}"

    def fill(fresh: Path) -> None:
        write(fresh)
        check()
        there = below(fresh, fresh).items()
        files = {name: [*_stamp(path), file_hash(path)] for name, path in there if name != RECIPE}
        text = record_text(sealed({"recipe": recipe, "files": files}))
        (fresh / RECIPE).write_text(text, "utf-8", newline="\n")

    if not os.path.lexists(folder):
        with file_lock(folder):
            if not os.path.lexists(folder):
                replace_folder(folder, fill)
    return checked(folder)


def checked(folder: Path) -> Path:
    """Return a folder, which is used now. Raise StoreError if a file of it was changed since it was made."""
    for name, what in faults(folder, hashed=False):
        raise StoreError(what, where=str(folder / name), fix=_FIX, id="data")
    with suppress(OSError):  # of a folder that only others may write
        os.utime(folder / RECIPE)
    return folder


def recipe_of(folder: Path) -> dict[str, Any]:
    """Return what a folder is made of. Raise StoreError if that is missing or was changed."""
    recipe: dict[str, Any] = _record(folder)["recipe"]
    return recipe


def known(home: Path, kind: str, wanted: Mapping[str, Any]) -> Iterator[Path]:
    """Yield the folders of a kind whose recipes say this."""
    plain = json.loads(json.dumps(wanted))
    for folder in sorted(path.parent for path in home.glob(f"{kind}-*/{RECIPE}")):
        recipe = recipe_of(folder)
        if all(recipe.get(name) == value for name, value in plain.items()):
            yield folder


def faults(folder: Path, *, hashed: bool = True) -> Iterator[tuple[str, str]]:
    """Yield the name of each file that is not as it was written, and what is wrong. Raise StoreError for the recipe.

    hashed: whether every file is hashed; else only one with another time, as in a copy.
    """
    present = below(folder, folder)
    for name, (size, time, sha256) in _record(folder)["files"].items():
        path = present.get(name)
        if path is None or path.stat().st_size != size:
            yield name, "is missing or was cut off"
        elif (hashed or _stamp(path) != [size, time]) and file_hash(path) != sha256:
            yield name, "was changed"


def _record(folder: Path) -> dict[str, Any]:
    return read_record(folder / RECIPE, "recipe", _FORM, partial(_check, folder), sealed=True, id="data", fix=_FIX)


def _check(folder: Path, record: dict[str, Any]) -> None:
    if folder.name.rpartition("-")[2] != digest(record["recipe"]):
        raise ValueError("the folder has the name of another recipe")


def _stamp(path: Path) -> list[int]:
    facts = path.stat()
    return [facts.st_size, facts.st_mtime_ns]
