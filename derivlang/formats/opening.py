r"""Opening a text file: its lines with their numbers, from plain, `.gz` and `.zst` files.

A line ends at `\n` or `\r\n` only (not at U+2028, U+0085, `\x0b` …). A byte-order mark at the start is not part of the
text.

A compressed file of a few kilobytes can hold gigabytes, and a device may never end: both are read as a whole only up to
a limit. A pipe is read once, so that `<(command)` works.

    list(open_lines("fr.txt.gz"))  ->  [(1, "le chat dort"), (2, ""), (3, "il dort")]
"""

from __future__ import annotations

import codecs
import difflib
import gzip
import io
import os
import sys
import zlib
from collections.abc import Callable, Generator, Iterable, Iterator
from contextvars import ContextVar
from dataclasses import dataclass
from pathlib import Path
from typing import Any, BinaryIO

import pyarrow as pa

from derivlang.core.errors import DataError, UsageError, parse_errors
from derivlang.formats.places import is_remote, located
from derivlang.formats.progress import CountedFile
from derivlang.formats.recoding import recoded, undecodable


@dataclass(frozen=True, slots=True)
class Piece:
    """Bytes [begin, end) of a plain file; end None: to the end. line: the number of lines before it."""

    begin: int = 0
    end: int | None = None
    line: int = 0


WHOLE = Piece()


PACKED = (".gz", ".zst")
# What stands at the head of a file in place of its content -> what that is, and the command that fetches the content.
POINTERS = {
    b"version https://git-lfs.github.com/spec/": ("a pointer of Git LFS", "git lfs pull"),
    b"/annex/objects/": ("a pointer of git-annex", "git annex get"),
}
_NO_TEXT = ("idna", "punycode", "undefined")  # two codecs for domain names, and one that always fails
LIMIT = 256 << 20  # bytes that a compressed file may expand to if it is read as a whole, or a pipe or device may give
LONGEST_LINE = 64 << 20  # of a compressed file: some kilobytes can hold a line of gigabytes
BOM = codecs.BOM_UTF8
BLOCK = 1 << 20  # bytes decoded and split at a time, so that the cost of a block is small beside the cost of its lines


def packing_of(path: Path) -> str:
    """Return the suffix of compression in lower case, or ""."""
    suffix = path.suffix.lower()
    return suffix if suffix in PACKED else ""


def unpacked_name(path: Path) -> str:
    """Return the name of a file without `.gz` or `.zst`: a.txt for a.txt.gz."""
    return path.stem if packing_of(path) else path.name


def suffix_of(path: Path) -> str:
    """Return the suffix of the format, in lower case, without the suffix of compression."""
    return (Path(path.stem) if packing_of(path) else path).suffix.lower()


def open_lines(
    path: Path | str, encoding: str = "utf-8", *, ends: bool = False, piece: Piece = WHOLE, longest: int = 0
) -> Iterator[tuple[int, str]]:
    """Yield (1-based line number, line). The line has its end only with `ends`. piece: what to read of a plain file.

    longest: as of `whole_lines`. Raises DataError: missing-file, directory, unreadable-file, truncated, encoding,
    nul-byte, too-large (a line of a compressed file); UsageError: unknown-encoding.
    """
    number = piece.line + 1
    for block in whole_lines(located(path), encoding, piece, longest):
        text = block.decode()
        whole = text.removesuffix("\n")
        if text == whole:  # the last line, without an end
            lines = [text]
        elif ends:
            lines = [f"{line}\n" for line in whole.split("\n")]
        else:
            lines = whole.replace("\r\n", "\n").removesuffix("\r").split("\n")
        yield from enumerate(lines, number)
        number += len(lines)


def check_encoding(name: str) -> None:
    """Raise UsageError unknown-encoding if Python has no such text encoding."""
    try:
        io.TextIOWrapper(io.BytesIO(), name)  # also rejects byte-to-byte codecs such as "hex"
        known = codecs.lookup(name).name not in _NO_TEXT
    except (LookupError, ValueError):  # ValueError: a NUL in the name
        known = False
    if not known:
        raise UsageError(
            f"unknown encoding {name!r}",
            where="--encoding",
            fix="pass a Python codec name such as utf-8, utf-16, latin-1 or cp1252",
            id="unknown-encoding",
        )


def is_utf8(encoding: str) -> bool:
    """Return whether a name of an encoding is one of UTF-8: `utf-8`, `utf8`, `UTF-8` …"""
    return codecs.lookup(encoding).name == "utf-8"


