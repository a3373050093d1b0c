"""Source files: each is inspected when it is first opened, and compared with that whenever it is read.

with inspecting():                                       # while a source is looked at and planned
    ...                                                  # a small file is read once, and then read from memory
    seen = {path: FileStamp.of(path) for path in paths}
with unchanged(seen):                                    # around each reading
    ...
"""

from __future__ import annotations

import hashlib
import io
import os
import time
from collections.abc import Callable, Iterator, Mapping
from contextlib import contextmanager, suppress
from dataclasses import dataclass, field
from pathlib import Path
from typing import TypeVar

from derivlang.core.errors import DataError, parse_errors
from derivlang.formats.opening import OPENER, open_on_disk
from derivlang.formats.places import is_remote, size_of
from derivlang.formats.store_errors import changed_file

_SMALL, _ROOM = 4 << 20, 32 << 20  # bytes of a file, and of all, that are kept in memory while a source is looked at
Content = TypeVar("Content")
_TICK = 20_000_000  # nanoseconds: the clock of a file system may stand still for some milliseconds


@dataclass(frozen=True, slots=True)
class FileStamp:
    """A file as it was when the run was planned.

    stamp: size, time of change, inode, and time of the last change of content or metadata (st_ctime); zeros of what is
    not a file. In a store, a number made of the ETag or the generation stands for the inode (formats/remote.py).
    sha256: "" while it is not hashed.
    """

    stamp: tuple[int, int, int, int] = (0, 0, 0, 0)
    sha256: str = ""

    @classmethod
    def of(cls, path: Path) -> FileStamp:
        """Hash a file, unless it is inspected. DataError if it cannot be read, or changed since it was opened."""
        opener = OPENER.get()
        if isinstance(opener, _Inspection) and path in opener.files:
            stamp = opener.files[path][0]
        else:
            stamp = cls(*_read(path, _digest))
        if not stamp.is_at(path):
            raise changed_file(str(path))
        return stamp

    @classmethod
    def unhashed(cls, path: Path) -> FileStamp:
        """Return a file as it is now, not hashed. DataError if it cannot be read."""
        return cls(_stamp(path))

    def is_at(self, path: Path) -> bool:
        """Return whether a file has this stamp. DataError if it cannot be read."""
        return _stamp(path) == self.stamp


@dataclass(slots=True)
class _Inspection:
    """The small files that were opened while a source is looked at, with their content as long as there is room."""

    room: int = _ROOM
    files: dict[Path, tuple[FileStamp, bytes]] = field(default_factory=dict)

    def __call__(self, path: Path) -> io.BufferedReader:
        """Open a file, as `open_on_disk` does; a small one is read once."""
        if path not in self.files:
            if not self._has_room(path):
                return open_on_disk(path)
            stamp, content = _read(path, io.BufferedReader.read)
            self.files[path] = FileStamp(stamp, hashlib.sha256(content).hexdigest()), content
            self.room -= len(content)
        return io.BufferedReader(io.BytesIO(self.files[path][1]))

    def _has_room(self, path: Path) -> bool:
        with suppress(OSError):  # opening the file says more
            return path.is_file() and size_of(path) <= min(self.room, _SMALL)
        return False


@contextmanager
def inspecting() -> Iterator[None]:
    """Read each small file that the block opens once, until `read_anew`. Blocks within share what was read."""
    opener = OPENER.get()
    token = OPENER.set(opener if isinstance(opener, _Inspection) else _Inspection())
    try:
        yield
    finally:
        OPENER.reset(token)


def read_anew() -> None:
    """End the inspection in the running block: from here on, files are read from where they lie."""
    OPENER.set(open_on_disk)


@contextmanager
def unchanged(seen: Mapping[Path, FileStamp]) -> Iterator[None]:
    """Raise DataError if a file is not the planned one before or after the block, or cannot be read.

    A file with another stamp but the planned hash is accepted: it may be a copy on another machine.
    """
    before = {path: _stamp(path) for path in seen}
    for path, planned in seen.items():
        if before[path] != planned.stamp and _hash(path) != planned.sha256:
            raise changed_file(str(path))

    def check() -> None:
        for path, planned in seen.items():
            was, now = before[path], _stamp(path)
            if was[:3] != now[:3] or (was != now and _hash(path) != planned.sha256):
                raise changed_file(str(path))

    try:
        yield
    except DataError:
        check()  # the error may be due to a line that was only half written
        raise
    check()


def _read(path: Path, read: Callable[[io.BufferedReader], Content]) -> tuple[tuple[int, int, int, int], Content]:
    """Return the stamp of a file, and what is read of it. A store is asked before it gives the file."""
    before = _settled(path) if is_remote(path) else None
    with open_on_disk(path) as file, parse_errors(str(path), "file", id="missing-file"):
        return before or _settled(path, file), read(file)


def _settled(path: Path, file: io.BufferedReader | None = None) -> tuple[int, int, int, int]:
    """Return the stamp of a file, open or not, so long after its last change that a later one has another time."""
    stamp = _stamp(path, file)
    if abs(time.time_ns() - max(stamp[1], stamp[3])) < _TICK:
        time.sleep(_TICK / 1e9)
        stamp = _stamp(path, file)
    return stamp


def _stamp(path: Path, file: io.BufferedReader | None = None) -> tuple[int, int, int, int]:
    """Return the stamp of a path, or of a file that was opened there: another one may have taken its place."""
    with parse_errors(str(path), "file", id="missing-file"):
        stat = path.stat() if file is None else os.fstat(file.fileno())
        return stat.st_size, stat.st_mtime_ns, stat.st_ino, stat.st_ctime_ns


def _hash(path: Path) -> str:
    return _read(path, _digest)[1]


def _digest(file: io.BufferedReader) -> str:
    return hashlib.file_digest(file, "sha256").hexdigest()
