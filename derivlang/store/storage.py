"""Stores: where the files of a set are kept. A store knows bytes by names such as `data/train-00000-of-00002.parquet`.

A local folder is one, a place with a URL another (`url_store.py`). A local one writes files under another name, and
renames them when they are complete. It can be held, and renames whole folders. A URL can do neither.
"""

from __future__ import annotations

import os
import secrets
import shutil
from collections.abc import Callable, Collection, Iterable, Iterator, Mapping
from contextlib import AbstractContextManager, contextmanager, suppress
from dataclasses import dataclass
from pathlib import Path
from typing import Any, ClassVar, Protocol

from derivlang.core.errors import StoreError
from derivlang.formats.places import is_remote
from derivlang.store.disk import STAGE, disk, remove
from derivlang.store.listing import file_hash


class Store(Protocol):
    """Files by name below one place. It can be pickled: workers write to it. Raises StoreError for whatever fails."""

    is_local: ClassVar[bool]

    def where(self, name: str) -> str:
        """Return the place of a file, for messages."""

    def check(self, *names: str) -> None:
        """Raise StoreError if the place is a file, or is below one, or if one of these names is a link."""

    def get(self, name: str) -> bytes | None:
        """Return the content of a file; None if there is no such file."""

    def get_all(self, names: Iterable[str]) -> Iterator[bytes | None]:
        """Yield the contents of files, in their order, as `get` returns them. A few of them are held at a time."""

    def put(self, name: str, content: bytes) -> None:
        """Write a file, whole or not at all. One that is there is replaced."""

    def put_new(self, name: str, content: bytes) -> bool:
        """Write a file unless there is one of this name. Returns whether it was written."""

    def take(self, path: Path, name: str) -> None:
        """Move a file of the local disk to its place. For a local store it must be on the same disk."""

    def prepare(self, files: Mapping[str, bytes], folder: str) -> Callable[[str], None]:
        """Return what puts one of some files in its place, given its name. It needs no more room on a local disk.

        folder: for the files until then.
        """

    def replacing(self, folder: str, staged: str, names: Collection[str]) -> AbstractContextManager[None]:
        """Replace a local folder by another one at once: the old one goes before the block, the new one comes after it.

        names: of the files in it. After a kill it may be called again. At a URL the files are in their place already.
        """

    def writing(self, name: str) -> AbstractContextManager[Path]:
        """Give the place on the local disk where a new file is written; it is put under its name after the block.

        Nothing is put if the block writes no file there, or raises.
        """

    def listing(self) -> dict[str, int]:
        """Return the bytes of each file by its name.

        A local store adds folders that are empty, with a slash and without bytes. Nothing is read of the folder of a
        plan, and only that folder is named.
        """

    def sizes(self, folder: str = "") -> dict[str, int]:
        """Return the bytes of each file below a folder of the store, by the names of the files."""

    def matching(self) -> Callable[[str, Mapping[str, Any]], bool]:
        """Return the check whether a shard is there, given its name and what was recorded of it (`bytes`, `sha256`)."""

    def remove(self, *names: str) -> None:
        """Remove files, in any order. A name without a file is skipped; one with a slash at its end is a folder."""


