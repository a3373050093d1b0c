"""Folders written whole, and what the system says when a disk is full or a place cannot be written, as our errors."""

from __future__ import annotations

import errno
import shutil
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from pathlib import Path

from derivlang.core.errors import StoreError


@contextmanager
def disk(path: Path) -> Iterator[None]:
    """Turn an OSError of the block into a StoreError about `path`."""
    try:
        yield
    except OSError as error:
        # pyarrow's errors carry no number, but the system's words.
        full = error.errno == errno.ENOSPC or "No space left" in str(error)
        raise StoreError(
            "No space left on the disk" if full else f"cannot write here: {error.strerror or error}",
            where=str(path),
            fix="free some space and run the same command again: finished shards are kept" if full else None,
            id="disk-full" if full else "cannot-write",
        ) from None


def whole_folder(out: Path, write: Callable[[Path], None]) -> None:
    """Fill a folder, whole or not at all, in place of what is there. Raises StoreError where it cannot be written."""
    out = out.resolve()
    fresh = out.with_name(f".{out.name}.derivlang")
    made: list[Path] = []
    try:
        with disk(out):
            shutil.rmtree(fresh, ignore_errors=True)
            for parent in reversed(fresh.parents):
                if not parent.exists():
                    parent.mkdir()
                    made.append(parent)
            fresh.mkdir()
            write(fresh)
            if out.exists():
                shutil.rmtree(out)
            fresh.rename(out)
    except BaseException:
        shutil.rmtree(fresh, ignore_errors=True)
        for parent in reversed(made):
            parent.rmdir()
        raise


@contextmanager
def alone(folder: Path) -> Iterator[None]:
    """One process at a time in this block, for what several may want to make: others wait, and find it made.

    A lock beside the folder, which the system takes back when its process ends. Where there are no such locks, none.
    """
    try:
        import fcntl
    except ImportError:  # not Unix
        yield
        return
    with disk(folder):
        folder.parent.mkdir(parents=True, exist_ok=True)
        file = (folder.parent / f".{folder.name}.lock").open("w")
    with file:
        fcntl.flock(file, fcntl.LOCK_EX)
        yield
