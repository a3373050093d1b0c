"""The names of sets in labels and in names of files."""

from __future__ import annotations

import os
from hashlib import sha256
from pathlib import Path


def short_name(name: str) -> str:
    """Return the name of a set, without the folders of an absolute path, also where it follows TARGET=."""
    target, _, given = name.partition("=")
    target, given = ("", name) if "/" in target or not given else (f"{target}=", given)
    path = Path(os.path.normpath(given))
    return f"{target}{path.name}-{sha256(bytes(path)).hexdigest()[:8]}" if path.is_absolute() else name


def file_name_of(label: str) -> str:
    """Return a label without colons and slashes."""
    return "".join(c if c.isalnum() or c in "-_." else "-" for c in label)
