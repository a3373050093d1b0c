r"""Opening a text file: its lines with their numbers, from plain, `.gz` and `.zst` files.

A line ends at `\n` or `\r\n` and nowhere else (not at U+2028, U+0085, `\x0b` …); a byte-order mark at the
very start is no text.

    list(open_lines("fr.txt.gz"))  ->  [(1, "le chat dort"), (2, ""), (3, "il dort")]
"""

from __future__ import annotations

import codecs
import difflib
import gzip
import io
import zlib
from collections.abc import Iterator
from pathlib import Path
from typing import Any, BinaryIO

import pyarrow as pa

from derivlang.core.errors import DataError, UsageError

BLOCK = 1 << 20  # bytes decoded and split at a time: the cost of a block is small against that of its lines


def open_lines(path: Path | str, encoding: str = "utf-8") -> Iterator[tuple[int, str]]:
    """(1-based line number, line without its end), one by one; an empty file gives nothing.

    Raises DataError: missing-file, directory, unreadable-file, truncated, encoding, nul-byte; UsageError:
    unknown-encoding.
    """
    number = 1
    for lines in _blocks(Path(path), encoding):
        yield from enumerate(lines, number)
        number += len(lines)


def check_encoding(name: str) -> None:
    """UsageError if Python knows no such encoding."""
    try:
        io.TextIOWrapper(io.BytesIO(), name)  # refuses byte-to-byte codecs such as "hex" as well
    except LookupError:
        raise UsageError(
            f"there is no encoding {name!r}",
            where="--encoding",
            fix="for instance utf-8, utf-16, latin-1, cp1252",
            id="unknown-encoding",
        ) from None


def open_bytes(path: Path | str) -> BinaryIO:
    """The bytes of a file, decompressed; faults of the file are DataErrors when opening and when reading.

    Raises DataError: missing-file, directory, unreadable-file, truncated.
    """
    path = Path(path)
    raw = open_file(path)
    if path.suffix == ".gz":
        return io.BufferedReader(_Decompressed(path, gzip.GzipFile(fileobj=raw), raw), BLOCK)
    if path.suffix == ".zst":
        return io.BufferedReader(_Decompressed(path, pa.CompressedInputStream(raw, "zstd"), raw), BLOCK)
    return raw


def open_file(path: Path) -> BinaryIO:
    """The bytes of a file as they lie on disk. Raises DataError: missing-file, directory, unreadable-file."""
    try:
        return path.open("rb")
    except FileNotFoundError:
        raise DataError("there is no such file", where=str(path), fix=_near(path), id="missing-file") from None
    except IsADirectoryError:
        fix = "name a file in it"
        raise DataError("this is a folder, not a file", where=str(path), fix=fix, id="directory") from None
    except OSError as error:
        raise DataError(
            f"the file cannot be opened: {error.strerror}",
            where=str(path),
            fix="check its permissions",
            id="unreadable-file",
        ) from None


def read_text(path: Path | str, encoding: str = "utf-8") -> str:
    """The whole text of a file, its line ends made `\\n`. Raises as `open_lines`."""
    return "\n".join(line for _, line in open_lines(path, encoding))


def empty_file(path: Path | str, kind: str) -> DataError:
    """The error of a reader that found no `kind` ("sentence", "row", …) in a file."""
    fix = "check that the file was copied or downloaded whole"
    return DataError(f"the file holds no {kind}", where=str(path), fix=fix, id="empty-file")


class _Decompressed(io.RawIOBase):
    """A decompressing stream whose faults are DataErrors that name the file."""

    def __init__(self, path: Path, inner: Any, raw: BinaryIO):
        self._path, self._inner, self._raw = path, inner, raw

    def readable(self) -> bool:
        return True

    def readinto(self, buffer: Any) -> int:
        try:
            data = self._inner.read(len(buffer))
        except (EOFError, OSError, zlib.error) as error:
            raise DataError(
                f"the compressed data is cut short or damaged: {str(error).rstrip('.')}",
                where=str(self._path),
                fix="copy or download the file again",
                id="truncated",
            ) from None
        buffer[: len(data)] = data
        return len(data)

    def close(self) -> None:
        if not self.closed:
            self._inner.close()
            self._raw.close()
        super().close()


def _blocks(path: Path, encoding: str) -> Iterator[list[str]]:
    """The lines of a file, those of some `BLOCK` bytes at a time."""
    pending: list[str] = []  # pieces of a line that has not ended yet; joined once, however long it grows
    number = 1
    for text in _decoded(path, encoding):
        cut = text.rfind("\n")
        if cut < 0:
            pending.append(text)
            continue
        whole = "".join([*pending, text[:cut]])
        pending = [text[cut + 1 :]]
        if "\0" in whole:
            raise _nul(path, number, whole)
        if "\r" in whole:
            whole = whole.replace("\r\n", "\n").removesuffix("\r")
        lines = whole.split("\n")
        yield lines
        number += len(lines)
    last = "".join(pending)
    if "\0" in last:
        raise _nul(path, number, last)
    if last:
        yield [last]


def _decoded(path: Path, encoding: str) -> Iterator[str]:
    """The text of a file, some `BLOCK` bytes at a time, without a byte-order mark."""
    check_encoding(encoding)
    decoder = codecs.getincrementaldecoder(encoding)()
    n_bytes, line, at_start = 0, 1, True
    with open_bytes(path) as stream:
        while True:
            block = stream.read(BLOCK)
            n_bytes += len(block)
            try:
                text = decoder.decode(block, final=not block)
            except UnicodeDecodeError as error:
                raise _undecodable(path, encoding, error, n_bytes, line) from None
            except UnicodeError as error:  # UTF-16 without a byte-order mark
                fix = "pass --encoding with the byte order, e.g. utf-16-le"
                raise DataError(str(error), where=f"{path}:{line}", fix=fix, id="encoding") from None
            if at_start and text:
                text = text.removeprefix("\ufeff")
                at_start = False
            if text:
                yield text
            if not block:
                return
            line += text.count("\n")


def _undecodable(path: Path, encoding: str, error: UnicodeDecodeError, n_bytes: int, line: int) -> DataError:
    """error.object is the last block and what the decoder had kept of the one before it."""
    offset = n_bytes - len(error.object) + error.start
    line += error.object[: error.start].decode(encoding, "ignore").count("\n")
    fix = "pass --encoding with the file's own encoding, e.g. latin-1, or convert the file"
    if offset == 0 and error.object[:2] in (codecs.BOM_UTF16_LE, codecs.BOM_UTF16_BE):
        fix = "the file begins as UTF-16 does: pass --encoding utf-16"
    return DataError(
        f"byte 0x{error.object[error.start]:02x} at offset {offset} is not {encoding}",
        where=f"{path}:{line}",
        fix=fix,
        id="encoding",
    )


def _nul(path: Path, number: int, text: str) -> DataError:
    line = number + text[: text.index("\0")].count("\n")
    return DataError(
        "the line holds a NUL character",
        where=f"{path}:{line}",
        fix="this is no text file, or one in another encoding: pass --encoding, e.g. utf-16",
        id="nul-byte",
    )


def _near(path: Path) -> str:
    """What to try in place of a path that is not there."""
    folder = path.parent
    if not folder.is_dir():
        return f"there is no folder {folder} either"
    near = difflib.get_close_matches(path.name, [entry.name for entry in folder.iterdir()], n=3, cutoff=0.6)
    return f"did you mean {' or '.join(near)}?" if near else f"look at what is in {folder}"
