"""The files in a folder of a result: its own, which match its names, and foreign ones, which stay.

    figures/*.png matches figures/a.png, and neither figures/b/a.png nor a.png

Locks and stages (`.NAME.lock`, `.NAME.derivlang`) are neither.
"""

from __future__ import annotations

import os
from collections.abc import Callable, Container, Iterable, Sequence
from fnmatch import fnmatchcase
from pathlib import Path

from derivlang.core.errors import StoreError
from derivlang.core.messages import first_names, warn

_LONGEST = 8  # foreign files that a message lists


def split_files(folder: Path, names: Sequence[str], *, follow: bool = False) -> tuple[list[str], list[str]]:
    """Return (files of a result, what is foreign) as sorted names relative to the folder; ([], []) without a folder.

    A foreign folder is one name that ends in a slash. Stages and locks belong to neither. follow: look behind links to
    folders, too, whose files are nobody's to remove.
    """
    own: list[str] = []
    foreign: list[str] = []

    def look(inside: str) -> None:
        for entry in sorted(os.scandir(folder / inside), key=lambda entry: entry.name):
            name = inside + entry.name
            if _is_working(entry.name):
                continue
            if not entry.is_dir(follow_symlinks=follow):
                (own if is_named(name, names) else foreign).append(name)
            elif any(leads(name, pattern) for pattern in names):
                look(f"{name}/")
            else:
                foreign.append(f"{name}/")

    if folder.is_dir():
        look("")
    return own, foreign


def warn_of_kept(folder: Path, foreign: Sequence[str], what: str, warn: Callable[[str], None] = warn) -> None:
    """Warn of foreign files, if there are any, that stay in a folder whose result was replaced."""
    if foreign:
        warn(f"{folder}: kept what is not part of the {what}: {first_names(foreign, _LONGEST)}")


def refuse_foreign(
    out: Path,
    new: Iterable[str],
    own: Container[str],
    *,
    exists: Callable[[str], bool],
    is_folder: Callable[[str], bool],
) -> None:
    """Raise StoreError if a foreign file, or a folder, has the name of a new file or of a folder above it."""
    for name in new:
        parts = name.split("/")
        places = ["/".join(parts[: n + 1]) for n in range(len(parts))]
        for place in places:
            if exists(place) and place not in own and (place == name or not is_folder(place)):
                raise StoreError(
                    f"{place} would be written, and it is there already, but not as a part of an earlier result",
                    where=str(out),
                    fix="move it away, or give another folder; nothing was written",
                    id="output",
                )


def files_below(folder: Path) -> list[str]:
    """Return the names of all files below a folder, without locks and stages."""
    below = (path for path in folder.rglob("*") if not (path.is_dir() or _is_working(path.name)))
    return sorted(path.relative_to(folder).as_posix() for path in below)


def is_named(name: str, patterns: Iterable[str]) -> bool:
    """Return whether one of some patterns matches a name, of which `*` matches no slash."""
    parts = name.split("/")
    several = (pattern.split("/") for pattern in patterns)
    return any(len(parts) == len(wanted) and all(map(fnmatchcase, parts, wanted)) for wanted in several)


def leads(name: str, pattern: str) -> bool:
    """Return whether a folder of this name may hold a file that the pattern matches."""
    parts, wanted = name.split("/"), pattern.split("/")
    return len(parts) < len(wanted) and all(map(fnmatchcase, parts, wanted))


def _is_working(name: str) -> bool:
    """Return whether a file or folder of this name is a lock or a stage."""
    return name.startswith(".") and name.endswith((".derivlang", ".lock"))
