"""A local folder as a store: files are written under another name, and renamed when they are complete."""

from __future__ import annotations

import os
import secrets
from collections.abc import Iterable, Iterator
from contextlib import contextmanager, suppress
from dataclasses import dataclass
from pathlib import Path

from derivlang.store.disk import disk, remove


@dataclass(frozen=True, slots=True)
class FolderStore:
    """The files below a folder (`base.Store`)."""

    folder: Path

    def where(self, name: str) -> str:
        return str(self.folder / name)

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
        path = self.folder / name
        with disk(path):
            path.parent.mkdir(parents=True, exist_ok=True)
            with _fresh(path) as fresh:
                fresh.write_bytes(content)
                fresh.replace(path)

    def put_new(self, name: str, content: bytes) -> bool:
        path = self.folder / name
        with disk(path):
            path.parent.mkdir(parents=True, exist_ok=True)
            with _fresh(path) as fresh:
                fresh.write_bytes(content)
                try:
                    os.link(fresh, path)
                except FileExistsError:
                    return False
        return True

    @contextmanager
    def writing(self, name: str) -> Iterator[Path]:
        path = self.folder / name
        with disk(path):
            path.parent.mkdir(parents=True, exist_ok=True)
        with _fresh(path) as fresh:
            yield fresh
            with disk(path):
                if fresh.exists():
                    fresh.replace(path)

    def sizes(self, folder: str = "") -> dict[str, int]:
        below = (path for path in (self.folder / folder).rglob("*") if path.is_file())
        with disk(self.folder):
            return {path.relative_to(self.folder).as_posix(): path.stat().st_size for path in below}

    def remove(self, *names: str) -> None:
        for name in names:
            remove(self.folder / name)


@contextmanager
def _fresh(path: Path) -> Iterator[Path]:
    """Give a name beside a file that no other process of any computer uses; nothing is left there after the block."""
    fresh = path.with_name(f".{path.name}.{secrets.token_hex(6)}.tmp")
    try:
        yield fresh
    finally:
        with suppress(OSError):
            fresh.unlink(missing_ok=True)
