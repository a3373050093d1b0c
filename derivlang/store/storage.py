"""Stores: where the files of a set are kept. A store knows bytes by names such as `data/train-00000-of-00002.parquet`.

A local one writes files under another name, and renames them when they are complete. It can be held, and renames whole
folders. A place with a URL can do neither: by fsspec, an object appears whole when its upload ends.
"""

from __future__ import annotations

import os
import secrets
import shutil
import tempfile
from collections.abc import Callable, Collection, Iterable, Iterator, Mapping
from contextlib import contextmanager, suppress
from dataclasses import dataclass
from functools import cache, wraps
from glob import has_magic
from inspect import signature
from itertools import islice
from pathlib import Path
from typing import Any, ClassVar, ParamSpec, TypeVar, cast

from derivlang.core.errors import DerivlangError, StoreError
from derivlang.core.names import protocol_of
from derivlang.formats.places import is_remote
from derivlang.formats.store_errors import asking, fault, is_missing_file
from derivlang.store.disk import STAGE, disk_error
from derivlang.store.record import file_hash

# Protocols whose objects appear whole or not at all, and that can refuse to replace one.
_WHOLE = ("s3", "s3a", "gs", "gcs", "az", "abfs", "abfss", "memory")
_AT_ONCE = 32  # files that are asked for at the same time: a store answers many questions as fast as one
Given = ParamSpec("Given")
Answer = TypeVar("Answer")


def _explained(method: Callable[Given, Answer]) -> Callable[Given, Answer]:
    """Let a method of a store raise a StoreError for what the place raises, about the file that it names first."""

    @wraps(method)
    def explained(*given: Given.args, **named: Given.kwargs) -> Answer:
        try:
            return method(*given, **named)
        except Exception:
            store, name = cast(tuple[Any, str], (*given, "")[:2])
            with asking(store.where(name), "write", store.explain):
                raise

    return explained


