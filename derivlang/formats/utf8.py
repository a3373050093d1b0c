"""The bytes of a text file as UTF-8, whatever its encoding and compression."""

from __future__ import annotations

import codecs
import io
from pathlib import Path
from typing import BinaryIO

from derivlang.core.errors import DataError
from derivlang.formats.opening import open_bytes

BOM = b"\xef\xbb\xbf"
_BLOCK = 1 << 16  # bytes decoded at a time


def is_utf8(encoding: str) -> bool:
    """Return whether a name of an encoding is one of UTF-8: `utf-8`, `utf8`, `UTF-8` …"""
    return codecs.lookup(encoding).name == "utf-8"


def open_utf8(path: Path, encoding: str) -> BinaryIO:
    """Open a file as a stream of UTF-8. The bytes of a UTF-8 file are passed on unchecked.

    Raises DataError encoding when other bytes are read than the encoding has, and as `open_bytes`.
    """
    stream = open_bytes(path)
    if is_utf8(encoding):
        return stream
    return io.BufferedReader(_Recoded(stream, path, encoding), _BLOCK)


class _Recoded(io.RawIOBase):
    """A byte stream in another encoding, as UTF-8."""

    def __init__(self, stream: BinaryIO, path: Path, encoding: str):
        self._stream, self._path, self._encoding = stream, path, encoding
        self._decoder = codecs.getincrementaldecoder(encoding)()
        self._left = b""
        self._lines = self._read = 0

    def readable(self) -> bool:
        return True

    def readinto(self, target: memoryview) -> int:  # type: ignore[override]
        while not self._left:
            raw = self._stream.read(_BLOCK)
            try:
                text = self._decoder.decode(raw, final=not raw)
            except UnicodeDecodeError as error:
                good = error.object[: error.start].decode(self._encoding, "replace")
                line = self._lines + good.count("\n") + 1
                raise DataError(
                    f"byte {self._read + error.start} (0x{error.object[error.start]:02X}) is not {self._encoding}",
                    where=f"{self._path}:{line}",
                    fix="pass the file's own --encoding, or correct the file",
                    id="encoding",
                ) from None
            self._lines += text.count("\n")
            self._read += len(raw)
            self._left = text.encode()
            if not raw:
                break
        n = min(len(target), len(self._left))
        target[:n] = self._left[:n]
        self._left = self._left[n:]
        return n

    def close(self) -> None:
        self._stream.close()
        super().close()
