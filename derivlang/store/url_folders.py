"""Folders at a URL: written on the local disk, and put in their place file by file.

    .derivlang/folder.json           the note: the names of the files that the folder has or gets
    tables/scores.csv, …             the files
    report.json                      the record, last; then the note goes

Nothing can be held or renamed there. A process that is killed leaves the note without the record. No reader takes that
for a whole result, and the same command replaces it.
"""

from __future__ import annotations

import secrets
from collections.abc import Callable, Collection
from pathlib import Path, PurePosixPath
from tempfile import TemporaryDirectory

from derivlang.store.disk import disk
from derivlang.store.foreign import files_below, is_named, refuse_foreign, warn_of_kept
from derivlang.store.record import read_record, record_text
from derivlang.store.task_record import STAGE
from derivlang.store.url_files import check, put
from derivlang.store.url_store import UrlStore

NOTE = f"{STAGE}/folder.json"


def is_free_at(out: Path) -> bool:
    """Return whether a place is empty, or holds what a killed process has left, which is replaced (`is_free`)."""
    store = UrlStore(str(out))
    there = store.sizes()
    return _unfinished(store, out, there) is not None or not there


def replace_at(
    out: Path,
    write: Callable[[Path], None],
    names: Collection[str],
    *,
    record: str,
    what: str,
    warn: Callable[[str], None],
) -> None:
    """Fill a folder and put its files in the place of the earlier result, as `folders.replace_folder`.

    StoreError, too, if another process writes there meanwhile.
    """
    store = UrlStore(str(out))
    with TemporaryDirectory(prefix="derivlang-") as folder, disk(folder):
        write(stage := Path(folder))
        new, there = files_below(stage), store.sizes()
        left = _unfinished(store, out, there) or ()
        there.pop(NOTE, None)
        own = {name for name in there if name in left or is_named(name, names)}
        foreign = sorted(there.keys() - own)
        folders = {str(above) for name in there for above in PurePosixPath(name).parents}
        refuse_foreign(out, new, own, exists=(there.keys() | folders).__contains__, is_folder=folders.__contains__)
        note = {"files": sorted(own.union(new)), "record": record, "process": secrets.token_hex(8)}
        content = record_text(note).encode()
        store.put(NOTE, content)
        store.remove(*({record} & own))
        store.remove(*(own - {record, *new}))
        for name in sorted(new, key=lambda name: name == record):
            put(store, name, stage / name, (NOTE, content))
        check(store, NOTE, (NOTE, content))
        store.remove(NOTE)
    warn_of_kept(out, foreign, what, warn)


def _unfinished(store: UrlStore, out: Path, there: Collection[str]) -> list[str] | None:
    """Return the names of the files that a killed process had or was to write; None if nothing was left unfinished.

    The note goes if the record came last, or if nothing was replaced yet.
    """
    if NOTE not in there:
        return None
    again = "remove it, and what was written beside it, and run the same command again"
    note = read_record(out / NOTE, "note", {"files": [str], "record": str}, id="output", fix=again)
    if note["record"] in there:
        store.remove(NOTE)
        return None
    return list(note["files"])
