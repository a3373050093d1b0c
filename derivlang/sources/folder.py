"""The files of a folder that is a source: files of a known format that derivlang has not written itself."""

from __future__ import annotations

import os
import re
from collections.abc import Iterator, Sequence
from contextlib import suppress
from functools import cache
from pathlib import Path

from derivlang.core.errors import DataError
from derivlang.core.messages import counted, warn
from derivlang.core.names import split_of, usual_spelling
from derivlang.formats.base import candidates, format_names, suffixes
from derivlang.formats.opening import PACKED, suffix_of, unpacked_name
from derivlang.formats.places import below, is_remote

_BESIDE = re.compile(
    r"(licen[cs]e|copying|notice|readme|changes|changelog|citation|authors|contributing)([-._ ].*)?|stats\.xml",
    re.IGNORECASE,
)  # names of files that accompany data
OF_A_SET = ("derivlang.json", ".derivlang")  # the manifest, and what is kept of a set until it is finished
_RECORDS = ("run.json", "study.json", "report.json", "data.json", "derivlang-tokenizer.json")  # of whole folders
_RECORD = re.compile(rb'\{\s*"format": \d+,\s*"derivlang": "')  # how every record begins that derivlang writes


def files_below(folder: Path, *, of_any_suffix: bool = False) -> list[Path]:
    """Return the files of a known format in a folder and below, without hidden ones and what derivlang wrote there.

    of_any_suffix: also the files whose suffix no format has, since the user names their format.
    Raises DataError: no-files, saved-dataset (a folder that `datasets` saved), file-twice.
    """
    known = suffixes()
    found = list(_below(folder))
    _check_not_saved(found)
    written = _written(found, folder)
    files = sorted(
        file
        for file in found
        if (file.is_file() or not file.exists())  # a broken link is an error later, not a file less
        and (of_any_suffix or suffix_of(file) in known)
        and not any(name[0] == "." for name in file.relative_to(folder).parts)
        and not (written and any(path in written for path in (file, *file.parents)))
    )
    if not files:
        raise DataError(
            "the folder holds no file of a known format",
            where=str(folder),
            fix=f"{', '.join(known)}; or name the format of its files: --format {', '.join(format_names())}",
            id="no-files",
        )
    _check_twice(files, folder)
    return files


def of_one_format(files: list[Path], format: str | None) -> list[Path]:
    """Return the files of a folder without those that are not data, and warn of what is left out.

    format: as the user names it; then files whose suffix is of other formats are left out. Else files such as
    LICENSE.txt are, beside files of one format that is not running text.
    """
    of_suffix = {suffix_of(file): file for file in files}
    known = {suffix: {one.name for one in candidates(file)} for suffix, file in of_suffix.items()}
    data = [file for file in files if format == "text" or not _BESIDE.fullmatch(file.name)]
    kinds = [known[suffix_of(file)] for file in data]
    if format is not None:
        data = [file for file, names in zip(data, kinds, strict=True) if not names or format in names]
    elif len({*map(frozenset, known.values())}) < 2 or len({*map(frozenset, kinds)}) > 1 or {"text"} in kinds:
        return files
    if not data:
        return files
    if left := sorted({*files} - {*data}):
        name = format or " or ".join(sorted(kinds[0]))
        warn(f"left out, beside the {name} files: {', '.join(file.name for file in left)}; to read one, name it")
    return data


def _check_not_saved(found: list[Path]) -> None:
    """Raise DataError saved-dataset for a folder of `save_to_disk`, whose Arrow files are not read."""
    names = {(path.parent, path.name) for path in found}
    for folder, name in sorted(names):
        if name == "dataset_dict.json" or (name == "state.json" and (folder, "dataset_info.json") in names):
            raise DataError(
                "the folder was written by `save_to_disk` of datasets",
                where=str(folder),
                fix="load it with datasets.load_from_disk, and pass it to derivlang.map_dataset, or write it with "
                "to_parquet, a file for each split",
                id="saved-dataset",
            )


def _written(found: list[Path], folder: Path) -> set[Path]:
    """Return the folders of sets, tokenizers and runs, and dictionaries: each has a record that names derivlang.

    A record in `folder` itself, such as a report's, leaves the other files of the folder a source.
    """
    written = set()
    for path in found:
        if path.name in OF_A_SET:
            written.add(path.parent)
        elif path.suffix == ".json" and path.name[0] != "." and _RECORD.match(_head(path)):
            own = path.name.removesuffix(".recipe.json")  # d.tsv.recipe.json is the record of d.tsv
            written |= {path, path.with_name(own)}
            if path.name in _RECORDS and path.parent != folder:
                written.add(path.parent)
    return written


def _head(path: Path) -> bytes:
    """Return the first bytes of a file, none if it cannot be read, which is an error when the file is wanted."""
    with suppress(OSError), path.open("rb") as file:
        return file.read(100)
    return b""


def _check_twice(files: list[Path], folder: Path) -> None:
    """Raise DataError file-twice for two files that seem to be one; warn of splits that are spelled in two ways.

    One file: a link and its target in one split, or names that differ in case or compression only.
    """
    known: dict[tuple[str, ...], str] = {}
    real = cache(os.path.realpath)  # of each folder once
    spelled: list[tuple[str, str]] = []
    for file in files:
        name = relative(file, folder)
        plain_name = unpacked_name(file)
        plain = name if plain_name == file.name else relative(file.with_name(plain_name), folder)
        if is_remote(file):
            target = str(file)  # stores have no links
        else:
            target = os.path.realpath(file) if file.is_symlink() else f"{real(file.parent)}/{file.name}"
        for same in ((plain.lower(),), (target, split_of(name) or "train")):
            first = known.setdefault(same, name)
            if first != name:
                raise DataError(
                    f"{first} and {name} seem to be one file, which would be read twice",
                    where=str(folder),
                    fix="remove or rename one of them",
                    id="file-twice",
                )
        first = known.setdefault(("split", usual_spelling(plain).removesuffix(suffix_of(file))), name)
        if first != name:
            spelled.append((first, name))
    if spelled:
        first, name = spelled[0]
        more = f"; there are {counted(len(spelled), 'such pair')}" if len(spelled) > 1 else ""
        warn(f"{first} and {name} are both read, as {split_of(name) or 'train'}{more}")


def _below(folder: Path) -> Iterator[Path]:
    """Yield what lies in a folder and below, linked folders included, but each folder once."""
    if is_remote(folder):
        yield from below(folder)
        return
    seen = set()
    for place, folders, files in os.walk(folder, followlinks=True):
        real = os.path.realpath(place)
        if real in seen:
            folders.clear()
            continue
        seen.add(real)
        folders.sort()
        yield from (Path(place, name) for name in (*folders, *files))


def relative(file: Path, root: Path) -> str:
    """Return the name of a file in the folder, or of a file that is the source itself, for the manifest."""
    return _printable(file.name if file == root else str(file.relative_to(root)))


def name_of_path(path: Path) -> str:
    """Return the name of the corpus of a file or folder."""
    return _printable(path.name if path.name not in ("", "..") else path.resolve().name)


def _printable(name: str) -> str:
    """Return a file name for the manifest: bytes that are not UTF-8 become `\\xff`."""
    return os.fsencode(name).decode("utf-8", "backslashreplace")


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
