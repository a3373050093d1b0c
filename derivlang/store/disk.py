"""What the system says when a disk is full or a place cannot be written, as one of our errors."""

from __future__ import annotations

import errno
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path

from derivlang.core.errors import StoreError


@contextmanager
def disk(path: Path) -> Iterator[None]:
    """Turn an OSError of the block into a StoreError about `path`."""
    try:
        yield
    except OSError as error:
        # pyarrow's errors carry no number, but the system's words.
        full = error.errno == errno.ENOSPC or "No space left" in str(error)
        raise StoreError(
            "No space left on the disk" if full else f"cannot write here: {error.strerror or error}",
            where=str(path),
            fix="free some space and run the same command again: finished shards are kept" if full else None,
            id="disk-full" if full else "cannot-write",
        ) from None
