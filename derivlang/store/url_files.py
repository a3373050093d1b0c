"""Files at a URL: written on the local disk, and put in their place when all of them are complete.

    OUT.recipe.json       of several files the record comes first, as it names the others
    OUT                   then they come

Nothing can be held or renamed there. A process that is killed leaves a record whose files are missing, which no reader
takes for whole, and the same command writes them again. Of two commands with other settings, the earlier ends with an
error once the later one has put its record.
"""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from contextlib import ExitStack, contextmanager
from pathlib import Path
from tempfile import TemporaryDirectory
from typing import BinaryIO

from derivlang.core.errors import StoreError
from derivlang.store.disk import disk
from derivlang.store.listing import file_hash
from derivlang.store.url_store import UrlStore


def store_beside(out: Path) -> UrlStore:
    """Return the store of the folder that holds a file. StoreError for a URL where files may appear half-written."""
    return UrlStore(str(out.parent).rstrip("/"))


@contextmanager
def writing_at(
    outs: Sequence[Path], gone: Sequence[Path] = (), *, replace: bool | None = None
) -> Iterator[list[BinaryIO]]:
    """Open files of one folder, as `files.writing_all`."""
    store = store_beside(outs[0])
    for out in outs:
        if out.is_dir():
            raise StoreError("cannot write here: Is a directory", where=str(out), id="cannot-write")
    with TemporaryDirectory(prefix="derivlang-") as folder, disk(folder):
        drafts = {out: Path(folder, out.name) for out in outs}
        with ExitStack() as opened:
            yield [opened.enter_context(draft.open("wb")) for draft in drafts.values()]
        for out, draft in drafts.items():
            is_record = len(outs) > 1 and out == outs[-1]
            if replace is False and not is_record and out.exists() and file_hash(out) != file_hash(draft):
                raise StoreError(
                    "holds something else than this command writes",
                    where=str(out),
                    fix="name another file, or --force; the file is as it was",
                    id="out-exists",
                )
        # Beside the new record, an earlier file would pass for a new one.
        store.remove(*(out.name for out in (*gone, *outs[:-1])))
        claim = (outs[-1].name, drafts[outs[-1]].read_bytes()) if len(outs) > 1 else None
        put(store, outs[-1].name, drafts[outs[-1]])
        for out in outs[:-1]:
            put(store, out.name, drafts[out], claim)


def put(store: UrlStore, name: str, draft: Path, claim: tuple[str, bytes] | None = None) -> None:
    """Move a file of the local disk to its place. claim: the file that says whose the place is, and its content.

    StoreError if another process has claimed the place meanwhile. Then the file goes again: it may have replaced one of
    that process, whose result must not pass for whole with it.
    """
    check(store, name, claim)
    with store.writing(name) as path:
        draft.rename(path)
    try:
        check(store, name, claim)
    except StoreError:
        store.remove(name)
        raise


def check(store: UrlStore, name: str, claim: tuple[str, bytes] | None) -> None:
    """Raise StoreError if another process has claimed the place of a file. claim: as of `put`."""
    if claim is not None and store.get(claim[0]) != claim[1]:
        raise StoreError(
            "another command writes here at the same time",
            where=store.where(name),
            fix="run the same command again when that one has ended, or name another place with -o",
            id="other-run",
        )
