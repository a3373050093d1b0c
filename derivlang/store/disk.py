"""Folders written whole, and what the system says when a disk is full or a place cannot be written, as our errors."""

from __future__ import annotations

import errno
import os
import shutil
from collections.abc import Callable, Iterator
from contextlib import contextmanager, suppress
from pathlib import Path
from typing import IO

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
            made = _make(out.parent)
            fresh.mkdir()
            write(fresh)
            if out.exists():
                shutil.rmtree(out)
            fresh.rename(out)
    except BaseException:
        shutil.rmtree(fresh, ignore_errors=True)
        _unmake(made)
        raise


@contextmanager
def alone(folder: Path) -> Iterator[None]:
    """One process at a time in this block, for what several may want to make: others wait, and find it made.

    A lock beside the folder, which the system takes back when its process ends; it is gone after the block, and so are
    folders above that were made for it and hold nothing. Where there are no such locks, none.
    """
    try:
        import fcntl
    except ImportError:  # not Unix
        yield
        return
    lock = folder.resolve().parent / f".{folder.name}.lock"
    made: list[Path] = []
    while True:
        with disk(folder):
            try:
                made += _make(lock.parent)
                file = lock.open("w")
            except FileNotFoundError:  # another process is just taking an empty folder away
                continue
            fcntl.flock(file, fcntl.LOCK_EX)
            if _is_at(file, lock):
                break
            file.close()  # it was another process's, which has ended and taken it away
    with file:
        try:
            yield
        finally:
            with suppress(OSError):
                lock.unlink()
            _unmake(made)


def _is_at(file: IO[str], path: Path) -> bool:
    try:
        return os.path.samestat(os.fstat(file.fileno()), path.stat())
    except FileNotFoundError:
        return False


def _make(folder: Path) -> list[Path]:
    """A folder and those above it, where they are not there; those that were made, the outermost first."""
    made = [path for path in (*reversed(folder.parents), folder) if not path.exists()]
    folder.mkdir(parents=True, exist_ok=True)
    return made


def _unmake(made: list[Path]) -> None:
    """Take away what `_make` made, as far as it is empty."""
    for path in reversed(made):
        with suppress(OSError):
            path.rmdir()
