"""The files that the patterns of a named source match."""

from __future__ import annotations

import os
from collections.abc import Sequence
from pathlib import Path

from derivlang.formats.opening import PACKED


def matching(folder: Path, patterns: Sequence[str]) -> list[Path]:
    """Return the files of the first pattern that has some below the folder, or in it if the pattern names it, too.

    data: text/wikitext-2/wiki.test.tokens     data/text: the same     data/text/wikitext-2: the same
    """
    if matches := _first_matches(folder, patterns):
        return matches
    here = Path(os.path.abspath(folder))  # noqa: PTH100 (a link keeps its name, which the pattern may have)
    deepest = max(pattern.count("/") for pattern in patterns)
    for above in here.parents[:deepest]:
        if matches := [path for path in _first_matches(above, patterns) if path.is_relative_to(here)]:
            return matches
    return []


def _first_matches(folder: Path, patterns: Sequence[str]) -> list[Path]:
    """Return the files that match the first pattern that any file does, plain before gz and zst. `*` may be in it."""
    for pattern in patterns:
        if matches := [path for suffix in ("", *PACKED) for path in sorted(folder.glob(pattern + suffix))]:
            return matches
    return []
