"""Paths in stores, by `universal_pathlib` and `fsspec`, with the methods of `pathlib.Path` that readers use.

    path = RemotePath.of("s3://bucket/corpus")
    [str(file) for file in path.below()]     ->  ["s3://bucket/corpus/a.txt", …]
    path.open("rb")                          a seekable stream

Each question goes to the store anew, past fsspec's lists of folders, so that a changed file is seen. What a store
raises becomes an error of derivlang here (`asking`), so that no caller needs to know its exceptions.
"""

from __future__ import annotations

import io
from collections.abc import Iterator, Mapping
from fnmatch import fnmatchcase
from hashlib import sha256
from logging import NullHandler, getLogger
from os import stat_result
from pathlib import Path, PurePosixPath
from stat import S_IFDIR, S_IFREG
from typing import IO, Any, cast

from upath.extensions import ProxyUPath

from derivlang.formats.progress import bytes_read
from derivlang.formats.store_errors import asking, fault

_LEAST = 1 << 17  # bytes of the first request for a place of a file: enough for a head
_MOST = 1 << 23  # of later ones, each twice the one before: few requests for a piece, and little beyond its end
# What changes with the content of an object, the surest first, as fsspec's systems call it.
_IDENTITIES = (
    "ETag", "etag", "md5Hash", "Content-MD5", "Digest", "generation", "VersionId", "blob_id", "last_commit",
    "LastModified", "last_modified", "updated", "mtime", "modified", "created",
)  # fmt: skip
# Packages that log what they raise, with tracebacks: Python prints that where there is no handler.
for _package in ("gcsfs", "google"):
    getLogger(_package).addHandler(NullHandler())


class RemotePath(ProxyUPath):
    """A path in a store.

    It remembers what it is (a file or a folder), and the size that it had when the store was last asked or listed:
    plans need no more, and each question takes a request. `stat` asks anew.
    """

    __slots__ = ("_kind", "_size")
    _kind: str
    _size: int

    @classmethod
    def of(cls, url: str) -> Path:
        """Return the path of a URL, without a slash at its end."""
        with asking(url):
            path = cls(url.rstrip("/") if url.rstrip("/")[-1:] != ":" else url)
        # Readers know one type of places. Of its methods they call those that are defined here or in ProxyUPath.
        return cast(Path, path)

    def stat(self, *, follow_symlinks: bool = True) -> stat_result:
        """Return the size and what distinguishes contents. FileNotFoundError if there is nothing.

        st_ino is a number made of the ETag, the generation, the version or the time of change, which changes with the
        content; 0 if the store has none. There are no times.
        """
        info = self._info()
        if info is None:
            raise FileNotFoundError(2, "there is no such object", str(self))
        self._size = int(info.get("size") or 0)
        kind = S_IFDIR if info["type"] == "directory" else S_IFREG
        no_times = dict.fromkeys(("st_atime_ns", "st_mtime_ns", "st_ctime_ns"), 0)
        return stat_result((kind, _identity(info), 0, 1, 0, 0, self._size, 0, 0, 0), no_times)

    @property
    def size(self) -> int:
        """The bytes of a file when the store was last asked. FileNotFoundError if there is nothing."""
        known = getattr(self, "_size", None)
        return self.stat().st_size if known is None else known

    def exists(self, *, follow_symlinks: bool = True) -> bool:
        return self._type() is not None

    def is_dir(self) -> bool:
        return self._type() == "directory"

    def is_file(self) -> bool:
        return self._type() == "file"

    def is_symlink(self) -> bool:
        return False

    def resolve(self, strict: bool = False) -> RemotePath:
        return self

    def absolute(self) -> RemotePath:
        return self

    @property
    def name(self) -> str:
        """The last part; of a bucket its own name."""
        return str(self.__wrapped__.name) or str(self.path).strip("/")

    def relative_to(self, other: Any, /, *_deprecated: Any, walk_up: bool = False) -> PurePosixPath:  # type: ignore[override]
        """Return the names from a folder down to this path."""
        return PurePosixPath(self.path).relative_to(PurePosixPath(other.path))

    def is_relative_to(self, other: Any, /, *_deprecated: Any) -> bool:
        return isinstance(other, RemotePath) and PurePosixPath(self.path).is_relative_to(PurePosixPath(other.path))

    def __lt__(self, other: object) -> bool:
        """Order by parts, as `pathlib` does: a/b before a-b."""
        if not isinstance(other, RemotePath):
            return NotImplemented
        return PurePosixPath(self.path) < PurePosixPath(other.path)

    def below(self) -> Iterator[RemotePath]:
        """Yield all files and folders in a folder and below, from one list of the store, in order of their names."""
        with asking(self):
            self.fs.invalidate_cache(self.path)
            found = self.fs.find(self.path, withdirs=True, detail=True)
        own = PurePosixPath(self.path)
        for place, info in sorted(found.items()):
            if PurePosixPath(place) != own and not place.endswith("/"):  # an empty object that stands for a folder
                yield self._known(place, info)

    def iterdir(self) -> Iterator[RemotePath]:
        """Yield what lies in a folder."""
        with asking(self):
            self.fs.invalidate_cache(self.path)
            found = self.fs.ls(self.path, detail=True)
        own = PurePosixPath(self.path)
        for info in sorted(found, key=lambda info: str(info["name"])):
            if PurePosixPath(info["name"]) != own:
                yield self._known(info["name"].rstrip("/"), info)

    def glob(self, pattern: str, **options: Any) -> Iterator[RemotePath]:
        with asking(self):
            self.fs.invalidate_cache(self.path)
            found = list(super().glob(pattern, **options))
        yield from found

    def rglob(self, pattern: str, **options: Any) -> Iterator[RemotePath]:
        """Yield what lies below and has a name of a pattern."""
        yield from (path for path in self.below() if fnmatchcase(path.name, pattern))

    def open(self, mode: str = "r", buffering: int = -1, **options: Any) -> IO[Any]:  # type: ignore[override]
        """Open a file. To read bytes: a seekable stream, whose errors are errors of derivlang; unbuffered for 0."""
        if mode != "rb":
            with asking(self):
                return super().open(mode, **options)
        with asking(self):
            self.fs.invalidate_cache(self.path)
            # No cache of fsspec's: RemoteFile keeps what it has read ahead. s3fs asks for the ETag that it has found
            # now, so an object that is replaced meanwhile is not read on.
            stream = self.fs.open(self.path, "rb", cache_type="none")
            if getattr(stream, "details", {}).get("type") == "directory":
                raise IsADirectoryError(21, "this is a folder", str(self))
        raw = RemoteFile(str(self), stream)
        return cast(IO[Any], raw if buffering == 0 else io.BufferedReader(raw))

    def read_bytes(self) -> bytes:
        with self.open("rb", 0) as file:
            content: bytes = file.read()
            return content

    def read_text(self, encoding: str | None = None, errors: str | None = None, newline: str | None = None) -> str:
        with self.open("rb") as file, io.TextIOWrapper(file, encoding or "utf-8", errors, newline) as text:
            return text.read()

    def _known(self, place: str, info: Mapping[str, Any]) -> RemotePath:
        found = self.joinpath(*PurePosixPath(place).relative_to(PurePosixPath(self.path)).parts)
        found._kind, found._size = info["type"], int(info.get("size") or 0)
        return found

    def __reduce__(self) -> tuple[Any, ...]:
        known = {name: getattr(self, name) for name in RemotePath.__slots__ if hasattr(self, name)}
        return _unpickled, (self.__wrapped__, known)

    def _type(self) -> str | None:
        """Return `file` or `directory`, or None if there is nothing."""
        if not hasattr(self, "_kind"):
            if (info := self._info()) is None:
                return None
            self._kind, self._size = info["type"], int(info.get("size") or 0)
        return self._kind

    def _info(self) -> Mapping[str, Any] | None:
        """Return what the store says of an object or folder, None if there is none."""
        try:
            with asking(self):
                self.fs.invalidate_cache(self.path)
                info: Mapping[str, Any] = self.fs.info(self.path)
                return info
        except (FileNotFoundError, NotADirectoryError):
            return None


