"""Writing to a disk: errors of the system as StoreErrors, files of our own names, and locks.

Another user, or an earlier link, may have one of our names (of a lock, a stage, a log) lead to a file of the user's.
`create` and `reopen` open such names: no link is followed, and a file that has another name, too, is not written to.
"""

from __future__ import annotations

import errno
import fcntl
import os
import re
import time
from collections.abc import Callable, Iterator
from contextlib import AbstractContextManager, contextmanager, suppress
from pathlib import Path
from stat import S_ISREG
from typing import IO, BinaryIO

from derivlang.core.errors import StoreError, causes
from derivlang.core.messages import warn
from derivlang.formats.store_errors import asking

LOCK = ".derivlang.lock"  # in a folder that is held
STAGE = ".derivlang"  # the folder of what is being made
_TEXT = re.compile(rb"([0-9a-f]{16}|[0-9a-f]{64}) .+|", re.DOTALL)  # of a lock: the plan, and the plan for people
_LONGEST = 1 << 16  # bytes of it that are read
_SAFELY = os.O_NOFOLLOW | os.O_NONBLOCK  # names of ours are opened so that no link is followed, no pipe waited for
_NUMBER = re.compile(r"\(os error (\d{1,4})\)")  # how libraries written in Rust end a message about a file
_PAUSE = 0.05  # seconds between two tries for a lock that another process holds
_TRIES = 100  # to make the folder of a lock, which other processes remove when it is empty


def disk(path: Path | str) -> AbstractContextManager[None]:
    """Turn an OSError of the block, or what a library raises in place of one, into a StoreError about `path`."""
    return asking(path, "write", disk_error)


def disk_error(caught: Exception, where: str, doing: str) -> StoreError | None:
    """Return the error for what a disk, or a library that writes to it, raised; None for anything else."""
    error = system_error(caught)
    if error is None:
        return None
    # Errors of pyarrow have no errno, only the system's message.
    full = error.errno == errno.ENOSPC or "No space left" in str(error)
    return StoreError(
        "No space left on the disk" if full else f"cannot write here: {error.strerror or error}",
        where=where,
        fix="free some space and run the same command again: finished shards are kept" if full else None,
        id="disk-full" if full else "cannot-write",
    )


def system_error(caught: BaseException) -> OSError | None:
    """Return the system's error behind an exception, None if there is none.

    Libraries that write files themselves raise errors of their own: tokenizers and safetensors quote the number of the
    system's error, and torch raises while the OSError of a Python file is handled.
    """
    for error in causes(caught):
        if isinstance(error, OSError):
            return error
        if match := _NUMBER.search(str(error)):
            return OSError(int(match[1]), os.strerror(int(match[1])))
    return None


def remove(path: Path) -> None:
    """Remove a file of an earlier run, if there is one. Raise StoreError if it cannot be removed."""
    with disk(path):
        path.unlink(missing_ok=True)


def create(path: Path) -> BinaryIO:
    """Open a new file. What has its name is removed, not emptied: a link, or another name of a file, leads nowhere.

    Raise StoreError for a folder.
    """
    if path.is_dir() and not path.is_symlink():
        raise _not_ours(path)
    path.unlink(missing_ok=True)
    return path.open("xb")


def reopen(path: Path) -> IO[bytes]:
    """Open a file of ours that other processes may have open, to read it and to write at its end; made if needed.

    Raise StoreError for a link, for a file that has another name, too, and for a folder, a pipe or a device.
    """
    try:
        number = os.open(path, os.O_RDWR | os.O_CREAT | os.O_APPEND | _SAFELY, 0o666)
    except OSError as error:
        if path.is_symlink() or error.errno == errno.ENXIO:  # of a socket
            raise _not_ours(path) from None
        raise
    found = os.fstat(number)
    if path.is_symlink() or not S_ISREG(found.st_mode) or found.st_nlink > 1:
        os.close(number)
        raise _not_ours(path)
    return open(number, "a+b")  # noqa: PTH123


def _not_ours(path: Path) -> StoreError:
    kinds = {"a link": path.is_symlink(), "a folder": path.is_dir(), "another name of a file": path.is_file()}
    what = next((kind for kind, holds in kinds.items() if holds), "a pipe or a device")
    fix = "remove it; nothing was changed"
    return StoreError(f"is {what}, and derivlang would write there", where=str(path), fix=fix, id="output")


@contextmanager
def file_lock(path: Path) -> Iterator[None]:
    """Run the block in one process at a time, for a file or folder that several processes may want to make.

    The lock is a file beside it, so that the block may replace the whole folder.
    """
    with locked(lock_of(path.resolve())):
        yield


@contextmanager
def held(
    out: Path,
    plan: str,
    told: str,
    warn: Callable[[str], None] = warn,
    *,
    what: str,
    waits: bool = True,
    lock: Path | None = None,
) -> Iterator[None]:
    """Hold a file or folder during the block, so that no other process makes it at the same time.

    Warns once and waits if another process holds it for the same plan, a text without spaces. StoreError if it is for
    another one, or with waits=False. told: the plan for people, named in that error. what: a noun for what is made.
    lock: where the lock is, if not beside `out`.
    """
    warned = False

    def met(text: str) -> None:
        nonlocal warned
        theirs, _, other = text.partition(" ")
        if theirs != plan or not waits:
            raise StoreError(
                f"another run is making {what} ({other})",
                where=str(out),
                fix="wait for it to end, or choose another place with -o",
                id="other-run",
            )
        if not warned:
            warn(f"{out}: another run of the same command is making {what}; waiting for it")
        warned = True

    with locked(lock or lock_of(out.resolve()), f"{plan} {told}", where=out, met=met):
        yield


