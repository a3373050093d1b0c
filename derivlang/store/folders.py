"""Folders that commands write: replaced as a whole, without touching what somebody else has put there.

    DIR                                  the result, known by its record (a file's name), and perhaps foreign files
    DIR/.derivlang/folder.json           the note, while files are replaced: the names of those that DIR has or gets
    .DIR.derivlang                       the next result; its files move into DIR, the record last; then the note goes
    .DIR.derivlang.lock                  the lock of the process that writes

A result owns the files that its names match: patterns relative to the folder (`foreign.py`). All others stay. A new
folder is the next result itself, renamed. A process that is killed while files move leaves the note without the record.
No reader takes that for a whole result, and the same command replaces it.

At a URL nothing can be held or renamed. There the next result is written on the local disk, and its files are sent.
"""

from __future__ import annotations

import os
import secrets
import shutil
from collections.abc import Callable, Iterable, Iterator, Sequence
from contextlib import contextmanager, suppress
from functools import partial
from glob import escape
from pathlib import Path, PurePosixPath
from tempfile import TemporaryDirectory
from typing import Any

from derivlang.core.errors import StoreError
from derivlang.core.messages import warn
from derivlang.formats.places import is_remote
from derivlang.store.disk import STAGE, disk, if_dead, locked, stage_lock_of, stage_of
from derivlang.store.foreign import files_below, is_named, refuse_foreign, split_files, warn_of_kept
from derivlang.store.record import read_record, record_text
from derivlang.store.storage import Store, check_claim, put_draft, store_at

NOTE = f"{STAGE}/folder.json"
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
    """Fill a folder, then put its files in the place of the earlier result; if filling it fails, leave that.

    names: the files of the earlier result, and of the new one. record: the file by which a result is known, which is
    removed first and written last. what: a noun for the result. Foreign files stay, and a warning names them.
    Several processes may write the same folder at once: each fills its own, and the last one stays. StoreError if the
    folder cannot be written, or if a foreign file has the name of a file to be written, and nothing is changed then; at
    a URL also if another process writes there meanwhile.
    """
    place = out if is_remote(out) else out.resolve()
    store = store_at(place)
    with _stage(out, place) as stage, disk(out):
        write(stage)
        new = files_below(stage)
        if store.is_local:
            for path in (stage / name for name in new):
                with path.open("rb") as file:
                    os.fsync(file.fileno())
            if not place.exists():
                stage.rename(place)
                return
            store.check(STAGE, NOTE)
        own, foreign = _refuse_foreign(out, place, (*names, *map(escape, _unfinished(store, place) or ())), new)
        note = {"files": sorted({*own, *new}), "record": record, "process": secrets.token_hex(8)}
        claim = NOTE, record_text(note).encode()
        store.put(*claim)
        store.remove(*({record} & own))  # without it no reader takes the others for a result
        store.remove(*(own - {record, *new}))
        for name in sorted(new, key=lambda name: name == record):
            put_draft(store, name, stage / name, claim)
        check_claim(store, NOTE, claim)
        store.remove(NOTE)
    warn_of_kept(out, foreign, what, warn)


@contextmanager
def _stage(out: Path, place: Path) -> Iterator[Path]:
    """Give an empty folder for the next result: beside the place, which is locked; of a URL, a temporary one."""
    if is_remote(out):
        with TemporaryDirectory(prefix="derivlang-") as folder:
            yield Path(folder)
        return
    stage = stage_of(place)
    with locked(stage_lock_of(place), where=out), disk(out):
        _discard(stage)
        try:
            stage.mkdir()
            yield stage
        finally:
            _discard(stage)


def _refuse_foreign(out: Path, place: Path, names: Sequence[str], new: Iterable[str]) -> tuple[set[str], list[str]]:
    """Return the files of the earlier result, and the foreign ones. Raise StoreError if one of these is in the way."""
    if is_remote(out):
        there = store_at(out).sizes().keys() - {NOTE}
        own = {name for name in there if is_named(name, names)}
        foreign = sorted(there - own)
        folders = {str(above) for name in there for above in PurePosixPath(name).parents}
        exists, is_folder = (there | folders).__contains__, folders.__contains__
    else:
        found, foreign = split_files(place, names)
        own = set(found)
        exists, is_folder = partial(_exists, place), partial(_is_folder, place)
    refuse_foreign(out, new, own, exists=exists, is_folder=is_folder)
    return own, foreign


def _exists(folder: Path, name: str) -> bool:
    return os.path.lexists(folder / name)


def _is_folder(folder: Path, name: str) -> bool:
    """Return whether there is a folder. A link leads to a folder of somebody else."""
    return (folder / name).is_dir() and not (folder / name).is_symlink()


def remove_files(folder: Path, names: Iterable[str], *, record: str = "") -> list[str]:
    """Remove the files of a result, the record first, and folders that this empties. Return what is foreign and stays.

    StoreError if a file cannot be removed.
    """
    own, foreign = split_files(folder, tuple(names))
    store_at(folder).remove(*sorted(own, key=lambda name: name != record))
    return foreign


def is_free(out: Path) -> bool:
    """Return whether a folder is missing, empty, or was left unfinished by a process that was killed.

    What such a process has left beside a local folder is removed. Waits for one that is alive.
    """
    store = store_at(out)
    if store.is_local and any(map(os.path.lexists, (stage_of(out.resolve()), stage_lock_of(out.resolve())))):
        with _stage(out, out.resolve()):
            pass
    if _unfinished(store, out) is not None:
        return True
    if not store.is_local:
        return not store.sizes()
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


def _unfinished(store: Store, place: Path) -> list[str] | None:
    """Return the names of the files that a killed process had or was to write; None if nothing was left unfinished.

    The note goes if the record came last, or if nothing was replaced yet.
    """
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
