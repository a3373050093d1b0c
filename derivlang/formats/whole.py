"""Files that are read as a whole (dictionaries, grammars): plain, gzip or zstd, by their first bytes or their names.

A compressed file of a few kilobytes can hold gigabytes, and a device may never end: both are read up to a limit, and
refused beyond. A pipe is read once, so that `<(command)` works.
"""

from __future__ import annotations

import io
import os
import stat
from pathlib import Path
from typing import BinaryIO

from derivlang.core.errors import DataError
from derivlang.core.parse_errors import parse_errors
from derivlang.formats.opening import LIMIT, open_file, packing_of, unpacked

_MAGIC = {b"\x1f\x8b": ".gz", b"\x28\xb5\x2f\xfd": ".zst"}


def read_whole(path: Path) -> bytes:
    """Return the bytes of a file, decompressed.

    Raises DataError: missing-file, directory, unreadable-file, truncated, too-large (above LIMIT, if compressed or no
    regular file).
    """
    with parse_errors(str(path), "file", id="unreadable-file"), open_file(path) as file:
        raw: BinaryIO = file
        if not stat.S_ISREG(os.fstat(file.fileno()).st_mode):
            raw = io.BytesIO(_bounded(file, path, "the device or pipe holds", "save what you mean to read as a file"))
        head = raw.read(4)
        raw.seek(0)
        packing = next((kind for magic, kind in _MAGIC.items() if head.startswith(magic)), packing_of(path))
        if not packing:
            return raw.read()
        with unpacked(raw, path, packing) as stream:
            return _bounded(
                stream, path, "the compressed file expands to", "decompress it first, if it is what you mean to read"
            )


def utf8_text(path: Path) -> str:
    """Return the text of a UTF-8 file, decompressed. Raises DataError encoding, with the line, or as `read_whole`."""
    data = read_whole(path)
    try:
        return data.decode("utf-8")
    except UnicodeDecodeError as error:
        line = data[: error.start].count(b"\n") + 1
        raise DataError("the file is not UTF-8", where=f"{path}:{line}", id="encoding") from None


def _bounded(stream: BinaryIO, path: Path, what: str, fix: str) -> bytes:
    data = stream.read(LIMIT + 1)
    if len(data) > LIMIT:
        raise DataError(f"{what} more than {LIMIT >> 20} MiB", where=str(path), fix=fix, id="too-large")
    return data
