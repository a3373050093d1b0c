"""What a command makes in one go: is it there already, and may it be used?

    found  ->  lock  ->  found again  ->  written whole (replace_folder)  ->  recorded

    nothing there                         it is made
    the same, and whole                   it is kept
    the same, but a file is missing       it is made again, with a warning
    another one, or a damaged one         a StoreError names the first difference; with `force` it is replaced

The same: its record has what is wanted (`record.check_same`). Whole: all files of the recipe are there. Files with a
recipe beside them (`FILE.recipe.json`: dictionaries, pairs, grammars) are compared by the same rule, and so are sets,
runs and studies, which live longer lives (records, checkpoints). Data of runs is not compared: it has the name of what
it is made of (`made_of.py`).
"""

from __future__ import annotations

from collections.abc import Callable, Collection, Iterable, Iterator, Mapping
from contextlib import AbstractContextManager
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

from derivlang.core.errors import StoreError
from derivlang.core.messages import warn
from derivlang.core.seal import sealed
from derivlang.store.disk import file_lock, is_begun
from derivlang.store.files import is_stream
from derivlang.store.folders import is_free, replace_folder
from derivlang.store.record import check_same, file_hash, read_record, record_text

FILES = "files"  # field of a record: name of a file -> its hash
RECIPE = ".recipe.json"  # what the record beside a file adds to the name of the file


@dataclass(frozen=True, slots=True, kw_only=True)
class ArtifactKind:
    """A kind of folder, such as tokenizers.

    noun: for messages. record: the file in its folder that holds its recipe. names: patterns of the files that it owns
    (`folders.py`). read: returns the record of the existing artifact, or raises StoreError. files: the other files of a
    whole folder, by its record. check: raises StoreError for files that do not match the record. words: fields of the
    record that mean nothing to a reader, such as hashes -> what is wrong if they differ. hashed: whether the record
    gets the hashes of the files and of itself (`with_hashes`). shared: whether other commands add files to its folder,
    which stay there without a warning. fix: what to do with another one that is there. id: of that error.
    """

    noun: str
    record: str
    read: Callable[[Path], Mapping[str, Any]]
    names: tuple[str, ...] = ()
    files: Callable[[Mapping[str, Any]], Iterable[str]] = lambda record: ()
    check: Callable[[Path], object] = lambda path: None
    words: Mapping[str, str] = field(default_factory=dict)
    hashed: bool = False
    shared: bool = False
    fix: str = "give another folder, or --force"
    id: str = "output"

    def check_free(self, path: Path) -> None:
        """Raise StoreError if something is there that is not an artifact of this kind."""
        free = is_free(path)  # first: it removes what a killed process was writing
        if not free and not (path / self.record).exists():
            what = f"holds something else, and no {self.noun}"
            raise StoreError(what, where=str(path), fix="give another folder", id="output")

    def missing(self, path: Path, record: Mapping[str, Any]) -> Iterator[Path]:
        """Yield the files that are missing from the artifact of a record."""
        yield from (path / name for name in self.files(record) if not (path / name).is_file())

    def found(
        self, path: Path, wanted: Mapping[str, Any], *, force: bool = False, warn: Callable[[str], None] = warn
    ) -> dict[str, Any] | None:
        """Return the record of the same artifact if it is there and whole; None if it has to be made.

        wanted: what the record of the same one has. force: whether what is there is replaced, the same or another one.
        Raise StoreError if another one is there, a damaged one or something else.
        """
        self.check_free(path)
        if force or not (path / self.record).exists():
            return None
        try:
            record, what = self.read(path), f"holds another {self.noun}"
            check_same(record, wanted, what, where=str(path), fix=self.fix, id=self.id, words=self.words)
            for file in self.missing(path, record):
                warn(f"{file} is missing; the {self.noun} is made again")
                return None
            if self.hashed:
                check_hashes(path, record)
            self.check(path)
        except StoreError as error:  # it says what to do with it, unless it knows better
            raise StoreError(error.what, where=error.where, fix=error.fix or self.fix, id=error.id) from error
        return dict(record)

    def make(
        self,
        path: Path,
        wanted: Mapping[str, Any],
        write: Callable[[Path], Mapping[str, Any] | None],
        kept: Callable[[Path], None] = lambda path: None,
        lock: Callable[[Path], AbstractContextManager[None]] = file_lock,
        *,
        force: bool = False,
    ) -> dict[str, Any]:
        """Make a folder unless it is there, in one process at a time, and return its record.

        wanted, force: as of `found`. write: fills an empty folder and returns the record, which is written last; None
        if the folder is its own record. kept: called with the folder if the artifact is there already. lock: holds the
        folder for one process; the usual one waits for any other. Raise StoreError as `found`; nothing is changed then.
        """
        # Another process may be at work in the folder: its result is looked at once it has ended.
        record = None if is_begun(path) else self.found(path, wanted, force=force, warn=lambda message: None)
        if record is not None:
            kept(path)
            return record
        with lock(path):
            record = self.found(path, wanted, force=force)
            if record is not None:  # another process has just made it
                kept(path)
                return record
            made: dict[str, Any] = {}

            def fill(folder: Path) -> None:
                told = write(folder)
                if told is not None and self.hashed:
                    told = with_hashes(told, {name: folder / name for name in self.files(told)})
                if told is not None:
                    (folder / self.record).write_text(record_text(told), "utf-8", newline="\n")
                made.update(wanted if told is None else told)

            others = (lambda message: None) if self.shared else warn
            replace_folder(path, fill, self.names, record=self.record, what=self.noun, warn=others)
            return made