def open_bytes(path: Path) -> BinaryIO:
    """Open a file as a stream of decompressed bytes.

    Raises DataError, also while reading: missing-file, directory, unreadable-file, truncated.
    """
    raw, packing = open_file(path), packing_of(path)
    if not packing:
        return raw
    inner = gzip.GzipFile(fileobj=raw) if packing == ".gz" else pa.CompressedInputStream(raw, "zstd")
    return io.BufferedReader(_Decompressed(path, inner, raw), BLOCK)


def utf8_blocks(path: Path, encoding: str, piece: Piece = WHOLE, size: int = 0) -> Generator[bytes, None, None]:
    """Yield a piece of a file as UTF-8, at most `size` bytes at a time, BLOCK for 0.

    The bytes of a UTF-8 file are not checked. Raises DataError encoding for bytes that another encoding lacks, and as
    `open_bytes`.
    """
    with open_bytes(path) as stream:
        if not is_utf8(encoding):
            yield from filter(None, recoded(stream, path, encoding))
            return
        if piece.begin:
            stream.seek(piece.begin)
        left = sys.maxsize if piece.end is None else piece.end - piece.begin
        # Without the buffer, which would read on behind the piece: those bytes would count twice.
        while block := stream.raw.read(min(size or BLOCK, left)):  # type: ignore[attr-defined]
            left -= len(block)
            yield block


def open_file(path: Path) -> io.BufferedReader:
    """Open a file as `open_on_disk`, or as it was inspected (inspection.py)."""
    return OPENER.get()(path)


def open_on_disk(path: Path) -> io.BufferedReader:
    """Open a file as a stream of its bytes on disk.

    Raises DataError: missing-file, directory, unreadable-file, pointer.
    """
    try:
        stream = path.open("rb", buffering=0) if is_remote(path) else CountedFile(path)
        try:
            if not is_remote(path) and stream.seekable():  # a pipe is read once
                _check_content(path, stream)
        except BaseException:
            stream.close()
            raise
        return io.BufferedReader(stream)
    except FileNotFoundError:
        if path.is_symlink():
            fix = "correct the link, or remove it"
            raise DataError("this link leads to no file", where=str(path), fix=fix, id="missing-file") from None
        raise DataError("there is no such file", where=str(path), fix=_near(path), id="missing-file") from None
    except IsADirectoryError:
        fix = "name a file in the folder"
        raise DataError("this is a folder, not a file", where=str(path), fix=fix, id="directory") from None
    except (OSError, ValueError) as error:  # ValueError: a NUL in the path
        raise DataError(
            f"the file cannot be opened: {getattr(error, 'strerror', None) or error}",
            where=str(path),
            fix="check its permissions",
            id="unreadable-file",
        ) from None


OPENER: ContextVar[Callable[[Path], io.BufferedReader]] = ContextVar("opener", default=open_on_disk)


def _check_content(path: Path, stream: io.FileIO) -> None:
    """Raise DataError pointer if a file only says where its content is."""
    head = os.pread(stream.fileno(), max(map(len, POINTERS)), 0)  # which no progress counts
    for begins, (what, command) in POINTERS.items():
        if head.startswith(begins):
            fix = f"run `{command}` in its repository, or download the file itself"
            raise DataError(f"the file is {what}, not its content", where=str(path), fix=fix, id="pointer")


def read_text(path: Path, encoding: str | None = None) -> str:
    """Return the whole text of a file, with its line ends. encoding: None for a file that must be UTF-8.

    Raises as `open_lines`, but too-large as `read_bytes`, for a line, too: JSON is often one long line.
    """
    if encoding is not None:
        return _joined(path, whole_lines(path, encoding, longest=LIMIT)).decode()
    try:
        return read_bytes(path).decode("utf-8-sig")
    except UnicodeDecodeError as error:
        line = error.object[: error.start].count(b"\n") + 1
        raise DataError("the file is not UTF-8", where=f"{path}:{line}", id="encoding") from None


def read_bytes(path: Path) -> bytes:
    """Return the bytes of a file, decompressed.

    Raises DataError: missing-file, directory, unreadable-file, truncated, too-large (above LIMIT, if compressed or no
    regular file).
    """
    return _joined(path, utf8_blocks(path, "utf-8"))


