"""A place with a URL as a store, by fsspec: an object appears whole when its upload ends, and cannot be renamed."""

from __future__ import annotations

import os
import tempfile
from collections.abc import Callable, Collection, Iterable, Iterator, Mapping
from contextlib import AbstractContextManager, contextmanager, suppress
from dataclasses import dataclass
from functools import cache, lru_cache
from glob import has_magic
from inspect import signature
from itertools import islice
from pathlib import Path
from typing import Any, ClassVar

from derivlang.core.errors import StoreError
from derivlang.core.names import protocol_of
from derivlang.formats.places import located
from derivlang.formats.store_errors import asking, is_missing_file

# Protocols whose objects appear whole or not at all, and that can refuse to replace one.
_WHOLE = ("s3", "s3a", "gs", "gcs", "az", "abfs", "abfss", "memory")
_AT_ONCE = 32  # files that are asked for at the same time: a store answers many questions as fast as one


@dataclass(frozen=True, slots=True)
class UrlStore:
    """The files below a URL (`storage.Store`). Each process has connections of its own. url: as `str` of a place."""

    url: str
    is_local: ClassVar[bool] = False

    def __post_init__(self) -> None:
        if (protocol := protocol_of(self.url)) not in _WHOLE:
            raise StoreError(
                f"nothing is written to {protocol}://, where files may appear half-written",
                where=self.url,
                fix=f"use a local folder, or a store with one of {', '.join(_WHOLE[:-1])}",
                id="store",
            )

    def where(self, name: str) -> str:
        return f"{self.url}/{name}"

    def check(self, *names: str) -> None:
        return  # objects are neither folders nor links

    def get(self, name: str) -> bytes | None:
        (content,) = self.get_all([name])
        return content

    def get_all(self, names: Iterable[str]) -> Iterator[bytes | None]:
        left = iter(names)
        while some := list(islice(left, _AT_ONCE)):
            with self._asking(some[0]):
                fs = self._fs
                paths = [self._path(name) for name in some]
                found = fs.cat_ranges(paths, None, None, on_error="return", **_in_one_request(type(fs)))
            for name, content in zip(some, found, strict=True):
                with self._asking(name):
                    if isinstance(content, Exception) and not isinstance(content, FileNotFoundError):
                        raise content
                yield content if isinstance(content, bytes) else None

    def put(self, name: str, content: bytes) -> None:
        with self._asking(name):
            self._fs.pipe_file(self._path(name), content)

    def put_new(self, name: str, content: bytes) -> bool:
        with self._asking(name):
            try:
                self._fs.pipe_file(self._path(name), content, mode="create")
            except FileExistsError:
                return False
        return True

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
                self.take(path, name)

    def take(self, path: Path, name: str) -> None:
        with self._asking(name):
            self._fs.put_file(str(path), self._path(name))
        path.unlink()

    def listing(self) -> dict[str, int]:
        return self.sizes()

    def sizes(self, folder: str = "") -> dict[str, int]:
        root = self._path("")
        with self._asking(folder):
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

    def remove(self, *names: str) -> None:
        names = tuple(one for name in names for one in (self.sizes(name[:-1]) if name.endswith("/") else (name,)))
        if not names:
            return
        with self._asking(names[0]):
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
        return _place(self.url, os.getpid()).fs

    def _path(self, name: str) -> str:
        return f"{_place(self.url, os.getpid()).path.rstrip('/')}/{name}"

    def _asking(self, name: str) -> AbstractContextManager[None]:
        """Raise a StoreError for what the store raises."""
        return asking(self.where(name), "write")


@lru_cache(maxsize=16)
def _place(url: str, process: int) -> Any:
    """Return the place of a URL, with the `fs` that fsspec keeps for each process."""
    return located(url)


def _in_one_request(kind: type) -> dict[str, int]:
    """Return what lets a file system read a whole file without asking for its size first."""
    reader = getattr(kind, "_cat_file", None)
    return {"max_concurrency": 1} if reader and "max_concurrency" in signature(reader).parameters else {}
