"""Texts that may be a name or a path: `syn:fr` names a grammar, `syn:my/fr.grammar.tsv` is a file."""

from __future__ import annotations

from collections.abc import Callable
from functools import lru_cache, wraps
from pathlib import Path
from stat import S_ISREG
from typing import Literal, TypeVar

Read = TypeVar("Read")


def is_path(text: str | Path, kind: Literal["file", "folder"]) -> bool:
    """Return whether a text that may also be a name is the path of something that exists.

    A "file" is anything there that is not a folder, so pipes and devices count. A text that no path can be (too long,
    or with a NUL character) is a name. A text with no such path may still be meant as one: what its reader does not
    know as a name, and a path's separator or suffix gives away, is reported as a missing file.
    """
    path = Path(text)
    try:
        return path.is_dir() if kind == "folder" else path.exists() and not path.is_dir()
    except (OSError, ValueError):
        return False


def stamp_of(path: str | Path) -> tuple[int, int]:
    """Return two numbers that change with the content of a file, (0, 0) if it cannot be looked up.

    Reading a pipe changes its times, and it can be read once: a pipe has the numbers of its device.
    """
    try:
        stat = Path(path).stat()
    except (OSError, ValueError):
        return 0, 0
    return (stat.st_mtime_ns, stat.st_size) if S_ISREG(stat.st_mode) else (stat.st_dev, stat.st_ino)


def once_per_version(read: Callable[[Path], Read]) -> Callable[[str], Read]:
    """Return a reader that reads a file once per process and version of the file; it keeps the last few."""

    @lru_cache(maxsize=16)
    def cached(file: str, *stamp: int) -> Read:
        return read(Path(file))

    return wraps(read)(lambda file: cached(str(file), *stamp_of(file)))