def _joined(path: Path, blocks: Iterable[bytes]) -> bytes:
    held, size = list[bytes](), 0
    with parse_errors(str(path), "file", id="unreadable-file"):
        for block in blocks:
            held.append(block)
            size += len(block)
            if size > LIMIT and (packing_of(path) or not path.is_file()):
                what = "the compressed file expands to" if packing_of(path) else "the device or pipe holds"
                raise too_large(str(path), what, LIMIT)
    return b"".join(held)


def too_large(where: str, what: str, most: int) -> DataError:
    """Return the error for a compressed file, a device or a pipe that is too large. what: how the message begins.

    ("a.gz:3", "the line of a compressed file has", 64 << 20)   ->   … has more than 64 MiB
    """
    return DataError(
        f"{what} more than {most >> 20} MiB",
        where=where,
        fix="save it as a plain file first, if it is what you mean to read",
        id="too-large",
    )


def empty_file(path: Path | str, kind: str) -> DataError:
    """Return the error for a file that holds no `kind` ("sentence", "row", …)."""
    fix = "check that the file was copied or downloaded completely"
    return DataError(f"the file holds no {kind}", where=str(path), fix=fix, id="empty-file")


class _Decompressed(io.RawIOBase):
    """A decompressing stream that raises DataError truncated with the name of the file."""

    def __init__(self, path: Path, inner: Any, raw: BinaryIO):
        self._path, self._inner, self._raw = path, inner, raw

    def readable(self) -> bool:
        return True

    def readinto(self, buffer: Any) -> int:
        try:
            data = self._inner.read(len(buffer))
        except (EOFError, OSError, zlib.error) as error:
            raise DataError(
                f"the compressed data is truncated or damaged: {str(error).rstrip('.')}",
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


def whole_lines(
    path: Path, encoding: str, piece: Piece = WHOLE, longest: int = 0, *, mark: bool = False, check: bool = True
) -> Iterator[bytes]:
    """Yield the lines of a piece as UTF-8, some at a time: about `BLOCK` bytes.

    The last line may lack its end. longest: greatest number of bytes in a line of a compressed file, 0 for
    LONGEST_LINE. mark: whether to keep the byte-order mark of the file. check: whether to raise encoding and nul-byte.
    Raises as `open_lines`.
    """
    check_encoding(encoding)
    longest = longest or LONGEST_LINE
    held: list[bytes] = []  # parts of a line that has not ended yet, joined once (a line may span many blocks)
    offset, line = piece.begin, piece.line + 1  # of the first byte that is held

    def checked(text: bytes, offset: int, line: int, *, final: bool = True) -> bytes:
        """Return the text, or raise DataError encoding or nul-byte.

        offset, line: of its first byte. final: whether its last character must be whole.
        """
        try:
            if check:
                codecs.utf_8_decode(text, "strict", final)
        except UnicodeDecodeError as error:
            before = text[: error.start].decode()
            raise undecodable(path, encoding, error, offset, line + before.count("\n")) from None
        if check and b"\0" in text:
            raise _nul(path, line + text.count(b"\n", 0, text.index(0)))
        return text if offset or mark else text.removeprefix(BOM)

    for block in utf8_blocks(path, encoding, piece):
        held.append(block)
        if b"\0" in block:  # said at once: a device may give nothing else, without a line end
            checked(b"".join(held), offset, line, final=False)
        end = block.rfind(b"\n") + 1
        if not end:
            # Tried at 1, 2, 4 … blocks of a line: what has no line ends may be no text, and large.
            if len(held) & (len(held) - 1) == 0:
                checked(b"".join(held), offset, line, final=False)
            if sum(map(len, held)) > longest and packing_of(path):
                raise too_large(f"{path}:{line}", "the line of a compressed file has", longest)
            continue
        held[-1] = block[:end]
        text = b"".join(held)
        if whole := checked(text, offset, line):
            yield whole
        held = [block[end:]]
        offset, line = offset + len(text), line + text.count(b"\n")
    if last := checked(b"".join(held), offset, line):
        yield last


def _nul(path: Path, line: int) -> DataError:
    return DataError(
        "the line holds a NUL character",
        where=f"{path}:{line}",
        fix="check that it is a text file, or pass its --encoding, such as utf-16",
        id="nul-byte",
    )


def _near(path: Path) -> str:
    """Return advice for a path that does not exist."""
    folder = path.parent
    if not folder.is_dir():
        return f"check the path: the folder {folder} does not exist either"
    near = difflib.get_close_matches(path.name, [entry.name for entry in folder.iterdir()], n=3, cutoff=0.6)
    return f"did you mean {' or '.join(near)}?" if near else f"list the files in {folder}"
