"""Stores: where the files of a set are kept. A store knows bytes by names such as `data/train-00000-of-00002.parquet`.

A local folder is one (`folder_store.py`), a place with a URL another (`url_store.py`).
"""

from __future__ import annotations

from collections.abc import Iterable, Iterator
from contextlib import AbstractContextManager
from pathlib import Path
from typing import Protocol


class Store(Protocol):
    """Files by name below one place. It can be pickled: workers write to it. Raises StoreError for whatever fails."""

    def where(self, name: str) -> str:
        """Return the place of a file, for messages."""

    def get(self, name: str) -> bytes | None:
        """Return the content of a file; None if there is no such file."""

    def get_all(self, names: Iterable[str]) -> Iterator[bytes | None]:
        """Yield the contents of files, in their order, as `get` returns them. A few of them are held at a time."""

    def put(self, name: str, content: bytes) -> None:
        """Write a file, whole or not at all. One that is there is replaced."""

    def put_new(self, name: str, content: bytes) -> bool:
        """Write a file unless there is one of this name. Returns whether it was written."""

    def writing(self, name: str) -> AbstractContextManager[Path]:
        """Give the place on the local disk where a new file is written; it is put under its name after the block.

        Nothing is put if the block writes no file there, or raises.
        """

    def sizes(self, folder: str = "") -> dict[str, int]:
        """Return the bytes of each file below a folder of the store, by the names of the files."""

    def remove(self, *names: str) -> None:
        """Remove files, in any order. A name without a file is skipped."""
