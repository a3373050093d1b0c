"""A set that is made in a local folder: in a stage, `.derivlang/`, which replaces the older set when it is complete."""

from __future__ import annotations

import os
import shutil
from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from contextlib import contextmanager, suppress
from pathlib import Path
from typing import Any

from derivlang.core.errors import StoreError
from derivlang.formats.spec_paths import FOLDER as SPEC_FILES
from derivlang.store.disk import LOCK, disk, held
from derivlang.store.folder_store import FolderStore
from derivlang.store.listing import file_hash
from derivlang.store.making import (
    BEGUN,
    DATA,
    DRAFT,
    FILES,
    SHARD,
    Making,
    Target,
    Warn,
    begun_plan,
    of_draft,
    read_plan,
    stage_of,
)
from derivlang.store.manifest import NAME, read_manifest, shards_of
from derivlang.store.task_record import STAGE

_FRESH = "fresh"  # folder of texts that are about to be put into their place


class FolderMaking(Making):
    """The run of one plan into a local folder."""

    def __init__(
        self,
        folder: Path,
        plan: str,
        asked: Mapping[str, Any],
        kept: Mapping[str, bytes] = {},
        begun: Mapping[str, Any] = {},
    ):
        super().__init__(folder, FolderStore(folder), plan, asked, kept, begun)
        self.folder, self.stage, self.own = folder, folder / STAGE, folder / stage_of(plan)

    @property
    def target(self) -> Target:
        return Target(self.store, self.plan, stage_of(self.plan))

    def is_begun(self) -> bool:
        return self.stage.exists() or (self.folder / LOCK).exists()

    @contextmanager
    def held(self, spec: str, warn: Warn) -> Iterator[None]:
        try:
            self.check_place()
        except StoreError:
            # If another run is at work, it may have changed the folder in between: `open` looks at its result.
            if not self.is_begun():
                self.check_place()  # or it has just ended
        with held(self.folder, self.plan, spec, warn, what="a set in this folder", lock=self.folder / LOCK):
            yield

    def open(
        self, tasks: Iterable[str], *, force: bool = False, warn: Warn = lambda message: None
    ) -> dict[str, Any] | None:
        manifest = self.finished(force=force, warn=warn)
        if manifest is not None:
            self.sweep()
            return manifest
        self.check_draft(force=force)
        if self.stage.exists():
            self._take_up(tasks, force)
        try:
            with disk(self.folder):
                self.own.mkdir(parents=True, exist_ok=True)
            begun = begun_plan(self.store)
            if begun.get("plan") == self.plan:
                self._take(begun)
            else:
                self._replaces = self.older_files()
                self.begin()
        except StoreError:
            self.give_up()
            raise
        return None

    def sweep(self) -> None:
        begun = read_plan(self.store)
        if self.stage.is_dir() and (begun is None or begun.get("plan") == self.plan):
            with suppress(OSError):
                self._clear()

    def _clear(self) -> None:
        """Remove the stage, but for a draft."""
        stays = of_draft(self.store)
        for entry in _entries(self.stage):
            if f"{STAGE}/{entry.name}" in stays:
                continue
            if entry.is_dir() and not entry.is_symlink():
                shutil.rmtree(entry)
            else:
                entry.unlink(missing_ok=True)
        if not stays:
            self.stage.rmdir()

    def check_current(self, tasks: Iterable[str]) -> None:
        return  # it is held

    def retract(self, tasks: Iterable[str]) -> None:
        shutil.rmtree(self.own, ignore_errors=True)
        with suppress(OSError):  # it may be another plan's
            self.stage.rmdir()

    def _take_up(self, tasks: Iterable[str], force: bool) -> None:
        """Take the finished tasks of an earlier run of this plan. Those of another plan are refused, or removed."""
        begun = begun_plan(self.store)
        if begun.get("plan") in (None, self.plan):
            self.done = self.done_of(tasks)
            if self.done or begun:
                self._begun_before = True
                return
        elif not force and ("job" in begun or self._has_finished_tasks(begun["plan"])):
            # Nothing is lost by removing a stage without a finished task, unless ranks are about to begin.
            raise self.other(begun["asked"], BEGUN)
        with disk(self.stage):
            self._clear()

    def in_place(self) -> Callable[[Mapping[str, Any]], bool]:
        return lambda shard: _same(self.folder / shard["file"], shard)

    def shards(self) -> Callable[[Mapping[str, Any]], bool]:
        return lambda shard: self._place_of(shard) is not None

    def _place_of(self, shard: Mapping[str, Any], plan: str | None = None) -> Path | None:
        """Return where a shard is that has the bytes that were recorded: in the stage, or at its last place already."""
        staged = self.folder / stage_of(plan or self.plan) / Path(shard["file"]).name
        return next((path for path in (staged, self.folder / shard["file"]) if _same(path, shard)), None)

    def _has_finished_tasks(self, plan: str) -> bool:
        """Return whether some task of a plan is done that has rows."""
        target = Target(self.store, plan, stage_of(plan))
        paths = (self.folder / target.data).glob("*.record")
        shards = (record.entry["shard"] for path in paths if (record := target.record(path.stem)))
        return any(shard["rows"] and self._place_of(shard, plan) for shard in shards)

    def close(self, files: Mapping[str, str], shards: Sequence[Mapping[str, Any]]) -> None:
        self.check_place()  # what was put into the folder during the run
        new = {shard["file"]: self.own / Path(shard["file"]).name for shard in shards}
        for shard in shards:
            size = shard["bytes"]
            if not any(_size(path) == size for path in (new[shard["file"]], self.folder / shard["file"])):
                raise self.unfinished([Path(shard["file"]).stem])
        texts = {f"{SPEC_FILES}/{name}": content for name, content in self.kept.items()}
        texts |= {name: text.encode() for name, text in files.items()}
        for name, content in texts.items():
            self.store.put(f"{stage_of(self.plan)}/{_FRESH}/{name}", content)
        # The older set goes now, its manifest first. Until the new one is there the folder counts as unfinished, and a
        # run that is killed between these lines is continued: shards that were moved already are found where they are.
        moved = {name for name, staged in new.items() if not staged.exists()}
        gone = (FILES | self._replaces | self.older_files() | set(self._inside(DATA))) - moved
        for name in sorted(gone, key=lambda name: name != NAME):
            self.store.remove(name)
        with disk(self.folder):
            (self.folder / DATA).mkdir(exist_ok=True)
            for name, staged in new.items():
                if name not in moved:
                    staged.replace(self.folder / name)
            with suppress(OSError):  # of the older set; it may not be empty
                (self.folder / SPEC_FILES).rmdir()
        # False sorts before True: the manifest is last.
        for name in sorted(texts, key=lambda name: name == NAME):
            with disk(self.folder / name):
                (self.folder / name).parent.mkdir(exist_ok=True)
                (self.own / _FRESH / name).replace(self.folder / name)
        self.store.remove(DRAFT)
        shutil.rmtree(self.stage, ignore_errors=True)  # a rank that still runs a task removes what it adds (`retract`)

    def give_up(self) -> None:
        if not (self._begun_before or self._has_finished_tasks(self.plan)):
            with suppress(OSError):
                self._clear()

    def check_place(self, *, force: bool = False) -> None:
        folder = self.folder
        with disk(folder):
            if not folder.exists():
                above = next(parent for parent in folder.absolute().parents if parent.exists())
                if not above.is_dir():
                    raise StoreError(f"{above} is a file, not a folder", where=str(folder), id="output")
                return
        if not folder.is_dir():
            raise StoreError("this is a file, not a folder", where=str(folder), id="output")
        for path in (self.stage, self.own, self.own / SPEC_FILES, folder / DATA, folder / SPEC_FILES):
            if path.is_symlink():
                raise StoreError("this is a link, so nothing is written there", where=str(path), id="output")
        entries = _entries(folder)
        # Anything that derivlang would not have written here may be a user's file: the run stops before it writes or
        # removes.
        alien = [e.name for e in entries if not self._ours(e)]
        listed = self._listed()
        alien += [n for n in self._inside(DATA) if not (SHARD.fullmatch(n) if listed is None else n in listed)]
        if files := self._inside(SPEC_FILES):
            known = self._replaces | self.older_files()
            known |= {f"{SPEC_FILES}/{name}" for name in self.kept if self.stage.is_dir()}
            alien += [name for name in files if name not in known]
        # The stage first: a run that has just ended has replaced it by the set.
        known_set = self.stage.is_dir() or (folder / NAME).is_file()
        if alien or (entries and not (known_set or all(e.name == LOCK or _is_gone(e) for e in entries))):
            raise StoreError(
                f"the folder holds something else: {', '.join(alien or [e.name for e in entries])[:80]}",
                where=str(folder),
                fix="choose another folder with -o; nothing was written",
                id="output",
            )

    def _inside(self, name: str) -> list[str]:
        """Return the names of what is in a folder of the set."""
        inside = self.folder / name
        return [f"{name}/{entry.name}" for entry in _entries(inside)] if inside.is_dir() else []

    def _listed(self) -> set[str] | None:
        """Return the shards that the manifest lists, or None if there is no readable manifest."""
        if not (self.folder / NAME).is_file():
            return None
        with suppress(StoreError):
            return {shard["file"] for shard in shards_of(read_manifest(self.folder))}
        return None

    @staticmethod
    def _ours(entry: Path) -> bool:
        """Return whether an entry of the folder is of a run; True for one that another run has just removed."""
        if entry.is_file():
            return entry.name in (*FILES, LOCK)
        if entry.is_dir():
            return entry.name in (DATA, SPEC_FILES, STAGE)
        return _is_gone(entry)


def _entries(folder: Path) -> list[Path]:
    """Return what is in a folder, nothing if another run has just removed it."""
    with suppress(FileNotFoundError):
        return list(folder.iterdir())
    return []


def _is_gone(path: Path) -> bool:
    return not os.path.lexists(path)


def _same(path: Path, shard: Mapping[str, Any]) -> bool:
    """Return whether a shard is there with the bytes that were recorded."""
    # The size first: it is known without reading the file.
    return _size(path) == shard["bytes"] and bool(file_hash(path) == shard["sha256"])


def _size(path: Path) -> int | None:
    with suppress(OSError):
        return path.stat().st_size if path.is_file() else None
    return None
