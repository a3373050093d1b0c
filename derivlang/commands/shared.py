"""What the functions share: results that are folders, and arguments that may be given in several ways."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass
from pathlib import Path
from typing import Any, TypeAlias

from derivlang.core.settings import given
from derivlang.formats.places import check_local, located
from derivlang.sources.request import SourceRequest

PathLike: TypeAlias = Path | str


@dataclass(frozen=True, init=False)
class InFolder:
    """Something in a folder. path: the folder, which may be given as a text, also as a URL."""

    path: Path

    def __init__(self, path: PathLike) -> None:
        object.__setattr__(self, "path", located(path))


def request_of(source: PathLike, options: Mapping[str, Any]) -> SourceRequest:
    """Return the source that the arguments of a function ask for."""
    return SourceRequest(str(source), **given(SourceRequest, options))


def path_of(one: InFolder | PathLike) -> Path:
    """Return the path of a set or a run, given as such or by its folder."""
    return one.path if isinstance(one, InFolder) else located(one)


def local(place: PathLike, what: str) -> Path:
    """Return a path of this machine. Raise UsageError for a URL. what: as of `check_local`."""
    path = located(place)
    check_local(path, what)
    return path
