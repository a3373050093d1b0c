"""Undo into a folder: a file for each split, named after it, in the format of the source.

undo(SET of train and test, None, "back")   ->   back/train.conllu, back/test.conllu
"""

from __future__ import annotations

from glob import escape
from pathlib import Path
from typing import Any

from derivlang.core.errors import StoreError
from derivlang.formats.base import NO_FILES, find_format, suffixes
from derivlang.formats.opening import suffix_of
from derivlang.store.export import undo
from derivlang.store.folders import replace_folder
from derivlang.store.manifest import Derived


def undo_to(folder: Path, split: str | None, out: Path, *, force: bool = False) -> list[dict[str, Any]]:
    """Write the source of a split to a file, or of each split to a file of a folder. Returns what `undo` does.

    out: a folder if it is one already, or if the set has several splits and the name has no suffix of a format; it is
    made if needed. force: replace files that hold something else. split: None for all in a folder, for the only one in
    a file. Raises StoreError as `undo`, and output for a file that is in the way; nothing is written then.
    """
    derived = Derived(folder)
    several = split is None and len(derived.splits) > 1
    if str(out) == "-" or not (out.is_dir() or (several and out.suffix.lower() not in suffixes())):
        return [undo(folder, split, out, force=force)]
    splits = derived.splits if split is None else [derived.choose_split(split)]
    files = {name: f"{name}{_suffix(derived)}" for name in splits}
    results: list[dict[str, Any]] = []

    def write(fresh: Path) -> None:
        for name, file in files.items():
            if Path(file).name != file:
                raise StoreError(f"the split {name!r} is not the name of a file", where=str(folder), id="damaged")
            results.append({**undo(folder, name, fresh / file), "out": str(out / file)})

    replace_folder(out, write, map(escape, files.values()) if force else (), what="source")
    return results


def _suffix(derived: Derived) -> str:
    """Return the suffix of a source's files, without a suffix of compression; JSON lines if its format has none."""
    source = derived.manifest["source"]
    name = "text" if derived.schema.running else source["format"]
    own = () if name in NO_FILES else find_format(name).suffixes
    of_files = (suffix_of(Path(str(file.get("name", "")))) for file in source["files"] if isinstance(file, dict))
    return next((suffix for suffix in of_files if suffix in own), own[0] if own else ".jsonl")
