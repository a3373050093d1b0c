"""Files as a record lists them, each with its size and its SHA-256, and what is wrong with the files that are there.

    {"model/config.json": [1286, "1f963c…"]}

Each file is read once in a process: a hash is computed again only if the size or the times of the file are others.
"""

from __future__ import annotations

import time
from collections.abc import Callable, Iterator, Mapping, Sequence
from hashlib import file_digest
from pathlib import Path
from typing import Any

from derivlang.core.errors import StoreError, parse_errors

ENTRY = (int, str)  # form of an entry (record.py): the size and the hash of a file
_SETTLED = 2 * 10**9  # nanoseconds. File systems may give two changes within less than that the same time
_known: dict[tuple[Any, ...], str] = {}
_MOST = 1000  # values that are kept; each takes 600 bytes


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

    def compute() -> str:
        with path.open("rb") as file:
            return file_digest(file, "sha256").hexdigest()

    with parse_errors(str(path), "file", error=StoreError):
        return remembered("file", [path], compute)


def remembered(what: str, files: Sequence[Path], compute: Callable[[], str]) -> str:
    """Return what `compute` finds in some files, as found before unless one of them has another size or other times.

    what: names the computation. A file that has just been changed may change again without a sign, so what is found in
    it is not kept.
    """
    stats = [path.stat() for path in files]
    stamps = [(one.st_size, one.st_mtime_ns, one.st_ctime_ns, one.st_ino) for one in stats]
    key = (what, *((str(path.resolve()), *stamp) for path, stamp in zip(files, stamps, strict=True)))
    if key in _known:
        return _known[key]
    latest = max((max(mtime, ctime) for _, mtime, ctime, _ in stamps), default=0)
    settled = time.time_ns() - latest > _SETTLED
    value = compute()
    if settled:
        if len(_known) >= _MOST:
            del _known[next(iter(_known))]
        _known[key] = value
    return value
