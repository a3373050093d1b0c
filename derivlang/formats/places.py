"""Where files lie: a path of this machine, or a URL of a store, both with the methods of `pathlib.Path`.

    located("a/b.txt")            ->  Path("a/b.txt")
    located("file:///a/b.txt")    ->  Path("/a/b.txt")
    located("s3://bucket/a.txt")  ->  RemotePath("s3://bucket/a.txt")

A text may also be a name: `syn:fr` names a grammar, `syn:my/fr.grammar.tsv` is a file (`is_path`).
Help pages load this module, and local paths need nothing else: the packages of stores are imported with the first URL.
"""

from __future__ import annotations

import os
from collections.abc import Callable, Iterable, Iterator
from functools import lru_cache, wraps
from pathlib import Path, PurePath
from stat import S_ISREG
from typing import TYPE_CHECKING, Any, Literal, TypeAlias, TypeVar, cast

from derivlang.core.errors import UsageError
from derivlang.core.names import check_no_secrets, is_url, protocol_of
from derivlang.core.takes import Takes

# The extra with the packages of a protocol; `urls` has what every protocol needs.
_EXTRAS = {"s3": "s3", "s3a": "s3", "gs": "gcs", "gcs": "gcs"}


PathLike: TypeAlias = str | os.PathLike[str]  # a text, a path, or a set, a run or a study in a folder
OptionalPath: TypeAlias = Takes[Path | None, PathLike | None]
if TYPE_CHECKING:  # of a field without a default, a type checker sees no descriptor
    RequiredPath: TypeAlias = PathLike
else:
    RequiredPath = Takes[Path, PathLike]
Paths: TypeAlias = Takes[tuple[Path, ...], PathLike | Iterable[PathLike]]
STDOUT = Path("-")


def located(place: PathLike) -> Path:
    """Return the place that a user named: a `Path`, or an object with the methods of one for a URL.

    Raise UsageError for a URL that holds credentials, that is not whole, of a protocol that is not known, or whose
    packages are missing.
    """
    if not isinstance(place, str):
        return cast(Path, place) if hasattr(place, "exists") else located(os.fspath(place))
    if not is_url(place):
        return Path(place)
    check_no_secrets(place)
    protocol = protocol_of(place)
    if protocol in ("file", "local"):
        return _local(place)
    _check_packages(protocol)
    _check_parts(place, protocol)
    from derivlang.formats.remote import RemotePath  # imported late: it loads the packages of stores

    return RemotePath.of(place)


def is_remote(place: Any) -> bool:
    """Return whether a place lies in a store, and not on this machine. place: what `located` returns."""
    return not isinstance(place, str | PurePath)


def check_local(place: Path, what: str) -> None:
    """Raise UsageError for a place in a store. what: a noun in the plural for what must lie on this machine."""
    if is_remote(place):
        raise UsageError(
            f"{what} are read and written only on this machine",
            where=str(place),
            fix="copy it between this machine and the store, with the store's own tools",
            id="not-local",
        )


def size_of(file: Path) -> int:
    """Return the bytes of a file; in a store, those that it had when the store was last asked. OSError if missing."""
    size: int = file.stat().st_size if isinstance(file, Path) else file.size
    return size


def below(folder: Path) -> Iterator[Path]:
    """Yield the files and folders of a store in a folder and below, from one list of the store."""
    yield from cast(Any, folder).below()


def _local(url: str) -> Path:
    """Return the path of a `file://` URL. UsageError for another machine's."""
    from urllib.parse import unquote, urlsplit  # imported late: help pages do not need it

    parts = urlsplit(url)
    if parts.netloc not in ("", "localhost"):
        fix = f"write file:///{parts.netloc}{parts.path} for a path of this machine"
        raise UsageError("the URL names a file of another machine", where=url, fix=fix, id="unknown-protocol")
    return Path(unquote(parts.path))


def _check_parts(url: str, protocol: str) -> None:
    """Raise UsageError for a URL without a bucket or host, or with `::` before what is not a URL."""
    *_, last = parts = url.split("::")
    if len(parts) > 1 and not is_url(last):
        what, fix = (
            f"`::` joins two URLs, and {last!r} is not one",
            "give the file another name, or a whole URL behind ::",
        )
    elif protocol != "memory" and not last.partition("://")[2].strip("/"):
        what, fix = "the URL names no bucket or host", f"write {protocol}://NAME/…"
    else:
        return
    raise UsageError(what, where=url, fix=fix, id="bad-value")


def _check_packages(protocol: str) -> None:
    """Raise UsageError if nothing reads a protocol, or if packages are missing that read it."""
    from derivlang.core.dependencies import require  # imported late: help pages do not need it

    what, extra = f"{protocol}://", _EXTRAS.get(protocol, "urls")
    own = {"s3": ("s3fs",), "gcs": ("gcsfs",)}.get(extra, ())
    require(extra, ("upath", "fsspec", *own), what=what)
    from fsspec.registry import get_filesystem_class, known_implementations

    try:
        get_filesystem_class(protocol)
    except ValueError:
        known = [name for name in ("s3", "gs", "az", "hf", "https", "file") if name in known_implementations]
        raise UsageError(
            f"there is no protocol {protocol!r}",
            where=what,
            fix=f"use one that fsspec knows, such as {', '.join(known)}",
            id="unknown-protocol",
        ) from None
    except ImportError:
        package = known_implementations[protocol]["class"].partition(".")[0]
        if package == "fsspec":  # of its own protocols, those that need another package say so
            told = known_implementations[protocol].get("err", "no more")
            what, fix = f"{what} needs a package that is not installed", f"fsspec says: {told}"
            raise UsageError(what, fix=fix, id="missing-package") from None
        raise UsageError(f"{what} needs {package}", fix=f"pip install {package}", id="missing-package") from None


Read = TypeVar("Read")


def is_path(text: str | Path, kind: Literal["file", "folder"]) -> bool:
    """Return whether a text that may also be a name is the path of something that exists.

    A "file" is anything there that is not a folder, so pipes and devices count. A text that no path can be (too long,
    or with a NUL character) is a name. A text with no such path may still be meant as one: what its reader does not
    know as a name, and a path's separator or suffix gives away, is reported as a missing file.
    """
    path = Path(text)
    try:
        return path.is_dir() if kind == "folder" else path.exists() and not path.is_dir()
    except (OSError, ValueError):
        return False


def stamp_of(path: str | Path) -> tuple[int, int]:
    """Return two numbers that change with the content of a file, (0, 0) if it cannot be looked up.

    Reading a pipe changes its times, and it can be read once: a pipe has the numbers of its device.
    """
    try:
        stat = Path(path).stat()
    except (OSError, ValueError):
        return 0, 0
    return (stat.st_mtime_ns, stat.st_size) if S_ISREG(stat.st_mode) else (stat.st_dev, stat.st_ino)


def once_per_version(read: Callable[[Path], Read]) -> Callable[[str], Read]:
    """Return a reader that reads a file once per process and version of the file; it keeps the last few."""

    @lru_cache(maxsize=16)
    def cached(file: str, *stamp: int) -> Read:
        return read(Path(file))

    return wraps(read)(lambda file: cached(str(file), *stamp_of(file)))
