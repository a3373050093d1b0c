"""Source files that change while they are read: each file is compared with its state when the run was planned.

seen = {path: FileStamp.of(path) for path in paths}      # before the plan
with unchanged(seen):                                    # around each reading
    ...
"""

from __future__ import annotations

import hashlib
import time
from collections.abc import Iterator, Mapping
from contextlib import contextmanager, nullcontext
from dataclasses import dataclass
from pathlib import Path

from derivlang.core.errors import DataError, parse_errors
from derivlang.formats.opening import open_file
from derivlang.formats.places import is_remote
from derivlang.formats.store_errors import changed_file

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
        """Hash a file. DataError if it cannot be read, or changes while it is hashed."""
        # A local file is opened first for its errors, which say more; in a store that would take a request.
        with nullcontext() if is_remote(path) else open_file(path):
            stamp = _stamp(path)
            if abs(time.time_ns() - max(stamp[1], stamp[3])) < _TICK:  # a later change might get the same time
                time.sleep(_TICK / 1e9)
                stamp = _stamp(path)
            file_stamp = cls(stamp, _hash(path))
            if not file_stamp.is_at(path):
                raise changed_file(str(path))
        return file_stamp

    @classmethod
    def unhashed(cls, path: Path) -> FileStamp:
        """Return a file as it is now, not hashed. DataError if it cannot be read."""
        return cls(_stamp(path))

    def is_at(self, path: Path) -> bool:
        """Return whether a file has this stamp. DataError if it cannot be read."""
        return _stamp(path) == self.stamp


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


def _stamp(path: Path) -> tuple[int, int, int, int]:
    with parse_errors(str(path), "file", id="missing-file"):
        stat = path.stat()
        return stat.st_size, stat.st_mtime_ns, stat.st_ino, stat.st_ctime_ns


def _hash(path: Path) -> str:
    with parse_errors(str(path), "file", id="missing-file"), open_file(path) as file:
        return hashlib.file_digest(file, "sha256").hexdigest()