@dataclass(frozen=True, slots=True)
class Store:
    """Files by name below a local folder; one that becomes empty is removed. A place with a URL is a `UrlStore`.

    It can be pickled: workers write to it. Raises StoreError for whatever fails.
    """

    folder: Path
    is_local: ClassVar[bool] = True
    explain: ClassVar[Callable[[Exception, str, str], DerivlangError | None]] = staticmethod(disk_error)

    def where(self, name: str) -> str:
        """Return the place of a file, for messages."""
        return str(self.folder / name)

    @_explained
    def check(self, *names: str) -> None:
        """Raise StoreError if the place is a file, or is below one, or if one of these names is a link."""
        folder = self.folder
        above = next(path for path in (folder, *folder.absolute().parents) if path.exists())
        if not above.is_dir():
            what = "this" if above == folder else above
            raise StoreError(f"{what} is a file, not a folder", where=str(folder), id="output")
        for path in (folder / name for name in names):
            if path.is_symlink():
                raise StoreError("this is a link, so nothing is written there", where=str(path), id="output")

    @_explained
    def get(self, name: str) -> bytes | None:
        """Return the content of a file; None if there is no such file."""
        try:
            return (self.folder / name).read_bytes()
        except (FileNotFoundError, NotADirectoryError):
            return None

    def get_all(self, names: Iterable[str]) -> Iterator[bytes | None]:
        """Yield the contents of files, in their order, as `get` returns them. A few of them are held at a time."""
        return map(self.get, names)

    @_explained
    def put(self, name: str, content: bytes) -> None:
        """Write a file, whole or not at all. One that is there is replaced."""
        with self.writing(name) as path:
            path.write_bytes(content)

    def put_new(self, name: str, content: bytes) -> None:
        """Write a file unless there is one of this name."""
        if not (self.folder / name).exists():  # a set is made by one process at a time here (`Making.held`)
            self.put(name, content)

    def prepare(self, files: Mapping[str, bytes], folder: str) -> Callable[[str], None]:
        """Return what puts one of some files in its place, given its name. It needs no more room on a local disk.

        folder: for the files until then.
        """
        for name, content in files.items():
            self.put(f"{folder}/{name}", content)
        return lambda name: self.rename(f"{folder}/{name}", name)

    @contextmanager
    def replacing(self, folder: str, staged: str, names: Collection[str]) -> Iterator[None]:
        """Replace a local folder by another one at once: the old one goes before the block, the new one comes after it.

        names: of the files in it. After a kill it may be called again. At a URL the files are in their place already.
        """
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
        """Give the place on the local disk where a new file is written; it is put under its name after the block.

        Nothing is put if the block writes no file there, or raises.
        """
        place = self._made_for(name)
        fresh = place.with_name(f".{place.name}.{secrets.token_hex(6)}.tmp")  # no process of any computer has this name
        try:
            yield fresh
            if fresh.exists():
                self.take(name, fresh)
        finally:
            with suppress(OSError):
                fresh.unlink(missing_ok=True)

    @_explained
    def _made_for(self, name: str) -> Path:
        """Return the place of a file, whose folder is made if needed."""
        place = self.folder / name
        place.parent.mkdir(parents=True, exist_ok=True)
        return place

    @_explained
    def take(self, name: str, path: Path) -> None:
        """Move a file of the local disk to its place. For a local store it must be on the same disk."""
        path.replace(self._made_for(name))

    def rename(self, name: str, new: str) -> None:
        """Rename a file or a folder, if it is there."""
        if os.path.lexists(self.folder / name):
            self.take(new, self.folder / name)

    @_explained
    def sizes(self, folder: str = "") -> dict[str, int]:
        """Return the bytes of each file below a folder of the store, by the names of the files.

        A local store adds folders that are empty, with a slash and without bytes. Of a whole store, nothing is read of
        the folders of plans, and only these folders are named.
        """
        return _below(self.folder / folder, f"{folder}/" if folder else "", shut="" if folder else f"{STAGE}/")

    def matching(self) -> Callable[[str, Mapping[str, Any]], bool]:
        """Return the check whether a shard is there, given its name and what was recorded of it (`bytes`, `sha256`)."""

        def is_same(name: str, shard: Mapping[str, Any]) -> bool:
            path = self.folder / name
            # The size first: it is known without reading the file.
            return path.is_file() and path.stat().st_size == shard["bytes"] and file_hash(path) == shard["sha256"]

        return is_same

    def remove(self, *names: str) -> None:
        """Remove files, in any order. A name without a file is skipped; one with a slash at its end is a folder."""
        for name in names:
            self._remove(name)

    @_explained
    def _remove(self, name: str) -> None:
        if name.endswith("/"):
            shutil.rmtree(self.folder / name, ignore_errors=True)  # a rank that still runs a task removes what it adds
        else:
            (self.folder / name).unlink(missing_ok=True)
        with suppress(OSError):  # it is not empty
            for above in Path(name).parents[:-1]:
                if above.parent.name != STAGE:  # another process may be about to write into the folder of a plan
                    (self.folder / above).rmdir()