def stage_of(path: Path) -> Path:
    """Return the place beside a file or folder where its next content is prepared."""
    return path.with_name(f".{path.name}.derivlang")


def lock_of(path: Path) -> Path:
    """Return the place of the lock beside a file or folder."""
    return path.with_name(f".{path.name}.lock")


def stage_lock_of(path: Path) -> Path:
    """Return the place of the lock of `stage_of`.

    It is a lock of its own, since a process holds a file while it writes it.
    """
    return path.with_name(f".{path.name}.derivlang.lock")


def is_begun(path: Path) -> bool:
    """Return whether a process is making a file or folder, or was killed and left a lock or a stage beside it."""
    place = path.resolve()
    return any(os.path.lexists(one) for one in (stage_of(place), stage_lock_of(place), lock_of(place)))


@contextmanager
def locked(
    lock: Path, text: str = "", *, where: Path | None = None, met: Callable[[str], None] = lambda text: None
) -> Iterator[None]:
    """Run the block while holding an exclusive lock on the file `lock`, which is removed afterwards.

    text: the content of the file while it is locked. where: the folder that errors name. met: called with the text of
    another process that holds the lock, at every try; it may raise to end the wait.

    The system releases the lock of a process that dies, so a file that is left never blocks. Folders that were made for
    the lock are removed if they are empty. On systems and file systems without such locks, the block just runs.
    """
    made: list[Path] = []  # the folders that were made for the lock
    where, missing, last = where or lock.parent, 0, ""
    try:
        while True:
            with disk(lock if os.path.lexists(lock) else where):  # it may be another user's
                try:
                    made += _make(lock.parent)
                    file = reopen(lock)  # not emptied: the text of the process that holds the lock must stay readable
                except (FileNotFoundError, FileExistsError):
                    # Another process has just removed the empty folder: before the lock was made there, or after
                    # `mkdir` found the folder and before it looked whether that is one. A file in its place is another
                    # matter.
                    missing += 1
                    above = (lock.parent, *lock.parent.parents)
                    if missing == _TRIES or any(path.is_file() for path in above):
                        raise
                    time.sleep(_PAUSE)
                    continue
            with file:
                # The process that held the lock before may have removed the file after we opened it. A lock on a
                # removed file excludes no process, so the new file at this place is tried instead.
                if _flock(file) and _is_at(file, lock):
                    _check_text(file, lock)
                    try:
                        with disk(where):
                            file.truncate(0)
                            file.write(text.encode("utf-8", "replace"))
                            file.flush()
                        yield
                        return
                    finally:
                        with suppress(OSError):
                            # Removed while it is still locked: later it might be the lock of another process.
                            lock.unlink()
                holder = _text_of(file).decode("utf-8", "replace")
            if holder and holder == last:  # the text of the first read may come from a dead process
                met(holder)
            last = holder
            time.sleep(_PAUSE)
    finally:
        _unmake(made)


@contextmanager
def if_dead(lock: Path) -> Iterator[bool]:
    """Run the block with True while holding a lock that no other process holds, and remove it; else with False."""
    with reopen(lock) as file:
        if not (_flock(file) and _is_at(file, lock) and _TEXT.fullmatch(_text_of(file))):
            yield False
            return
        try:
            yield True
        finally:
            with suppress(OSError):
                lock.unlink()


def _text_of(lock: IO[bytes]) -> bytes:
    lock.seek(0)
    return lock.read(_LONGEST)


def _check_text(file: IO[bytes], lock: Path) -> None:
    """Raise StoreError if a file with the name of a lock holds what no lock does."""
    if not _TEXT.fullmatch(_text_of(file)):
        raise StoreError(
            "has the name of a lock, and holds something else", where=str(lock), fix="move it away", id="output"
        )


def _flock(file: IO[bytes]) -> bool:
    """Lock an open file. Returns False if another process holds the lock."""
    try:
        fcntl.flock(file, fcntl.LOCK_EX | fcntl.LOCK_NB)
    except OSError as error:
        return error.errno not in (errno.EAGAIN, errno.EACCES)  # other errors mean a file system without locks
    return True


def _is_at(file: IO[bytes], path: Path) -> bool:
    """Return whether the open file is still the one at `path`."""
    try:
        return os.path.samestat(os.fstat(file.fileno()), path.lstat())
    except FileNotFoundError:
        return False


def _make(folder: Path) -> list[Path]:
    """Make a folder and the missing ones above it. Returns those that were made, the outermost first."""
    made = [path for path in (*reversed(folder.parents), folder) if not path.exists()]
    folder.mkdir(parents=True, exist_ok=True)
    return made


def _unmake(made: list[Path]) -> None:
    """Remove the folders that `_make` made, as far as they are empty."""
    for path in reversed(made):
        with suppress(OSError):
            path.rmdir()
