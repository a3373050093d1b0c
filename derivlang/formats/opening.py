r"""Opening a text file: its lines with their numbers, from plain, `.gz` and `.zst` files.

A line ends at `\n` or `\r\n` only (not at U+2028, U+0085, `\x0b` …). A byte-order mark at the start is not part of the
text.

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
from derivlang.formats.file_piece import WHOLE, Piece
from derivlang.formats.places import located
from derivlang.formats.progress import counted

PACKED = (".gz", ".zst")
_NO_TEXT = ("idna", "punycode", "undefined")  # two codecs for domain names, and one that always fails
LIMIT = 256 << 20  # bytes that a compressed file may expand to if it is read as a whole, or a pipe or device may give
LONGEST_LINE = 64 << 20  # of a compressed file: some kilobytes can hold a line of gigabytes
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
    return Path(unpacked_name(path)).suffix.lower()


def open_lines(
    path: Path | str, encoding: str = "utf-8", *, ends: bool = False, piece: Piece = WHOLE
) -> Iterator[tuple[int, str]]:
    """Yield (1-based line number, line). The line has its end only with `ends`. piece: what to read of a plain file.

    Raises DataError: missing-file, directory, unreadable-file, truncated, encoding, nul-byte, too-large (a line of a
    compressed file above LONGEST_LINE); UsageError: unknown-encoding.
    """
    number = piece.line + 1
    for lines in _blocks(located(path), encoding, ends, LONGEST_LINE, piece):
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


def open_bytes(path: Path | str) -> BinaryIO:
    """Open a file as a stream of decompressed bytes.

    Raises DataError, also while reading: missing-file, directory, unreadable-file, truncated.
    """
    path = located(path)
    return unpacked(open_file(path), path, packing_of(path))


def unpacked(raw: BinaryIO, path: Path, packing: str) -> BinaryIO:
    """The decompressed bytes of an open file. packing: `.gz`, `.zst`; anything else is not compressed."""
    if packing == ".gz":
        return io.BufferedReader(_Decompressed(path, gzip.GzipFile(fileobj=raw), raw), BLOCK)
    if packing == ".zst":
        return io.BufferedReader(_Decompressed(path, pa.CompressedInputStream(raw, "zstd"), raw), BLOCK)
    return raw


def open_file(path: Path) -> io.BufferedReader:
    """Open a file as a stream of its bytes on disk. Raises DataError: missing-file, directory, unreadable-file."""
    try:
        return counted(path.open("rb", buffering=0))
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


def read_text(path: Path | str, encoding: str = "utf-8") -> str:
    """Return the whole text of a file, with `\\n` as line ends.

    Raises as `open_lines`, but too-large only above LIMIT: JSON is often one long line.
    """
    path = located(path)
    blocks, size = [], 0
    for lines in _blocks(path, encoding, False, LIMIT):
        blocks.append("\n".join(lines))
        size += len(blocks[-1]) + 1
        if size > LIMIT and packing_of(path):
            raise too_large(str(path), "the compressed file expands to", LIMIT)
    return "\n".join(blocks)


def too_large(where: str, what: str, most: int) -> DataError:
    """Return the error for a compressed file that holds too much. what: what is too large, with its verb.

    ("a.gz:3", "the line of a compressed file has", 64 << 20)   ->   … has more than 64 MiB
    """
    return DataError(
        f"{what} more than {most >> 20} MiB",
        where=where,
        fix="decompress it first, if it is what you mean to read",
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


def _blocks(path: Path, encoding: str, ends: bool, longest: int, piece: Piece = WHOLE) -> Iterator[list[str]]:
    """Yield the lines of a piece in blocks of about `BLOCK` bytes. longest: a line of a compressed file."""
    for text in whole_lines(path, encoding, piece, longest):
        if not text.endswith("\n"):
            yield [text]
            return
        whole = text[:-1]
        if "\r" in whole and not ends:
            whole = whole.replace("\r\n", "\n").removesuffix("\r")
        lines = whole.split("\n")
        yield [f"{line}\n" for line in lines] if ends else lines


def whole_lines(path: Path, encoding: str, piece: Piece = WHOLE, longest: int = LONGEST_LINE) -> Iterator[str]:
    """Yield the text of a piece in blocks of about `BLOCK` bytes, each of whole lines; the last may lack its end.

    longest: a line of a compressed file. Raises as `open_lines`.
    """
    pending: list[str] = []  # parts of a line that has not ended yet, joined once (a line may span many blocks)
    number = piece.line + 1
    for text in _decoded(path, encoding, piece):
        if "\0" in text:  # said at once: a device may give nothing else, without a line end
            raise _nul(path, number, text)
        cut = text.rfind("\n")
        if cut < 0:
            pending.append(text)
            if sum(map(len, pending)) > longest and packing_of(path):
                raise too_large(f"{path}:{number}", "the line of a compressed file has", longest)
            continue
        whole = "".join([*pending, text[: cut + 1]])
        pending = [text[cut + 1 :]]
        yield whole
        number += whole.count("\n")
    last = "".join(pending)
    if last:
        yield last


def _decoded(path: Path, encoding: str, piece: Piece) -> Iterator[str]:
    """Yield the text of a piece, about `BLOCK` bytes at a time, without the byte-order mark of the file."""
    check_encoding(encoding)
    decoder = codecs.getincrementaldecoder(encoding)()
    n_bytes, line, at_start = piece.begin, piece.line + 1, not piece.begin
    with open_bytes(path) as stream:
        if piece.begin:
            stream.seek(piece.begin)
        while True:
            block = stream.read(BLOCK if piece.end is None else min(BLOCK, piece.end - n_bytes))
            n_bytes += len(block)
            try:
                text = decoder.decode(block, final=not block)
            except UnicodeDecodeError as error:
                raise _undecodable(path, encoding, error, n_bytes, line) from None
            except UnicodeError as error:  # UTF-16 without a byte-order mark
                fix = "pass --encoding with the byte order, such as utf-16-le"
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
    """Return the error; error.object is the last block and the bytes that the decoder kept of the block before."""
    offset = n_bytes - len(error.object) + error.start
    line += error.object[: error.start].decode(encoding, "ignore").count("\n")
    fix = "pass the file's own --encoding, such as latin-1, or convert the file"
    if offset == 0 and error.object[:2] in (codecs.BOM_UTF16_LE, codecs.BOM_UTF16_BE):
        fix = "pass --encoding utf-16, because the file starts with a UTF-16 byte-order mark"
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