def with_hashes(record: Mapping[str, Any], files: Mapping[str, Path]) -> dict[str, Any]:
    """Return a record with the hashes of files and of itself: {…, "files": {"en.tsv": "3f…"}, "sha256": "9c…"}."""
    return sealed({**record, FILES: {name: file_hash(path) for name, path in files.items()}})


def check_hashes(
    folder: Path, record: Mapping[str, Any], *, names: Collection[str] | None = None, fix: str | None = None
) -> None:
    """Raise StoreError for the first file of a folder that does not match its record.

    names: the files to check; None for all that are listed. fix: of the error.
    """
    listed: Mapping[str, str] = record[FILES]
    for name in listed if names is None else listed.keys() & names:
        if not (folder / name).is_file() or listed[name] != file_hash(folder / name):
            raise StoreError("was changed since it was made", where=str(folder / name), fix=fix, id="damaged")


def recipe_beside(file: Path, form: Mapping[str, Any], fix: str | None = None) -> dict[str, Any] | None:
    """Return the recipe beside a file, which has the hash of the file; None if there is none.

    form: of what else the recipe has (`check_record`). StoreError if it was damaged, or if the file is there and was
    changed. fix: of that error.
    """
    recipe = file.with_name(file.name + RECIPE)
    if not recipe.exists():
        return None
    again = f"remove it and {file.name}, and run again"
    record = read_record(recipe, "recipe", {FILES: dict, **form}, sealed=True, id="data", fix=again)
    if file.exists():
        check_hashes(file.parent, {FILES: {file.name: record[FILES].get(file.name)}}, fix=fix)
    return record


def check_replaceable(files: Iterable[Path], recipe: Path, wanted: Mapping[str, Any], *, noun: str) -> None:
    """Raise StoreError if files that a command writes are there, and their recipe beside them has other settings.

    recipe: of the files that are there. wanted: what the recipe of the new ones has, as far as the content depends on
    it. noun: for messages. Files of the same recipe may be written again: their content is the same.
    """
    there = next((path for path in files if path.exists() and not is_stream(path)), None)
    if there is None and not recipe.exists():
        return
    fix = "name another file, or --force"
    if there is not None and not recipe.exists():
        what = f"exists already, and no {recipe.name} says how it was made"
        raise StoreError(what, where=str(there), fix=fix, id="out-exists")
    recorded = read_record(recipe, "recipe", {"derivlang": str}, id="data", fix=fix)
    if there is not None:
        check_same(recorded, wanted, f"is another {noun}", where=str(there), fix=fix, id="out-exists")
