"""What a command makes in one go: is it there already, and may it be used?

    found  ->  lock  ->  found again  ->  written whole (replace_folder)  ->  recorded

    nothing there                         it is made
    the same, and whole                   it is kept
    the same, but a file is missing       it is made again, with a warning
    another one, or a damaged one         a StoreError names the first difference; with `force` it is replaced

The same: its record has what is wanted (`record.check_same`). Whole: all files of the recipe are there. A file with its
record beside it (a grammar) is found in the same way; its command writes both at once. Sets, runs and studies live
longer lives (records, checkpoints); they compare by the same rule. Data of runs is not compared: it has the name of
what it is made of (`made_of.py`).
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
    """A kind of artifact, such as tokenizers: a folder, or a file with its record beside it.

    noun: for messages. record: the file in its folder that holds its recipe; of a file, what its record adds to its
    name (`.recipe.json`). is_file: whether it is a file. names: patterns of the files that a folder owns
    (`folders.py`). read: returns the record of the existing artifact, or raises StoreError. files: the other files of a
    whole folder, by its record. check: raises StoreError for files that do not match the record. words: fields of the
    record that mean nothing to a reader, such as hashes -> what is wrong if they differ. hashed: whether the record of
    a folder gets the hashes of the files and of itself (`with_hashes`). shared: whether other commands add files to its
    folder, which stay there without a warning. fix: what to do with another one that is there. id: of that error.
    """

    noun: str
    record: str
    read: Callable[[Path], Mapping[str, Any]]
    is_file: bool = False
    names: tuple[str, ...] = ()
    files: Callable[[Mapping[str, Any]], Iterable[str]] = lambda record: ()
    check: Callable[[Path], object] = lambda path: None
    words: Mapping[str, str] = field(default_factory=dict)
    hashed: bool = False
    shared: bool = False
    fix: str = "give another folder, or --force"
    id: str = "output"

    def record_of(self, path: Path) -> Path:
        """Return the place of the record: DIR/record of a folder, FILE.recipe.json of a file."""
        return path.with_name(path.name + self.record) if self.is_file else path / self.record

    def check_free(self, path: Path) -> None:
        """Raise StoreError if something is there that is not an artifact of this kind."""
        record = self.record_of(path)
        if self.is_file:
            if path.exists() and not record.exists():
                raise _of_unknown_origin(path, record, self.fix)
            return
        free = is_free(path)  # first: it removes what a killed process was writing
        if not free and not record.exists():
            what = f"holds something else, and no {self.noun}"
            raise StoreError(what, where=str(path), fix="give another folder", id="output")

    def missing(self, path: Path, record: Mapping[str, Any]) -> Iterator[Path]:
        """Yield the files that are missing from the artifact of a record."""
        files = [path] if self.is_file else [path / name for name in self.files(record)]
        yield from (file for file in files if not file.is_file())

    def found(
        self, path: Path, wanted: Mapping[str, Any], *, force: bool = False, warn: Callable[[str], None] = warn
    ) -> dict[str, Any] | None:
        """Return the record of the same artifact if it is there and whole; None if it has to be made.

        wanted: what the record of the same one has. force: whether what is there is replaced, the same or another one.
        Raise StoreError if another one is there, a damaged one or something else.
        """
        if not (force and self.is_file):  # a file may be replaced, a folder of something else may not
            self.check_free(path)
        if force or not self.record_of(path).exists():
            return None
        what = f"{'is' if self.is_file else 'holds'} another {self.noun}"
        try:
            record = self.read(path)
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


def kind_of_files(noun: str, *, fix: str, id: str, form: Mapping[str, Any] = {}) -> ArtifactKind:
    """Return a kind of files whose record beside them has their hashes: {"files": {"en.tsv": "3f…"}, …}.

    noun, fix, id: as of `ArtifactKind`. form: of what else the record has (`check_record`).
    """

    def read(file: Path) -> dict[str, Any]:
        again = f"remove it and {file.name}, and run again"
        return read_record(
            file.with_name(file.name + RECIPE), "recipe", {FILES: dict, **form}, sealed=True, id="data", fix=again
        )

    def check_content(file: Path) -> None:
        check_hashes(file.parent, {FILES: {file.name: read(file)[FILES].get(file.name)}})

    return ArtifactKind(noun=noun, record=RECIPE, is_file=True, read=read, check=check_content, fix=fix, id=id)


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
        raise _of_unknown_origin(there, recipe, fix)
    recorded = read_record(recipe, "recipe", {"derivlang": str}, id="data", fix=fix)
    if there is not None:
        check_same(recorded, wanted, f"is another {noun}", where=str(there), fix=fix, id="out-exists")


def _of_unknown_origin(file: Path, recipe: Path, fix: str) -> StoreError:
    what = f"exists already, and no {recipe.name} says how it was made"
    return StoreError(what, where=str(file), fix=fix, id="out-exists")
