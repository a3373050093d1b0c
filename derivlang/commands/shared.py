"""What the functions share: results that are folders, and arguments that may be given in several ways."""

from __future__ import annotations

import glob
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from derivlang.core.errors import DerivlangError
from derivlang.formats.places import PathLike, located


@dataclass(frozen=True, init=False, repr=False)
class InFolder:
    """Something in a folder. path: the folder, which may be given as a text, also as a URL.

    is_there: whether it was just made. Raise StoreError if it is not there.
    """

    path: Path

    def __init__(self, path: PathLike, *, is_there: bool = False) -> None:
        object.__setattr__(self, "path", located(path))
        if not is_there:
            self.facts()

    def facts(self) -> dict[str, Any]:
        """Return what `repr` shows beside the path."""
        raise NotImplementedError

    def __repr__(self) -> str:
        try:
            facts = self.facts()
        except DerivlangError:  # something was damaged since
            facts = {}
        shown = [repr(str(self.path)), *(f"{name}={value!r}" for name, value in facts.items())]
        return f"{type(self).__name__}({', '.join(shown)})"

    def __fspath__(self) -> str:
        return str(self.path)

    def __str__(self) -> str:
        return str(self.path)


def set_size(derived: Path, split: str | None = None) -> int | None:
    """Bytes of the shards of a derived set, or of a split of it; None if there are none."""
    try:
        return sum(path.stat().st_size for path in derived.glob(f"data/{glob.escape(split or '')}*.parquet")) or None
    except OSError:
        return None