def _unpickled(wrapped: Any, known: Mapping[str, Any]) -> RemotePath:
    path = RemotePath._from_upath(wrapped)
    for name, value in known.items():
        setattr(path, name, value)
    return path


class RemoteFile(io.RawIOBase):
    """A file of a store as a stream of bytes that reads ahead: further with each request, from _LEAST to _MOST."""

    def __init__(self, where: str, stream: Any):
        self._where, self._stream = where, stream
        size = getattr(stream, "size", None)
        self._size: int | None = size if size is not None else _length(stream)
        self._at = 0  # the next byte to read
        self._held, self._begin = b"", 0  # bytes that were read, and the place of the first
        self._ahead = _LEAST

    def readable(self) -> bool:
        return True

    def seekable(self) -> bool:
        return self._size is not None

    def tell(self) -> int:
        return self._at

    def seek(self, offset: int, whence: int = io.SEEK_SET) -> int:
        """Move; nothing is read. UnsupportedOperation for a stream of a length that is not known."""
        if self._size is None:
            raise io.UnsupportedOperation("seek")
        self._at = max(0, offset + {io.SEEK_SET: 0, io.SEEK_CUR: self._at, io.SEEK_END: self._size}[whence])
        return self._at

    def readinto(self, buffer: Any) -> int:
        """Fill a buffer, at least with one byte before the end. DataError if the store fails, or the file changed."""
        if not self._begin <= self._at < self._begin + len(self._held):
            self._fetch(len(buffer))
        start = self._at - self._begin
        data = memoryview(self._held)[start : start + len(buffer)]
        buffer[: len(data)] = data
        self._at += len(data)
        bytes_read(len(data))
        return len(data)

    def _fetch(self, wanted: int) -> None:
        follows = self._at == self._begin + len(self._held)
        self._ahead = min(_MOST, self._ahead * 2) if follows and self._held else _LEAST
        n_bytes = max(wanted, self._ahead)
        with asking(self._where):
            if self._size is not None:
                n_bytes = max(0, min(n_bytes, self._size - self._at))
                self._stream.seek(self._at)
            held = self._stream.read(n_bytes) if n_bytes else b""
        if self._size is not None and len(held) < n_bytes:  # a store without conditional reads: it was cut off
            raise fault(EOFError(f"the file ends after {self._at + len(held):,} bytes of {self._size:,}"), self._where)
        self._held, self._begin = held, self._at

    def close(self) -> None:
        if not self.closed:
            self._held = b""
            self._stream.close()
        super().close()


def _length(stream: Any) -> int | None:
    """Return the length of a stream, None if it cannot be seeked."""
    if not stream.seekable():
        return None
    length = int(stream.seek(0, io.SEEK_END))
    stream.seek(0)
    return length


def _identity(info: Mapping[str, Any]) -> int:
    """Return 62 bits of what distinguishes contents, 0 if the store says nothing."""
    told = next((f"{name}={info[name]}" for name in _IDENTITIES if info.get(name)), "")
    return int.from_bytes(sha256(told.encode()).digest()[:8]) >> 2 if told else 0
