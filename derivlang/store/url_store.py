"""A place with a URL as a store, by fsspec: an object appears whole when its upload ends, and cannot be renamed."""

from __future__ import annotations

import tempfile
from collections.abc import Iterator
from contextlib import contextmanager
from dataclasses import dataclass
from pathlib import Path
from typing import Any, ClassVar

from derivlang.core.errors import DerivlangError, StoreError
from derivlang.core.urls import protocol_of
from derivlang.formats.places import located
from derivlang.formats.store_errors import fault, is_missing_file

# Protocols whose objects appear whole or not at all, and that can refuse to replace one.
_WHOLE = ("s3", "s3a", "gs", "gcs", "az", "abfs", "abfss", "memory")


@dataclass(frozen=True, slots=True)
class UrlStore:
    """The files below a URL (`base.Store`). Each process has connections of its own. url: as `str` of a place."""

    url: str
    renames: ClassVar[bool] = False

    def __post_init__(self) -> None:
        if (protocol := protocol_of(self.url)) not in _WHOLE:
            raise StoreError(
                f"a set cannot be made at {protocol}://, where files may appear half-written",
                where=self.url,
                fix=f"use a local folder, or a store with one of {', '.join(_WHOLE[:-1])}",
                id="store",
            )

    def absolute(self) -> UrlStore:
        return self

    def where(self, name: str) -> str:
        return f"{self.url}/{name}"

    def get(self, name: str) -> bytes | None:
        with self._asking(name):
            try:
                content: bytes = self._fs.cat_file(self._path(name))
            except FileNotFoundError:
                return None
        return content

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

    @contextmanager
    def writing(self, name: str) -> Iterator[Path]:
        with tempfile.TemporaryDirectory(prefix="derivlang-") as folder:
            path = Path(folder, Path(name).name)
            yield path
            if path.exists():
                with self._asking(name):
                    self._fs.put_file(str(path), self._path(name))

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

    def remove(self, name: str) -> None:
        with self._asking(name):
            try:
                self._fs.rm_file(self._path(name))
            except FileNotFoundError:
                return

    @property
    def _fs(self) -> Any:
        return located(self.url).fs  # type: ignore[attr-defined]  # of fsspec, which keeps one for each process

    def _path(self, name: str) -> str:
        return f"{located(self.url).path.rstrip('/')}/{name}"  # type: ignore[attr-defined]

    @contextmanager
    def _asking(self, name: str) -> Iterator[None]:
        """Raise a StoreError for what the store raises."""
        try:
            yield
        except DerivlangError:
            raise
        except Exception as caught:
            error = fault(caught, self.where(name), doing="write")
            raise StoreError(error.what, where=error.where, fix=error.fix, id=error.id) from caught
