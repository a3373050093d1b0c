"""Make items in a thread before they are needed."""

from __future__ import annotations

import queue
import threading
from collections.abc import Iterable, Iterator
from typing import TypeVar

Item = TypeVar("Item")


def ahead(items: Iterable[Item], most: int) -> Iterator[Item]:
    """Yield the items, made by a thread that is at most `most` of them ahead. An error in it is raised here."""
    out: queue.Queue[tuple[Item] | BaseException | None] = queue.Queue(most)
    ended = threading.Event()

    def put(entry: tuple[Item] | BaseException | None) -> bool:
        while not ended.is_set():
            try:
                out.put(entry, timeout=0.1)
                return True
            except queue.Full:
                continue
        return False

    def work() -> None:
        try:
            for item in items:
                if not put((item,)):
                    return
            put(None)
        except BaseException as error:  # noqa: BLE001 (handed to the caller's thread)
            put(error)

    threading.Thread(target=work, daemon=True).start()
    try:
        while (entry := out.get()) is not None:
            if isinstance(entry, BaseException):
                raise entry
            yield entry[0]
    finally:
        ended.set()