@dataclass(frozen=True, slots=True)
class UrlStore(Store):
    """The files below a URL. Each process has connections of its own. StoreError where no set can be made."""

    is_local: ClassVar[bool] = False
    explain: ClassVar[Callable[[Exception, str, str], DerivlangError | None]] = staticmethod(fault)

    def __post_init__(self) -> None:
        if (protocol := protocol_of(str(self.folder))) not in _WHOLE:
            raise StoreError(
                f"nothing is written to {protocol}://, where files may appear half-written",
                where=str(self.folder),
                fix=f"use a local folder, or a store with one of {', '.join(_WHOLE[:-1])}",
                id="store",
            )

    def check(self, *names: str) -> None:
        return  # objects are neither folders nor links

    def get(self, name: str) -> bytes | None:
        return next(self.get_all([name]))

    def get_all(self, names: Iterable[str]) -> Iterator[bytes | None]:
        left = iter(names)
        while some := list(islice(left, _AT_ONCE)):
            yield from map(self._content, some, self._contents(*some))

    @_explained
    def _contents(self, *names: str) -> list[bytes | Exception]:
        fs, paths = self._fs, list(map(self._path, names))
        # A whole file is read without asking for its size first, where the file system can do it.
        reads = signature(getattr(type(fs), "_cat_file", self._path)).parameters
        at_once = {"max_concurrency": 1} if "max_concurrency" in reads else {}
        return list(fs.cat_ranges(paths, None, None, on_error="return", **at_once))

    @_explained
    def _content(self, name: str, found: bytes | Exception) -> bytes | None:
        if isinstance(found, Exception) and not isinstance(found, FileNotFoundError):
            raise found
        return found if isinstance(found, bytes) else None

    @_explained
    def put(self, name: str, content: bytes) -> None:
        self._fs.pipe_file(self._path(name), content)

    @_explained
    def put_new(self, name: str, content: bytes) -> None:
        with suppress(FileExistsError):
            self._fs.pipe_file(self._path(name), content, mode="create")

    def prepare(self, files: Mapping[str, bytes], folder: str) -> Callable[[str], None]:
        return lambda name: self.put(name, files[name])

    @contextmanager
    def replacing(self, folder: str, staged: str, names: Collection[str]) -> Iterator[None]:
        yield

    @contextmanager
    def writing(self, name: str) -> Iterator[Path]:
        with tempfile.TemporaryDirectory(prefix="derivlang-") as folder:
            path = Path(folder, Path(name).name)
            yield path
            if path.exists():
                self.take(name, path)

    @_explained
    def take(self, name: str, path: Path) -> None:
        self._fs.put_file(str(path), self._path(name))

    @_explained
    def sizes(self, folder: str = "") -> dict[str, int]:
        root = self._path("")
        self._fs.invalidate_cache()
        try:
            found = self._fs.find(f"{root}{folder}", detail=True)
        except FileNotFoundError as caught:
            if not is_missing_file(caught, self.where(folder)):
                raise
            return {}
        return {
            str(place).removeprefix(root): int(info["size"])
            for place, info in found.items()
            if info["type"] == "file" and not place.endswith("/")  # an empty object that stands for a folder
        }

    def matching(self) -> Callable[[str, Mapping[str, Any]], bool]:
        there = cache(self.sizes)  # a folder is listed once, when the first shard is looked for
        return lambda name, shard: there(name.partition("/")[0]).get(name) == shard["bytes"]

    @_explained
    def remove(self, *names: str) -> None:
        names = tuple(one for name in names for one in (self.sizes(name[:-1]) if name.endswith("/") else (name,)))
        fs, paths = self._fs, [self._path(name) for name in names]
        # One request for up to a thousand files, where the store can do it. `rm` takes * ? [ for patterns. Stores
        # that say which file is missing stop there: another process removes them, too.
        if len(paths) > 1 and not any(map(has_magic, paths)):
            with suppress(FileNotFoundError):
                fs.rm(paths)
                return
        for path in paths:
            with suppress(FileNotFoundError):
                fs.rm_file(path)

    @property
    def _fs(self) -> Any:
        return cast(Any, self.folder).fs

    def _path(self, name: str) -> str:
        return f"{cast(Any, self.folder).path.rstrip('/')}/{name}"


def store_at(out: Path) -> Store:
    """Return the store of a place. StoreError for a URL where no set can be made."""
    return UrlStore(out) if is_remote(out) else Store(out)


def _below(folder: Path, inside: str, *, shut: str) -> dict[str, int]:
    """Return the bytes of the files below a folder, links among them, and of empty folders, whose names have a slash.

    inside: what these names begin with. shut: the folder whose folders count as empty. What another process has just
    removed is left out.
    """
    found: dict[str, int] = {}
    with suppress(FileNotFoundError, NotADirectoryError):
        for entry in os.scandir(folder):
            name = f"{inside}{entry.name}"
            if entry.is_dir(follow_symlinks=False):
                below = {} if shut and inside == shut else _below(folder / entry.name, f"{name}/", shut=shut)
                found |= below or {f"{name}/": 0}
            else:
                with suppress(FileNotFoundError):
                    found[name] = entry.stat(follow_symlinks=False).st_size
    return found
