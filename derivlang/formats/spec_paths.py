"""The files on the disk that a spec names: files of a set or a run, and files to copy into one (core/spec.py)."""

from __future__ import annotations

import atexit
import os
import shutil
import tempfile
from functools import cache, partial
from pathlib import Path
from stat import S_ISREG

from derivlang.core.errors import UsageError
from derivlang.core.spec import FilePolicy, Named, Parameterised, parts_of
from derivlang.formats.places import is_remote

FOLDER = "files"  # of a set or a run: copies of the files that its spec names


def files_of(folder: Path) -> FilePolicy:
    """Return the policy for the spec of a set or a run: a file is read from its folder `files/`, by its name.

    The file may be missing, since a lexicon may hold what was read from it: then reading it fails. The policy raises
    UsageError for a link, a pipe or a device, and for a path without a name.
    """
    return partial(_inside, folder / FOLDER)


def _inside(folder: Path, path: str, named: Named) -> str:
    folder = _copy_of(folder) if is_remote(folder) else folder
    name = Path(path.replace("\\", "/")).name
    if name in ("", "..") or "\0" in name:
        raise UsageError(f"{path!r} names no file", id="spec-file")
    if folder.is_symlink():
        raise UsageError(f"{folder} is a link, so it is not read", id="spec-file")
    for candidate in named.paths(str(folder / name)):
        try:
            is_regular = S_ISREG(os.lstat(candidate).st_mode)
        except (OSError, ValueError):  # it is missing, or its name is too long: its reader raises a better error
            continue
        if not is_regular:
            raise UsageError(f"{candidate} is a link or no regular file, so it is not read", id="spec-file")
    return str(folder / name)


def _copy_of(folder: Path) -> Path:
    """Return a local copy of such a folder in a store, whose readers open files by their names. It ends with Python.

    The files are small: grammars and tables. A folder that has changed is copied anew.
    """
    files = [file for file in folder.iterdir() if file.is_file()] if folder.is_dir() else []
    return _copied(str(folder), tuple((file.name, file.stat().st_ino, file) for file in files))


@cache
def _copied(url: str, files: tuple[tuple[str, int, Path], ...]) -> Path:
    copy = Path(tempfile.mkdtemp(prefix="derivlang-files-"))
    atexit.register(shutil.rmtree, copy, ignore_errors=True)
    for name, _, file in files:
        (copy / name).write_bytes(file.read_bytes())
    return copy


def named_files(part: Parameterised) -> list[Path]:
    """Return the regular files that the parameters of a transform or an objective name, by the paths to read."""
    paths = []
    for field in part.spec_fields():
        if named := field.metadata["file"]:
            known = set(named.names())
            parts = parts_of(getattr(part, field.name), named)
            paths += [Path(path) for text, _ in parts if text and text not in known for path in named.paths(text)]
    return [path for path in paths if path.is_file()]
