"""Folders that commands write: replaced as a whole, without touching what somebody else has put there.

    DIR                     the result, known by its record (a file's name), and perhaps foreign files
    .DIR.derivlang          the next result; it becomes DIR, or its files move into DIR, the record last
    .DIR.derivlang.lock     the lock of the process that writes

A result owns the files that its names match: patterns relative to the folder (`foreign.py`). All others stay. A process
that is killed while files move leaves the complete stage, and the next one moves the rest (`settle`). At a URL nothing
moves (`url_folders.py`).
"""

from __future__ import annotations

import os
import shutil
from collections.abc import Callable, Iterable, Sequence
from contextlib import suppress
from glob import escape
from pathlib import Path
from typing import Any

from derivlang.core.errors import StoreError
from derivlang.core.messages import warn
from derivlang.formats.places import is_remote
from derivlang.store.disk import disk, if_dead, locked, stage_lock_of, stage_of
from derivlang.store.files import writing
from derivlang.store.foreign import files_below, leads, refuse_foreign, split_files, warn_of_kept
from derivlang.store.record import read_record, record_text

_COMPLETE = ".complete.json"  # in a stage whose files move into the folder: names of files that the folder loses
_LONGEST_PATH = 4096  # characters, as file systems have it


def replace_folder(
    out: Path,
    write: Callable[[Path], None],
    names: Iterable[str] = (),
    *,
    record: str = "",
    what: str = "result",
    warn: Callable[[str], None] = warn,
) -> None:
    """Fill a folder, then put it in the place of the earlier result; on failure, leave that.

    names: the files of the earlier result, and of the new one. record: the file by which a result is known, which is
    removed first and written last. what: a noun for the result. Foreign files stay, and a warning names them.
    Several processes may write the same folder at once: each fills its own, and the last one stays. StoreError if the
    folder cannot be written, or if a foreign file has the name of a file to be written; nothing is changed then.
    """
    if is_remote(out):
        from derivlang.store.url_folders import replace_at  # imported late: most folders are local

        replace_at(out, write, tuple(names), record=record, what=what, warn=warn)
        return
    place = out.resolve()
    stage = stage_of(place)
    with locked(stage_lock_of(place), where=out), disk(out):
        _settle(stage, place)
        try:
            stage.mkdir()
            write(stage)
            for path in (stage / name for name in files_below(stage)):
                with path.open("rb") as file:
                    os.fsync(file.fileno())
            if not place.exists():
                stage.rename(place)
                return
            if not place.is_dir():
                raise StoreError("is a file", where=str(out), fix="give a folder", id="output")
            own, foreign = split_files(place, tuple(names))
            exists, is_folder = (lambda name: os.path.lexists(place / name)), (lambda name: (place / name).is_dir())
            refuse_foreign(out, files_below(stage), own, exists=exists, is_folder=is_folder)
            gone = sorted(map(escape, set(own).difference(files_below(stage))))
            with writing(stage / _COMPLETE) as note:
                note.write(record_text({"gone": gone, "record": record}).encode())
        except BaseException:
            shutil.rmtree(stage, ignore_errors=True)
            raise
        _move(stage, place)
    warn_of_kept(out, foreign, what, warn)


def remove_files(folder: Path, names: Iterable[str], *, record: str = "") -> list[str]:
    """Remove the files of a result, the record first, and folders that this empties. Return what is foreign and stays.

    StoreError if a file cannot be removed.
    """
    names = tuple(names)
    own, foreign = split_files(folder, names)
    with disk(folder):
        for name in sorted(own, key=lambda name: name != record):
            (folder / name).unlink(missing_ok=True)
    _remove_empty(folder, names)
    return foreign


def is_free(out: Path) -> bool:
    """Return whether a folder is missing or empty, after `settle`; at a URL also one that was left unfinished."""
    if is_remote(out):
        from derivlang.store.url_folders import is_free_at

        return is_free_at(out)
    settle(out)
    return not os.path.lexists(out) or (out.is_dir() and not any(out.iterdir()))


def settle(out: Path) -> None:
    """Finish or remove what a killed process left beside a folder that it was writing. Waits for one that is alive."""
    place = out.resolve()
    stage = stage_of(place)
    if os.path.lexists(stage) or os.path.lexists(stage_lock_of(place)):
        with locked(stage_lock_of(place), where=out), disk(out):
            _settle(stage, place)


def sweep(folder: Path) -> None:
    """Finish or remove what killed processes left inside a folder: stages and locks that no process holds."""
    with suppress(OSError):  # of a folder that only others may write
        for stage in folder.glob(".*.derivlang"):
            place = folder / stage.name.removeprefix(".").removesuffix(".derivlang")
            with if_dead(stage_lock_of(place)) as dead:
                if dead:
                    _settle(stage, place)
        for lock in folder.glob(".*.lock"):
            with suppress(FileNotFoundError, StoreError), if_dead(lock):
                pass


def _settle(stage: Path, place: Path) -> None:
    """Move the files of a complete stage into the folder; remove any other stage. Its lock must be held."""
    if stage.is_symlink():
        stage.unlink()
    elif (stage / _COMPLETE).is_file():
        _move(stage, place)
    elif stage.is_dir():
        shutil.rmtree(stage)
    else:
        stage.unlink(missing_ok=True)


def _move(stage: Path, place: Path) -> None:
    """Put the files of a complete stage in the place of those that it replaces. It may be called again after a kill."""
    again = f"remove {stage} and write the folder again"
    note = read_record(stage / _COMPLETE, "note", {"gone": [str], "record": str}, _check, id="output", fix=again)
    gone, record = note["gone"], note["record"]
    new = [name for name in files_below(stage) if name != _COMPLETE]
    for name in new:
        if not (place / name).parent.resolve().is_relative_to(place):  # through a link in the folder
            raise StoreError(
                f"{name} would be written outside {place}",
                where=str(stage),
                fix=f"remove {stage}: derivlang did not write it so; nothing was changed",
                id="output",
            )
    if record in new:  # else it was the last file to move
        (place / record).unlink(missing_ok=True)
    remove_files(place, gone)
    for name in sorted(new, key=lambda name: name == record):
        (place / name).parent.mkdir(parents=True, exist_ok=True)
        (stage / name).replace(place / name)
    shutil.rmtree(stage)


def _check(note: dict[str, Any]) -> None:
    """Raise ValueError for names that are too long."""
    if max(map(len, note["gone"]), default=0) > _LONGEST_PATH:  # matching takes the square of its length
        raise ValueError(f"a name in gone has more than {_LONGEST_PATH:,} characters")


def _remove_empty(folder: Path, names: Sequence[str]) -> None:
    """Remove the empty folders in which files of these names would be."""
    below = [path for path in folder.rglob("*") if path.is_dir() and not path.is_symlink()]
    for path in reversed(below):  # the inner ones first
        if any(leads(path.relative_to(folder).as_posix(), name) for name in names):
            with suppress(OSError):
                path.rmdir()
