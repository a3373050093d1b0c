"""Folders that commands write: replaced as a whole, without touching what somebody else has put there.

    DIR                                  the result, known by its record (a file's name), and perhaps foreign files
    DIR/.derivlang/folder.json           the note, while files are replaced: the names of those that DIR has or gets
    .DIR.derivlang                       the next result; its files move into DIR, the record last; then the note goes
    .DIR.derivlang.lock                  the lock of the process that writes

A result owns the files that its names match: patterns relative to the folder, of which figures/*.png matches
figures/a.png, and neither figures/b/a.png nor a.png. All others are foreign, and stay; locks and stages (`.NAME.lock`,
`.NAME.derivlang`) are neither. A new folder is the next result itself, renamed. A process that is killed while files
move leaves the note without the record. No reader takes that for a whole result, and the same command replaces it.
"""

from __future__ import annotations

import os
import shutil
from collections.abc import Callable, Iterable, Iterator, Sequence
from contextlib import contextmanager, suppress
from fnmatch import fnmatchcase
from glob import escape
from pathlib import Path, PurePosixPath
from typing import Any

from derivlang.core.errors import StoreError
from derivlang.core.messages import first_names, warn
from derivlang.store.disk import STAGE, disk, if_dead, locked, stage_lock_of, stage_of
from derivlang.store.record import read_record, record_text
from derivlang.store.storage import Store

NOTE = f"{STAGE}/folder.json"
_LONGEST_PATH = 4096  # characters, as file systems have it
_LISTED = 8  # foreign files that a message names


def replace_folder(
    out: Path,
    write: Callable[[Path], None],
    names: Iterable[str] = (),
    *,
    record: str = "",
    what: str = "result",
    warn: Callable[[str], None] = warn,
) -> None:
    """Fill a folder, then put its files in the place of the earlier result; if filling it fails, leave that.

    names: the files of the earlier result, and of the new one. record: the file by which a result is known, which is
    removed first and written last. what: a noun for the result. Foreign files stay, and a warning names them.
    Several processes may write the same folder at once: each fills its own, and the last one stays. StoreError if the
    folder cannot be written, or if a foreign file has the name of a file to be written, and nothing is changed then.
    """
    place = out.resolve()
    store = Store(place)
    with staged(out, place) as stage:
        write(stage)
        new = files_below(stage)
        for path in (stage / name for name in new):
            with path.open("rb") as file:
                os.fsync(file.fileno())
        if not place.exists():
            stage.rename(place)
            return
        store.check(STAGE, NOTE)
        own, foreign = _refuse_foreign(out, place, (*names, *map(escape, _unfinished(place) or ())), new)
        store.put(NOTE, record_text({"files": sorted({*own, *new}), "record": record}).encode())
        store.remove(*({record} & own))  # without it no reader takes the others for a result
        store.remove(*(own - {record, *new}))
        for name in sorted(new, key=lambda name: name == record):
            store.take(name, stage / name)
        store.remove(NOTE)
    warn_of_kept(out, foreign, what, warn)


@contextmanager
def staged(out: Path, place: Path) -> Iterator[Path]:
    """Give an empty folder for the next result beside its place, which is locked. out: the place for messages."""
    stage = stage_of(place)
    with locked(stage_lock_of(place), where=out), disk(out):
        _discard(stage)
        try:
            stage.mkdir()
            yield stage
        finally:
            _discard(stage)


def _refuse_foreign(out: Path, place: Path, names: Sequence[str], new: Iterable[str]) -> tuple[set[str], list[str]]:
    """Return the files of the earlier result, and the foreign ones.

    Raise StoreError if a foreign file, or a folder, has the name of a new file or of a folder above it.
    """
    own, foreign = split_files(place, names)
    for name in new:
        for one in (*map(str, reversed(PurePosixPath(name).parents[:-1])), name):
            path = place / one
            is_folder = path.is_dir() and not path.is_symlink()  # a link leads to a folder of somebody else
            if os.path.lexists(path) and one not in own and (one == name or not is_folder):
                raise StoreError(
                    f"{one} would be written, and it is there already, but not as a part of an earlier result",
                    where=str(out),
                    fix="move it away, or give another folder; nothing was written",
                    id="output",
                )
    return set(own), foreign


def remove_files(folder: Path, names: Iterable[str], *, record: str = "") -> list[str]:
    """Remove the files of a result, the record first, and folders that this empties. Return what is foreign and stays.

    StoreError if a file cannot be removed.
    """
    own, foreign = split_files(folder, tuple(names))
    Store(folder).remove(*sorted(own, key=lambda name: name != record))
    return foreign


def is_free(out: Path) -> bool:
    """Return whether a folder is missing, empty, or was left unfinished by a process that was killed.

    What such a process has left beside the folder is removed. Waits for one that is alive.
    """
    if any(map(os.path.lexists, (stage_of(out.resolve()), stage_lock_of(out.resolve())))):
        with staged(out, out.resolve()):
            pass
    if _unfinished(out) is not None:
        return True
    return not os.path.lexists(out) or (out.is_dir() and not any(out.iterdir()))


def sweep(folder: Path) -> None:
    """Remove what killed processes left inside a folder: stages and locks that no process holds."""
    with suppress(OSError):  # of a folder that only others may write
        for stage in folder.glob(".*.derivlang"):
            place = folder / stage.name.removeprefix(".").removesuffix(".derivlang")
            with if_dead(stage_lock_of(place)) as dead:
                if dead:
                    _discard(stage)
        for lock in folder.glob(".*.lock"):
            with suppress(FileNotFoundError, StoreError), if_dead(lock):
                pass


def _discard(stage: Path) -> None:
    """Remove a stage, whatever it is."""
    if stage.is_dir() and not stage.is_symlink():
        shutil.rmtree(stage)
    else:
        stage.unlink(missing_ok=True)


def _unfinished(place: Path) -> list[str] | None:
    """Return the names of the files that a killed process had or was to write; None if nothing was left unfinished.

    The note goes if the record came last, or if nothing was replaced yet.
    """
    store = Store(place)
    if store.get(NOTE) is None:
        return None
    again = "remove it, and what was written beside it, and run the same command again"
    note = read_record(place / NOTE, "note", {"files": [str], "record": str}, _check, id="output", fix=again)
    if note["record"] in store.sizes():
        store.remove(NOTE)
        return None
    return list(note["files"])


def _check(note: dict[str, Any]) -> None:
    """Raise ValueError for names that are too long."""
    if max(map(len, note["files"]), default=0) > _LONGEST_PATH:  # matching takes the square of its length
        raise ValueError(f"a name in files has more than {_LONGEST_PATH:,} characters")


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
        warn(f"{folder}: kept what is not part of the {what}: {first_names(foreign, _LISTED)}")


def files_below(folder: Path) -> list[str]:
    """Return the names of all files below a folder, without locks and stages."""
    below = (path for path in folder.rglob("*") if path.is_symlink() or not path.is_dir())
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
