"""Where files lie: a path of this machine, or a URL of a store, both with the methods of `pathlib.Path`.

    located("a/b.txt")            ->  Path("a/b.txt")
    located("file:///a/b.txt")    ->  Path("/a/b.txt")
    located("s3://bucket/a.txt")  ->  RemotePath("s3://bucket/a.txt")

Help pages load this module, and local paths need nothing else: the packages of stores are imported with the first URL.
"""

from __future__ import annotations

import os
from collections.abc import Iterable, Iterator
from pathlib import Path, PurePath
from typing import TYPE_CHECKING, Any, TypeAlias, cast

from derivlang.core.errors import UsageError
from derivlang.core.takes import Takes
from derivlang.core.urls import check_no_secrets, is_url, protocol_of

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
    from derivlang.core.extras import require  # imported late: help pages do not need it

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