@dataclass(frozen=True, slots=True)
class FolderStore:
    """The files below a local folder. A folder that becomes empty is removed."""

    folder: Path
    is_local: ClassVar[bool] = True

    def where(self, name: str) -> str:
        return str(self.folder / name)

    def check(self, *names: str) -> None:
        folder = self.folder
        with disk(folder):
            above = next(path for path in (folder, *folder.absolute().parents) if path.exists())
            if not above.is_dir():
                what = "this" if above == folder else above
                raise StoreError(f"{what} is a file, not a folder", where=str(folder), id="output")
        for path in (folder / name for name in names):
            if path.is_symlink():
                raise StoreError("this is a link, so nothing is written there", where=str(path), id="output")

    def get(self, name: str) -> bytes | None:
        path = self.folder / name
        with disk(path):
            try:
                return path.read_bytes()
            except (FileNotFoundError, NotADirectoryError):
                return None

    def get_all(self, names: Iterable[str]) -> Iterator[bytes | None]:
        return map(self.get, names)

    def put(self, name: str, content: bytes) -> None:
        with disk(self.folder / name), self.writing(name) as path:
            path.write_bytes(content)

    def put_new(self, name: str, content: bytes) -> bool:
        is_new = not (self.folder / name).exists()  # a set is made by one process at a time here (`Making.held`)
        if is_new:
            self.put(name, content)
        return is_new

    def prepare(self, files: Mapping[str, bytes], folder: str) -> Callable[[str], None]:
        for name, content in files.items():
            self.put(f"{folder}/{name}", content)
        return lambda name: self.rename(f"{folder}/{name}", name)

    @contextmanager
    def replacing(self, folder: str, staged: str, names: Collection[str]) -> Iterator[None]:
        if names and not (self.folder / staged).exists():  # a run was killed after its block
            self.rename(folder, staged)
        for name in names:  # or one shard was damaged then, and made again
            if not (self.folder / staged / name).exists():
                self.rename(f"{folder}/{name}", f"{staged}/{name}")
        self.remove(f"{staged}.replaced/")  # of a run that was killed while it removed its stage
        self.rename(folder, f"{staged}.replaced")
        yield
        self.rename(staged, folder)
        # What a killed process, or a rank that still runs a task, has begun.
        self.remove(*(name for name in self.sizes(folder) if Path(name).name not in names))

    @contextmanager
    def writing(self, name: str) -> Iterator[Path]:
        path = self.folder / name
        with _fresh(path) as fresh:
            yield fresh
            if fresh.exists():
                self.take(fresh, name)

    def take(self, path: Path, name: str) -> None:
        place = self.folder / name
        with disk(place):
            place.parent.mkdir(parents=True, exist_ok=True)
            path.replace(place)

    def rename(self, name: str, new: str) -> None:
        """Rename a file or a folder, if it is there."""
        if os.path.lexists(self.folder / name):
            self.take(self.folder / name, new)

    def listing(self) -> dict[str, int]:
        with disk(self.folder):
            return dict(_below(self.folder, shut=f"{STAGE}/"))

    def sizes(self, folder: str = "") -> dict[str, int]:
        with disk(self.folder):
            below = _below(self.folder / folder, f"{folder}/" if folder else "")
            return {name: size for name, size in below if not name.endswith("/")}

    def matching(self) -> Callable[[str, Mapping[str, Any]], bool]:
        def is_same(name: str, shard: Mapping[str, Any]) -> bool:
            path = self.folder / name
            # The size first: it is known without reading the file.
            return path.is_file() and path.stat().st_size == shard["bytes"] and file_hash(path) == shard["sha256"]

        return is_same

    def remove(self, *names: str) -> None:
        for name in names:
            path = self.folder / name
            if name.endswith("/"):
                shutil.rmtree(path, ignore_errors=True)  # a rank that still runs a task removes what it adds
            else:
                remove(path)
            with suppress(OSError):  # it is not empty
                for above in Path(name).parents[:-1]:
                    if above.parent.name != STAGE:  # another process may be about to write into the folder of a plan
                        (self.folder / above).rmdir()


def store_at(out: Path) -> Store:
    """Return the store of a place. StoreError for a URL where no set can be made."""
    if not is_remote(out):
        return FolderStore(out)
    from derivlang.store.url_store import UrlStore  # imported late: most sets are made in local folders

    return UrlStore(str(out))


def put_draft(store: Store, name: str, draft: Path, claim: tuple[str, bytes] | None) -> None:
    """Move a file of the local disk to its place. claim: the file that says whose the place is, and its content.

    StoreError if another process has claimed the place meanwhile. Then the file goes again: it may have replaced one of
    that process, whose result must not pass for whole with it.
    """
    check_claim(store, name, claim)
    store.take(draft, name)
    try:
        check_claim(store, name, claim)
    except StoreError:
        store.remove(name)
        raise


def check_claim(store: Store, name: str, claim: tuple[str, bytes] | None) -> None:
    """Raise StoreError if another process has claimed the place of a file. claim: as of `put_draft`."""
    if claim is not None and store.get(claim[0]) != claim[1]:
        raise StoreError(
            "another command writes here at the same time",
            where=store.where(name),
            fix="run the same command again when that one has ended, or name another place with -o",
            id="other-run",
        )


@contextmanager
def _fresh(path: Path) -> Iterator[Path]:
    """Give a name beside a file that no other process of any computer uses; nothing is left there after the block."""
    fresh = path.with_name(f".{path.name}.{secrets.token_hex(6)}.tmp")
    with disk(path):
        path.parent.mkdir(parents=True, exist_ok=True)
    try:
        yield fresh
    finally:
        with suppress(OSError):
            fresh.unlink(missing_ok=True)


def _below(folder: Path, inside: str = "", *, shut: str | None = None) -> Iterator[tuple[str, int]]:
    """Yield the names and bytes of the files below a folder, links among them, and of empty folders, with a slash.

    inside: what these names begin with. shut: the folder whose folders count as empty. What another process has just
    removed is left out.
    """
    entries: list[Path] = []
    with suppress(FileNotFoundError, NotADirectoryError):
        entries += folder.iterdir()
    for entry in entries:
        name = f"{inside}{entry.name}"
        if entry.is_dir() and not entry.is_symlink():
            below = [] if inside == shut else list(_below(entry, f"{name}/", shut=shut))
            yield from below or [(f"{name}/", 0)]
        else:
            with suppress(FileNotFoundError):
                yield name, entry.lstat().st_size
